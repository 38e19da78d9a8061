"""Routing for delay-tolerant networks, as disseminations: any ordering runs over any of them.

A routing protocol decides which copies of a message a node gives to a node that it meets. Nodes that are no
destination carry a message and do not deliver it. A message without destinations is for everybody. All share
`copies` and `router`; the protocols are `direct_delivery`, `first_contact`, `spray_and_wait`, `prophet` and
`maxprop`.
"""
