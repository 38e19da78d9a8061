"""The kinds of world that a scenario can name.

Each module declares the keys of its `[world]` table as a struct, and builds the network and the nodes from it.

    kinds            the list of kinds, and what a built world consists of
    point_to_point   any node sends to any other
    switched         a packet-switched network with one sending queue per node
    flood            radios that hear each other within a range
    contacts         nodes that meet now and then
    generators       the mobility generators of such worlds, and their keys
    radios           the radios of such worlds: typical bandwidth, set-up time and range
    cellular         stations on a wired tree, and hosts that move between their cells
"""
