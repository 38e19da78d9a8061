"""The rows of a large log in memory: columns that grow, the steps of each process, and the rows by process."""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec import Struct

from precede.core.errors import BadInput
from precede.witness.history import Gap
from precede.witness.reading import kernels
from precede.witness.reading.column_names import BROADCAST, OTHER
from precede.witness.reading.encode import Array
from precede.witness.reading.kernels import NO_MESSAGE, STEP, STORED_COLUMNS, UNSEEN
from precede.witness.reading.processes import ProcessTable
from precede.witness.reading.values import Place

INT32: Final = (1 << 31) - 1


class Irregular(Exception):
    """The rows of a process are not in the order of its steps, or contradict each other."""


class Batch(Struct):
    """Some consecutive rows of the log, decoded; `clock` is empty when the order needs no clocks."""

    first_row: int
    process: Array
    step: Array
    kind: Array
    source: Array
    number: Array
    clock: Array


class Grouped(Struct):
    """Broadcasts and deliveries, process by process and by step. `row` is None unless rows were sorted."""

    start: Array
    step: Array
    source: Array
    number: Array
    clock: Array
    row: Array | None
    gaps: list[Gap]


class Columns:
    """The stored rows with spare capacity; `process`, `step`, `source` and `number` are columns of `rows`."""

    def __init__(self, capacity: int, timed: bool) -> None:
        self.filled = 0
        self.timed = timed
        self._use(np.empty((max(capacity, 1), len(STORED_COLUMNS)), np.int32))
        self.clock = np.empty(len(self.rows) if timed else 0, np.int64)

    def _use(self, rows: Array) -> None:
        self.rows = rows
        self.process, self.step, self.source, self.number = rows.T

    def reserve(self, more: int) -> None:
        """Make room for more rows."""
        if self.filled + more <= len(self.rows):
            return
        old, old_clock = self.filled_rows(), self.filled_clock()
        capacity = max(self.filled + more, 2 * len(self.rows))
        self._use(np.empty((capacity, len(STORED_COLUMNS)), self.rows.dtype))
        self.clock = np.empty(capacity if self.timed else 0, np.int64)
        self.filled_rows()[:], self.filled_clock()[:] = old, old_clock

    def widen(self, *columns: Array) -> None:
        """Store rows with 64 bits from now on if one of these values does not fit into 32 bits."""
        if self.rows.dtype == np.int32 and any(
            column.max(initial=0) > INT32 or column.min(initial=0) < -INT32 for column in columns
        ):
            self._use(self.rows.astype(np.int64))

    def filled_rows(self) -> Array:
        return self.rows[: self.filled]

    def filled_clock(self) -> Array:
        return self.clock[: self.filled if self.timed else 0]


class RowStore:
    """Stores the rows of a log and groups them by process.

    In the normal mode each process's rows must come in the order of its steps, as a recorder writes them: rows
    that are neither broadcasts nor deliveries are checked and dropped. With `sorting` every row is stored with
    its place in the file, and all rows are sorted and checked at the end, so that errors can name the row.
    """

    def __init__(
        self, processes: ProcessTable, expected: int, timed: bool, numbered: bool, sorting: bool
    ) -> None:
        self.processes = processes
        self.numbered = numbered
        self.sorting = sorting
        self.broadcasts = 0
        self.columns = Columns(expected, timed)
        self.row_numbers: list[Array] = []
        self.first_step, self.last_step = np.empty(0, np.int64), np.empty(0, np.int64)
        self.gap_last, self.gap_next = np.empty(0, np.int64), np.empty(0, np.int64)
        self.stored = np.empty(0, np.int32)  # rows of each process, counted only if they need no sorting

    def add(self, batch: Batch, place: Place) -> None:
        """Store the rows of a batch. Raises Irregular if they are out of order and are not to be sorted."""
        columns = self.columns
        columns.reserve(len(batch.process))
        columns.widen(batch.step, batch.number)
        self._extend_steps()
        if self.sorting:
            self._store_all(batch, place)
            return
        filled, self.broadcasts = kernels.take_rows(
            *(batch.process, batch.step, batch.kind, batch.source, batch.number, batch.clock, self.numbered),
            *(self.first_step, self.last_step, self.gap_last, self.gap_next, self.stored),
            *(columns.rows, columns.clock, columns.filled, self.broadcasts),
        )
        if filled < 0:
            raise Irregular
        columns.filled = filled

    def _store_all(self, batch: Batch, place: Place) -> None:
        is_broadcast = batch.kind == BROADCAST
        wrong = np.flatnonzero(is_broadcast & (batch.source != batch.process))
        if self.numbered and len(wrong):
            at = int(wrong[0])
            node, source = (self.processes.name(int(codes[at])) for codes in (batch.process, batch.source))
            raise BadInput(
                f"{place(batch.first_row + at)}: node {node} broadcasts a message whose source is {source}"
            )
        columns = self.columns
        here = slice(columns.filled, columns.filled + len(batch.process))
        arrivals = np.cumsum(is_broadcast) - 1 + self.broadcasts
        columns.process[here], columns.step[here], columns.number[here] = (
            batch.process,
            batch.step,
            batch.number,
        )
        of_others = np.where(batch.kind == OTHER, NO_MESSAGE, batch.source)
        columns.source[here] = np.where(is_broadcast, -2 - arrivals, of_others)
        if columns.timed:
            columns.clock[here] = batch.clock
        first = batch.first_row
        self.row_numbers.append(np.arange(first, first + len(batch.process), dtype=np.int64))
        self.broadcasts += int(is_broadcast.sum())
        columns.filled += len(batch.process)

    def _extend_steps(self) -> None:
        count = self.processes.count
        if count > len(self.last_step):
            more = np.full(max(count, 64), UNSEEN, np.int64)
            for name in ("first_step", "last_step", "gap_last", "gap_next"):
                setattr(self, name, np.concatenate((getattr(self, name), more)))
            self.stored = np.concatenate((self.stored, np.zeros(len(more), np.int32)))

    def present(self, with_sources: bool) -> Array:
        """Return, by process code, whether the process has rows; `with_sources`, or messages of it have."""
        process, _, source, _ = self.columns.filled_rows().T
        present = np.zeros(self.processes.count, np.bool_)
        if self.sorting:
            present[np.unique(process)] = True
        else:
            present[:] = self.last_step[: len(present)] != UNSEEN
        if with_sources:
            present[np.unique(source[source >= 0])] = True
        return present

    def grouped(self, counted: bool, place: Place) -> Grouped:
        """Return the rows by process, once processes are settled. `counted`: a hole in the steps is a gap."""
        return self._sorted(counted, place) if self.sorting else self._counted(counted)

    def _counted(self, counted: bool) -> Grouped:
        """Group rows by process in one pass: they came by step. `counted`: a hole in the steps is a gap."""
        rows, clock = self.columns.filled_rows(), self.columns.filled_clock()
        order = self.processes.order
        start = np.zeros(len(order) + 1, np.int32)
        np.cumsum(self.stored[order], out=start[1:])
        to_rows = np.empty((len(rows), len(STORED_COLUMNS) - STEP), rows.dtype)
        to_clock = np.empty(len(clock), np.int64)
        kernels.group_rows(rows, clock, self.processes.place, start[:-1].copy(), to_rows, to_clock)
        self.columns = Columns(0, timed=False)
        step, source, number = to_rows.T
        return Grouped(start, step, source, number, to_clock, None, self._gaps() if counted else [])

    def _sorted(self, counted: bool, place: Place) -> Grouped:
        """Sort rows that came in any order by process and step, check them, and drop other kinds of rows."""
        process, step, source, number = self.columns.filled_rows().T
        clock = self.columns.filled_clock()
        at = self.processes.place[process]
        order = _by_process_and_step(at, step)
        at, step, source, number = at[order], step[order], source[order], number[order]
        row = np.concatenate(self.row_numbers)[order]
        same = at[1:] == at[:-1]
        doubled = np.flatnonzero(same & (step[1:] == step[:-1]))
        if len(doubled):
            first = doubled[np.argmin(row[doubled + 1])]
            one, other = sorted((int(row[first]), int(row[first + 1])))
            node = self.processes.name(int(self.processes.order[at[first]]))
            raise BadInput(
                f"{place(other)}: step {step[first]} of node {node} occurs twice (first in row {one})"
            )
        self._note_steps(at, step, same)
        keep = source != NO_MESSAGE
        count = len(self.processes.order)
        start = np.zeros(count + 1, np.int32)
        np.cumsum(np.bincount(at[keep], minlength=count), out=start[1:])
        clock = clock[order][keep] if self.columns.timed else clock
        gaps = self._gaps() if counted else []
        return Grouped(start, step[keep], source[keep], number[keep], clock, row[keep], gaps)

    def _note_steps(self, at: Array, step: Array, same: Array) -> None:
        """Set the first and last step of each process and its first gap, as `take_rows` does in normal mode."""
        begin = np.flatnonzero(np.concatenate(([True], ~same)))
        end = np.concatenate((begin[1:], [len(step)])) - 1
        order = self.processes.order
        codes = order[at[begin]]
        self.first_step[codes], self.last_step[codes] = step[begin], step[end]
        jumps = np.flatnonzero(same & (step[1:] != step[:-1] + 1))[::-1]
        self.gap_last[order[at[jumps]]] = step[jumps]
        self.gap_next[order[at[jumps]]] = step[jumps + 1]

    def _gaps(self) -> list[Gap]:
        """Return the first gap of each process that has one."""
        gaps: list[Gap] = []
        for place, code in enumerate(self.processes.order.tolist()):
            first = int(self.first_step[code])
            if first == UNSEEN:
                continue
            if first > 1 and first - 1 != self._last_step_before(place):
                gaps.append(Gap(place, None, first))
            elif self.gap_next[code] != UNSEEN:
                gaps.append(Gap(place, int(self.gap_last[code]), int(self.gap_next[code])))
        return gaps

    def _last_step_before(self, place: int) -> int | None:
        """Return the last step of the node's previous incarnation, from which steps may continue, or None."""
        if place == 0 or not self.processes.same_node(place - 1, place):
            return None
        return int(self.last_step[self.processes.order[place - 1]])


def _by_process_and_step(process: Array, step: Array) -> Array:
    """Return the order of rows by process and step. Most logs have each process's rows by step already."""
    narrow = process.astype(np.uint16) if len(process) and process.max() < 1 << 16 else process
    order = np.argsort(narrow, kind="stable")  # of 16 bits numpy sorts by radix, in a sixth of the time
    sorted_process, sorted_step = process[order], step[order]
    ascends = (sorted_process[1:] != sorted_process[:-1]) | (sorted_step[1:] > sorted_step[:-1])
    return order if ascends.all() else np.lexsort((step, process))
