"""The live verifier: it takes the rows of a run in pieces, late or twice, and reports each violation once.

A row counts when all earlier rows of its process have arrived, and a delivery when its broadcast counts. The
counted rows are therefore a consistent cut of the run. Whether a delivery in it is late depends on its past
alone, so the violations are those that `verify` finds in the whole log. Total order is judged pair by pair: the
delivery that completes a disagreement of two processes violates it.

An incarnation whose rows arrive out of order, and whose steps count from 0, can be mistaken for one that
continues the steps of the incarnation before it. In a log with rows `started` this happens only if it has such
a row exactly at the step at which the other one ended. The verdict becomes `unknown` when the first rows of the
mistaken incarnation arrive. No violation depends on the mistake.

The verifier reads no clock, vector or barrier of any protocol. It forgets messages that can no longer change
the verdict (`witness/live/forget.py`). `state.changes` gives the pieces of its state that a call changed.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Final

from precede.core.natural_order import natural
from precede.witness.live import intake
from precede.witness.live.forget import Forgetting
from precede.witness.live.intake import Intake
from precede.witness.live.state import BLOCK, Key, LiveRow, LiveState, Message, Process, RunFacts
from precede.witness.live.stories import Stories
from precede.witness.reading.column_names import BROADCAST
from precede.witness.verdict import Offence, Order, Violation

STORIES_WITH_CHAIN: Final = 10
"""A late delivery is explained with its causal chain if fewer violations than this were found before it.

The count begins anew with each call of `add`. Later ones get one sentence, because chains take time to find.
"""


ROWS_REMEMBERED: Final = 1_000
"""Of each process at most so many rows that broke a rule are remembered, to compare them with repeated rows."""


class LiveRun:
    """The live verifier of one run. `add` takes rows of any processes and returns the violations they prove.

    `members` are the nodes whose rows decide when a message is settled; `retain_us` says how long messages are
    kept that are not. Without them nothing is forgotten, except for FIFO order.
    """

    def __init__(
        self,
        order: Order,
        allow_duplicates: bool = False,
        state: LiveState | None = None,
        *,
        members: Sequence[str] = (),
        retain_us: int | None = None,
        block: int = BLOCK,
    ) -> None:
        self.state = state or LiveState(RunFacts(order, allow_duplicates, block))
        self._forgetting = Forgetting(self.state, retain_us, members)
        self._intake = Intake(self.state)
        self._stories = Stories(self.state)
        self._waiting: dict[tuple[str, int], dict[int, list[int]]] = {}
        self._ready: list[int] = []
        self._violations: list[Violation] = []
        for p, process in enumerate(self.state.processes):
            if process.waits is not None:
                self._park(p, process.waits)

    def add(self, rows: Iterable[tuple[str, int, LiveRow]]) -> list[Violation]:
        """Take rows as (node, incarnation, row), in any order. Returns the violations that they prove.

        A row that was added before changes nothing.
        """
        self._violations = []
        self._ready += reversed(self._intake.add(rows))
        self._count_all()
        while self._break_ring() or self._give_up():
            self._count_all()
        self._forgetting.forget()
        return self._violations

    def _count_all(self) -> None:
        """Take queued rows into account until every process waits or has none left."""
        while self._ready:
            p = self._ready.pop()
            queue = self.state.processes[p].queue
            self.state.changed[f"p{p}"] = None
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
        rank = self.state.forgotten_rank(key)
        if rank is not None:
            self._unpark(p, process)
            self._deliver_forgotten(p, process, rank, row)
            return True
        if self._cannot_come(key):
            self._unpark(p, process)
            if self._is_doubtful(key):
                self._leave_unjudged(process, row, "whose broadcast never came")
                return True
            self.state.facts.deliveries += 1
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

    def _is_doubtful(self, key: Key) -> bool:
        """Return whether the broadcast of a message may be among rows that were given up."""
        doubtful = self.state.processes[self.state.places[key[:2]]].doubtful
        return any(below < key[2] < above for below, above in doubtful)

    def _leave_unjudged(self, process: Process, row: LiveRow, cause: str) -> None:
        self.state.facts.deliveries += 1
        self._remember_odd(process, row)
        self.state.conflict(process, f"delivered {row.message}, {cause}: it cannot be judged")

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
        if process.doubtful and process.doubtful[-1][1] > row.number:
            process.doubtful[-1] = (process.doubtful[-1][0], row.number)
        process.sent += 1
        past = array("I")
        if state.order in ("causal", "multicast", "delta"):
            for entry in process.clock.items():
                past.extend(entry)
        state.facts.timed = state.facts.timed or row.deadline is not None
        origin = (p, process.sent, row.step, row.number)
        state.add_message(key, Message(*origin, past.tobytes(), row.deadline, row.to, row.clock))
        waiting = self._waiting.get(key[:2])
        if waiting:
            for number in sorted(number for number in waiting if number <= row.number):
                self._ready += waiting.pop(number)

    def _deliver(self, p: int, process: Process, message: int, row: LiveRow) -> None:
        """Take a delivery into account, and report the rules that it breaks."""
        state, stories, facts = self.state, self._stories, self.state.facts
        if state.delivered_at(p, message):
            self._repeat(p, message, row)
            return
        facts.deliveries += 1
        process.taken += 1
        about = state.messages[message]
        if about.to is not None and about.source != p and process.node not in about.to:
            self._report(process, row, stories.not_addressed(process, message, row))
        if state.order == "total":
            self._compare_orders(p, process, message, row)
        elif not self._in_order(process, about):
            with_chain = len(self._violations) < STORIES_WITH_CHAIN
            self._report(process, row, stories.late(p, message, row, self._late, with_chain))
        facts.clock_missing = facts.clock_missing or row.clock is None
        deadline = about.deadline
        if state.order == "delta" and deadline is not None and row.clock is not None and row.clock > deadline:
            self._report(process, row, stories.expired(process, message, row, deadline))
        state.deliver(p, message, row.step)

    def _deliver_forgotten(self, p: int, process: Process, rank: int, row: LiveRow) -> None:
        """Take the delivery of a forgotten message into account (see `witness/live/forget.py`).

        Its rank is 0 if even that is no longer known.
        """
        state, stories, facts = self.state, self._stories, self.state.facts
        source = state.places[row.key[:2]]
        missed = state.missed[p]
        skipped = missed.skipped.get(source)
        blurred = skipped is not None and rank <= skipped.blurred
        past = process.clock.get(source, 0) >= rank
        if not rank or (blurred and (facts.allow or not past)):
            self._leave_unjudged(process, row, "which was forgotten")
            return
        barred, certain = missed.barred.get(source), not facts.undated and facts.last_deadline is not None
        expired = certain and row.clock is not None and row.clock > (facts.last_deadline or 0)
        again = not blurred and (skipped is None or rank not in skipped)
        if again:
            self._repeat(p, None, row)
            return
        wrong: list[Offence] = []
        if barred is not None and rank in barred:
            wrong.append("not_addressed")
        if past and state.order != "total":
            wrong.append(self._late)
        if expired and state.order == "delta":
            wrong.append("expired")
        if not wrong and not self._only_rank_counts(p == source):
            self._leave_unjudged(process, row, "which was forgotten")
        else:
            facts.deliveries += 1
            process.taken += 1
        for kind in wrong:
            self._report(process, row, stories.forgotten(process, row, kind))
        process.clock[source] = max(process.clock.get(source, 0), rank)
        if skipped is not None:
            skipped.remove(rank)
            state.changed[f"s{p}"] = None

    def _only_rank_counts(self, own: bool) -> bool:
        """Return whether the delivery of a forgotten message that is not late keeps every rule."""
        facts = self.state.facts
        if facts.order == "total" or (facts.order == "delta" and facts.last_deadline is not None):
            return False
        return own or (facts.order == "fifo" and not facts.addressed)

    def _repeat(self, p: int, message: int | None, row: LiveRow) -> None:
        """Count a delivery that the process made before; it is a violation unless duplicates are allowed."""
        process = self.state.processes[p]
        self.state.facts.deliveries += 1
        self._remember_odd(process, row)
        if not self.state.facts.allow:
            self._report(process, row, self._stories.duplicate(p, message, row))

    @property
    def _late(self) -> Offence:
        """The kind of a violation by a late delivery."""
        order = self.state.order
        return order if order in ("fifo", "multicast") else "causal"

    def _in_order(self, process: Process, message: Message) -> bool:
        """Add a delivered message to the process's clock, if the delivery is in order.

        Returns False for a late delivery (see `witness/checks/causal.py`).
        """
        clock = process.clock
        if clock.get(message.source, 0) >= message.rank:
            return False
        for other, last in message.entries():
            if last > clock.get(other, 0):
                clock[other] = last
        clock[message.source] = message.rank
        return True

    def _compare_orders(self, p: int, process: Process, message: int, row: LiveRow) -> None:
        """Compare process p's delivery of a message with the deliveries of all other processes.

        If another process delivered this message before one that p delivered earlier, the disagreement is
        reported, with the first such process. The delivery is remembered for later comparisons.
        """
        opponent = -1
        for q, other in enumerate(self.state.processes):
            at = self.state.delivered_at(q, message) if q != p else 0
            if not at:
                continue
            latest = process.sees.get(q, 0)
            if latest > at and opponent < 0:
                opponent = q
            process.sees[q] = max(latest, at)
            other.sees[p] = row.step + 1
            self.state.changed[f"p{q}"] = None
        if opponent >= 0:
            self._report(process, row, self._stories.disagreement(p, opponent, message, row))

    def _report(self, process: Process, row: LiveRow, violation: Violation) -> None:
        kind, counts = violation.kind, self.state.facts.counts
        counts[kind] = counts.get(kind, 0) + 1
        if kind in ("ghost", "duplicate", "before_broadcast"):
            self._remember_odd(process, row)
        self._violations.append(violation)

    def _remember_odd(self, process: Process, row: LiveRow) -> None:
        """Remember a row that is not among the deliveries, so that it is known when it is repeated."""
        process.odd[row.step] = row.key
        if len(process.odd) > ROWS_REMEMBERED:
            forgotten = min(process.odd)
            process.unchecked = max(process.unchecked, forgotten + 1)
            del process.odd[forgotten]

    def _give_up(self) -> bool:
        """Let a process continue that waits for a broadcast with too many rows. Returns False if none does."""
        for p, process in enumerate(self.state.processes):
            if len(process.queue) > intake.ROWS_WAITING:
                row = process.queue.pop(0)
                self._unpark(p, process)
                self._leave_unjudged(process, row, "whose broadcast never came")
                self._ready.append(p)
                return True
        return False

    def _break_ring(self) -> bool:
        """Find processes that wait for each other's queued broadcasts in a ring, and blame one of them.

        Returns False if there is no ring.
        """
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
        """Report a delivery before its broadcast by the lowest process of a ring, and let it continue.

        The delivery is the one at which that process waits.
        """
        processes = self.state.processes
        p = min(ring, key=lambda q: (natural(processes[q].node), processes[q].incarnation))
        process = processes[p]
        row = process.queue.pop(0)
        self._unpark(p, process)
        process.early = [*process.early[1 - ROWS_REMEMBERED :], row.key]
        self.state.facts.deliveries += 1
        self._report(process, row, self._stories.too_early(process, row))
        self._ready.append(p)
