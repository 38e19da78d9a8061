"""The simulator: a deterministic world of nodes, a network, faults and a workload.

One seed is one world: every random generator has a name and is derived from the seed, and network draws never
depend on what is in a packet. The simulator imports no protocol; it is given a function that makes nodes. A
world is built in layers, each a class on top of the one before. The modules, in reading order:

* `queue`: the events, in order
* `hosted_node`: what the simulator keeps about one node
* `node_effects`: what each effect of a node does
* `fast_path`: the same for the usual case, written for speed
* `node_inputs`: packets, links and sends that networks report to nodes
* `world`: nodes enter, leave, crash, restart and stall; the event loop
* `networks`: the kinds of networks
* `workload`, `faults`: what applications broadcast, and what goes wrong
* `randomness`, `draws`, `clocks`: named generators and distributions, fast draws, clocks of nodes

May import: core, eventlog, traces
"""
