"""Reliable flooding over ad hoc radio, and virtual flooding on other packets (drift2006, sections 3, 4.4, 8).

Every node relays every flood once. Lost floods are detected by their numbers and requested from neighbours.
DRIFT and TOF (`drift2006`) build on this, and so does `flooding`, the dissemination for any ordering. Virtual
flooding needs no packets of its own: it attaches data to whatever is sent.

options           the options of reliable floods
trickle           when to send digests
stream            a numbered stream of floods at one node
reliable_floods   numbered floods: duplicates, gaps, requests, answers, digests
flooding          the dissemination `flooding`
virtual_flooding  data that spreads on other packets, and which of it a packet carries under a limit
carrier           any node with virtually flooded data on its packets
"""
