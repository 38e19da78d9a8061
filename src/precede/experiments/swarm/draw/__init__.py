"""Random worlds for the swarm: one module per family of protocols, each with a `DRAWER`.

* `layered`: orderings over any dissemination
* `gossip`: the same worlds, over the dissemination `gossip`
* `contacts`, `point_to_point`, `flood`: worlds of these networks, with their faults
* `founding`: founders that agree on a group of DRIFT
* `routing`: orderings over routing protocols
* `multicast`: PRS, RST and SES
* `vcube`: trees, crashes, joins and leaves
* `cellular`, `proxies`: radio cells, for WAS and for stations that act for their hosts
"""
