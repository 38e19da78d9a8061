"""The cache of `epidemic`: what is carried, in the order of reception, and when it ends (guidec2021, III).

Built for batches: the ids are a set, so a summary is a copy and what a peer lacks a difference, mostly empty;
beside it a log, which what has ended leaves only now and then. Deadlines are kept per batch and looked at one
by one only when the first of a batch has passed.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from random import Random
from typing import Final, final

from precede.core.identity import MessageId
from precede.core.instants import Instant
from precede.protocols.layered.parsed_envelopes import NEVER, Batch, Opened

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
    """`ids` are held; the log has them, opened, among others that have ended, and None for who was evicted.

    What has ended never comes back, so an id is held at no more than one place of the log. `load` is that of a
    batch of which all is held.
    """

    __slots__ = ("_ends", "_first", "_log", "_serial", "_summary", "ids", "load")

    def __init__(self) -> None:
        self.ids: set[MessageId] = set()
        self.load: list[Opened] | None = None
        self._log: list[Opened | None] = []
        self._first = 0  # all before this place is gone
        self._ends: list[tuple[Instant, int, Ending]] = []
        self._serial = 0
        self._summary: frozenset[MessageId] | None = None

    def add(self, batch: Batch) -> None:
        """New messages, each once."""
        count = len(self.ids) + len(batch.ids)
        self.ids.update(batch.ids)
        self._log.extend(batch.contents)
        self._summary = None
        if len(self.ids) != count:
            self._close_gaps()
        if batch.first_end != NEVER:
            self._serial += 1
            heappush(self._ends, (batch.first_end, self._serial, Ending(batch)))

    def remove(self, id: MessageId) -> None:
        """One that has ended."""
        self.ids.remove(id)
        self._summary = self.load = None
        if len(self._log) > 2 * len(self.ids) + _SLACK:
            self._close_gaps()

    def summary(self) -> frozenset[MessageId]:
        """All ids; the same object as long as nothing changes."""
        if self._summary is None:
            self._summary = frozenset(self.ids)
        return self._summary

    def lacked_by(self, held: frozenset[MessageId], now: Instant) -> Batch:
        """Everything that is not held there, in the order of reception; what has ended was removed before."""
        if not held:
            everything = Batch([opened for opened in self._log if opened is not None and opened.deadline > now])
            everything.summary = self.summary()
            return everything
        lacked: set[MessageId] = self.ids - held
        left = len(lacked)
        contents: list[Opened] = []
        for opened in reversed(self._log):  # what others lack came last
            if left == 0:
                break
            if opened is not None and opened.id in lacked:
                contents.append(opened)
                left -= 1
        contents.reverse()
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

    def evict(self, how: str, random: Random) -> Opened:
        """Who leaves a full cache: the first received, anyone, or the next to expire."""
        if how == "deadline":
            place = self._log.index(min(self, key=_end))
        else:
            place = self._anyone(random) if how == "random" else self._first_received()
        opened = self._log[place]
        assert opened is not None
        self._log[place] = None
        self.remove(opened.id)
        return opened

    def _first_received(self) -> int:
        while not self._holds(self._log[self._first]):
            self._first += 1
        return self._first

    def _anyone(self, random: Random) -> int:
        while True:
            place = random.choice(range(len(self._log)))
            if self._holds(self._log[place]):
                return place

    def _holds(self, opened: Opened | None) -> bool:
        return opened is not None and opened.id in self.ids

    def __iter__(self) -> Iterator[Opened]:
        return iter([opened for opened in self._log if opened is not None and opened.id in self.ids])

    def __len__(self) -> int:
        return len(self.ids)

    def _close_gaps(self) -> None:
        """Leave out what is gone, and a second copy of what is there."""
        held = {opened.id: opened for opened in self}
        self._log = list(held.values())
        self._first = 0


def _end(opened: Opened) -> tuple[Instant, MessageId]:
    return opened.deadline, opened.id
