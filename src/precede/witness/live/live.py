"""The live verifier: it takes the rows of a run in pieces, late or twice, and reports each violation once.

A row counts when all earlier rows of its process have arrived, and a delivery when its broadcast counts. The
counted rows are therefore a consistent cut of the run. Whether a delivery in it is late depends on its past
alone, so the violations are those that `verify` finds in the whole log. Total order is judged pair by pair: the
delivery that completes a disagreement of two processes violates it.

An incarnation whose rows arrive out of order, and whose steps count from 0, can be mistaken for one that
continues the steps of the incarnation before it. In a log with rows `started` this happens only if it has such
a row exactly at the step at which the other one ended. The verdict becomes `unknown` when the first rows of the
mistaken incarnation arrive. No violation depends on the mistake.

The verifier reads no clock, vector or barrier of any protocol. `pack` gives the whole state as bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from precede.core.natural_order import natural
from precede.witness.live.intake import Intake
from precede.witness.live.state import Key, LiveRow, LiveState, Process
from precede.witness.live.stories import Stories
from precede.witness.reading.column_names import BROADCAST
from precede.witness.verdict import Offence, Order, Violation

STORIES_WITH_CHAIN: Final = 10
"""A late delivery is explained with its causal chain if fewer violations than this were found before it.

The count begins anew with each call of `add`. Later ones get one sentence, because chains take time to find.
"""


class LiveRun:
    """The live verifier of one run. `add` takes rows of any processes and returns the violations they prove."""

    def __init__(self, order: Order, allow_duplicates: bool = False, state: LiveState | None = None) -> None:
        self.state = state or LiveState(order, allow_duplicates)
        self._intake = Intake(self.state)
        self._stories = Stories(self.state)
        self._waiting: dict[tuple[str, int], dict[int, list[int]]] = {}
        self._ready: list[int] = []
        self._violations: list[Violation] = []
        for p, process in enumerate(self.state.processes):
            if process.waits is not None:
                self._park(p, process.waits)

    def add(self, rows: Iterable[tuple[str, int, LiveRow]]) -> list[Violation]:
        """Take rows as (node, incarnation, row), in any order. Returns the violations that they prove."""
        self._violations = []
        self._ready += reversed(self._intake.add(rows))
        self._count_all()
        while self._break_ring():
            self._count_all()
        self.state.version += 1
        return self._violations

    def pack(self) -> bytes:
        """Encode the whole state of the verifier as bytes."""
        return self.state.pack()

    @staticmethod
    def unpack(packed: bytes) -> LiveRun:
        """Restore the verifier whose state `pack` encoded."""
        state = LiveState.unpack(packed)
        return LiveRun(state.order, state.allow, state)

    def _count_all(self) -> None:
        """Take queued rows into account until every process waits or has none left."""
        while self._ready:
            p = self._ready.pop()
            queue = self.state.processes[p].queue
            done = 0
            while done < len(queue) and self._count(p, queue[done]):
                done += 1
            del queue[:done]

    def _count(self, p: int, row: LiveRow) -> bool:
        """Take one row into account. Return False if it must wait for a broadcast."""
        if row.kind == BROADCAST:
            self._broadcast(p, row)
            return True
        process, key = self.state.processes[p], row.key
        message = self.state.ids.get(key)
        if process.early and key in process.early:
            self._unpark(p, process)
            self._repeat(p, message, row)
            return True
        if message is not None:
            process.waits = None
            self._deliver(p, process, message, row)
            return True
        if self._cannot_come(key):
            self._unpark(p, process)
            self.state.deliveries += 1
            self._report(process, row, self._stories.ghost(process, row))
            return True
        if process.waits != key:
            self._unpark(p, process)
            self._park(p, key)
            process.waits = key
        return False

    def _cannot_come(self, key: Key) -> bool:
        """Return whether a message can no longer be broadcast; a delivery of it is then a violation.

        A source broadcasts with ascending numbers. So a message cannot come once its source has broadcast a
        higher number. There is one exception: if the source's first known step is not 0, rows before it may be
        missing. Then the answer is False for a number that is not above the lowest one seen.
        """
        place = self.state.places.get(key[:2])
        source = None if place is None else self.state.processes[place]
        if source is None or source.last_number is None or source.last_number <= key[2]:
            return False
        return not source.first or source.lowest is None or key[2] > source.lowest

    def _park(self, p: int, key: Key) -> None:
        self._waiting.setdefault(key[:2], {}).setdefault(key[2], []).append(p)

    def _unpark(self, p: int, process: Process) -> None:
        if process.waits is not None:
            waiting = self._waiting.get(process.waits[:2], {}).get(process.waits[2], [])
            if p in waiting:
                waiting.remove(p)
            process.waits = None

    def _broadcast(self, p: int, row: LiveRow) -> None:
        """Take a broadcast into account: note the message's past, and wake the processes that wait for it."""
        state, process, key = self.state, self.state.processes[p], row.key
        self._intake.queued_broadcasts.pop(key, None)
        if key[:2] != (process.node, process.incarnation):
            state.conflict(process, f"broadcasts a message whose source is {key[0]} (step {row.step})")
            return
        if process.last_number is not None and row.number <= process.last_number:
            state.conflict(process, f"broadcasts number {row.number} after {process.last_number}")
            return
        process.last_number = row.number
        process.lowest = row.number if process.lowest is None else process.lowest
        message = state.ids[key] = len(state.source)
        process.sent += 1
        state.source.append(p)
        state.rank.append(process.sent)
        state.born.append(row.step)
        state.number.append(row.number)
        if state.order in ("causal", "multicast", "delta"):
            for entry in process.clock.items():
                state.past.extend(entry)
        state.past_start.append(len(state.past))
        if row.deadline is not None:
            state.deadline[message] = row.deadline
        if row.to is not None:
            state.to[message] = row.to
        waiting = self._waiting.get(key[:2])
        if waiting:
            for number in sorted(number for number in waiting if number <= row.number):
                self._ready += waiting.pop(number)

    def _deliver(self, p: int, process: Process, message: int, row: LiveRow) -> None:
        """Take a delivery into account, and report the rules that it breaks."""
        state, stories = self.state, self._stories
        delivered = state.delivered[p]
        if message >= len(delivered):
            delivered.frombytes(bytes(delivered.itemsize * (len(state.source) - len(delivered))))
        if delivered[message]:
            self._repeat(p, message, row)
            return
        state.deliveries += 1
        to = state.to.get(message)
        if to is not None and state.source[message] != p and process.node not in to:
            self._report(process, row, stories.not_addressed(process, message, row))
        if state.order == "total":
            self._compare_orders(p, process, message, row)
        elif not self._in_order(process, message):
            kind: Offence = state.order if state.order in ("fifo", "multicast") else "causal"
            with_chain = len(self._violations) < STORIES_WITH_CHAIN
            self._report(process, row, stories.late(p, message, row, kind, with_chain))
        deadline = state.deadline.get(message)
        state.clock_missing = state.clock_missing or row.clock is None
        if state.order == "delta" and deadline is not None and row.clock is not None and row.clock > deadline:
            self._report(process, row, stories.expired(process, message, row, deadline))
        delivered[message] = row.step + 1

    def _repeat(self, p: int, message: int | None, row: LiveRow) -> None:
        """Take a delivery into account that the process made before."""
        process = self.state.processes[p]
        self.state.deliveries += 1
        process.odd[row.step] = row.key
        if not self.state.allow:
            self._report(process, row, self._stories.duplicate(p, message, row))

    def _in_order(self, process: Process, message: int) -> bool:
        """Add a delivered message to the process's clock and return True, unless its delivery is late."""
        state, clock = self.state, process.clock
        source, rank = state.source[message], state.rank[message]
        if clock.get(source, 0) >= rank:
            return False
        entries = state.past[state.past_start[message] : state.past_start[message + 1]]
        for other, last in zip(entries[::2], entries[1::2], strict=True):
            if last > clock.get(other, 0):
                clock[other] = last
        clock[source] = rank
        return True

    def _compare_orders(self, p: int, process: Process, message: int, row: LiveRow) -> None:
        """Report it if another process delivered this message before one that process p delivered earlier."""
        opponent = -1
        for q, other in enumerate(self.state.processes):
            theirs = self.state.delivered[q]
            at = theirs[message] if q != p and message < len(theirs) else 0
            if not at:
                continue
            latest = process.sees.get(q, 0)
            if latest > at and opponent < 0:
                opponent = q
            process.sees[q] = max(latest, at)
            other.sees[p] = row.step + 1
        if opponent >= 0:
            self._report(process, row, self._stories.disagreement(p, opponent, message, row))

    def _report(self, process: Process, row: LiveRow, violation: Violation) -> None:
        kind, counts = violation.kind, self.state.counts
        counts[kind] = counts.get(kind, 0) + 1
        if kind in ("ghost", "duplicate", "before_broadcast"):
            process.odd[row.step] = row.key
        self._violations.append(violation)

    def _break_ring(self) -> bool:
        """Blame one of the processes that wait for each other's broadcasts in a ring; False without a ring."""
        for p in range(len(self.state.processes)):
            ring: list[int] = []
            at: int | None = p
            while at is not None and at not in ring:
                ring.append(at)
                waits = self.state.processes[at].waits
                at = None if waits is None else self._intake.queued_broadcasts.get(waits)
            if at is not None:
                self._blame(ring[ring.index(at) :])
                return True
        return False

    def _blame(self, ring: Sequence[int]) -> None:
        """Report a delivery before its broadcast by the lowest process of a ring, and let it continue."""
        processes = self.state.processes
        p = min(ring, key=lambda q: (natural(processes[q].node), processes[q].incarnation))
        process = processes[p]
        row = process.queue.pop(0)
        self._unpark(p, process)
        process.early.append(row.key)
        self.state.deliveries += 1
        self._report(process, row, self._stories.too_early(process, row))
        self._ready.append(p)
