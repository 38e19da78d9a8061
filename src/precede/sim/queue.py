"""The event queue: buckets of about a millisecond, sorted when they are reached.

Entries are tuples `(at, rank, function, arguments)`, or begin with `(at, rank` and mean what their maker says;
the rank grows with every entry and begins with the phase, so entries never compare beyond it and one seed has
one order. A bucket that is being drained takes newcomers by insertion, or through a heap when it is long. What
happens at the very instant goes to `soon`, a plain queue. The world's loop reads `current` and `index` itself.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, Final, TypeAlias

from precede.core.instants import Instant

Entry: TypeAlias = tuple[Any, ...]

SHIFT: Final = 10
_PHASE: Final = 1 << 52
_REST: Final = 5 * _PHASE
LONG: Final = 1024


class EventQueue:
    """Events by instant, then phase, then order of scheduling."""

    def __init__(self) -> None:
        self.soon: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self.rank = _REST
        self.buckets: dict[int, list[Entry]] = {}
        self.order: list[int] = []
        self.current: list[Entry] = []
        self.bucket = -1
        self.index = 0
        self.late: list[Entry] = []

    def push(self, at: Instant, function: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        """Add an event in the last phase of its instant."""
        self.rank = rank = self.rank + 1
        self.insert(at, (at, rank, function, arguments))

    def insert(self, at: Instant, entry: Entry) -> None:
        """Add an entry that has its rank."""
        bucket = at >> SHIFT
        if bucket != self.bucket:
            waiting = self.buckets.get(bucket)
            if waiting is None:
                self.buckets[bucket] = [entry]
                heappush(self.order, bucket)
            else:
                waiting.append(entry)
        elif len(self.current) - self.index < LONG:
            insort(self.current, entry, self.index)
        else:
            heappush(self.late, entry)

    def push_phase(
        self, phase: int, at: Instant, function: Callable[..., None], arguments: tuple[Any, ...]
    ) -> None:
        """Add an event in an earlier phase of its instant."""
        self.rank += (phase - 5) * _PHASE
        self.push(at, function, arguments)
        self.rank -= (phase - 5) * _PHASE

    def pop(self, until: Instant) -> Entry | None:
        """The next event due by `until`, or None."""
        late = self.late
        if self.index == len(self.current) and not late:
            if not self.order or (self.order[0] << SHIFT) > until:
                return None
            self.bucket = heappop(self.order)
            self.current = self.buckets.pop(self.bucket)
            self.current.sort()
            self.index = 0
        index = self.index
        entry = self.current[index] if index < len(self.current) else late[0]
        newcomer = bool(late) and (index == len(self.current) or late[0] < entry)
        if newcomer:
            entry = late[0]
        if entry[0] > until:
            return None
        if newcomer:
            heappop(late)
        else:
            self.index = index + 1
        return entry

    def __len__(self) -> int:
        return (
            len(self.soon)
            + len(self.current)
            - self.index
            + len(self.late)
            + sum(map(len, self.buckets.values()))
        )
