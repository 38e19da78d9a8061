"""Integrity: nothing twice, nothing that was not broadcast before, nothing to whom it was not addressed.

Written for lists and, compiled, for numpy arrays (see `compiled.py`): flat loops over whole numbers.
"""

from __future__ import annotations

from typing import Final

from precede.witness.history import DUPLICATE, EARLY, UNADDRESSED, Ints

OUT: Final = -2
"""In `parked`: this message has been broadcast."""


def mark_repetitions(start: Ints, events: Ints, marks: Ints, last_seen: Ints) -> int:
    """Mark and mask every delivery of a message that the process has delivered before; how many there are.

    `last_seen` has one entry per message, -1. This goes first: else a repetition would look late.
    """
    found = 0
    for p in range(len(start) - 1):
        for e in range(start[p], start[p + 1]):
            code = events[e]
            if code >= 0 and code & 1:
                m = code >> 1
                if last_seen[m] == p:
                    marks[e] |= DUPLICATE
                    events[e] = -code - 2
                    found += 1
                last_seen[m] = p
    return found


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
    """Mark every delivery at a node that is not among the message's destinations; its source always may."""
    found = 0
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
                found += 1
    return found


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
    """Put rows in one order in which every broadcast precedes its deliveries; how many turns there are then.

    Process `who[i]` runs up to row `until[i]` in turn i: until it meets a message that its source has not come
    to broadcast. It is parked on that message and woken by the broadcast: nothing is ever scanned.

    `cursor` is a copy of `start`; `waits` (per process) and `parked` (per message) are -1; `parked` becomes OUT
    with the broadcast. `ready` holds `count` processes. When it returns with processes that are not at their
    end, these wait for each other in a ring (`break_ring`).
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
    """No order exists: the processes that `first` leads to wait for each other, so somebody delivered a message
    before it can have been broadcast. The lowest process of the ring is blamed: its delivery is marked and
    masked, and it is ready to go on.
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
