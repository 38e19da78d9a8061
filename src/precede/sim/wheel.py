"""A wheel with a slot for each microsecond of the next quarter of a second: the event queue of `WheelWorld`.

An entry is one machine word, and the world says what it means. The entries of a slot are a chain, in the order
in which they were added, so that one seed has one order. Entries that are due later wait in chains too, one for
each *granule* of 33 ms. The wheel turns by whole granules: the entries of a granule move into their slots
before anything can be added to these directly. The buckets of `queue` need objects.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Final, final

from librt.vecs import append, vec
from mypy_extensions import i32, i64

NEVER: Final = 1 << 60
_SPAN: Final = 1 << 18
_GRANULE_BITS: Final = 15
_STRETCH_BITS: Final = 6
"""`_counts` has the number of entries of each stretch of 64 slots, so that empty ones are skipped."""


@final
class Wheel:
    """Entries by instant, then by order of adding. `at` is the instant that the wheel has turned to.

    Entry n is two words of `_entries`: its word at 2 n, and at 2 n + 1 the next entry of its chain. They share
    a cache line. A slot of `_tails` has the last entry of its chain, whose next one is the first; 0 if it has
    none. `_due` has the instants of later entries. `_later` has their chains by granule, `_granules` is a heap
    of these granules. `_end` is the first instant beyond the slots.
    """

    def __init__(self) -> None:
        self.at: i64 = 0
        self.taken: i64 = 0
        self._waiting: i64 = 0
        self._end: i64 = _SPAN
        self._free: i64 = 0
        self._tails = _zeros(_SPAN)
        self._counts = _zeros(_SPAN >> _STRETCH_BITS)
        self._entries = vec[i64]([0, 0])
        self._due = vec[i64]([0])
        self._later: dict[int, int] = {}
        self._granules: list[int] = []

    def is_waiting(self) -> bool:
        return self._waiting > 0 or len(self._later) > 0

    def add(self, at: i64, word: i64) -> None:
        """Add an entry after those of the same instant, which is not before `self.at`."""
        entry = self._free
        if entry != 0:
            self._free = self._entries[2 * entry + 1]
            self._entries[2 * entry] = word
        else:
            entry = len(self._due)
            self._entries = append(append(self._entries, word), 0)
            self._due = append(self._due, 0)
        if at < self._end:
            self._link(at, entry)
        else:
            self._due[entry] = at
            granule = at >> _GRANULE_BITS
            tail = self._later.get(granule, 0)
            if tail == 0:
                heappush(self._granules, granule)
            self._later[granule] = self._chained(tail, entry)

    def _chained(self, tail: i64, entry: i64) -> i64:
        """Put an entry behind the last one of a chain, which may be 0 for none. Return the new last entry."""
        entries = self._entries
        if tail == 0:
            entries[2 * entry + 1] = entry
        else:
            entries[2 * entry + 1] = entries[2 * tail + 1]
            entries[2 * tail + 1] = entry
        return entry

    def _link(self, at: i64, entry: i64) -> None:
        slot = at & (_SPAN - 1)
        self._tails[slot] = i32(self._chained(i64(self._tails[slot]), entry))
        self._counts[slot >> _STRETCH_BITS] += 1
        self._waiting += 1

    def seek(self, limit: i64) -> bool:
        """Turn to the first instant that has an entry. Return False if there is none up to `limit`."""
        if limit < self.at or self._tails[self.at & (_SPAN - 1)] != 0:
            return limit >= self.at
        if self._waiting == 0 and not self._turn_to_later(limit):
            return False
        at = self._first()
        if at > limit:
            self._turn(limit)
            return False
        self._turn(at)
        return True

    def take(self) -> i64:
        """Remove the first entry at `self.at`, which has one, and return its word."""
        slot = self.at & (_SPAN - 1)
        entries = self._entries
        tail = i64(self._tails[slot])
        first = entries[2 * tail + 1]
        if first == tail:
            self._tails[slot] = 0
        else:
            entries[2 * tail + 1] = entries[2 * first + 1]
        self._counts[slot >> _STRETCH_BITS] -= 1
        self._waiting -= 1
        entries[2 * first + 1] = self._free
        self._free = first
        self.taken += 1
        return entries[2 * first]

    def _first(self) -> i64:
        """Return the first instant from `at` on that has an entry. There is one in the wheel."""
        at = self.at
        while self._counts[(at & (_SPAN - 1)) >> _STRETCH_BITS] == 0:
            at = ((at >> _STRETCH_BITS) + 1) << _STRETCH_BITS
        while self._tails[at & (_SPAN - 1)] == 0:
            at += 1
        return at

    def _turn_to_later(self, limit: i64) -> bool:
        """Turn an empty wheel to the first later granule. Return False if there is none up to `limit`."""
        if not self._granules:
            return False
        begin: i64 = self._granules[0] << _GRANULE_BITS
        if begin > limit:
            return False
        self._turn(begin)
        return True

    def _turn(self, at: i64) -> None:
        """Turn to an instant. The entries of granules that this brings into the wheel move into their slots."""
        self.at = at
        end = (at >> _GRANULE_BITS << _GRANULE_BITS) + _SPAN
        if end == self._end:
            return
        self._end = end
        while self._granules and self._granules[0] << _GRANULE_BITS < end:
            tail: i64 = self._later.pop(heappop(self._granules))
            entry = self._entries[2 * tail + 1]
            while True:
                following = self._entries[2 * entry + 1]
                self._link(self._due[entry], entry)
                if entry == tail:
                    break
                entry = following


def _zeros(count: i64) -> vec[i32]:
    # To append them one by one takes 0.5 ms, which a small world would notice.
    return vec[i32]([0] * count)
