"""The networks of the simulator: one module per kind of world, and the interface they share.

A network decides when, whether and how often a packet arrives. It owns the queues, the air time, the loss and
the links, and it tells nodes about links and keyed sends through the `Simulator` interface (`network`). The
kinds: `contacts` (guidec2021), also as `lossy_contacts` and with `interference`; `point_to_point` with
`partition`; `switched` (vcube2018); `flood` with `motion` (drift2006); `cellular` (was2021) with
`journeys` and its radios `radio`, `lossy_radio` and `contention`; `measured` replays transfers that real nodes
recorded.
"""
