"""Causal order for so many nodes that a matrix of all their clocks does not fit into memory.

First processes are walked one by one with a single clock, which costs what each of them knows: little, where
nodes are many because each of them meets few. When that turns out to be much, clocks are kept after all, for
some of the sources at a time: as many columns as fit, and one pass over the rows for each such block.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from precede.witness.history import LATE, History, Ints
from precede.witness.reading.kernels import compiled

WALKED_PER_ROW: Final = 64
"""How many rows of others a row may cost before walking is given up."""

_NARROWEST: Final = 16


def mark_late(
    history: History,
    marks: Ints,
    column: Ints,
    schedule: tuple[Ints, Ints, int],
    rank: Any,
    memory: int,
) -> int:
    """Mark every delivery that comes after a message which it precedes; how many there are."""
    told = (history.start, history.events, marks, history.source, history.base)
    width = int(column.max(initial=-1)) + 1
    clock, touched = np.zeros(width, np.int32), np.empty(width, np.int32)
    stack = np.empty(len(history.events) + 1, np.int32)
    budget = WALKED_PER_ROW * len(history.events)
    if not _walk(*told, history.position, column, clock, touched, stack, budget):
        wanted = np.zeros(history.messages, np.int32)
        slots = int(_most_alive(history.start, history.events, *schedule, wanted))
        across = memory // ((history.processes + slots) * np.dtype(rank).itemsize)
        across = max(_NARROWEST, min(width, int(across)))
        clocks = np.empty((history.processes, across), rank)
        pasts = np.empty((slots, across), rank)
        for first in range(0, width, across):
            clocks[:] = 0
            _late_in_block(*told, column, *schedule, wanted.copy(), first, clocks, pasts)
    return int(np.count_nonzero(marks & LATE))


@compiled
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
    """One process after the other, with one clock; False when that costs more than the budget.

    To count a message in, walk what its source did since the last message that is known of it.
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
                known = clock[column[s]]
                if known >= m - base[s] + 1:
                    continue
                if known == 0:
                    touched[count] = column[s]
                    count += 1
                low = start[s] if known == 0 else position[base[s] + known - 1]
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


@compiled
def _most_alive(start: Ints, events: Ints, who: Ints, until: Ints, turns: Ints, wanted: Ints) -> Ints:
    """How many messages are on their way at once, at most; `wanted` becomes each one's deliveries."""
    for e in range(len(events)):
        if events[e] >= 0 and events[e] & 1:
            wanted[events[e] >> 1] += 1
    left = wanted.copy()
    cursor = start.copy()
    alive, most = 0, 0
    for turn in range(turns):
        p = who[turn]
        for e in range(cursor[p], until[turn]):
            code = events[e]
            if code < 0:
                continue
            if code & 1 == 0:
                if left[code >> 1] > 0:
                    alive += 1
                    most = max(most, alive)
            else:
                left[code >> 1] -= 1
                if left[code >> 1] == 0:
                    alive -= 1
        cursor[p] = until[turn]
    return most


@compiled
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
    """The sources of some columns only: a message's past is kept while it is on its way."""
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
