"""Links to neighbours: from frames of a transport to packets of a node.

Admission tells whether a frame is authentic and who sent it. Pieces of a packet travel through a reliable
channel to one neighbour, or once to all, and are joined again. Each packet is checked before use.

Modules in reading order:
  neighbours      who is heard, and packets to and from them
  neighbour       one of them
  channel         reliable, ordered delivery to one neighbour
  fragments       packets larger than a frame
  bundles         several packets in one frame
  admission       sealed and open links: which frames are authentic
  agreement       settings that all members must share, compared
  link_events     what admission reports to the links
  sessions        handshakes and data frames between two members
  session_table   sessions and handshakes under way, within bounds
  noise           the Noise handshake KKpsk0
  introductions   signed introductions, and the directory of members
  paths           proven addresses, and budgets of the others
  cookies         proof of address under load
  group_seal      frames for everybody, under the group key
  replay_window   counters that were seen
  inspection      checks a decoded packet before the node receives it
  waiting_bound   bytes of messages that wait
  authorship      signatures of messages
  keyring         files with keys, identities and rosters
"""
