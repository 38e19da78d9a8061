"""What the two engines for epidemics over contacts share: `instant_contacts` and `timed_contacts`.

Both know network and dissemination at once, and move messages from cache to cache without packets, effects or
keyed sends. Nodes enter, leave, broadcast and have timers as in any world; the orderings are the same objects
as on the shared path, and so are the rows: the shared path is their oracle (tests/experiments).

In reading order: `carrier`, `world`, `choosing`.
"""
