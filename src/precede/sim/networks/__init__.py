"""The networks of the simulator: one module per kind of world, and the interface they share.

A network decides when, whether and how often a packet arrives. It owns the queues, the air time, the loss and
the links, and it tells nodes about links and keyed sends through the `Simulator` interface. The modules, in
reading order:

* `network`: the interface between a network and the simulator
* `contacts`: two nodes hear each other while a contact lasts (guidec2021)
* `interference`: the same, with nodes that share the air
* `point_to_point`: delay, loss, duplication and bandwidth between any two nodes
* `partition`: a time in which groups of nodes are separated
* `switched`: the packet-switched network of vcube2018
* `flood`, `motion`: a radio that all nodes in range hear (drift2006), and where nodes are
* `cellular`, `radio`, `lossy_radio`, `contention`: cells around wired stations (was2021), and their radios
* `measured`: replays transfers that real nodes recorded
"""
