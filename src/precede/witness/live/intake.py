"""Brings the rows of each process into the order of its steps, whatever order they arrive in.

Steps count from 0 without a hole. A later incarnation of a node counts from 0 again, or continues where the
incarnation before it ended. While its step 0 has not arrived, it may continue at a row `started`, or at any row
in a log that has no such rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from precede.witness.live.state import Key, LiveRow, LiveState, Process
from precede.witness.reading.column_names import BROADCAST, DELIVERED

STARTED: Final = 3
"""A further kind of row: the process began here."""

LEFT: Final = 4
"""A further kind of row: the process ended here, unless rows follow."""

_DOUBTS_KEPT: Final = 100

ROWS_WAITING: Final = 100_000
"""A process holds back at most so many rows. Then the missing ones are given up, and the verdict is unknown."""


class Intake:
    """Appends the contiguous rows of each process to its queue; `queued_broadcasts` are those in the queues."""

    def __init__(self, state: LiveState) -> None:
        self.state = state
        self.queued_broadcasts: dict[Key, int] = {
            row.key: p
            for p, process in enumerate(state.processes)
            for row in process.queue
            if row.kind == BROADCAST
        }

    def add(self, rows: Iterable[tuple[str, int, LiveRow]]) -> list[int]:
        """Take rows as (node, incarnation, row). Returns the processes whose queues may have grown."""
        state = self.state
        touched: dict[int, None] = {}
        facts = state.facts
        for node, incarnation, row in rows:
            p = state.place(node, incarnation)
            process = state.processes[p]
            if row.clock is not None and (facts.newest is None or row.clock > facts.newest):
                facts.newest = row.clock
            if row.step == process.expected and process.began and not process.held:
                self._append(p, row)
            elif process.began and row.step < process.expected:
                self._compare(p, row)
                continue
            elif row.step in process.held:
                if process.held[row.step] != row:
                    state.conflict(process, f"step {row.step} occurs twice, with different rows")
                continue
            else:
                process.held[row.step] = row
            facts.rows += 1
            touched[p] = None
        later = [q for p in touched for q in self._release(p)]
        for p in touched:
            if len(state.processes[p].held) > ROWS_WAITING:
                self._skip_gap(p)
        return [*touched, *reversed(later)]

    def _release(self, p: int) -> list[int]:
        """Queue the held rows that are now contiguous. Returns incarnations of the node that may begin now."""
        process = self.state.processes[p]
        if not process.began:
            self._begin(process)
        if not process.began:
            return []
        while process.held:
            row = process.held.pop(process.expected, None)
            if row is None:
                break
            self._append(p, row)
        incarnations = self.state.incarnations[process.node]
        if process.incarnation == incarnations[-1]:
            return []
        following = incarnations[incarnations.index(process.incarnation) + 1]
        later = self.state.place(process.node, following)
        if self.state.processes[later].began:
            return []
        return [*self._release(later), later]

    def _skip_gap(self, p: int) -> None:
        """Give up rows that never came. Broadcasts may be among them: their numbers are doubtful."""
        process = self.state.processes[p]
        missing = process.expected
        process.expected = min(process.held)
        if not process.began:
            process.began, process.first = True, process.expected
        below = -(1 << 62) if process.last_number is None else process.last_number
        process.doubtful = [*process.doubtful[1 - _DOUBTS_KEPT :], (below, 1 << 62)]
        process.unchecked = process.expected
        last = process.expected - 1
        self.state.conflict(
            process, f"steps {missing} to {last} never came: later rows are judged without them"
        )
        self._release(p)

    def _begin(self, process: Process) -> None:
        """Begin an incarnation at step 0, or where the incarnation before it ended, if that row has arrived."""
        incarnations = self.state.incarnations[process.node]
        place = incarnations.index(process.incarnation)
        before = None
        if place:
            before = self.state.processes[self.state.places[process.node, incarnations[place - 1]]]
        if 0 in process.held:
            process.began, process.started = True, process.held[0].kind == STARTED
        elif before is not None and before.began and before.expected in process.held:
            process.started = process.held[before.expected].kind == STARTED
            if process.started or not before.started:
                process.expected = process.first = before.expected
                process.began = True

    def _append(self, p: int, row: LiveRow) -> None:
        process = self.state.processes[p]
        process.expected += 1
        process.closed = row.kind == LEFT
        if row.kind in (BROADCAST, DELIVERED):
            process.queue.append(row)
            if row.kind == BROADCAST:
                self.queued_broadcasts[row.key] = p

    def _compare(self, p: int, row: LiveRow) -> None:
        """Compare a row with the one that was counted at its step; a different one is a conflict."""
        state = self.state
        process, key = state.processes[p], row.key
        if row.step < process.first:
            state.conflict(process, f"has rows before step {process.first}, where it was taken to begin")
            return
        if row.kind not in (BROADCAST, DELIVERED) or process.odd.get(row.step) == key:
            return
        message = state.ids.get(key)
        if row.step < process.unchecked or (message is None and state.forgotten_rank(key) is not None):
            return
        if message is not None and row.kind == BROADCAST:
            same = state.messages[message].source == p and state.messages[message].born == row.step
        else:
            same = message is not None and state.delivered_at(p, message) == row.step + 1
        if not same and row not in process.queue:
            state.conflict(process, f"step {row.step} occurs twice, with different rows")
