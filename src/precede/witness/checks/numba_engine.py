"""The checks compiled, for large logs: the flat loops of plain Python, and causal order with dense clocks.

The clock of a process is a row of a matrix, one column for each process that broadcasts. What a source knew at
a broadcast is not copied per message, which would cost messages x sources: it is a snapshot of its clock, taken
at most once in a quarter of a clock's length of rows, and the rows between the snapshot and the broadcast. So
memory is bounded by the rows, and a clock is merged at the speed of memory. Where the matrix of clocks itself
would be too large, `crowds.py` does without it.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from precede.witness import explain
from precede.witness.checks import crowds, delta, fifo, integrity, total
from precede.witness.checks.engine import Engine
from precede.witness.history import LATE, History, Ints
from precede.witness.reading.kernels import compiled

DENSE_CLOCK_BYTES: Final = 1 << 29
_SHORTEST_WINDOW: Final = 16
_ADVANCE: Final = 8


class CompiledEngine(Engine):
    """Numpy arrays and compiled loops."""

    mark_repetitions = staticmethod(compiled(integrity.mark_repetitions))
    mark_unaddressed = staticmethod(compiled(integrity.mark_unaddressed))
    take_turns = staticmethod(compiled(integrity.take_turns))
    break_ring = staticmethod(compiled(integrity.break_ring))
    mark_late_fifo = staticmethod(compiled(fifo.mark_late_fifo))
    mark_expired = staticmethod(compiled(delta.mark_expired))
    agree_up_to = staticmethod(compiled(total.agree_up_to))
    gather_rest = staticmethod(compiled(total.gather_rest))
    index_places = staticmethod(compiled(total.index_places))
    find_knots = staticmethod(compiled(total.find_knots))
    distinct_opinions = staticmethod(compiled(total.distinct_opinions))
    find_disagreement = staticmethod(compiled(total.find_disagreement))
    trace_back = staticmethod(compiled(explain.trace_back))

    def ints(self, count: int, fill: int = 0) -> Ints:
        return np.full(count, fill, np.int32) if fill else np.zeros(count, np.int32)

    def marks(self, count: int) -> Ints:
        return np.zeros(count, np.uint8)

    def copy(self, values: Ints) -> Ints:
        return values.copy()

    def marked(self, marks: Ints, most: int) -> list[int]:
        found: list[int] = np.flatnonzero(marks)[:most].tolist()
        return found

    def clear(self, marks: Ints, mark: int) -> None:
        marks &= np.uint8(~mark & 0xFF)

    def pick(self, values: Ints, places: Ints) -> Ints:
        return values[places]

    def tally(self, values: Ints, count: int) -> Ints:
        return np.bincount(values[values >= 0], minlength=count)

    def deliveries_per_message(self, history: History) -> Ints:
        counts = np.zeros(history.messages, np.int32)
        _count_deliveries(history.events, counts)
        return counts

    def find(self, values: Ints, begin: int, end: int, value: int) -> int:
        found = np.flatnonzero(values[begin:end] == value)
        return begin + int(found[0]) if len(found) else -1

    def mark_late_causal(self, history: History, marks: Ints, who: Ints, until: Ints, turns: int) -> int:
        start, source, base = history.start, history.source, history.base
        sources = np.flatnonzero(np.diff(base))
        column = np.full(history.processes, -1, np.int32)
        column[sources] = np.arange(len(sources), dtype=np.int32)
        rank = np.int16 if np.diff(base).max(initial=0) < 1 << 15 else np.int32
        rows, width = len(history.events), len(sources)
        schedule = (who, until, turns)
        if history.processes * width * np.dtype(rank).itemsize > DENSE_CLOCK_BYTES:
            return crowds.mark_late(history, marks, column, schedule, rank, DENSE_CLOCK_BYTES)
        told = (start, history.events, marks, source, base, history.position, column)
        window = max(_SHORTEST_WINDOW, width // 4)
        most = rows // window + 1
        clocks = np.zeros((history.processes, width), rank)
        snapshots, taken_at = np.empty((most, width), rank), np.empty(most, np.int32)
        snapshot_of = np.full(history.messages, -1, np.int32)
        stack = np.empty(rows + 1, np.int32)
        order = tuple(np.zeros(history.messages, np.int32) for _ in range(3))
        return int(
            _late_dense(*told, *schedule, window, clocks, snapshots, taken_at, snapshot_of, stack, *order)
        )


@compiled
def _count_deliveries(events: Ints, counts: Ints) -> Ints:
    for e in range(len(events)):
        code = events[e]
        if code >= 0 and code & 1:
            counts[code >> 1] += 1


@compiled
def _learn(
    message: Ints,
    clock: Ints,
    start: Ints,
    events: Ints,
    source: Ints,
    base: Ints,
    position: Ints,
    column: Ints,
    snapshots: Ints,
    taken_at: Ints,
    snapshot_of: Ints,
    stack: Ints,
) -> Ints:
    """Count a message and all of its past in: what its source knew that this clock does not.

    The clock knows the source up to its message k0, and with it all that the source had seen when it broadcast
    that. So only the source's rows between k0 and the message matter, and only deliveries not known yet.
    """
    stack[0] = message
    height = 1
    width = len(clock)
    while height > 0:
        height -= 1
        m = stack[height]
        s = source[m]
        rank = m - base[s] + 1
        known = clock[column[s]]
        if known >= rank:
            continue
        low = start[s] if known == 0 else position[base[s] + known - 1]
        clock[column[s]] = rank
        snapshot = snapshot_of[m]
        if snapshot >= 0 and taken_at[snapshot] > low:
            for j in range(width):
                clock[j] = max(clock[j], snapshots[snapshot, j])
            low = taken_at[snapshot]
        for e in range(low, position[m]):
            code = events[e]
            if code >= 0 and code & 1:
                t = source[code >> 1]
                if clock[column[t]] < (code >> 1) - base[t] + 1:
                    stack[height] = code >> 1
                    height += 1


@compiled
def _late_dense(
    start: Ints,
    events: Ints,
    marks: Ints,
    source: Ints,
    base: Ints,
    position: Ints,
    column: Ints,
    who: Ints,
    until: Ints,
    turns: Ints,
    window: Ints,
    clocks: Ints,
    snapshots: Ints,
    taken_at: Ints,
    snapshot_of: Ints,
    stack: Ints,
    place: Ints,
    sequence: Ints,
    height: Ints,
) -> Ints:
    """Mark the late deliveries in the order of the turns.

    Messages also have a place in the order in which they are met. A process knows all of them up to `complete`;
    a message whose past lies below that teaches nothing new, and its clock need not be looked at. That is the
    usual case where everybody delivers everything, and makes a delivery's cost independent of the nodes.
    """
    found, taken, met = 0, 0, 0
    cursor = start.copy()
    latest = np.full(len(start), -1, np.int32)
    complete, highest = np.zeros(len(start), np.int32), np.zeros(len(start), np.int32)
    for turn in range(turns):
        p = who[turn]
        clock = clocks[p]
        for e in range(cursor[p], until[turn]):
            code = events[e]
            if code < 0:
                continue
            m = code >> 1
            if code & 1 == 0:
                since = start[p] if latest[p] < 0 else taken_at[latest[p]]
                if e - since >= window:
                    snapshots[taken, :] = clock
                    taken_at[taken] = e
                    latest[p] = taken
                    taken += 1
                snapshot_of[m] = latest[p]
                height[m] = highest[p]
                sequence[met] = m
                met += 1
                place[m] = met
                highest[p] = met
                continue
            s = source[m]
            if clock[column[s]] >= m - base[s] + 1:
                marks[e] |= LATE
                found += 1
                continue
            if height[m] <= complete[p]:
                clock[column[s]] = m - base[s] + 1
            else:
                _learn(
                    *(m, clock, start, events, source, base, position, column),
                    *(snapshots, taken_at, snapshot_of, stack),
                )
            highest[p] = max(highest[p], place[m])
            for _ in range(_ADVANCE):
                if complete[p] == met:
                    break
                n = sequence[complete[p]]
                if clock[column[source[n]]] < n - base[source[n]] + 1:
                    break
                complete[p] += 1
        cursor[p] = until[turn]
    return found
