"""Routing for delay-tolerant networks, as disseminations: any ordering runs over any of them.

A routing protocol decides which copies of a message a node gives to a node that it meets. Nodes that are no
destination carry a message and do not deliver it. A message without destinations is for everybody.

    copies           the copies that nodes carry, and the packets between nodes
    router           what all of them share: the store, the exchange at a contact, transfers one by one
    direct_delivery  the source gives its messages to their destinations only
    first_contact    one copy, handed to the first node in contact
    spray_and_wait   a limited number of copies, half of them given away at a contact
    prophet          copies go to nodes that have met the destination more often
    maxprop          copies to everybody; the ones that are likely to arrive go first
"""
