"""The event queue: buckets of about a millisecond, sorted when they are reached.

An entry is a reception, `(when, seat, packet, sender, over)`, or `(when, CALL, function, arguments, None)`;
`when` is the instant and its phase in one number. Sorting is stable and looks at `when` alone, so entries of
one instant and phase stay in the order in which they were scheduled: one seed has one order, and an entry
needs no rank. The bucket that is being drained takes newcomers by insertion behind `rest`, the iterator that
drains it; of a long bucket only the beginning is drained at a time. What happens at the very instant goes to
`soon`.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from operator import itemgetter
from typing import Any, Final, TypeAlias

from precede.core.instants import Instant

try:
    from mypy_extensions import mypyc_attr
except ImportError:
    from precede.core.compiling import mypyc_attr

Entry: TypeAlias = tuple[int, Any, Any, Any, Any]

PHASE_BITS: Final = 3
LAST_PHASE: Final = 5
SHIFT: Final = 10 + PHASE_BITS
LONG: Final = 4096
_when: Final = itemgetter(0)


class Call:
    """Stands where a reception has its seat: a function is to be called."""

    plain = False


CALL: Final = Call()


@mypyc_attr(allow_interpreted_subclasses=True)
class EventQueue:
    """Events by instant, then phase, then order of scheduling."""

    def __init__(self) -> None:
        self.soon: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self.buckets: dict[float, list[Entry]] = {}
        self.rest: Any = iter(())
        self._order: list[float] = []
        self._current: list[Entry] = []
        self._horizon = 0
        self._opened = 0

    def push(self, at: Instant, function: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        """Add an event in the last phase of its instant."""
        self.insert((at << PHASE_BITS | LAST_PHASE, CALL, function, arguments, None))

    def push_phase(
        self, phase: int, at: Instant, function: Callable[..., None], arguments: tuple[Any, ...]
    ) -> None:
        """Add an event in an earlier phase of its instant."""
        self.insert((at << PHASE_BITS | phase, CALL, function, arguments, None))

    def insert(self, entry: Entry) -> None:
        """Add an entry behind those of the same instant and phase."""
        if entry[0] >= self._horizon:
            self._put(entry[0] >> SHIFT, entry)
            return
        self._opened += 1
        left = self.rest.__length_hint__()
        if left:
            insort(self._current, entry, len(self._current) - left, key=_when)
        else:
            self._current = [entry]  # an iterator at its end may not see what is added to its list
            self.rest = iter(self._current)

    def _put(self, bucket: float, entry: Entry) -> None:
        half = bucket + 0.5  # the later part of a long bucket that is being drained
        waiting = self.buckets.get(half) or self.buckets.get(bucket)
        if waiting is not None:
            waiting.append(entry)
        else:
            self.buckets[bucket] = [entry]
            heappush(self._order, bucket)

    def open(self, limit: int) -> bool:
        """Let `rest` begin with the next entry; False when none is due by `limit` (a `when`)."""
        left = self.rest.__length_hint__()
        if left:
            return bool(self._current[-left][0] <= limit)
        if not self._order or int(self._order[0]) << SHIFT > limit:
            return False
        bucket = heappop(self._order)
        entries = self.buckets.pop(bucket)
        entries.sort(key=_when)
        self._horizon = (int(bucket) + 1) << SHIFT
        if len(entries) > LONG:
            self._put_back(int(bucket) + 0.5, entries)
        self._opened += len(entries)
        self._current = entries
        self.rest = iter(entries)
        return entries[0][0] <= limit

    def _put_back(self, later: float, entries: list[Entry]) -> None:
        """Of a long bucket drain only the beginning, so that newcomers find a short list."""
        end = bisect_right(entries, entries[LONG - 1][0], key=_when)
        if end < len(entries):
            self._horizon = entries[end][0]
            self.buckets[later] = entries[end:]
            heappush(self._order, later)
            del entries[end:]

    def unread(self) -> None:
        """The entry taken last from `rest` is to come again."""
        self.rest.__setstate__(len(self._current) - self.rest.__length_hint__() - 1)

    @property
    def taken(self) -> int:
        """How many entries have been taken."""
        return self._opened - int(self.rest.__length_hint__())

    def __len__(self) -> int:
        return len(self.soon) + int(self.rest.__length_hint__()) + sum(map(len, self.buckets.values()))
