"""Links to neighbours: from frames of a transport to packets of a node.

A frame is opened (`sealing`), which tells its sender. Pieces of a packet travel through a reliable channel to
one neighbour, or once to all, and are joined again. Each packet is checked before the node receives it.

Modules in reading order:
  neighbours      who is heard, and packets to and from them
  channel         reliable, ordered delivery to one neighbour
  fragments       packets larger than a frame
  sealing         encryption of frames and protection against replays
  inspection      checks a decoded packet before the node receives it
  authorship      signatures of messages
  keyring         files with keys, identities and rosters
  private_lines   a UDP socket for each admitted neighbour
"""
