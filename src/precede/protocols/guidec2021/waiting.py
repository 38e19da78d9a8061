"""The messages that wait in delta_causal, by what they wait for and by when their wait ends.

A waiting message is filed under one predecessor that it lacks. Nearly every filed message is delivered within
the same input, so it is entered into the registry and the heaps only if it still waits at the end of the input.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any, final

from precede.core.identity import MessageId
from precede.core.instants import Instant
from precede.protocols.layered.parsed_envelopes import NEVER, MessageName, ParsedEnvelope, key_of


@final
class Pending:
    """A message that waits since `since`, and the position in its barrier of a predecessor that it lacks.

    Messages that lack the same predecessor form a linked list: `following` is the next one, the first one
    (`is_first`) knows the `last`. `registered`: it is in `WaitingMessages.by_id`. `done`: it waits no more.
    """

    __slots__ = (
        "barrier",
        "done",
        "following",
        "is_first",
        "last",
        "parsed",
        "position",
        "registered",
        "since",
    )

    def __init__(
        self, parsed: ParsedEnvelope, barrier: list[MessageName], position: int, since: Instant
    ) -> None:
        self.parsed = parsed
        self.barrier = barrier
        self.position = position
        self.since = since
        self.registered = False
        self.done = False
        self.is_first = False
        self.following: Pending | None = None
        self.last: Pending | None = None


@final
class WaitingMessages:
    """All waiting messages: `by_id` once they are registered, `by_predecessor` as soon as they are filed.

    A key of `by_predecessor` is a `MessageName.key`. Two heaps have the deadlines of the lacked predecessors
    and of the waiting messages themselves.
    """

    __slots__ = (
        "_own_deadlines",
        "_predecessor_deadlines",
        "_serial",
        "by_id",
        "by_predecessor",
        "unregistered",
    )

    def __init__(self) -> None:
        self.by_id: dict[MessageId, Pending] = {}
        self.by_predecessor: dict[Any, Pending] = {}
        self.unregistered: list[Pending] = []
        self._predecessor_deadlines: list[tuple[Instant, int, MessageName]] = []
        self._own_deadlines: list[tuple[Instant, int, Pending]] = []
        self._serial = 0

    def file(self, pending: Pending) -> None:
        """File a message under the predecessor at its position."""
        predecessor = pending.barrier[pending.position]
        first = self.by_predecessor.setdefault(predecessor.key, pending)
        pending.is_first = first is pending
        if first is not pending:
            before = first if first.last is None else first.last
            before.following = first.last = pending
        self.unregistered.append(pending)

    def keys_between(self, before: int, name: MessageName) -> list[Any]:
        """Return the keys under which messages wait for a stream, after number `before`, up to this name.

        They are in the order in which the first message was filed under each.
        """
        waited_for, number = self.by_predecessor, name.number
        if number - before <= len(waited_for):  # numbers that a liar skips are too many to look up
            keys = [key_of(name.stream, skipped) for skipped in range(before + 1, number + 1)]
            keys = [key for key in keys if key in waited_for]
            if len(keys) <= 1:
                return keys
        names = {key: first.barrier[first.position] for key, first in waited_for.items()}
        return [
            key
            for key, lacked in names.items()
            if lacked.stream == name.stream and before < lacked.number <= number
        ]

    def take(self, key: Any) -> Pending | None:
        """Remove all messages filed under a predecessor. Return the first; its `following` is the next."""
        return self.by_predecessor.pop(key, None)

    def finish(self, pending: Pending) -> None:
        """Mark a message that waits no longer as `done`; it may stay in the heaps."""
        pending.done = True
        if pending.registered:
            del self.by_id[pending.parsed.id]

    def register(self) -> None:
        """Enter the filed messages that still wait into the registry and the heaps."""
        for pending in self.unregistered:
            if not pending.done:
                self._serial += 1
                parsed = pending.parsed
                if pending.is_first:  # one entry for all messages that lack the same predecessor
                    lacked = pending.barrier[pending.position]
                    heappush(self._predecessor_deadlines, (lacked.deadline, self._serial, lacked))
                if not pending.registered:
                    pending.registered = True
                    self.by_id[parsed.id] = pending
                    heappush(self._own_deadlines, (parsed.deadline, self._serial, pending))
        self.unregistered.clear()

    def take_expired(self, now: Instant) -> Pending | None:
        """Finish and return a message whose own deadline has passed, or None."""
        while self._own_deadlines and self._own_deadlines[0][0] <= now:
            pending = heappop(self._own_deadlines)[2]
            if not pending.done:
                self.finish(pending)
                return pending
        return None

    def expired_predecessor(self, now: Instant) -> Any:
        """Return the key of a predecessor that messages wait for and whose deadline has passed, or None."""
        while self._predecessor_deadlines and self._predecessor_deadlines[0][0] <= now:
            lacked = heappop(self._predecessor_deadlines)[2]
            if lacked.key in self.by_predecessor:
                return lacked.key
        return None

    def first_deadline(self, with_predecessors: bool) -> Instant:
        """Return the first instant at which a wait may end. If no message waits, clear all and return NEVER."""
        if not self.by_id:
            self._own_deadlines.clear()
            self._predecessor_deadlines.clear()
            self.by_predecessor.clear()
            return NEVER
        first = self._own_deadlines[0][0]
        if with_predecessors and self._predecessor_deadlines:
            first = min(first, self._predecessor_deadlines[0][0])
        return first
