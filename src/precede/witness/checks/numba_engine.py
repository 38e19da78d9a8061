"""The engine for large logs: the checks compiled by numba, and causal order with dense vector clocks.

The clock of a process is a row of a matrix with one column for each process that broadcasts. The past of a
message is not stored as a copy of its source's clock, because that would take messages x sources numbers.
Instead a source takes snapshots of its clock, at most one per `width // 4` rows; the past of a message is the
last snapshot and the rows of the source between the snapshot and the broadcast. So memory is bounded by the
number of rows. When the matrix of clocks itself would be too large, `crowds.py` does the check without it.

Messages also have a place in the sequence in which the schedule meets their broadcasts. A process knows all
messages up to place `complete`. A message whose past lies below that adds nothing but itself to the clock, so
its past is not visited. This is the usual case when every node delivers every message; a delivery then costs
the same however many nodes there are.
"""

from typing import Final

import numpy as np

from precede.witness import explain
from precede.witness.checks import crowds, delta, fifo, integrity, total
from precede.witness.checks.engine import Engine
from precede.witness.history import LATE, History, Ints
from precede.witness.reading.kernels import numba_kernel

DENSE_CLOCK_BYTES: Final = 1 << 29
"""The most memory for the matrix of clocks."""

_SHORTEST_WINDOW: Final = 16
"""The fewest rows of a source between two snapshots of its clock."""

_ADVANCE: Final = 8
"""By how many messages the known prefix `complete` may grow at a delivery, so that each one costs little."""

_MESSAGE_COLUMNS: Final = ("column", "rank", "height", "place")
"""What a delivery needs to know of its message, in one row of an array: together they take one look at memory.

The clock column of its source, its rank there, its place in the sequence of broadcasts, and the highest place
in its past.
"""

_COLUMN, _RANK, _HEIGHT, _PLACE = range(len(_MESSAGE_COLUMNS))


class NumbaEngine(Engine):
    """The checks of `Engine` on numpy arrays, compiled by numba."""

    mark_repetitions = staticmethod(numba_kernel(integrity.mark_repetitions))
    mark_unaddressed = staticmethod(numba_kernel(integrity.mark_unaddressed))
    take_turns = staticmethod(numba_kernel(integrity.take_turns))
    break_ring = staticmethod(numba_kernel(integrity.break_ring))
    mark_late_fifo = staticmethod(numba_kernel(fifo.mark_late_fifo))
    mark_expired = staticmethod(numba_kernel(delta.mark_expired))
    agree_up_to = staticmethod(numba_kernel(total.agree_up_to))
    gather_rest = staticmethod(numba_kernel(total.gather_rest))
    index_places = staticmethod(numba_kernel(total.index_places))
    find_knots = staticmethod(numba_kernel(total.find_knots))
    distinct_opinions = staticmethod(numba_kernel(total.distinct_opinions))
    find_disagreement = staticmethod(numba_kernel(total.find_disagreement))
    trace_back = staticmethod(numba_kernel(explain.trace_back))

    def ints(self, count: int, fill: int = 0) -> Ints:
        return np.full(count, fill, np.int32) if fill else np.zeros(count, np.int32)

    def marks(self, count: int) -> Ints:
        return np.zeros(count, np.uint8)

    def copy(self, values: Ints) -> Ints:
        return values.copy()

    def marked(self, marks: Ints, most: int) -> list[int]:
        rows: list[int] = np.flatnonzero(marks)[:most].tolist()
        return rows

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
        places = np.flatnonzero(values[begin:end] == value)
        return begin + int(places[0]) if len(places) else -1

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
        row_arrays = (start, history.events, marks, source, base, history.position, column)
        window = max(_SHORTEST_WINDOW, width // 4)
        most = rows // window + 1
        clocks = np.zeros((history.processes, width), rank)
        snapshots = (
            np.empty((most, width), rank),
            np.empty(most, np.int32),
            np.full(history.messages, -1, np.int32),
        )
        stack = np.empty(rows + 1, np.int32)
        of_message = np.zeros((history.messages, len(_MESSAGE_COLUMNS)), np.int32)
        of_message[:, _COLUMN] = column[source]
        of_message[:, _RANK] = np.arange(1, history.messages + 1, dtype=np.int32) - base[source]
        met = np.empty((history.messages, 2), np.int32)
        return int(_late_dense(row_arrays, schedule, window, clocks, snapshots, stack, of_message, met))


@numba_kernel
def _count_deliveries(events: Ints, counts: Ints) -> Ints:
    for e in range(len(events)):
        code = events[e]
        if code >= 0 and code & 1:
            counts[code >> 1] += 1


@numba_kernel
def _learn(
    message: Ints,
    clock: Ints,
    start: Ints,
    events: Ints,
    source: Ints,
    base: Ints,
    position: Ints,
    column: Ints,
    past: Ints,
    stack: Ints,
) -> Ints:
    """Add a message and its whole past to a process's clock.

    The clock has the source's messages up to some k, and with it everything that the source had delivered when
    it broadcast k. So only the source's rows between k and the message are visited, and of these only
    deliveries that the clock does not have.
    """
    snapshots, taken_at, snapshot_of = past
    stack[0] = message
    height = 1
    width = len(clock)
    while height > 0:
        height -= 1
        m = stack[height]
        s = source[m]
        rank = m - base[s] + 1
        count = clock[column[s]]
        if count >= rank:
            continue
        low = start[s] if count == 0 else position[base[s] + count - 1]
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


@numba_kernel
def _late_dense(
    rows: Ints,
    schedule: Ints,
    window: Ints,
    clocks: Ints,
    past: Ints,
    stack: Ints,
    of_message: Ints,
    sequence: Ints,
) -> Ints:
    """Mark the late deliveries in the order of the schedule. Returns their number.

    `sequence` becomes the clock column and the rank of each message, in the order of the broadcasts.
    """
    start, events, marks, source, base, position, column = rows
    who, until, turns = schedule
    snapshots, taken_at, snapshot_of = past
    late, taken, met = 0, 0, 0
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
                of_message[m, _HEIGHT] = highest[p]
                sequence[met, 0], sequence[met, 1] = of_message[m, _COLUMN], of_message[m, _RANK]
                met += 1
                of_message[m, _PLACE] = met
                highest[p] = met
                continue
            own, rank = of_message[m, _COLUMN], of_message[m, _RANK]
            if clock[own] >= rank:
                marks[e] |= LATE
                late += 1
                continue
            if of_message[m, _HEIGHT] <= complete[p]:
                clock[own] = rank
            else:
                _learn(m, clock, start, events, source, base, position, column, past, stack)
            highest[p] = max(highest[p], of_message[m, _PLACE])
            for _ in range(_ADVANCE):  # inline: a call here made the check a third slower
                if complete[p] == met or clock[sequence[complete[p], 0]] < sequence[complete[p], 1]:
                    break
                complete[p] += 1
        cursor[p] = until[turn]
    return late
