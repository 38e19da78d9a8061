"""The event queue: buckets of about a millisecond, sorted when they are reached.

Entries are tuples that begin with `when`, the instant and its phase in one number (`when_of`), and mean what their
maker says. Sorting is stable and looks at `when` alone, so entries of one instant and phase stay in the order in
which they were scheduled: one seed has one order, and an entry needs no rank. A bucket that is being drained takes
newcomers by insertion, or through a heap when it is long. What happens at the very instant goes to `soon`, a plain
queue. The world's loop reads `current` and `index` itself.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from operator import itemgetter
from typing import Any, Final, TypeAlias

from precede.core.instants import Instant

Entry: TypeAlias = tuple[Any, ...]

PHASE_BITS: Final = 3
LAST_PHASE: Final = 5
SHIFT: Final = 10 + PHASE_BITS
LONG: Final = 1024
_when: Final = itemgetter(0)


class EventQueue:
    """Events by instant, then phase, then order of scheduling."""

    def __init__(self) -> None:
        self.soon: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self.buckets: dict[int, list[Entry]] = {}
        self.order: list[int] = []
        self.current: list[Entry] = []
        self.bucket = -1
        self.index = 0
        self.late: list[tuple[int, int, Entry]] = []
        self._latecomers = 0

    def push(self, at: Instant, function: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        """Add an event in the last phase of its instant."""
        self.insert((at << PHASE_BITS | LAST_PHASE, function, arguments))

    def push_phase(
        self, phase: int, at: Instant, function: Callable[..., None], arguments: tuple[Any, ...]
    ) -> None:
        """Add an event in an earlier phase of its instant."""
        self.insert((at << PHASE_BITS | phase, function, arguments))

    def insert(self, entry: Entry) -> None:
        """Add an entry behind those of the same instant and phase."""
        bucket = entry[0] >> SHIFT
        if bucket != self.bucket:
            waiting = self.buckets.get(bucket)
            if waiting is None:
                self.buckets[bucket] = [entry]
                heappush(self.order, bucket)
            else:
                waiting.append(entry)
        elif not self.late and len(self.current) - self.index < LONG:
            insort(self.current, entry, self.index, key=_when)
        else:
            self._latecomers += 1
            heappush(self.late, (entry[0], self._latecomers, entry))

    def pop(self, until: Instant) -> Entry | None:
        """The next event due by `until`, or None."""
        late = self.late
        if self.index == len(self.current) and not late and not self._open(until):
            return None
        index = self.index
        drained = index == len(self.current)
        newcomer = bool(late) and (drained or late[0][0] < self.current[index][0])
        entry = late[0][2] if newcomer else self.current[index]
        if entry[0] >> PHASE_BITS > until:
            return None
        if newcomer:
            heappop(late)
        else:
            self.index = index + 1
        return entry

    def _open(self, until: Instant) -> bool:
        """Sort the next bucket, if it begins by `until`."""
        if not self.order or self.order[0] << (SHIFT - PHASE_BITS) > until:
            return False
        self.bucket = heappop(self.order)
        self.current = self.buckets.pop(self.bucket)
        self.current.sort(key=_when)
        self.index = 0
        return True

    def __len__(self) -> int:
        return (
            len(self.soon)
            + len(self.current)
            - self.index
            + len(self.late)
            + sum(map(len, self.buckets.values()))
        )
