"""The cache of `epidemic`: what is carried, in the order of reception, and when it ends (guidec2021, III).

Built for batches: ids map to places in a log, so a summary is one set difference, and what a peer lacks comes
out in the order of reception by sorting small numbers. Deadlines are kept per batch and looked at one by one
only when the first of a batch has passed.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from random import Random
from typing import Final, final

from precede.core.identity import MessageId
from precede.core.instants import Instant
from precede.protocols.opening import NEVER, Batch, Opened

_SLACK: Final = 64


@final
class Ending:
    """A batch of which some have not ended: the first `left` in its order by latest end."""

    __slots__ = ("batch", "left")

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.left = -1


@final
class Cache:
    """`ids[id]` is a place; `log[place]` the message, opened, or None once it is gone."""

    __slots__ = ("_ends", "_first", "_log", "_serial", "_summary", "ids")

    def __init__(self) -> None:
        self.ids: dict[MessageId, int] = {}
        self._log: list[Opened | None] = []
        self._first = 0  # all before this place is gone
        self._ends: list[tuple[Instant, int, Ending]] = []
        self._serial = 0
        self._summary: frozenset[MessageId] | None = None

    def add(self, batch: Batch) -> None:
        """New messages, each once."""
        ids = self.ids
        count = len(ids) + len(batch.ids)
        place = len(self._log)
        for id in batch.ids:
            ids[id] = place
            place += 1
        self._log.extend(batch.contents)
        self._summary = None
        if len(ids) != count:
            self._close_gaps()
        if batch.first_end != NEVER:
            self._serial += 1
            heappush(self._ends, (batch.first_end, self._serial, Ending(batch)))

    def remove(self, id: MessageId) -> None:
        place = self.ids.pop(id)
        self._log[place] = None
        self._summary = None
        if len(self._log) > 2 * len(self.ids) + _SLACK:
            self._close_gaps()

    def summary(self) -> frozenset[MessageId]:
        """All ids; the same object as long as nothing changes."""
        if self._summary is None:
            self._summary = frozenset(self.ids)
        return self._summary

    def lacked_by(self, held: frozenset[MessageId]) -> Batch:
        """Everything that is not held there, in the order of reception."""
        if not held:
            return Batch(list(self))
        ids, log = self.ids, self._log
        lacked: frozenset[MessageId] = self.summary() - held
        contents: list[Opened] = []
        for place in sorted([ids[id] for id in lacked]):
            opened = log[place]
            if opened is not None:
                contents.append(opened)
        return Batch(contents)

    def first_end(self) -> Instant:
        """No message ends before this."""
        return self._ends[0][0] if self._ends else NEVER

    def ended(self, now: Instant) -> list[Opened]:
        """Every message whose deadline has passed, once, whether still in the cache or evicted before."""
        found: list[Opened] = []
        ends = self._ends
        while ends and ends[0][0] <= now:
            _, serial, ending = heappop(ends)
            order = ending.batch.latest_first()
            left = ending.left if ending.left >= 0 else len(order)
            while left and order[left - 1].deadline <= now:
                left -= 1
                found.append(order[left])
            ending.left = left
            if left:
                heappush(ends, (order[left - 1].deadline, serial, ending))
        return found

    def victim(self, how: str, random: Random) -> Opened:
        """Who leaves a full cache: the first received, anyone, or the next to expire."""
        if how == "random":
            return self._anyone(random)
        return min(self, key=_end) if how == "deadline" else self._first_received()

    def _first_received(self) -> Opened:
        while True:
            opened = self._log[self._first]
            if opened is not None:
                return opened
            self._first += 1

    def _anyone(self, random: Random) -> Opened:
        while True:
            opened = random.choice(self._log)
            if opened is not None:
                return opened

    def __iter__(self) -> Iterator[Opened]:
        return iter([opened for opened in self._log if opened is not None])

    def __len__(self) -> int:
        return len(self.ids)

    def _close_gaps(self) -> None:
        """Leave out what is gone, and a second copy of what is there."""
        held = {opened.id: opened for opened in self}
        self._log = list(held.values())
        self._first = 0
        self.ids = {id: place for place, id in enumerate(held)}


def _end(opened: Opened) -> tuple[Instant, MessageId]:
    return opened.deadline, opened.id
