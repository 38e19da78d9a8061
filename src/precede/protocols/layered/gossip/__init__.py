"""The dissemination `gossip`: one transmission serves every neighbour, and digests repair what was lost.

A node carries messages as `epidemic` does and keeps its cache in the same way. What crosses the air differs: a
message is transmitted once for all neighbours, a neighbour relays it only if it has a neighbour of its own that
the transmitter does not reach, and short digests of ranges show who lacks what.

In reading order: `options`, `ranges`, `holdings`, `packets`, `coverage`, `announcements`, `wants`; the
dissemination itself, where all neighbours hear a transmission (`air`) and on links between two nodes
(`contacts`); `entry`.
"""
