"""DRIFT and TOF: total order by flooding over ad hoc radio (Pleisch, Clouser, Nesterenko, Schiper 2006).

Every source stamps its messages with a logical clock and floods them. A message is delivered when no source can
send an earlier one. In DRIFT every packet carries the clocks that its sender knows (virtual flooding); in TOF
only a source's own messages show its clock. `papers/drift2006/reading.md` says how we read the paper.

In reading order: `entry`, `options`, `node`, `packets`; clocks and order: `clock_table`, `seen`, `order`,
`state`; sending and delivering: `packet_builder`, `dummies`, `multicast`, `delivery`; the set of sources
(section 7): `votes`, `join`, `views`, `founding`, `groups`; restarts: `saved`, `restart`, `transfer`; `bounded`
timestamps; what only speed asks for: `fast`.
"""
