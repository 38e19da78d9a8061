"""A priority queue of machine words: small numbers with ranks."""

from __future__ import annotations

from typing import Final, final

from librt.vecs import vec
from mypy_extensions import i64

_NUMBER_BITS: Final = 32
_NUMBER: Final = (1 << _NUMBER_BITS) - 1
_LEAST: Final = 16


@final
class Ranked:
    """Gives numbers by rank, smaller ranks first, and equal ranks in the order in which they came.

    `_ranks` and `_entries` are used from `_begin` to `_end`; an entry is a place in the order of coming, and
    the number. As long as no rank is smaller than the one before it, they are in order, else they are a heap.
    """

    __slots__ = ("_added", "_begin", "_end", "_entries", "_is_heap", "_ranks")

    def __init__(self) -> None:
        self._ranks = vec[i64]()
        self._entries = vec[i64]()
        self._begin: i64 = 0
        self._end: i64 = 0
        self._added: i64 = 0
        self._is_heap = False

    def __len__(self) -> int:
        return self._end - self._begin

    def is_empty(self) -> bool:
        return self._begin == self._end

    def first_rank(self) -> i64:
        """Return the rank of the next number, if there is one."""
        return self._ranks[self._begin]

    def add(self, rank: i64, number: i64) -> None:
        self._added += 1
        entry = self._added << _NUMBER_BITS | number
        if self._end == len(self._ranks):
            self._make_room()
        place = self._end
        self._end = place + 1
        ranks, entries = self._ranks, self._entries
        if not self._is_heap and place > self._begin and rank < ranks[place - 1]:
            self._move_down()  # what is in order is a heap
            self._is_heap = True
            place = self._end - 1
        if self._is_heap:
            while place > 0:
                above = (place - 1) >> 1
                if ranks[above] <= rank:  # of equal ranks this one came last
                    break
                ranks[place] = ranks[above]
                entries[place] = entries[above]
                place = above
        ranks[place] = rank
        entries[place] = entry

    def take(self) -> i64:
        """Remove and return the next number; -1 if there is none."""
        begin, end = self._begin, self._end - 1
        if begin > end:
            return -1
        first = self._entries[begin] & _NUMBER
        if begin == end:
            self._begin = self._end = 0
            self._is_heap = False
        elif self._is_heap:
            self._end = end
            self._sink(self._ranks[end], self._entries[end])
        else:
            self._begin = begin + 1
        return first

    def _sink(self, rank: i64, entry: i64) -> None:
        """Put what was the last of the heap into the place of the first, and restore the order."""
        ranks, entries, end = self._ranks, self._entries, self._end
        place: i64 = 0
        below: i64 = 1
        while below < end:
            least, earlier = ranks[below], entries[below]
            other = below + 1
            if other < end and (ranks[other] < least or (ranks[other] == least and entries[other] < earlier)):
                below = other
                least, earlier = ranks[below], entries[below]
            if rank < least or (rank == least and entry < earlier):
                break
            ranks[place] = least
            entries[place] = earlier
            place = below
            below = 2 * place + 1
        ranks[place] = rank
        entries[place] = entry

    def _make_room(self) -> None:
        if self._begin > self._end >> 1:
            self._move_down()
        else:
            room = 2 * (self._end - self._begin) + _LEAST
            self._move_to(vec[i64]([0] * room), vec[i64]([0] * room))

    def _move_down(self) -> None:
        """Move everything to the first places."""
        self._move_to(self._ranks, self._entries)

    def _move_to(self, new_ranks: vec[i64], new_entries: vec[i64]) -> None:
        ranks, entries, begin, end = self._ranks, self._entries, self._begin, self._end
        place = begin
        while place < end:
            new_ranks[place - begin] = ranks[place]
            new_entries[place - begin] = entries[place]
            place += 1
        self._ranks = new_ranks
        self._entries = new_entries
        self._begin = 0
        self._end = end - begin
