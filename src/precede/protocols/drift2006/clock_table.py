"""A table of clocks in one integer: one column per source; a merge takes the higher entry of every column.

Virtual flooding in DRIFT (drift2006, section 4.1) attaches to every packet the freshest <sequence number,
timestamp> of every source, and merges what it receives. With a hundred sources, a loop over the entries costs
more than the rest of a reception. Here a column is a few bits of one Python integer (a guard bit, the
timestamp, the sequence number), and all columns are compared at once. After `mine + guards - theirs` a guard
bit is still set where mine is not the lower entry; the bits below it are the difference, and theirs plus that
difference is the higher of the two.

A source's clock and its sequence number never fall. So of two entries of one source, the one with the higher
timestamp is later and has no lower sequence number: comparing whole columns compares timestamps. A table is
sent in big-endian order, so that one column of it can be compared without reading the rest. Columns have four
bytes while all values fit (timestamps below 2^20, numbers below 2^11), then eight.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from struct import pack, unpack
from typing import Any, Final, TypeAlias, final

from mypy_extensions import i64

try:
    from librt.strings import read_i32_be, read_i64_be
except ImportError:
    from precede.core.compiling import read_i32_be, read_i64_be

Clock: TypeAlias = tuple[int, int]
"""<sequence number, timestamp> of one source, as the paper writes an entry of Seen without its source."""


Packed: TypeAlias = Any
"""An integer of any length. Its type is Any, so that mypyc leaves arithmetic with it to Python."""


@final
class Form:
    """The form of a column: its bits and bytes, and how many bits are the sequence number."""

    def __init__(self, bits: int, size: int, number_bits: int, letter: str) -> None:
        self.bits = bits
        self.size = size
        self.number_bits = number_bits
        self.letter = letter

    def fits(self, clock: Clock) -> bool:
        number, timestamp = clock
        return number >> self.number_bits == 0 and timestamp >> (self.bits - 1 - self.number_bits) == 0

    def column(self, table: bytes, place: i64) -> i64:
        """Return the column of a received table that begins at byte `place`; a forged guard bit is ignored."""
        if self.size == 4:
            return i64(read_i32_be(table, place)) & 0x7FFFFFFF
        return read_i64_be(table, place) & 0x7FFFFFFFFFFFFFFF

    def clock_in(self, table: bytes, column: int) -> Clock:
        """Return the entry of a column in a received table."""
        entry: int = self.column(table, self.size * column)
        return entry & ((1 << self.number_bits) - 1), entry >> self.number_bits

    def lowest_with(self, timestamp: int) -> i64:
        """Return the lowest value that a column with this timestamp can have; HIGHEST if it does not fit."""
        return timestamp << self.number_bits if self.fits((0, timestamp)) else HIGHEST

    def pack(self, clocks: Sequence[Clock]) -> bytes:
        columns = [timestamp << self.number_bits | number for number, timestamp in clocks]
        return pack(f">{len(clocks)}{self.letter}", *columns)

    def unpack(self, table: bytes) -> list[Clock]:
        below_guard, numbers = (1 << (self.bits - 1)) - 1, (1 << self.number_bits) - 1
        columns = unpack(f">{len(table) // self.size}{self.letter}", table)
        return [(entry & numbers, (entry & below_guard) >> self.number_bits) for entry in columns]


HIGHEST: Final = (1 << 63) - 1
"""A column is never higher than this."""

NARROW: Final = Form(32, 4, 11, "I")
WIDE: Final = Form(64, 8, 24, "Q")


class ClockTable:
    """A table of clocks that can be read, raised and merged.

    Timestamps must stay below `end`, sequence numbers below `number_end`. `version` grows whenever an entry
    rises. `_packed` is the integer, with every guard bit set; the first column is in its highest bits. Where
    the package is compiled, `fast.machine_clock_table` keeps machine words instead (`new_table`).
    """

    def __init__(self, clocks: Sequence[Clock], form: Form = NARROW, version: int = 0) -> None:
        self.width = len(clocks)
        self.form = form
        self.end = 1 << (form.bits - 1 - form.number_bits)
        self.number_end = 1 << form.number_bits
        self.table_bytes = form.size * self.width
        self.version = version
        self._number_bits = form.number_bits
        self._fill(clocks)

    def _fill(self, clocks: Sequence[Clock]) -> None:
        form = self.form
        self._bits = form.bits
        self._last = form.bits * (self.width - 1)
        self._below_guard = (1 << (form.bits - 1)) - 1
        self._ones: Packed = sum(1 << (form.bits * column) for column in range(self.width))
        self._guards: Packed = self._ones << (form.bits - 1)
        self._numbers: Packed = self._ones * ((1 << form.number_bits) - 1)
        self._packed: Packed = self._guards | int.from_bytes(form.pack(clocks), "big")

    def _entry(self, packed: Packed, column: int) -> int:
        entry: int = (packed >> (self._last - self._bits * column)) & self._below_guard
        return entry

    def get(self, column: int) -> Clock:
        entry = self._entry(self._packed, column)
        return entry & ((1 << self._number_bits) - 1), entry >> self._number_bits

    def timestamp(self, column: int) -> int:
        return self._entry(self._packed, column) >> self._number_bits

    def raise_to(self, column: int, number: int, timestamp: int) -> bool:
        """Put an entry that fits into a column if it is fresher than the one there; False if it is not."""
        rise: Packed = (timestamp << self._number_bits | number) - self._entry(self._packed, column)
        if rise <= 0:
            return False
        self._packed += rise << (self._last - self._bits * column)
        self.version += 1
        return True

    def merge(self, tables: Sequence[bytes]) -> bool | None:
        """Take the fresher entry of every column from received tables, the last one first.

        Return whether an entry rose. If a sequence number would rise, change nothing and return None.
        """
        merged = self._merged(tables)
        if merged == self._packed:
            return False
        if (merged ^ self._packed) & self._numbers:
            return None
        self._packed = merged
        self.version += 1
        return True

    def merge_one(self, table: bytes) -> list[tuple[int, Clock]]:
        """Merge one table. Return the columns whose sequence number rose, each with its entry from before."""
        before, after = self._packed, self._merged((table,))
        if before == after:
            return []
        columns = self._columns_of((before ^ after) & self._numbers)
        risen = [(column, self.get(column)) for column in columns]
        self._packed = after
        self.version += 1
        return risen

    def _merged(self, tables: Sequence[bytes]) -> Packed:
        packed, guards, up = self._packed, self._guards, self._bits - 1
        for table in reversed(tables):
            theirs, guarded = read_table(table, self.form.size)
            ahead = packed - theirs
            not_lower = ahead & guards
            if not_lower != guards:  # some of theirs are higher
                packed = guarded + (ahead & (not_lower - (not_lower >> up)))
        return packed

    def first_below(self, timestamp: int, likely: int) -> int:
        """Return a column whose timestamp is lower than this one: `likely`, or the first one; -1 if none is."""
        below = self._below(timestamp)
        if not below:
            return -1
        if likely < self.width and (below >> (self._last - self._bits * likely + self._bits - 1)) & 1:
            return likely
        return self._first_of(below)

    def count_below(self, timestamp: int) -> int:
        """Return how many columns have a timestamp that is lower than this one."""
        count: int = self._below(timestamp).bit_count()
        return count

    def _below(self, timestamp: int) -> Packed:
        """Return the guard bits of the columns whose timestamp is lower than this one."""
        guards = self._guards
        if timestamp >= self.end:
            return guards
        level: Packed = timestamp << self._number_bits
        return ((self._packed - level * self._ones) & guards) ^ guards

    def _first_of(self, bits: Packed) -> int:
        """Return the first column that contains one of these bits."""
        length: int = bits.bit_length()
        return self.width - 1 - (length - 1) // self._bits

    def _columns_of(self, bits: Packed) -> list[int]:
        """Return all columns that contain one of these bits, ascending."""
        columns = []
        one: Packed = 1
        while bits:
            column = self._first_of(bits)
            columns.append(column)
            bits &= (one << (self._last - self._bits * column)) - 1
        return columns

    def clocks(self) -> list[Clock]:
        return self.form.unpack(self.to_bytes())

    def to_bytes(self) -> bytes:
        table: bytes = (self._packed ^ self._guards).to_bytes(self.table_bytes, "big")
        return table


@lru_cache(maxsize=512)
def read_table(table: bytes, column_bytes: int) -> tuple[Packed, Packed]:
    """Return a received table as two integers: without guard bits, and with all of them.

    Many nodes receive one transmission, so results are cached. Guard bits that a forged table has are ignored.
    """
    guards = _guards(len(table), column_bytes)
    guarded: Packed = int.from_bytes(table, "big") | guards
    return guarded ^ guards, guarded


@lru_cache(maxsize=64)
def _guards(table_bytes: int, column_bytes: int) -> Packed:
    return int.from_bytes((b"\x80" + b"\0" * (column_bytes - 1)) * (table_bytes // column_bytes), "big")
