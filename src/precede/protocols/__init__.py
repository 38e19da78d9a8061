"""The protocols: five papers, the baselines they compare with, and the registry that builds nodes by name.

A protocol is a `core.node.Node`: inputs are method calls, each returns a list of effects. A layered protocol is
an ordering joined to a dissemination; the others implement the node directly. In reading order:

* `registry`, `options`: every protocol by name; typed options of a protocol and its dissemination
* `layered`: orderings, disseminations, and the node that joins them
* `guidec2021`: causal barriers and delta-causal broadcast in opportunistic networks
* `routing`: routing for delay-tolerant networks, as disseminations
* `multicast`, `prs1997`: causal multicast to any destination set, and the adaptive rule of the paper
* `floods`, `drift2006`: reliable flooding, and total order by virtual flooding
* `vcube2018`: causal broadcast over VCube trees with aggregation
* `cells`, `was2021`: stations and hosts in radio cells, WAS and CK
* `outbox`, `around`: acknowledgement and retransmission; a node that forwards every input to another node

May import: core
"""
