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

    def place_of(self, column: int) -> slice:
        return slice(self.size * column, self.size * (column + 1))

    def lowest_with(self, timestamp: int) -> bytes:
        """Return the lowest bytes that a column with this timestamp can have; 0xff bytes if it does not fit."""
        if not self.fits((0, timestamp)):
            return b"\xff" * self.size
        return (timestamp << self.number_bits).to_bytes(self.size, "big")

    def pack(self, clocks: Sequence[Clock]) -> bytes:
        columns = [timestamp << self.number_bits | number for number, timestamp in clocks]
        return pack(f">{len(clocks)}{self.letter}", *columns)

    def unpack(self, table: bytes) -> list[Clock]:
        below_guard, numbers = (1 << (self.bits - 1)) - 1, (1 << self.number_bits) - 1
        columns = unpack(f">{len(table) // self.size}{self.letter}", table)
        return [(entry & numbers, (entry & below_guard) >> self.number_bits) for entry in columns]


NARROW: Final = Form(32, 4, 11, "I")
WIDE: Final = Form(64, 8, 24, "Q")


@final
class ClockTable:
    """A table of clocks that can be read, raised and merged.

    `packed` is the integer, with every guard bit set; the first column is in its highest bits. Timestamps must
    stay below `end`, sequence numbers below `number_end`.
    """

    __slots__ = (
        "_below_guard",
        "_bits",
        "_guards",
        "_last",
        "_number_bits",
        "_numbers",
        "_ones",
        "end",
        "form",
        "number_end",
        "packed",
        "width",
    )

    def __init__(self, clocks: Sequence[Clock], form: Form = NARROW) -> None:
        self.width = len(clocks)
        self.form = form
        self.end = 1 << (form.bits - 1 - form.number_bits)
        self.number_end = 1 << form.number_bits
        self._bits = form.bits
        self._number_bits = form.number_bits
        self._last = form.bits * (self.width - 1)
        self._below_guard = (1 << (form.bits - 1)) - 1
        self._ones: Packed = sum(1 << (form.bits * column) for column in range(self.width))
        self._guards: Packed = self._ones << (form.bits - 1)
        self._numbers: Packed = self._ones * ((1 << form.number_bits) - 1)
        self.packed: Packed = self._guards | int.from_bytes(form.pack(clocks), "big")

    def entry(self, packed: Packed, column: int) -> Clock:
        """Return the entry of a column in `packed`, an integer with the same columns as this table."""
        entry: int = (packed >> (self._last - self._bits * column)) & self._below_guard
        return entry & ((1 << self._number_bits) - 1), entry >> self._number_bits

    def get(self, column: int) -> Clock:
        return self.entry(self.packed, column)

    def timestamp(self, column: int) -> int:
        entry: int = (self.packed >> (self._last - self._bits * column)) & self._below_guard
        return entry >> self._number_bits

    def raise_to(self, column: int, number: int, timestamp: int) -> bool:
        """Put an entry that fits into a column if it is fresher than the one there; False if it is not."""
        shift = self._last - self._bits * column
        entry: int = (self.packed >> shift) & self._below_guard
        rise: Packed = (timestamp << self._number_bits | number) - entry
        if rise <= 0:
            return False
        self.packed += rise << shift
        return True

    def raise_two(
        self, column: int, number: int, timestamp: int, other: int, other_number: int, other_timestamp: int
    ) -> None:
        """Do `raise_to` for two different columns at once."""
        packed, bits, below, width = self.packed, self._number_bits, self._below_guard, self._bits
        shift, other_shift = self._last - width * column, self._last - width * other
        entry: int = (packed >> shift) & below
        other_entry: int = (packed >> other_shift) & below
        rise: Packed = max((timestamp << bits | number) - entry, 0)
        other_rise: Packed = max((other_timestamp << bits | other_number) - other_entry, 0)
        self.packed = packed + (rise << shift) + (other_rise << other_shift)

    def merge(self, tables: Sequence[bytes]) -> tuple[bool, Packed]:
        """Take the fresher entry of every column from received tables of this size, the last one first.

        Returns whether an entry rose, and the bits of sequence numbers that changed.
        """
        packed, guards = self.packed, self._guards
        size, up = self.form.size, self._bits - 1
        width = size * self.width
        for table in reversed(tables):
            if len(table) == width:
                theirs, guarded = read_table(table, size)
                ahead = packed - theirs
                not_lower = ahead & guards
                if not_lower == guards:
                    continue  # none of theirs is higher
                packed = guarded + (ahead & (not_lower - (not_lower >> up)))
        if packed == self.packed:
            return False, 0
        changed_numbers = (packed ^ self.packed) & self._numbers
        self.packed = packed
        return True, changed_numbers

    def below(self, timestamp: int) -> Packed:
        """Return the guard bits of the columns whose timestamp is lower than this one."""
        guards = self._guards
        if timestamp << self._number_bits > self._below_guard:
            return guards
        level: Packed = timestamp << self._number_bits
        return ((self.packed - level * self._ones) & guards) ^ guards

    def has_guard(self, bits: Packed, column: int) -> bool:
        return bool((bits >> (self._last - self._bits * column + self._bits - 1)) & 1)

    def first_of(self, bits: Packed) -> int:
        """Return the first column that contains one of these bits."""
        length: int = bits.bit_length()
        return self.width - 1 - (length - 1) // self._bits

    def columns_of(self, bits: Packed) -> list[int]:
        """Return all columns that contain one of these bits, ascending."""
        columns = []
        one: Packed = 1
        while bits:
            column = self.first_of(bits)
            columns.append(column)
            bits &= (one << (self._last - self._bits * column)) - 1
        return columns

    def clocks(self) -> list[Clock]:
        return self.form.unpack(self.to_bytes())

    def to_bytes(self) -> bytes:
        table: bytes = (self.packed ^ self._guards).to_bytes(self.form.size * self.width, "big")
        return table

    def read(self, table: bytes) -> Packed:
        return read_table(table, self.form.size)[0]


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
