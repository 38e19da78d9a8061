"""State transfer: how a member gets what it missed and what nobody carries any more.

A member that lacks messages asks its neighbours for their history, and hands it to its node as ordinary
packets. A member whose application can restore a snapshot (`on_restore`) gets that of another member instead,
with the cut of that member's node: the exact position in the order at which the snapshot was made.

In reading order: `packets`, `snapshot`; what a member gives: `giver`; what it gets: `history_wants`, `spool`,
`snapshot_wants`; `transfer`, which connects them to a group.
"""
