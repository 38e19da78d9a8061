"""What waits at one vertex, in machine words.

It does what the dictionaries `_pending`, `_awaited` and `_held_from` of a `VCubeNode` do with their objects. A
message in it is a *slot* (`prepared.slot_of`).
"""

from __future__ import annotations

from typing import Final, final

from librt.vecs import append, vec
from mypy_extensions import i64

_ROW: Final = 4
_ROW_BITS: Final = 2
_LACKING: Final = 1
_HELD: Final = 2
_HELD_FROM: Final = 3
_FEWEST: Final = 8
_MIX: Final = 2654435769
"""The golden ratio in 32 bits: its multiples are spread evenly (Knuth, volume 3, section 6.4)."""


@final
class Index:
    """A table by slot, and chains of what waits for each message: to be delivered, or to be sent to a child.

    A row of `_table` has four words: the slot of a message (0 in a free row), the chain of the messages that
    lack it, the chain of those held until it is received, and the mask of the clusters that the message
    itself is held from. A row is as near as possible behind the place that its slot is mixed to. A chain is the
    number of its last entry, whose next one is the first; 0 if it is empty.

    Entry n is three words of `_entries` from 3 n on: what waits, the next entry, and a detail: since when it
    waits, or the number of the child. `pending` is how many messages lack one, `held` how many are held, each
    counted once for every child.
    """

    def __init__(self) -> None:
        self.pending: i64 = 0
        self.held: i64 = 0
        self._rows: i64 = 0
        self._most: i64 = 0
        self._table = vec[i64]()
        self._entries = vec[i64]()
        self._free: i64 = 0

    # -- the table -----------------------------------------------------------------------------------------

    def find(self, slot: i64) -> i64:
        """Return where the row of a message begins; -1 if nothing waits for it and it is not held."""
        if self._rows == 0:
            return -1
        table, most = self._table, self._most
        place = _mixed(slot) & most
        while table[_ROW * place] != slot:
            if table[_ROW * place] == 0:
                return -1
            place = (place + 1) & most
        return _ROW * place

    def is_lacked(self, at: i64) -> bool:
        """True if messages lack the one whose row begins there."""
        return self._table[at + _LACKING] != 0

    def is_held_for(self, at: i64) -> bool:
        """True if messages are held until the one whose row begins there is received."""
        return self._table[at + _HELD] != 0

    def held_from(self, slot: i64) -> i64:
        """Return the mask of the clusters that a message is held from."""
        at = self.find(slot)
        if at < 0:
            return 0
        return self._table[at + _HELD_FROM]

    def change_held_from(self, slot: i64, mask: i64) -> None:
        """Change for each cluster of the mask whether a message is held from it."""
        at = self._row_of(slot)
        self._table[at + _HELD_FROM] ^= mask
        self._drop_empty(at)

    def _row_of(self, slot: i64) -> i64:
        """Return where the row of a message begins. It has one afterwards."""
        if 2 * self._rows >= self._most:
            self._grow()
        table, most = self._table, self._most
        place = _mixed(slot) & most
        while table[_ROW * place] != 0:
            if table[_ROW * place] == slot:
                return _ROW * place
            place = (place + 1) & most
        table[_ROW * place] = slot
        self._rows += 1
        return _ROW * place

    def _grow(self) -> None:
        old = self._table
        size: i64 = _FEWEST
        if len(old) != 0:
            size = 2 * (self._most + 1)
        self._most = size - 1
        self._table = vec[i64]([0] * (_ROW * size))
        self._rows = 0
        at: i64 = 0
        while at < len(old):
            if old[at] != 0:
                new = self._row_of(old[at])
                self._table[new + _LACKING] = old[at + _LACKING]
                self._table[new + _HELD] = old[at + _HELD]
                self._table[new + _HELD_FROM] = old[at + _HELD_FROM]
            at += _ROW

    def _drop_empty(self, at: i64) -> None:
        """Remove a row if it has nothing but its slot. Rows behind it move up, so that they are still found."""
        table, most = self._table, self._most
        if table[at + _LACKING] | table[at + _HELD] | table[at + _HELD_FROM] != 0:
            return
        hole = at >> _ROW_BITS
        place = (hole + 1) & most
        while table[_ROW * place] != 0:
            if (place - _mixed(table[_ROW * place])) & most >= (place - hole) & most:
                for field in range(_ROW):
                    table[_ROW * hole + field] = table[_ROW * place + field]
                hole = place
            place = (place + 1) & most
        table[_ROW * hole] = 0
        table[_ROW * hole + _LACKING] = 0
        table[_ROW * hole + _HELD] = 0
        table[_ROW * hole + _HELD_FROM] = 0
        self._rows -= 1

    # -- chains --------------------------------------------------------------------------------------------

    def lack(self, under: i64, entry: i64) -> None:
        """Let an entry wait for the delivery of a message."""
        at = self._row_of(under) + _LACKING
        self._table[at] = self.chained(self._table[at], entry)

    def hold(self, under: i64, entry: i64) -> None:
        """Let an entry wait until a message is received."""
        at = self._row_of(under) + _HELD
        self._table[at] = self.chained(self._table[at], entry)

    def take_lacking(self, slot: i64) -> i64:
        """Remove the chain of the messages that lack this one, and return its first entry; 0 if it is empty."""
        return self._take(slot, _LACKING)

    def take_held(self, slot: i64) -> i64:
        """Remove the chain of the messages that are held for this one, and return its first entry."""
        return self._take(slot, _HELD)

    def _take(self, slot: i64, chain: i64) -> i64:
        at = self.find(slot)
        if at < 0:
            return 0
        tail = self._table[at + chain]
        self._table[at + chain] = 0
        self._drop_empty(at)
        return self.opened(tail)

    def chained(self, tail: i64, entry: i64) -> i64:
        """Put an entry behind the last one of a chain. Return the new last entry."""
        entries = self._entries
        if tail == 0:
            entries[3 * entry + 1] = entry
        else:
            entries[3 * entry + 1] = entries[3 * tail + 1]
            entries[3 * tail + 1] = entry
        return entry

    def opened(self, tail: i64) -> i64:
        """Let a chain end behind its last entry, and return the first one."""
        if tail == 0:
            return 0
        first = self._entries[3 * tail + 1]
        self._entries[3 * tail + 1] = 0
        return first

    # -- entries -------------------------------------------------------------------------------------------

    def new(self, content: i64, detail: i64) -> i64:
        entry = self._free
        if entry == 0:
            if len(self._entries) == 0:
                self._entries = vec[i64]([0, 0, 0])
            entry = len(self._entries) // 3
            self._entries = append(append(append(self._entries, content), 0), detail)
            return entry
        self._free = self._entries[3 * entry + 1]
        self._entries[3 * entry] = content
        self._entries[3 * entry + 2] = detail
        return entry

    def forget(self, entry: i64) -> None:
        self._entries[3 * entry + 1] = self._free
        self._free = entry

    def content(self, entry: i64) -> i64:
        return self._entries[3 * entry]

    def following(self, entry: i64) -> i64:
        return self._entries[3 * entry + 1]

    def detail(self, entry: i64) -> i64:
        return self._entries[3 * entry + 2]

    def all_pending(self) -> list[tuple[int, int]]:
        """Return the contents and details of all messages that lack one, in order of their contents."""
        pending: list[tuple[int, int]] = []
        at: i64 = 0
        while at < len(self._table):
            entry = tail = self._table[at + _LACKING]
            while tail != 0:
                pending.append((self.content(entry), self.detail(entry)))
                entry = self.following(entry)
                if entry == tail:
                    break
            at += _ROW
        return sorted(pending)


def _mixed(slot: i64) -> i64:
    """Return a place for a slot, which the table shortens to its size."""
    source, number = slot & 0xFFFF, slot >> 16
    return ((source + number * 40503) & 0x7FFFFFFF) * _MIX >> 20
