"""Commands that run real nodes over sockets.

Modules in reading order:
  arguments           what these commands share: addresses and key files
  node                `precede node`: a member of a group as a filter for lines of text
  lines               standard input to broadcasts, deliveries to standard output
  station, host       `precede station`, `precede host`: a cellular group (WAS, CK)
  keys                `precede keys`: group keys, identities
  emulate             `precede emulate`: a scenario run by real nodes
  emulation_results   verdict, comparison with simulations, and report of an emulation
"""
