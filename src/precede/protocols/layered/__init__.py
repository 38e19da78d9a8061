"""Layered protocols: any ordering joined to any dissemination.

An ordering decides when a message may be delivered; a dissemination transports messages between nodes. Both
work on envelopes: a message with its ordering's stamp. `LayeredNode` joins one of each into a node. The
orderings of guidec2021 are in their own package, the flooding dissemination is in `floods`.

    envelope          a message as a dissemination carries it
    ordering          the interface of an ordering
    dissemination     the interface of a dissemination
    node              `LayeredNode`, the node that joins the two
    saved_state       reads persisted state after a restart
    own_messages      numbers own messages and persists them until they are sent
    held_messages     persists received messages that wait for others
    streams           names a source in one incarnation
    parsed_envelopes  envelopes read once for all nodes of a simulation
    unordered         ordering: delivery on arrival
    fifo              ordering: first in, first out per source
    vector_clock      ordering: causal, in a fixed group
    hash_dag          ordering: causal, by hashes of the predecessors
    direct            dissemination: from the sender to each addressee
    epidemic          dissemination: store, carry and forward
    gossip            dissemination: one transmission for all neighbours, and digests of ranges
"""
