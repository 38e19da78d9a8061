"""Transports: they move frames between places, best effort.

In reading order: `transport` is the interface (a radio of your own implements four methods); UDP: `interfaces`,
`private_lines`, `udp_endpoint`, `udp`; `tcp` for wired links.
"""
