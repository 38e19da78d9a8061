"""The cache of `epidemic`: what is carried, in the order of reception, and when it ends (guidec2021, III).

Built for batches: ids map to places in a log, so a whole packet enters with three calls, a summary is one set
difference, and what a peer lacks comes out in the order of reception by sorting small numbers. Deadlines are
kept per packet and looked at one by one only when the first of a packet has passed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from heapq import heappop, heappush
from operator import attrgetter
from random import Random
from typing import Final

from precede.core.identity import MessageId
from precede.core.instants import Instant
from precede.protocols.layers import Envelope

try:
    from mypy_extensions import mypyc_attr
except ImportError:
    from precede.core.compiling import mypyc_attr

_SLACK: Final = 64
_DEADLINE: Final = attrgetter("deadline")


@mypyc_attr(allow_interpreted_subclasses=True)
class Cache:
    """`ids[id]` is a place; `log[place - base]` the envelope, or None once it is gone."""

    __slots__ = ("_base", "_ends", "_log", "_serial", "_summary", "ids")

    def __init__(self) -> None:
        self.ids: dict[MessageId, int] = {}
        self._log: list[Envelope | None] = []
        self._base = 0
        self._ends: list[tuple[Instant, int, Sequence[Envelope]]] = []
        self._serial = 0
        self._summary: frozenset[MessageId] | None = None

    def add(self, ids: Sequence[MessageId], envelopes: Sequence[Envelope], first_end: Instant | None) -> None:
        """New messages, each once, with the first of their deadlines."""
        count = len(self.ids) + len(ids)
        place = self._base + len(self._log)
        self.ids.update(zip(ids, range(place, place + len(ids)), strict=True))
        self._log.extend(envelopes)
        self._summary = None
        if len(self.ids) != count:
            self._close_gaps()
        if first_end is not None:
            self._serial += 1
            heappush(self._ends, (first_end, self._serial, envelopes))

    def remove(self, id: MessageId) -> None:
        self._log[self.ids.pop(id) - self._base] = None
        self._summary = None
        if len(self._log) > 2 * len(self.ids) + _SLACK:
            self._close_gaps()

    def summary(self) -> frozenset[MessageId]:
        """All ids; the same object as long as nothing changes."""
        if self._summary is None:
            self._summary = frozenset(self.ids)
        return self._summary

    def lacked_by(self, held: AbstractSet[MessageId]) -> list[Envelope]:
        """Everything that is not held there, in the order of reception."""
        if not held:
            return [envelope for envelope in self._log if envelope is not None]
        places = sorted(map(self.ids.__getitem__, self.summary() - held))
        log, base = self._log, self._base
        return [envelope for place in places if (envelope := log[place - base]) is not None]

    def first_end(self) -> Instant | None:
        """No message ends before this."""
        return self._ends[0][0] if self._ends else None

    def ended(self, now: Instant) -> list[Envelope]:
        """Every message whose deadline has passed, once, whether still in the cache or evicted before."""
        found: list[Envelope] = []
        ends = self._ends
        while ends and ends[0][0] <= now:
            _, serial, batch = heappop(ends)
            rest = batch if isinstance(batch, list) else _latest_first(batch)
            while rest and (rest[-1].deadline or 0) <= now:
                found.append(rest.pop())
            if rest:
                heappush(ends, (rest[-1].deadline or 0, serial, rest))
        return found

    def victim(self, how: str, random: Random) -> Envelope:
        """Who leaves a full cache: the first received, anyone, or the next to expire."""
        if how == "deadline":
            return min(self, key=_end)
        while how == "random":
            envelope = random.choice(self._log)
            if envelope is not None:
                return envelope
        return next(iter(self))

    def __iter__(self) -> Iterator[Envelope]:
        return (envelope for envelope in self._log if envelope is not None)

    def __len__(self) -> int:
        return len(self.ids)

    def _close_gaps(self) -> None:
        """Leave out what is gone, and a second copy of what is there."""
        held = {envelope.message.id: envelope for envelope in self}
        self._log = list(held.values())
        self._base = 0
        self.ids = {id: place for place, id in enumerate(held)}


def _latest_first(envelopes: Sequence[Envelope]) -> list[Envelope]:
    """Those that end."""
    return sorted([e for e in envelopes if e.deadline is not None], key=_DEADLINE, reverse=True)


def _end(envelope: Envelope) -> tuple[Instant, MessageId]:
    return (1 << 62 if envelope.deadline is None else envelope.deadline), envelope.message.id
