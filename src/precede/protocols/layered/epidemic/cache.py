"""The cache of `epidemic`: the messages a node carries, in the order of reception (guidec2021, section III).

The cache works on batches. The ids are a set: a summary is a copy of it, and the messages a peer lacks are a
set difference, which is mostly empty. A log keeps the order; it is compacted from time to time, and until then
it has removed messages too. Deadlines are kept per batch; each is examined only after the first has passed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from heapq import heappop, heappush
from operator import attrgetter
from random import Random
from typing import Final, final

from mypy_extensions import i64

from precede.core.identity import MessageId
from precede.core.instants import Instant
from precede.protocols.layered.epidemic.options import EvictionPolicy
from precede.protocols.layered.parsed_envelopes import NEVER, Batch, ParsedEnvelope

_SLACK: Final = 64
_FEW: Final = 16
_SORT_KEY: Final = attrgetter("sort_key")


@final
class ExpiringBatch:
    """The messages of a batch by their deadlines; the next to pass is `first_deadline`, NEVER if there is none.

    Only the first ones are sorted, when the first deadline has passed: `_soon`, the latest of them first. The
    other ones, in `_later`, may never be looked at: most nodes of a crowd leave before.
    """

    __slots__ = ("_later", "_soon", "first_deadline")

    def __init__(self, batch: Batch) -> None:
        self.first_deadline: i64 = batch.first_deadline
        self._soon: list[ParsedEnvelope] = []
        self._later: list[ParsedEnvelope] = batch.contents

    def take_expired(self, now: i64, expired: list[ParsedEnvelope]) -> None:
        """Append the messages whose deadline has passed to `expired`, the earliest first."""
        while self.first_deadline <= now:
            if not self._soon:
                self._sort_first()
            soon = self._soon
            while soon and soon[-1].deadline <= now:
                expired.append(soon.pop())
            if not soon:
                self._sort_first()
            self.first_deadline = self._soon[-1].deadline if self._soon else NEVER

    def _sort_first(self) -> None:
        """Sort the messages of the first quarter of the time in which all expire."""
        later = [parsed for parsed in self._later if parsed.deadline != NEVER]
        first: i64 = NEVER
        last: i64 = 0
        for parsed in later:
            first = min(first, parsed.deadline)
            last = max(last, parsed.deadline)
        until = last if len(later) <= _FEW else first + (last - first) // 4
        self._soon = [parsed for parsed in later if parsed.deadline <= until]
        self._later = [parsed for parsed in later if parsed.deadline > until]
        self._soon.sort(key=_SORT_KEY, reverse=True)


@final
class Cache:
    """The messages a node holds, by id in `ids` and in the order of reception in a log.

    The log may also have messages that were removed, and None in the place of an evicted one. A removed
    message never comes back, so an id in `ids` is at one place of the log. `held_token` is the `set_token` of
    a batch that is held completely, or None. `payload_bytes` is the sum over the messages held.
    """

    __slots__ = ("_deadlines", "_log", "_oldest", "_serial", "_summary", "held_token", "ids", "payload_bytes")

    def __init__(self) -> None:
        self.ids: set[MessageId] = set()
        self.held_token: list[ParsedEnvelope] | None = None
        self.payload_bytes = 0
        self._log: list[ParsedEnvelope | None] = []
        self._oldest = 0  # every message before this position of the log was removed
        self._deadlines: list[tuple[Instant, int, ExpiringBatch]] = []
        self._serial = 0
        self._summary: frozenset[MessageId] | None = None

    def add(self, batch: Batch) -> None:
        """Add a batch of messages, none of which is held."""
        count = len(self.ids) + len(batch.ids)
        if not self.ids and batch.summary is not None and len(batch.summary) == count:
            self.ids = set(batch.summary)  # a newcomer gets a whole cache: sets are copied fast
        else:
            self.ids.update(batch.ids)
        self._log.extend(batch.contents)
        self.payload_bytes += batch.payload_bytes
        self._summary = None
        if len(self.ids) != count:
            self._compact()
        if batch.first_deadline != NEVER:
            self._serial += 1
            heappush(self._deadlines, (batch.first_deadline, self._serial, ExpiringBatch(batch)))

    def remove(self, parsed: ParsedEnvelope) -> None:
        self.remove_all([parsed])

    def remove_all(self, contents: list[ParsedEnvelope]) -> None:
        """Remove messages, all of which are held."""
        for parsed in contents:
            self.ids.remove(parsed.id)
            self.payload_bytes -= parsed.payload_bytes
        self._summary = self.held_token = None
        if len(self._log) > 2 * len(self.ids) + _SLACK:
            self._compact()

    def summary(self) -> frozenset[MessageId]:
        """Return the ids of all messages; the same object until the cache changes."""
        if self._summary is None:
            self._summary = frozenset(self.ids)
        return self._summary

    def lacked_by(self, peer_ids: frozenset[MessageId], now: Instant) -> Batch:
        """Return the messages that a peer with these ids lacks, in the order of reception."""
        if not peer_ids:
            everything = Batch([parsed for parsed in self._log if parsed is not None and parsed.deadline > now])
            everything.summary = self.summary()
            return everything
        lacked: set[MessageId] = self.ids - peer_ids
        remaining = len(lacked)
        contents: list[ParsedEnvelope] = []
        for parsed in reversed(self._log):  # a peer mostly lacks the latest messages
            if remaining == 0:
                break
            if parsed is not None and parsed.id in lacked:
                contents.append(parsed)
                remaining -= 1
        contents.reverse()
        return Batch(contents)

    def first_deadline(self) -> Instant:
        """Return an instant before which no message expires; NEVER if no message has a deadline."""
        return self._deadlines[0][0] if self._deadlines else NEVER

    def expired(self, now: Instant) -> list[ParsedEnvelope]:
        """Return messages whose deadline has passed since the last call, also ones evicted before it."""
        expired: list[ParsedEnvelope] = []
        deadlines = self._deadlines
        while deadlines and deadlines[0][0] <= now:
            _, serial, expiring = heappop(deadlines)
            expiring.take_expired(now, expired)
            if expiring.first_deadline != NEVER:
                heappush(deadlines, (expiring.first_deadline, serial, expiring))
        return expired

    def evict(self, policy: EvictionPolicy, generator: Random) -> ParsedEnvelope:
        """Remove and return one message, by policy: the first received, a random one, or the next to expire."""
        if policy == "deadline":
            position = self._log.index(min(self, key=lambda parsed: (parsed.deadline, parsed.id)))
        else:
            position = self._random_position(generator) if policy == "random" else self._first_position()
        parsed = self._log[position]
        assert parsed is not None
        self._log[position] = None
        self.remove(parsed)
        return parsed

    def _first_position(self) -> int:
        while not self._holds(self._log[self._oldest]):
            self._oldest += 1
        return self._oldest

    def _random_position(self, generator: Random) -> int:
        while True:
            position = generator.choice(range(len(self._log)))
            if self._holds(self._log[position]):
                return position

    def _holds(self, parsed: ParsedEnvelope | None) -> bool:
        return parsed is not None and parsed.id in self.ids

    def __iter__(self) -> Iterator[ParsedEnvelope]:
        return iter([parsed for parsed in self._log if parsed is not None and parsed.id in self.ids])

    def __len__(self) -> int:
        return len(self.ids)

    def _compact(self) -> None:
        """Remove from the log the messages that are not held, and second copies of those that are."""
        held = {parsed.id: parsed for parsed in self}
        self._log = list(held.values())
        self.payload_bytes = sum([parsed.payload_bytes for parsed in held.values()])
        self._oldest = 0


@final
class EvictedIds:
    """The ids of evicted messages, remembered so that a message does not enter the cache again.

    An id is remembered until the deadline of its message. The ids of messages without a deadline would fill
    the memory and every summary. Only the latest of those are kept, a quarter of the cache, which keeps peers
    from sending these messages; the ordering knows the earlier ones by its counters. An ordering that forgets
    (`Ordering.knows_for_ever` is False) needs all ids.
    """

    __slots__ = ("_may_forget", "_most_undying", "_undying", "forgot", "ids")

    def __init__(self, capacity: int, may_forget: bool) -> None:
        self.ids: dict[MessageId, None] = {}
        self.forgot = False
        """Has the id of a message without a deadline been forgotten?"""
        self._may_forget = may_forget
        self._most_undying = max(capacity // 4, 1)
        self._undying: deque[MessageId] = deque()

    def add(self, parsed: ParsedEnvelope) -> None:
        self.ids[parsed.id] = None
        if parsed.deadline == NEVER and self._may_forget:
            self._undying.append(parsed.id)

    def trim(self) -> None:
        """Forget the oldest ids of messages without a deadline, beyond a quarter of the cache's capacity."""
        while len(self._undying) > self._most_undying:
            del self.ids[self._undying.popleft()]
            self.forgot = True
