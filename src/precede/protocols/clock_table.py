"""A table of clocks in one whole number: a column per source, merged by "the higher wins" in a few operations.

Virtual flooding in DRIFT (drift2006, section 4.1) sends with every packet, for every source, its freshest
<sequence number, timestamp>, and merges what it hears with what it has. With a hundred sources a loop over the
entries costs more than all the rest of a reception. Here a column is 64 bits (a guard bit, 39 bits timestamp,
24 bits sequence number) of one Python integer, and comparison and choice happen in all columns at once: after
`mine + guards - theirs` the guard bit still stands exactly where mine is not the lower one.

A source's clock and its sequence number never fall, so of two entries of one source the one with the higher
timestamp is the later one and has no lower sequence number: comparing whole columns compares timestamps.
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
CLOSED: Final = (1 << CLOCK_BITS) - 1
"""The clock of a source that will never send again: it has announced that it leaves."""

_NUMBER_MASK: Final = (1 << NUMBER_BITS) - 1
_COLUMN_MASK: Final = (1 << (COLUMN_BITS - 1)) - 1
_GUARD: Final = 1 << (COLUMN_BITS - 1)

Clock: TypeAlias = tuple[int, int]
"""<sequence number, timestamp> of one source, as the paper writes an entry of Seen without its source."""


class ClockTable:
    """`packed` is the table with every guard bit standing."""

    __slots__ = ("_guards", "_numbers", "_ones", "packed", "width")

    def __init__(self, clocks: Sequence[Clock]) -> None:
        self.width = len(clocks)
        self._ones = sum(1 << (COLUMN_BITS * column) for column in range(self.width))
        self._guards = self._ones * _GUARD
        self._numbers = self._ones * _NUMBER_MASK
        self.packed = self._guards
        for column, (number, timestamp) in enumerate(clocks):
            self.packed |= (timestamp << NUMBER_BITS | number) << (COLUMN_BITS * column)

    def get(self, column: int) -> Clock:
        """The freshest entry of a column."""
        entry = (self.packed >> (COLUMN_BITS * column)) & _COLUMN_MASK
        return entry & _NUMBER_MASK, entry >> NUMBER_BITS

    def timestamp(self, column: int) -> int:
        """Its timestamp alone."""
        return ((self.packed >> (COLUMN_BITS * column)) & _COLUMN_MASK) >> NUMBER_BITS

    def raise_to(self, column: int, number: int, timestamp: int) -> bool:
        """Put an entry in its column if it is the fresher one; False when it is not."""
        shift = COLUMN_BITS * column
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

    def clocks(self) -> list[Clock]:
        """Every column, unpacked."""
        return unpack_clocks(self.to_bytes())

    def to_bytes(self) -> bytes:
        """The table as it travels: eight bytes a column, little end first, guards down."""
        return (self.packed ^ self._guards).to_bytes(COLUMN_BYTES * self.width, "little")


def columns_of(bits: int) -> list[int]:
    """The columns in which any bit stands, ascending."""
    found = []
    while bits:
        column = ((bits & -bits).bit_length() - 1) // COLUMN_BITS
        found.append(column)
        bits &= -1 << (COLUMN_BITS * (column + 1))
    return found


@lru_cache(maxsize=256)
def read_table(table: bytes) -> int:
    """A travelling table as a whole number; one transmission is heard by many, so the last ones are remembered.

    Guard bits, which only a forger sets, are dropped.
    """
    width = len(table) // COLUMN_BYTES
    guards = int.from_bytes(b"\0\0\0\0\0\0\0\x80" * width, "little")
    return int.from_bytes(table, "little") & ~guards


def unpack_clocks(table: bytes) -> list[Clock]:
    """A travelling table as entries."""
    columns = unpack(f"<{len(table) // COLUMN_BYTES}Q", table)
    return [(entry & _NUMBER_MASK, (entry & _COLUMN_MASK) >> NUMBER_BITS) for entry in columns]


def pack_clocks(clocks: Sequence[Clock]) -> bytes:
    """Entries as a travelling table."""
    return pack(f"<{len(clocks)}Q", *(timestamp << NUMBER_BITS | number for number, timestamp in clocks))
