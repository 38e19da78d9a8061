"""The check of causal order for so many nodes that the vector clocks of all of them do not fit into memory.

First the processes are checked one by one with a single clock. This costs as much as the processes know of each
other, which is little when each node meets few others. When the cost exceeds a budget, the clocks of all
processes are kept for a block of sources at a time, with one pass over the rows for each block.
"""

from typing import Any, Final

import numpy as np

from precede.witness.history import LATE, History, Ints
from precede.witness.reading.kernels import numba_kernel

WALKED_PER_ROW: Final = 64
"""The budget: how many rows of other processes the check may visit per row before it changes the method."""

_NARROWEST: Final = 16


def mark_late(
    history: History,
    marks: Ints,
    column: Ints,
    schedule: tuple[Ints, Ints, int],
    rank: Any,
    memory: int,
) -> int:
    """Mark every late delivery: its process delivered before it a message that depends on it.

    Returns the number of marked rows. `column[p]` is the clock column of a process that broadcasts, `schedule`
    the result of `take_turns`, `rank` the number type of a clock entry, `memory` the bytes for clocks.
    """
    arrays = (history.start, history.events, marks, history.source, history.base)
    width = int(column.max(initial=-1)) + 1
    clock, touched = np.zeros(width, np.int32), np.empty(width, np.int32)
    stack = np.empty(len(history.events) + 1, np.int32)
    budget = WALKED_PER_ROW * len(history.events)
    if not _walk(*arrays, history.position, column, clock, touched, stack, budget):
        copies = np.zeros(history.messages, np.int32)
        slots = int(_most_in_transit(history.start, history.events, *schedule, copies))
        across = memory // ((history.processes + slots) * np.dtype(rank).itemsize)
        across = max(_NARROWEST, min(width, int(across)))
        clocks = np.empty((history.processes, across), rank)
        pasts = np.empty((slots, across), rank)
        for first in range(0, width, across):
            clocks[:] = 0
            _late_in_block(*arrays, column, *schedule, copies.copy(), first, clocks, pasts)
    return int(np.count_nonzero(marks & LATE))


@numba_kernel
def _walk(
    start: Ints,
    events: Ints,
    marks: Ints,
    source: Ints,
    base: Ints,
    position: Ints,
    column: Ints,
    clock: Ints,
    touched: Ints,
    stack: Ints,
    budget: Ints,
) -> Ints:
    """Mark late deliveries in `marks`, one process after the other, with one clock that is reset between them.

    To add a delivered message to the clock, visit the rows of its source since the last message of that source
    that the clock has. Returns False if the budget was spent: the marks are then right, but not complete.
    """
    for p in range(len(start) - 1):
        count = 0
        for e in range(start[p], start[p + 1]):
            code = events[e]
            if code < 0 or code & 1 == 0:
                continue
            m = code >> 1
            if clock[column[source[m]]] >= m - base[source[m]] + 1:
                marks[e] |= LATE
                continue
            stack[0] = m
            height = 1
            while height > 0:
                height -= 1
                m = stack[height]
                s = source[m]
                rank_known = clock[column[s]]
                if rank_known >= m - base[s] + 1:
                    continue
                if rank_known == 0:
                    touched[count] = column[s]
                    count += 1
                low = start[s] if rank_known == 0 else position[base[s] + rank_known - 1]
                clock[column[s]] = m - base[s] + 1
                budget -= position[m] - low
                for row in range(low, position[m]):
                    seen = events[row]
                    if seen >= 0 and seen & 1:
                        t = source[seen >> 1]
                        if clock[column[t]] < (seen >> 1) - base[t] + 1:
                            stack[height] = seen >> 1
                            height += 1
            if budget < 0:
                return False
        for i in range(count):
            clock[touched[i]] = 0
    return True


@numba_kernel
def _most_in_transit(start: Ints, events: Ints, who: Ints, until: Ints, turns: Ints, copies: Ints) -> Ints:
    """Return the most messages that are between their broadcast and last delivery, by the schedule.

    `copies[m]` becomes the number of deliveries of message m.
    """
    for e in range(len(events)):
        if events[e] >= 0 and events[e] & 1:
            copies[events[e] >> 1] += 1
    left = copies.copy()
    cursor = start.copy()
    in_transit, most = 0, 0
    for turn in range(turns):
        p = who[turn]
        for e in range(cursor[p], until[turn]):
            code = events[e]
            if code < 0:
                continue
            if code & 1 == 0:
                if left[code >> 1] > 0:
                    in_transit += 1
                    most = max(most, in_transit)
            else:
                left[code >> 1] -= 1
                if left[code >> 1] == 0:
                    in_transit -= 1
        cursor[p] = until[turn]
    return most


@numba_kernel
def _late_in_block(
    start: Ints,
    events: Ints,
    marks: Ints,
    source: Ints,
    base: Ints,
    column: Ints,
    who: Ints,
    until: Ints,
    turns: Ints,
    left: Ints,
    first: Ints,
    clocks: Ints,
    pasts: Ints,
) -> Ints:
    """Mark late deliveries of the sources in one block of columns. Keep each past until its last delivery."""
    width = clocks.shape[1]
    cursor = start.copy()
    slot_of = np.full(len(source), -1, np.int32)
    free = np.arange(len(pasts), dtype=np.int32)
    unused = len(pasts)
    for turn in range(turns):
        p = who[turn]
        clock = clocks[p]
        for e in range(cursor[p], until[turn]):
            code = events[e]
            if code < 0:
                continue
            m = code >> 1
            if code & 1 == 0:
                if left[m] > 0:
                    unused -= 1
                    slot_of[m] = free[unused]
                    pasts[free[unused], :] = clock
                continue
            slot = slot_of[m]
            for j in range(width):
                clock[j] = max(clock[j], pasts[slot, j])
            here = column[source[m]] - first
            if 0 <= here < width:
                rank = m - base[source[m]] + 1
                if clock[here] >= rank:
                    marks[e] |= LATE
                else:
                    clock[here] = rank
            left[m] -= 1
            if left[m] == 0:
                free[unused] = slot
                unused += 1
        cursor[p] = until[turn]
