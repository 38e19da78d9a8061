"""The event queue: buckets of about a millisecond, sorted when they are reached.

Entries are tuples `(at, rank, function, arguments)`; the rank grows with every entry and begins with the phase,
so entries never compare beyond it and one seed has one order. A bucket that is being drained takes newcomers
by insertion, or through a heap when it is long. What happens at the very instant goes to `soon`, a plain queue.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, Final, Protocol, TypeAlias

from precede.core.instants import Instant

Entry: TypeAlias = tuple[Instant, int, Callable[..., None], tuple[Any, ...]]

_SHIFT: Final = 10
_PHASE: Final = 1 << 52
_REST: Final = 5 * _PHASE
_LONG: Final = 1024


class Clockwork(Protocol):
    """Whoever keeps the time."""

    now: Instant


class EventQueue:
    """Events by instant, then phase, then order of scheduling."""

    def __init__(self) -> None:
        self.soon: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self.handled = 0
        self._rank = _REST
        self._buckets: dict[int, list[Entry]] = {}
        self._order: list[int] = []
        self._current: list[Entry] = []
        self._current_bucket = -1
        self._index = 0
        self._late: list[Entry] = []

    def push(self, at: Instant, function: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        """Add an event in the last phase of its instant."""
        self._rank = rank = self._rank + 1
        bucket = at >> _SHIFT
        if bucket != self._current_bucket:
            waiting = self._buckets.get(bucket)
            if waiting is None:
                self._buckets[bucket] = [(at, rank, function, arguments)]
                heappush(self._order, bucket)
            else:
                waiting.append((at, rank, function, arguments))
        elif len(self._current) - self._index < _LONG:
            insort(self._current, (at, rank, function, arguments), self._index)
        else:
            heappush(self._late, (at, rank, function, arguments))

    def push_phase(
        self, phase: int, at: Instant, function: Callable[..., None], arguments: tuple[Any, ...]
    ) -> None:
        """Add an event in an earlier phase of its instant."""
        self._rank += (phase - 5) * _PHASE
        self.push(at, function, arguments)
        self._rank -= (phase - 5) * _PHASE

    def run(self, until: Instant, most: int, clock: Clockwork) -> bool:
        """Handle up to `most` events that are due by `until` (inclusive); False when none of them is left.

        `clock.now` is set to each event's instant. The loop is written out: it is the hottest of all.
        """
        soon = self.soon
        for done in range(most):
            if soon:
                function, arguments = soon.popleft()
                function(*arguments)
                continue
            index = self._index
            if index < len(self._current) and not self._late:
                entry = self._current[index]
                if entry[0] > until:
                    self.handled += done
                    return False
                self._index = index + 1
            else:
                found = self._pop(until)
                if found is None:
                    self.handled += done
                    return False
                entry = found
            clock.now = entry[0]
            entry[2](*entry[3])
        self.handled += most
        return True

    def _pop(self, until: Instant) -> Entry | None:
        """The next event when the current bucket has newcomers in the heap, or is used up."""
        late = self._late
        if self._index == len(self._current) and not late:
            if not self._order or (self._order[0] << _SHIFT) > until:
                return None
            self._current_bucket = heappop(self._order)
            self._current = self._buckets.pop(self._current_bucket)
            self._current.sort()
            self._index = 0
        index = self._index
        entry = self._current[index] if index < len(self._current) else late[0]
        newcomer = bool(late) and (index == len(self._current) or late[0] < entry)
        if newcomer:
            entry = late[0]
        if entry[0] > until:
            return None
        if newcomer:
            heappop(late)
        else:
            self._index = index + 1
        return entry

    def next_instant(self) -> Instant | None:
        """When the next event is due, or None."""
        if self._index < len(self._current):
            return min([self._current[self._index], *self._late[:1]])[0]
        if self._late:
            return self._late[0][0]
        return min(self._buckets[self._order[0]])[0] if self._order else None

    def __len__(self) -> int:
        return (
            len(self.soon)
            + len(self._current)
            - self._index
            + len(self._late)
            + sum(map(len, self._buckets.values()))
        )
