"""The simulator: a deterministic world of nodes, a network, faults and a workload.

One seed is one world: every random generator has a name and is derived from the seed, and network draws never
depend on what is in a packet. The simulator imports no protocol; it is given a function that makes nodes. A
world is built in layers, each a class on top of the one before. In reading order: `queue`, `hosted_node`, the
layers `node_effects`, `plain_writer` and `fast_path` (the usual case, written for speed), `node_inputs` and
`world`; `networks`; `workload`, `faults`; `randomness`, `flight`, `draws`, `clocks`. Compiled:
`machine_order`, which sorts for `queue`; `wheel` and `wheel_world`, for networks that only delay packets
(`choosing`).

May import: core, eventlog, traces
"""
