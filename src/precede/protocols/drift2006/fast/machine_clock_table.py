"""A table of clocks in machine words; used only where the package is compiled.

It does what `clock_table.ClockTable` does with one long integer. A merge of a table of 100 columns takes about
1,000 machine instructions instead of 6,400 (`benchmarks.drift`, counted by callgrind).

A word has one wide column, or two narrow ones. Of two narrow columns the first is in the high half. If their
number is odd, the low half of the last word is 0. A borrow in a subtraction of words would cross from the low
column to the high one, so the guard bit of the low column is set before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from librt.strings import BytesWriter, read_i32_be, read_i64_be, write_i32_be, write_i64_be
from librt.vecs import append, vec
from mypy_extensions import i32, i64

from precede.protocols.drift2006.clock_table import NARROW, Clock, ClockTable

_NO_GUARDS: Final = 0x7FFFFFFF7FFFFFFF
_NO_GUARD: Final = 0x7FFFFFFFFFFFFFFF
_LOW: Final = 0x7FFFFFFF
_LOW_HALF: Final = 0xFFFFFFFF
_LOW_GUARD: Final = 0x80000000


@final
class MachineClockTable(ClockTable):
    """`ClockTable` for a compiled package."""

    def _fill(self, clocks: Sequence[Clock]) -> None:
        self._narrow = self.form is NARROW
        self._number_mask: i64 = (1 << self.form.number_bits) - 1
        if self._narrow:
            self._number_mask |= self._number_mask << 32
        self._words = vec[i64]()
        table = self.form.pack(clocks)
        for at in range(self._whole_words()):
            self._words = append(self._words, read_i64_be(table, 8 * at))
        if self._is_odd():
            self._words = append(self._words, self._last_word(table))

    def _whole_words(self) -> i64:
        """Return how many words of a received table have eight bytes there."""
        return self.table_bytes >> 3

    def _is_odd(self) -> bool:
        return self.table_bytes & 4 != 0

    def _last_word(self, table: bytes) -> i64:
        """Return the last narrow column, if their number is odd, in the high half of a word."""
        column: i64 = i64(read_i32_be(table, self.table_bytes - 4)) & _LOW
        return column << 32

    def _entry(self, packed: object, column: int) -> int:
        raise NotImplementedError("there is no packed integer")

    def _column(self, column: i64) -> i64:
        if not self._narrow:
            return self._words[column]
        word = self._words[column >> 1]
        return word & _LOW if column & 1 else word >> 32

    def _set_column(self, column: i64, entry: i64) -> None:
        words = self._words
        if not self._narrow:
            words[column] = entry
        elif column & 1:
            words[column >> 1] = _high(words[column >> 1]) | entry
        else:
            words[column >> 1] = words[column >> 1] & _LOW | entry << 32

    def get(self, column: int) -> Clock:
        entry: int = self._column(column)
        return entry & ((1 << self._number_bits) - 1), entry >> self._number_bits

    def timestamp(self, column: int) -> int:
        bits: i64 = self._number_bits
        return self._column(column) >> bits

    def raise_to(self, column: int, number: int, timestamp: int) -> bool:
        bits: i64 = self._number_bits
        high: i64 = timestamp
        entry: i64 = high << bits | number
        if entry <= self._column(column):
            return False
        self._set_column(column, entry)
        self.version += 1
        return True

    def merge(self, tables: Sequence[bytes]) -> bool | None:
        before = self._words[:]
        changed: i64 = 0
        for table in reversed(tables):
            changed |= self._take_narrow(table) if self._narrow else self._take_wide(table)
        if changed == 0:
            return False
        if changed & self._number_mask:
            self._words = before
            return None
        self.version += 1
        return True

    def merge_one(self, table: bytes) -> list[tuple[int, Clock]]:
        before = self.clocks()
        if not (self._take_narrow(table) if self._narrow else self._take_wide(table)):
            return []
        self.version += 1
        return [(column, clock) for column, clock in enumerate(before) if self.get(column)[0] != clock[0]]

    def _take_narrow(self, table: bytes) -> i64:
        """Merge a table with two columns in a word. Return all bits that changed in any word."""
        words = self._words
        no_guards: i64 = _NO_GUARDS  # mypyc would convert the constant in every turn of the loop
        changed: i64 = 0
        whole = self._whole_words()
        at: i64 = 0
        while at < whole:
            theirs = read_i64_be(table, at << 3) & no_guards
            mine = words[at]
            ahead = (mine | _LOW_GUARD) - theirs
            if ahead < 0 or not ahead & _LOW_GUARD:
                merged = _higher(mine, theirs, ahead)
                changed |= merged ^ mine
                words[at] = merged
            at += 1
        if self._is_odd():
            theirs, mine = self._last_word(table), words[whole]
            if theirs > mine:
                changed |= theirs ^ mine
                words[whole] = theirs
        return changed

    def _take_wide(self, table: bytes) -> i64:
        """Merge a table with one column in a word. Return all bits that changed in any word."""
        words = self._words
        no_guard: i64 = _NO_GUARD
        changed: i64 = 0
        whole = self._whole_words()
        at: i64 = 0
        while at < whole:
            theirs = read_i64_be(table, at << 3) & no_guard
            mine = words[at]
            if theirs > mine:
                changed |= theirs ^ mine
                words[at] = theirs
            at += 1
        return changed

    def first_below(self, timestamp: int, likely: int) -> int:
        if timestamp >= self.end:
            return likely if likely < self.width else 0 if self.width else -1
        bits: i64 = self._number_bits
        high: i64 = timestamp
        level = high << bits
        if likely < self.width and self._column(likely) < level:
            return likely
        return self._first_narrow(level) if self._narrow else self._first_wide(level)

    def _first_narrow(self, level: i64) -> i64:
        """Return the first of the columns, two in a word, that is lower than `level`; -1 if none is."""
        words = self._words
        whole = self._whole_words()
        at: i64 = 0
        while at < whole:
            word = words[at]
            if word >> 32 < level:
                return 2 * at
            if word & _LOW < level:
                return 2 * at + 1
            at += 1
        return 2 * whole if self._is_odd() and words[whole] >> 32 < level else -1

    def _first_wide(self, level: i64) -> i64:
        """Return the first of the columns, one in a word, that is lower than `level`; -1 if none is."""
        words = self._words
        at: i64 = 0
        while at < self._whole_words():
            if words[at] < level:
                return at
            at += 1
        return -1

    def count_below(self, timestamp: int) -> int:
        if timestamp >= self.end:
            return self.width
        return len([column for column in range(self.width) if self.timestamp(column) < timestamp])

    def to_bytes(self) -> bytes:
        writer = BytesWriter()
        words = self._words
        whole = self._whole_words()
        at: i64 = 0
        while at < whole:
            write_i64_be(writer, words[at])
            at += 1
        if self._is_odd():
            write_i32_be(writer, i32(words[whole] >> 32))
        return writer.getvalue()


def _higher(mine: i64, theirs: i64, ahead: i64) -> i64:
    """Return a word with the higher of both columns; `ahead` is mine, with the low guard bit, minus theirs."""
    high = theirs if ahead < 0 else mine
    low = mine if ahead & _LOW_GUARD else theirs
    return _high(high) | low & _LOW


def _high(word: i64) -> i64:
    """Return a word with its low half set to 0."""
    return word - (word & _LOW_HALF)
