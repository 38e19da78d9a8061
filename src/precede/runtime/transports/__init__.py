"""Transports: they move frames between places, best effort.

Modules in reading order:
  transport      the interface; a radio of your own implements four methods
  interfaces     the network interfaces that multicast can use
  private_lines  a UDP socket for each admitted neighbour
  udp_endpoint   the UDP sockets of one address family
  udp            UDP, unicast and multicast, over IPv4 and IPv6
  tcp            TCP, for wired links
"""
