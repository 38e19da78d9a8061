"""Mobility and contacts: readers and writers of trace files, generators, exact contacts, radio cells.

Movement is a set of straight segments; contacts are intervals in which two nodes are in range. A reader yields
rows and rejects in bounded memory. Contacts of movement are computed exactly, to the microsecond.

* `records`, `lines`: rows, rejects and summaries; lines of text files
* `intervals`, `contacts`, `mobility`: segments, contact lists and movement as values
* `kernel`, `numba_kernel`: contacts from segments
* `formats`, `reading`: one reader for each format; any file by the name of its format
* `tracks`, `waypoints`, `geography`: from samples, from waypoints, from coordinates to segments
* `writers`, `networks`: trace files from contacts and movement; contacts as events and as a graph
* `city_bus`, `pedestrians`: generated traces of guidec2021
* `walks`, `streets`: generated walks in a field, and on streets; working days
* `cells`: radio cells and hosts that walk, of was2021

May import: core, files
"""
