"""Transports: they move frames between places, best effort.

In reading order: `transport` is the interface (a radio of your own implements four methods), `profiles` fit it
to a kind of network; `addresses` checks those that a person has typed; UDP: `interfaces`, `private_lines`,
`udp_endpoint`, `udp`; over connections: `connections` (what they share), `tcp` for wires, `websocket` for
browsers, with `pages` that it serves; `combined` makes one transport of several.
"""
