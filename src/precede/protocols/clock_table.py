"""A table of clocks in one whole number: a column per source, merged by "the higher wins" in a few operations.

Virtual flooding in DRIFT (drift2006, section 4.1) sends with every packet, for every source, its freshest
<sequence number, timestamp>, and merges what it hears with what it has. With a hundred sources a loop over the
entries costs more than all the rest of a reception. Here a column is 64 bits (a guard bit, 39 bits timestamp,
24 bits sequence number) of one Python integer, and comparison and choice happen in all columns at once: after
`mine + guards - theirs` the guard bit still stands exactly where mine is not the lower one.

A source's clock and its sequence number never fall, so of two entries of one source the one with the higher
timestamp is the later one and has no lower sequence number: comparing whole columns compares timestamps. A
table travels with the big end first, so that one column of it can be compared without reading the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from struct import pack, unpack
from typing import Final, TypeAlias

NUMBER_BITS: Final = 24
CLOCK_BITS: Final = 39
COLUMN_BITS: Final = 64
COLUMN_BYTES: Final = 8

_NUMBER_MASK: Final = (1 << NUMBER_BITS) - 1
_COLUMN_MASK: Final = (1 << (COLUMN_BITS - 1)) - 1
_GUARD: Final = 1 << (COLUMN_BITS - 1)

Clock: TypeAlias = tuple[int, int]
"""<sequence number, timestamp> of one source, as the paper writes an entry of Seen without its source."""


class ClockTable:
    """`packed` is the table with every guard bit standing; the first column is its big end."""

    __slots__ = ("_guards", "_last", "_numbers", "_ones", "packed", "width")

    def __init__(self, clocks: Sequence[Clock]) -> None:
        self.width = len(clocks)
        self._last = COLUMN_BITS * (self.width - 1)
        self._ones = sum(1 << (COLUMN_BITS * column) for column in range(self.width))
        self._guards = self._ones * _GUARD
        self._numbers = self._ones * _NUMBER_MASK
        self.packed = self._guards | read_table(pack_clocks(clocks))

    def entry(self, packed: int, column: int) -> Clock:
        """One column of a table with the same columns."""
        entry = (packed >> (self._last - COLUMN_BITS * column)) & _COLUMN_MASK
        return entry & _NUMBER_MASK, entry >> NUMBER_BITS

    def get(self, column: int) -> Clock:
        """The freshest entry of a column."""
        return self.entry(self.packed, column)

    def timestamp(self, column: int) -> int:
        """Its timestamp alone."""
        return ((self.packed >> (self._last - COLUMN_BITS * column)) & _COLUMN_MASK) >> NUMBER_BITS

    def raise_to(self, column: int, number: int, timestamp: int) -> bool:
        """Put an entry in its column if it is the fresher one; False when it is not."""
        shift = self._last - COLUMN_BITS * column
        rise = (timestamp << NUMBER_BITS | number) - ((self.packed >> shift) & _COLUMN_MASK)
        if rise <= 0:
            return False
        self.packed += rise << shift
        return True

    def risen(self, theirs: int) -> int:
        """Where their table (no guards) is fresher: all bits below the guard of those columns; 0 is nowhere."""
        guards = self._guards
        higher = ((self.packed - theirs) & guards) ^ guards
        return higher - (higher >> (COLUMN_BITS - 1)) if higher else 0

    def take(self, theirs: int, where: int) -> int:
        """Take their columns where `risen` says; returns what differs in the sequence numbers there."""
        change = (self.packed ^ theirs) & where
        self.packed ^= change
        return change & self._numbers

    def below(self, timestamp: int) -> int:
        """The guard bits of the columns whose timestamp is lower than this one."""
        guards = self._guards
        return ((self.packed - ((timestamp << NUMBER_BITS) * self._ones)) & guards) ^ guards

    def first_of(self, bits: int) -> int:
        """The first column in which one of these bits stands."""
        return self.width - 1 - (bits.bit_length() - 1) // COLUMN_BITS

    def columns_of(self, bits: int) -> list[int]:
        """All columns in which one of these bits stands, ascending."""
        found = []
        while bits:
            column = self.first_of(bits)
            found.append(column)
            bits &= (1 << (self._last - COLUMN_BITS * column)) - 1
        return found

    def clocks(self) -> list[Clock]:
        """Every column, unpacked."""
        return unpack_clocks(self.to_bytes())

    def to_bytes(self) -> bytes:
        """The table as it travels: eight bytes a column, guards down."""
        return (self.packed ^ self._guards).to_bytes(COLUMN_BYTES * self.width, "big")


@lru_cache(maxsize=512)
def read_table(table: bytes) -> int:
    """A travelling table as a whole number; one transmission is heard by many, so the last ones are remembered.

    Guard bits, which only a forger sets, are dropped.
    """
    guards = int.from_bytes(b"\x80\0\0\0\0\0\0\0" * (len(table) // COLUMN_BYTES), "big")
    return int.from_bytes(table, "big") & ~guards


def unpack_clocks(table: bytes) -> list[Clock]:
    """A travelling table as entries."""
    columns = unpack(f">{len(table) // COLUMN_BYTES}Q", table)
    return [(entry & _NUMBER_MASK, (entry & _COLUMN_MASK) >> NUMBER_BITS) for entry in columns]


def pack_clocks(clocks: Sequence[Clock]) -> bytes:
    """Entries as a travelling table."""
    return pack(f">{len(clocks)}Q", *(timestamp << NUMBER_BITS | number for number, timestamp in clocks))


def place_of(column: int) -> slice:
    """Where a column lies in a travelling table."""
    return slice(COLUMN_BYTES * column, COLUMN_BYTES * (column + 1))


def lowest_with(timestamp: int) -> bytes:
    """What a travelling column must not be below to have at least this timestamp."""
    return (timestamp << NUMBER_BITS).to_bytes(COLUMN_BYTES, "big")
