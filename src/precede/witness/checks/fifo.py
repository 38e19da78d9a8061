"""The check of FIFO order: a node delivers the messages of one source in the order of broadcasting."""

from precede.witness.history import LATE, Ints


def mark_late_fifo(start: Ints, events: Ints, marks: Ints, source: Ints, highest: Ints, owner: Ints) -> int:
    """Mark every delivery that comes after a later message of its source. Returns the number of marked rows.

    Later messages of a source have higher numbers. `highest[s]` is the highest message of source s that process
    `owner[s]` has delivered; the caller passes one entry per process, `owner` filled with -1.
    """
    late = 0
    for p in range(len(start) - 1):
        for e in range(start[p], start[p + 1]):
            code = events[e]
            if code < 0 or code & 1 == 0:
                continue
            m = code >> 1
            s = source[m]
            if owner[s] == p and highest[s] > m:
                marks[e] |= LATE
                late += 1
            else:
                owner[s] = p
                highest[s] = m
    return late
