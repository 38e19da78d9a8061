"""FIFO: what one source broadcast first is delivered first, wherever both are delivered."""

from __future__ import annotations

from precede.witness.history import LATE, Ints


def mark_late_fifo(start: Ints, events: Ints, marks: Ints, source: Ints, highest: Ints, owner: Ints) -> int:
    """Mark every delivery that comes after a later message of its source; how many there are.

    Messages are numbered by source and in the order of broadcasting, so a message with a higher number from the
    same source is a later one. `highest` and `owner` have one entry per process; `owner` is -1.
    """
    found = 0
    for p in range(len(start) - 1):
        for e in range(start[p], start[p + 1]):
            code = events[e]
            if code < 0 or code & 1 == 0:
                continue
            m = code >> 1
            s = source[m]
            if owner[s] == p and highest[s] > m:
                marks[e] |= LATE
                found += 1
            else:
                owner[s] = p
                highest[s] = m
    return found
