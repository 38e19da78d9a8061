"""The check of integrity: no delivery twice, none before its broadcast, none at a node it is not addressed to.

The functions are flat loops over integers. They run on lists in plain Python, and on numpy arrays when
`numba_engine.py` compiles them with numba.
"""

from typing import Final

from precede.witness.history import DUPLICATE, EARLY, UNADDRESSED, Ints

OUT: Final = -2
"""The entry in `parked` of a message that has been broadcast: no process needs to wait for it."""


def mark_repetitions(start: Ints, events: Ints, marks: Ints, last_seen: Ints) -> int:
    """Mark and mask every delivery of a message that the process has delivered before, and count these.

    `last_seen` has one entry per message, filled with -1. This check runs first: a repetition would look late.
    """
    repeated = 0
    for p in range(len(start) - 1):
        for e in range(start[p], start[p + 1]):
            code = events[e]
            if code >= 0 and code & 1:
                m = code >> 1
                if last_seen[m] == p:
                    marks[e] |= DUPLICATE
                    events[e] = -code - 2
                    repeated += 1
                last_seen[m] = p
    return repeated


def mark_unaddressed(
    start: Ints,
    events: Ints,
    marks: Ints,
    source: Ints,
    node_of: Ints,
    addressed: Ints,
    address_start: Ints,
    addresses: Ints,
) -> int:
    """Mark every delivery at a node that is neither source nor destination. Returns the number."""
    unaddressed = 0
    for p in range(len(start) - 1):
        node = node_of[p]
        for e in range(start[p], start[p + 1]):
            code = events[e]
            if code < 0 or code & 1 == 0:
                continue
            m = code >> 1
            if addressed[m] == 0 or source[m] == p:
                continue
            low, high = address_start[m], address_start[m + 1]
            while low < high:
                middle = (low + high) // 2
                if addresses[middle] < node:
                    low = middle + 1
                else:
                    high = middle
            if low == address_start[m + 1] or addresses[low] != node:
                marks[e] |= UNADDRESSED
                unaddressed += 1
    return unaddressed


def take_turns(
    start: Ints,
    events: Ints,
    cursor: Ints,
    waits: Ints,
    parked: Ints,
    after: Ints,
    ready: Ints,
    count: int,
    who: Ints,
    until: Ints,
    turns: int,
) -> int:
    """Order all rows so that every broadcast precedes its deliveries. Returns the number of turns so far.

    In turn i process `who[i]` advances to row `until[i]`: the first delivery whose message is not broadcast
    yet. The process is parked on that message, and the broadcast makes it ready again, so that no row is
    scanned twice.

    The caller passes `cursor` as a copy of `start`, and `waits` (per process) and `parked` (per message) filled
    with -1; `parked` becomes OUT with the broadcast. `ready` holds `count` processes. Processes that have not
    reached their end when the function returns wait for each other in a ring (see `break_ring`).
    """
    while count > 0:
        count -= 1
        p = ready[count]
        e, end = cursor[p], start[p + 1]
        while e < end:
            code = events[e]
            if code >= 0:
                m = code >> 1
                if code & 1:
                    if parked[m] != OUT:
                        waits[p] = m
                        after[p] = parked[m]
                        parked[m] = p
                        break
                else:
                    q = parked[m]
                    parked[m] = OUT
                    while q >= 0:
                        ready[count] = q
                        count += 1
                        q = after[q]
            e += 1
        if e > cursor[p]:
            who[turns] = p
            until[turns] = e
            turns += 1
            cursor[p] = e
    return turns


def break_ring(
    first: int,
    events: Ints,
    source: Ints,
    marks: Ints,
    cursor: Ints,
    waits: Ints,
    parked: Ints,
    after: Ints,
    ready: Ints,
) -> None:
    """Mark a delivery that precedes its broadcast, where processes wait for each other's broadcasts in a ring.

    `first` is a waiting process that leads into the ring. No order of the rows exists, so a process of the ring
    delivered a message before its broadcast. The lowest process is blamed: its delivery is marked and masked,
    and the process becomes ready.
    """
    slow = source[waits[first]]
    fast = source[waits[slow]]
    while slow != fast:
        slow = source[waits[slow]]
        fast = source[waits[source[waits[fast]]]]
    lowest = slow
    q = source[waits[slow]]
    while q != slow:
        lowest = min(lowest, q)
        q = source[waits[q]]
    m = waits[lowest]
    if parked[m] == lowest:
        parked[m] = after[lowest]
    else:
        q = parked[m]
        while after[q] != lowest:
            q = after[q]
        after[q] = after[lowest]
    e = cursor[lowest]
    marks[e] |= EARLY
    events[e] = -events[e] - 2
    ready[0] = lowest
