"""Layered protocols: any ordering joined to any dissemination.

An ordering decides when a message may be delivered; a dissemination transports messages between nodes. Both
work on envelopes: a message with its ordering's stamp. `LayeredNode` joins one of each into a node. The
orderings of guidec2021 are in their own package, the flooding dissemination is in `floods`.

In reading order: `envelope`, `ordering`, `dissemination`, `node`; what orderings share: `saved_state`,
`own_messages`, `held_messages`, `streams`, `parsed_envelopes`; the orderings `unordered`, `fifo`,
`vector_clock`, `hash_dag`; the disseminations `direct` (`direct_packet`), `epidemic`, `gossip`.
"""
