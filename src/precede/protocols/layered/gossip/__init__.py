"""The dissemination `gossip`: one transmission serves every neighbour, and digests repair what was lost.

A node carries messages as `epidemic` does and keeps its cache in the same way. What crosses the air differs: a
message is transmitted once for all neighbours, a neighbour relays it only if it has a neighbour of its own
that the transmitter does not reach, and short digests of ranges show who lacks what.

    options        the options of `gossip`
    ranges         sets of message numbers as ranges
    holdings       what a node holds and knows, by stream, with a hash of it
    packets        data, digests, wants and summaries on the air
    coverage       which neighbours a transmission reaches, and which messages must be relayed
    announcements  when a node announces what it holds
    wants          what neighbours offer that this node lacks, and whom it asks for it
    air            the dissemination on a medium where all neighbours hear a transmission
    contacts       the dissemination on links between two nodes
    entry          its entry in the registry
"""
