"""An engine for one kind of run: epidemic dissemination over contacts whose transfers take no time.

In such a world a contact hands over everything that a peer lacks at once, and each new message crosses all hops
within the instant. The shared path sends packets with sets of ids. This one numbers the messages of a world: a
cache is one long integer with a bit for each message it holds, beside the log in order of reception; what a
peer lacks is a difference of two integers, and a whole cache is handed over without looking at its messages if
the peer holds them all. The orderings are the same objects as on the shared path, and so are the rows: the
shared path is its oracle (tests/experiments/test_instant_contacts.py).

It is used where the package is compiled and nothing disturbs the run (`contact_worlds.choosing`). In
reading order: `random_order`, `store`, `carrier`, `world`.
"""
