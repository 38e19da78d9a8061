"""Random worlds for the swarm: one module per family of protocols, each with a `DRAWER`.

`layered`, `gossip` and `routing` draw orderings over disseminations, in the worlds and with the faults of
`contacts`, `point_to_point` and `flood`; `founding` and `meeting` draw groups of DRIFT, `multicast` PRS, RST
and SES, `vcube` its trees and crashes, `cellular` WAS, and `proxies` stations that act for their hosts.
`further` adds situations to any of these worlds, `rare` rarer ones, and `lives` what befalls single nodes.
"""
