"""The messages that wait in delta_causal, by what they wait for and by when their wait ends.

A waiting message is filed under one predecessor that it lacks. Nearly every filed message is delivered within
the same input, so it is entered into the registry and the heaps only if it still waits at the end of the input.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any, final

from mypy_extensions import i64

from precede.core.identity import MessageId
from precede.core.instants import Instant
from precede.protocols.layered.parsed_envelopes import NEVER, MessageName, ParsedEnvelope


@final
class Pending:
    """A message that waits since `since`, and the position in its barrier of a predecessor that it lacks.

    Messages that wait for the same predecessor, `lacked`, form a chain: `following` is the next one, and the
    first one (`is_first`) knows the `last`, and the `next_chain` of those who wait for another message of the
    same stream. `registered`: it is in `WaitingMessages.by_id`. `done`: it waits no more.
    """

    __slots__ = (
        "barrier",
        "done",
        "following",
        "is_first",
        "lacked",
        "last",
        "next_chain",
        "parsed",
        "position",
        "registered",
        "since",
    )

    def __init__(
        self, parsed: ParsedEnvelope, barrier: list[MessageName], position: i64, since: Instant
    ) -> None:
        self.parsed = parsed
        self.barrier = barrier
        self.position: i64 = position
        self.lacked = barrier[position]
        self.since = since
        self.registered = False
        self.done = False
        self.is_first = False
        self.following: Pending | None = None
        self.last: Pending | None = None
        self.next_chain: Pending | None = None


@final
class WaitingMessages:
    """All waiting messages: `by_id` once they are registered, in a chain as soon as they are filed.

    There are `chains` chains. The first one of each stream is in `_by_place` or `_by_stream`: a stream has few,
    and a delivery looks only at those of its own. Two heaps have the deadlines of the lacked predecessors and
    of the waiting messages themselves.
    """

    __slots__ = (
        "_by_place",
        "_by_stream",
        "_own_deadlines",
        "_predecessor_deadlines",
        "_serial",
        "by_id",
        "chains",
        "unregistered",
    )

    def __init__(self) -> None:
        self.by_id: dict[MessageId, Pending] = {}
        self.chains = 0
        self.unregistered: list[Pending] = []
        self._by_place: list[Pending | None] = []
        self._by_stream: dict[Any, Pending] = {}
        self._predecessor_deadlines: list[tuple[Instant, int, MessageName]] = []
        self._own_deadlines: list[tuple[Instant, int, Pending]] = []
        self._serial = 0

    def file(self, pending: Pending) -> None:
        """File a message under the predecessor at its position."""
        pending.lacked = lacked = pending.barrier[pending.position]
        self.unregistered.append(pending)
        chain = self._first_chain(lacked)
        if chain is None:
            self._set_first_chain(lacked, pending)
        while chain is not None:
            if chain.lacked.number == lacked.number:
                before = chain if chain.last is None else chain.last
                before.following = chain.last = pending
                pending.is_first = False
                return
            if chain.next_chain is None:
                chain.next_chain = pending
                break
            chain = chain.next_chain
        pending.is_first = True
        self.chains += 1

    def take(self, name: MessageName, before: i64, taken: list[Pending]) -> None:
        """Take out the messages that wait for a stream, after number `before`, up to this name.

        The first message of each chain goes to `taken`; its `following` is the next.
        """
        number = name.number
        earlier: Pending | None = None
        chain = self._first_chain(name)
        while chain is not None:
            next_chain = chain.next_chain
            if before < chain.lacked.number <= number:
                chain.next_chain = None
                self.chains -= 1
                if earlier is None:
                    self._set_first_chain(name, next_chain)
                else:
                    earlier.next_chain = next_chain
                taken.append(chain)
            else:
                earlier = chain
            chain = next_chain

    def _first_chain(self, name: MessageName) -> Pending | None:
        place = name.place
        if place < 0:
            return self._by_stream.get(name.stream)
        return self._by_place[place] if place < len(self._by_place) else None

    def _set_first_chain(self, name: MessageName, chain: Pending | None) -> None:
        place, by_place = name.place, self._by_place
        if place >= 0:
            if place >= len(by_place):
                by_place += [None] * (place + 1 - len(by_place))
            by_place[place] = chain
        elif chain is not None:
            self._by_stream[name.stream] = chain
        else:
            del self._by_stream[name.stream]

    def finish(self, pending: Pending) -> None:
        """Mark a message that waits no longer as `done`; it may stay in the heaps."""
        pending.done = True
        if pending.registered:
            del self.by_id[pending.parsed.id]

    def register(self) -> None:
        """Enter the filed messages that still wait into the registry and the heaps.

        Deadlines go into the heaps as the objects that all nodes share: a new one for each takes longer.
        """
        push: Any = heappush
        for pending in self.unregistered:
            if not pending.done:
                self._serial += 1
                parsed = pending.parsed
                if pending.is_first:  # one entry for all messages that lack the same predecessor
                    lacked = pending.lacked
                    push(self._predecessor_deadlines, (lacked.entry[2], self._serial, lacked))
                if not pending.registered:
                    pending.registered = True
                    self.by_id[parsed.id] = pending
                    push(self._own_deadlines, (parsed.name.entry[2], self._serial, pending))
        self.unregistered.clear()

    def take_expired(self, now: Instant) -> Pending | None:
        """Finish and return a message whose own deadline has passed, or None."""
        while self._own_deadlines and self._own_deadlines[0][0] <= now:
            pending = heappop(self._own_deadlines)[2]
            if not pending.done:
                self.finish(pending)
                return pending
        return None

    def expired_predecessor(self, now: Instant) -> MessageName | None:
        """Return a predecessor that messages wait for and whose deadline has passed, or None."""
        while self._predecessor_deadlines and self._predecessor_deadlines[0][0] <= now:
            lacked = heappop(self._predecessor_deadlines)[2]
            chain = self._first_chain(lacked)
            while chain is not None:
                if chain.lacked.number == lacked.number:
                    return lacked
                chain = chain.next_chain
        return None

    def first_deadline(self, with_predecessors: bool) -> Instant:
        """Return the first instant at which a wait may end. If no message waits, clear all and return NEVER."""
        if not self.by_id:
            self._own_deadlines.clear()
            self._predecessor_deadlines.clear()
            self._by_place = []  # thousands of streams may have a place
            self._by_stream.clear()
            self.chains = 0
            return NEVER
        first = self._own_deadlines[0][0]
        if with_predecessors and self._predecessor_deadlines:
            first = min(first, self._predecessor_deadlines[0][0])
        return first
