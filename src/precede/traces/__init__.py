"""Mobility and contacts: readers and writers of trace files, generators, exact contacts, radio cells.

Movement is a set of straight segments; contacts are intervals in which two nodes are in range. A reader yields
rows and rejects in bounded memory. Contacts of movement are computed exactly, to the microsecond.

In reading order: `records`, `lines`; values: `intervals`, `contacts`, `mobility`; contacts from segments:
`kernel`, `numba_kernel`; readers: `formats`, `reading`, which use `tracks`, `waypoints`, `geography`;
`writers`, `networks`; generated traces: `city_bus`, `pedestrians`, `walks`, `streets`, and `cells` for was2021.

May import: core, files
"""
