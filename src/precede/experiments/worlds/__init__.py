"""The kinds of world that a scenario can name.

Each module declares the keys of its `[world]` table as a struct, and builds the network and the nodes from it.
In reading order: `kinds` (the list), `point_to_point`, `switched`, `flood`, `contacts` with its `generators` of
mobility and its `radios`, `cellular`.
"""
