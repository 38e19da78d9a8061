"""DRIFT and TOF: total order by flooding over ad hoc radio (Pleisch, Clouser, Nesterenko, Schiper 2006).

Every source stamps its messages with a logical clock and floods them. A message is delivered when no source can
send an earlier one. In DRIFT every packet carries the clocks that its sender knows (virtual flooding); in TOF
only a source's own messages show its clock. `papers/drift2006/reading.md` says how we read the paper.

entry           the registry's entries for `drift` and `tof`
options         their options
node            a node: builds the parts below and passes its inputs to them (Figure 3)
packets         the packets, with the paper's size model
clock_table     a table of clocks in one integer
seen            the clocks of the sources (Seen, sections 4.1 and 4.4)
order           which message is next in the order, and whether it is safe; what TOF would deliver
state           the data that the parts share
packet_builder  builds packets from the state
dummies         dummy floods for termination (section 4.4), and control packets
votes           suspected sources, and Paxos on the next view (section 7)
multicast       TO-multicast and receipt processing
delivery        delivery, and other moves in the total order
join            becoming a source and leaving (section 7)
views           installing a view: streams end, sources are removed (section 7)
founding        how listed founders agree on a group
groups          entering, founding and changing groups (section 7)
saved, restart  what a node persists, and how it restarts from that
bounded         timestamps that are reused (section 4.4), as a node around a node
"""
