"""A hierarchical timing wheel: the event queue of `WheelWorld` (Varghese and Lauck 1987, scheme 7).

An entry is one machine word, and the world says what it means. The millisecond that `at` is in has a slot for
each microsecond; the entries of a slot are a chain, in the order in which they were added, so that one seed has
one order. Later entries wait in buckets: of a millisecond in the present quarter of a second, of a quarter of a
second in the present minute, and so on, each level 256 times as coarse as the one below. When the wheel turns
into a bucket, its entries move to the levels below, before anything can be added to these directly.

A bucket is written and read from its beginning to its end, and the slots fit into the first cache. A slot for
each microsecond of the next quarter of a second took longer: each packet waited for memory three times.
The buckets of `queue` need objects.
"""

from __future__ import annotations

from typing import Final, final

from librt.vecs import append, vec
from mypy_extensions import i32, i64

NEVER: Final = 1 << 60
"""Later than every instant of an entry that will ever be due."""
_ENDLESS: Final = 1 << 50
"""From here on (36 years) a limit is none: the wheel does not turn to it, for earlier entries may follow."""
_SLOT_BITS: Final = 10
_SLOTS: Final = 1 << _SLOT_BITS
_STRETCH_BITS: Final = 6
"""`_counts` has the number of entries of each stretch of 64 slots, so that empty ones are skipped."""
_LEVEL_BITS: Final = 8
_LEVEL: Final = 1 << _LEVEL_BITS
_LEVELS: Final = 7
_CHUNK_BITS: Final = 6
_CHUNK: Final = 1 << _CHUNK_BITS
_LINK: Final = _CHUNK - 2
"""The place in a chunk that has the next chunk. Before it are 31 entries of two words: instant and word."""


@final
class Wheel:
    """Entries by instant, then by order of adding. `at` is the instant that the wheel has turned to.

    Slots: entry n is two words of `_entries`: its word at 2 n, and at 2 n + 1 the next entry of its chain. A
    slot of `_tails` has the last entry of its chain, whose next one is the first; 0 if it has none.

    Buckets: `_store` consists of chunks. `_first` has the place of the first chunk of each bucket, `_ends` the
    place of its next entry, which is `_LINK` while it has none. Chunk 0 is never used.
    """

    def __init__(self) -> None:
        self.at: i64 = 0
        self.taken: i64 = 0
        self._waiting: i64 = 0
        self._in_slots: i64 = 0
        self._free_entry: i64 = 0
        self._tails = vec[i32]([0] * _SLOTS)
        self._counts = vec[i32]([0] * (_SLOTS >> _STRETCH_BITS))
        self._entries = vec[i64]([0, 0])
        self._free_chunk: i64 = 0
        self._store = vec[i64]([0] * _CHUNK)
        self._first = vec[i64]([0] * (_LEVELS * _LEVEL))
        self._ends = vec[i64]([_LINK] * (_LEVELS * _LEVEL))

    def is_waiting(self) -> bool:
        return self._waiting > 0

    def add(self, at: i64, word: i64) -> None:
        """Add an entry after those of the same instant, which is not before `self.at`."""
        if at < self.at:
            raise ValueError(f"an event at {at}, before the present instant, {self.at}")
        self._waiting += 1
        self._put(at, word)

    def seek(self, limit: i64) -> bool:
        """Turn to the first instant that has an entry. Return False if there is none up to `limit`."""
        if limit < self.at or self._tails[self.at & (_SLOTS - 1)] != 0:
            return limit >= self.at
        if self._waiting == 0:
            return False
        while True:
            at = self._first_slot() if self._in_slots > 0 else self._first_bucket()
            if at > limit:
                if limit < _ENDLESS:
                    self._turn(limit)
                return False
            self._turn(at)
            if self._tails[at & (_SLOTS - 1)] != 0:
                return True

    def take(self) -> i64:
        """Remove the first entry at `self.at`, which has one, and return its word."""
        slot = self.at & (_SLOTS - 1)
        entries = self._entries
        tail = i64(self._tails[slot])
        first = entries[2 * tail + 1]
        if first == tail:
            self._tails[slot] = 0
        else:
            entries[2 * tail + 1] = entries[2 * first + 1]
        self._counts[slot >> _STRETCH_BITS] -= 1
        self._in_slots -= 1
        self._waiting -= 1
        entries[2 * first + 1] = self._free_entry
        self._free_entry = first
        self.taken += 1
        return entries[2 * first]

    # -- adding ------------------------------------------------------------------------------------------

    def _put(self, at: i64, word: i64) -> None:
        """Put an entry into its slot, or into a bucket of the lowest level at which `self.at` is in another."""
        apart = at ^ self.at
        if apart < _SLOTS:
            self._link(at & (_SLOTS - 1), word)
            return
        bucket: i64 = 0
        instant = at >> _SLOT_BITS
        apart >>= _SLOT_BITS + _LEVEL_BITS
        while apart != 0:
            bucket += _LEVEL
            instant >>= _LEVEL_BITS
            apart >>= _LEVEL_BITS
        bucket += instant & (_LEVEL - 1)
        end = self._ends[bucket]
        if end & (_CHUNK - 1) == _LINK:
            end = self._add_chunk(bucket, end)
        store = self._store
        store[end] = at
        store[end + 1] = word
        self._ends[bucket] = end + 2

    def _add_chunk(self, bucket: i64, end: i64) -> i64:
        """Add a chunk to a full or empty bucket. Return the place of its first entry."""
        chunk = self._free_chunk
        if chunk != 0:
            self._free_chunk = self._store[chunk + _LINK]
        else:
            chunk = len(self._store)
            store = self._store
            for _ in range(_CHUNK):
                store = append(store, 0)
            self._store = store
        if end == _LINK:
            self._first[bucket] = chunk
        else:
            self._store[end] = chunk
        return chunk

    def _link(self, slot: i64, word: i64) -> None:
        """Put an entry behind the last one of a slot."""
        entry = self._free_entry
        if entry != 0:
            self._free_entry = self._entries[2 * entry + 1]
            self._entries[2 * entry] = word
        else:
            entry = len(self._entries) >> 1
            self._entries = append(append(self._entries, word), 0)
        entries = self._entries
        tail = i64(self._tails[slot])
        if tail == 0:
            entries[2 * entry + 1] = entry
        else:
            entries[2 * entry + 1] = entries[2 * tail + 1]
            entries[2 * tail + 1] = entry
        self._tails[slot] = i32(entry)
        self._counts[slot >> _STRETCH_BITS] += 1
        self._in_slots += 1

    # -- turning -----------------------------------------------------------------------------------------

    def _first_slot(self) -> i64:
        """Return the first instant from `at` on that has an entry in a slot. There is one."""
        at = self.at
        while self._counts[(at & (_SLOTS - 1)) >> _STRETCH_BITS] == 0:
            at = ((at >> _STRETCH_BITS) + 1) << _STRETCH_BITS
        while self._tails[at & (_SLOTS - 1)] == 0:
            at += 1
        return at

    def _first_bucket(self) -> i64:
        """Return the instant at which the first bucket begins that has entries; NEVER if none has."""
        level: i64 = 0
        bits: i64 = _SLOT_BITS
        while level < _LEVELS:
            present = self.at >> bits
            bucket = (present & (_LEVEL - 1)) + 1
            while bucket < _LEVEL:
                if self._ends[level * _LEVEL + bucket] != _LINK:
                    return (present - (present & (_LEVEL - 1)) + bucket) << bits
                bucket += 1
            level += 1
            bits += _LEVEL_BITS
        return NEVER

    def _turn(self, at: i64) -> None:
        """Turn to an instant. The entries of the buckets that this turns into move to the levels below."""
        apart = (at ^ self.at) >> _SLOT_BITS
        self.at = at
        level: i64 = -1
        while apart != 0:
            level += 1
            apart >>= _LEVEL_BITS
        while level >= 0:
            self._empty(level * _LEVEL + ((at >> (_SLOT_BITS + level * _LEVEL_BITS)) & (_LEVEL - 1)))
            level -= 1

    def _empty(self, bucket: i64) -> None:
        """Put the entries of a bucket where they belong now, which is a level below."""
        end = self._ends[bucket]
        if end == _LINK:
            return
        self._ends[bucket] = _LINK
        place = self._first[bucket]
        while place != end:
            store = self._store
            if place & (_CHUNK - 1) == _LINK:
                full, place = place - _LINK, store[place]
                self._store[full + _LINK] = self._free_chunk
                self._free_chunk = full
            self._put(self._store[place], self._store[place + 1])
            place += 2
        last = (end - 1) >> _CHUNK_BITS << _CHUNK_BITS
        self._store[last + _LINK] = self._free_chunk
        self._free_chunk = last
