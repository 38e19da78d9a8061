"""Links to neighbours: from frames of a transport to packets of a node.

Admission tells whether a frame is authentic and who sent it. Pieces of a packet travel through a reliable
channel to one neighbour, or once to all, and are joined again. Each packet is checked before use.

In reading order: `neighbours`, `neighbour`, `channel`, `fragments`, `bundles`; which frames are authentic:
`admission`, `agreement`, `link_events`, `sessions`, `session_table`, `noise`, `introductions`, `paths`,
`cookies`, `group_seal`, `replay_window`; decoded packets: `inspection`, `waiting_bound`, `authorship`;
`keyring`.
"""
