"""A second engine for one kind of run: epidemic dissemination over contacts whose transfers take time.

In such a world every message goes alone, and every copy that arrives is announced to all other neighbours: for
each reception there are two transfers, some notices and ten rows. The shared path makes packets, effects and
keyed sends of them. This one knows network and dissemination, and passes messages from link to link without any
object. The orderings are the same objects as on the shared path, and so are the rows: the shared path is its
oracle (tests/experiments/test_timed_contacts.py).

It is used where the package is compiled and nothing disturbs the run (`contact_worlds.choosing`). In
reading order: `marks`, `ranked`, `carried`, `links`, `carrier`, `transfers`, `world`.
"""
