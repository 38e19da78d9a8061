"""Reliable flooding over ad hoc radio, and virtual flooding on other packets (drift2006, sections 3, 4.4, 8).

Every node relays every flood once. Lost floods are detected by their numbers and requested from neighbours.
DRIFT and TOF (`drift2006`) build on this, and so does `flooding`, the dissemination for any ordering. Virtual
flooding needs no packets of its own: it attaches data to whatever is sent. In reading order: `options`,
`trickle`, `running_time`, `stream`, `reliable_floods`, `flooding`; `virtual_flooding`, `carrier`.
"""
