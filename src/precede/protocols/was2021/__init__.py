"""WAS: causal broadcast for mobile hosts in radio cells (Wilhelm, Arantes, Sens 2021), and its rival CK.

Stations on a wired tree flood messages to each other and number them for their cells, so radio packets carry
no order data. A host that changes cells is handed off in three phases, each station discards what its own
hosts have acknowledged, and hosts may join, leave, crash and recover. `papers/was2021/reading.md` lists where
the paper is wrong or silent (E1 to E18) and what this code does there.

Modules, in reading order:

packets           the packets and their sizes
options           the options
uplink            a host's own messages until its station has accepted them
downlink          the messages a host receives, delivered in order
acknowledgements  when a host acknowledges
host              a mobile host
record            what a station knows about one host
buffer            the messages a station keeps and numbers
transmission      what a station sends to its cell, repeats and discards
silence           hosts that a station has not heard for long
registrations     which hosts are registered at a station
previous_station  handoff at the station that a host left
new_station       join, leave and handoff at the station that a host comes to
station           a station
entry             WAS as the registry knows it
ck                the rival: CK, Chandra and Kshemkalyani (2004)
"""
