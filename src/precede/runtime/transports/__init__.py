"""Transports: they move frames between places, best effort.

Modules in reading order:
  transport   the interface; a radio of your own implements four methods
  udp         UDP, unicast and multicast
  tcp         TCP, for wired links
"""
