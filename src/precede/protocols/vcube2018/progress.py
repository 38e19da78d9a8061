"""How far a node has come with each source: a vector clock that answers for many sources at once.

`lacking[n - first]` is the mask of the sources of which fewer than n messages are counted, so the entries of a
message that are still missing are `row & lacking[n - first]`. Rows are kept for the latest numbers only: above
them everybody lacks everything; below them stands a count for each source.
"""

from __future__ import annotations

from typing import Any, final

from precede.core.identity import NodeId
from precede.protocols.vcube2018.prepared import SOURCE_BITS, Mask, Prepared, Row, Slot, slot_of

KEPT_ROWS = 64


@final
class Progress:
    """`counted` messages in all, of each source without gaps."""

    __slots__ = ("_below", "_everybody", "_positions", "counted", "first", "lacking")

    def __init__(self, positions: int) -> None:
        self.first = 1
        self.counted = 0
        self._everybody: Any = (1 << positions) - 1
        self.lacking: list[Any] = [self._everybody]
        self._positions = positions
        self._below: list[int] = []

    def passes(self, message: Prepared) -> bool:
        """Is a message new, and all that it names counted? Then it is counted. (May say no for a rare one.)"""
        at = message.number - self.first
        lacking = self.lacking
        if at < 0 or at >= len(lacking):
            return False
        row: Any = lacking[at]
        bit: Any = message.bit
        if message.needs:
            if row & message.needs != bit:
                return False
        elif not row & bit or self.lacked(message.rows):
            return False
        lacking[at] = row ^ bit
        self.counted += 1
        return True

    def advance(self, message: Prepared) -> None:
        """The next message of a source is counted."""
        self.counted += 1
        number = message.number
        at = number - self.first
        if at >= len(self.lacking):
            self._open_rows(number, message.bit)
        elif at >= 0:
            self.lacking[at] ^= message.bit
        else:
            self._below[message.source] = number

    def has(self, number: int, bit: Mask) -> bool:
        """Is this message of the source with this bit counted?"""
        return not self.row(number) & bit

    def lacked(self, rows: list[Row]) -> Slot:
        """One message that these entries name and that is not counted yet; 0 when all are."""
        lacking, first = self.lacking, self.first
        for row in rows:
            at = row.number - first
            inside = 0 <= at < len(lacking)
            absent: Any = row.mask & (lacking[at] if inside else self.row(row.number))
            if absent:
                highest: int = absent.bit_length() - 1
                return row.number << SOURCE_BITS | highest
        return 0

    def row(self, number: int) -> Mask:
        """Who has fewer than so many messages."""
        at = number - self.first
        if at >= len(self.lacking):
            return self._everybody
        return self.lacking[at] if at >= 0 else self._row_below(number)

    def count(self, source: NodeId) -> int:
        """How many messages of one source."""
        bit: Any = 1 << source
        for at in range(len(self.lacking) - 1, -1, -1):
            if not self.lacking[at] & bit:
                return self.first + at
        return self._below[source] if self._below else 0

    def counts(self) -> list[int]:
        """The vector."""
        counts = self._below[:] if self._below else [0] * self._positions
        for at in range(len(self.lacking)):
            _raise(counts, self._everybody ^ self.lacking[at], self.first + at)
        return counts

    def copy(self) -> Progress:
        copied = Progress(self._positions)
        copied.first, copied.counted = self.first, self.counted
        copied.lacking, copied._below = self.lacking[:], self._below[:]
        return copied

    def since(self, told: Progress) -> list[Row]:
        """Birman's compression: the entries that differ from an earlier vector, ascending by number."""
        newcomers: Any = self._everybody ^ told._everybody
        changed: Any = 0
        for at in range(len(self.lacking)):
            changed |= self.lacking[at] ^ (told.row(self.first + at) | newcomers)
        rows: list[Row] = []
        above: Any = self._everybody
        for at in range(len(self.lacking) - 1, -1, -1):
            row: Any = self.lacking[at]
            exactly: Any = (above ^ row) & changed
            if exactly:
                rows.append(Row(self.first + at, exactly))
            above = row
        if self._below:
            rows += self._behind(told)
        return sorted(rows, key=_by_number)

    def _behind(self, told: Progress) -> list[Row]:
        """Those of them that are below all rows."""
        rows: dict[int, Any] = {}
        for source in sources_of(self.lacking[0]):
            count = self._below[source]
            if count != (told.count(source) if source < told._positions else 0):
                rows[count] = rows.get(count, 0) | 1 << source
        return [Row(count, rows[count]) for count in rows]

    def _row_below(self, number: int) -> Mask:
        """Below all rows: of those whom the first row has, the counts are asked one by one."""
        fewer: Any = self.lacking[0]
        for source in sources_of(fewer):
            if self._below[source] >= number:
                fewer ^= 1 << source
        return fewer

    def _open_rows(self, number: int, bit: Mask) -> None:
        """The highest number so far: nobody else has it, and the oldest rows make room."""
        lacking = self.lacking
        begin = max(self.first + len(lacking), number - KEPT_ROWS + 1)
        spare = min(len(lacking), max(number - KEPT_ROWS + 1 - self.first, 0))
        if spare and not self._below:
            self._below = [0] * self._positions
        for at in range(spare):
            _raise(self._below, self._everybody ^ lacking[at], self.first + at)
        del lacking[:spare]
        self.first = begin - len(lacking)
        for _ in range(begin, number + 1):
            lacking.append(self._everybody ^ bit)

    def widen(self, positions: int) -> None:
        """Make room for sources with higher numbers."""
        if positions <= self._positions:
            return
        newcomers: Any = (1 << positions) - (1 << self._positions)
        if self._below:
            self._below.extend([0] * (positions - self._positions))
        self._positions = positions
        self._everybody |= newcomers
        for at in range(len(self.lacking)):
            self.lacking[at] |= newcomers

    def jump(self, source: NodeId, count: int) -> None:
        """Begin a source further on: what came before is history to a node that joins."""
        known = self.count(source)
        if count <= known:
            return
        self.counted += count - known
        bit: Any = 1 << source
        if count < self.first:
            self._below[source] = count
            return
        for at in range(min(len(self.lacking), count - self.first + 1)):
            self.lacking[at] &= ~bit
        self._open_rows(count, bit)


@final
class Ahead:
    """What is received without a gap and not delivered yet: as much of *vector_max* as *vector_clock* lacks.

    Most messages are delivered as they come and never pass through here. `rows` has masks of sources by number.
    """

    __slots__ = ("rows",)

    def __init__(self) -> None:
        self.rows: dict[int, Any] = {}

    def add(self, number: int, bit: Mask) -> None:
        known: Any = self.rows.get(number)
        self.rows[number] = bit if known is None else known | bit

    def remove(self, message: Prepared) -> None:
        """The first of a source's is delivered."""
        rest: Any = self.rows[message.number] ^ message.bit
        if rest:
            self.rows[message.number] = rest
        else:
            del self.rows[message.number]

    def cut(self, source: NodeId, number: int) -> None:
        """Nothing of a source counts from this number on."""
        bit: Any = 1 << source
        for row in [row for row, mask in self.rows.items() if row >= number and mask & bit]:
            self.rows[row] ^= bit
            if not self.rows[row]:
                del self.rows[row]

    def received(self, delivered: Progress) -> list[int]:
        """*vector_max*."""
        counts = delivered.counts()
        for number in sorted(self.rows):
            _raise(counts, self.rows[number], number)
        return counts


@final
class Missing:
    """What is not even received: the other side of *vector_max*, for as long as it does not change."""

    __slots__ = ("_ahead", "_delivered", "_mask", "_number")

    def __init__(self, delivered: Progress, ahead: Ahead) -> None:
        self._delivered = delivered
        self._ahead = ahead
        self._number = 0
        self._mask: Any = 0

    def renew(self) -> None:
        """Something may have come."""
        self._number = 0

    def one_of(self, rows: list[Row], share: Mask) -> Slot:
        """One of these entries that is missing and has its source in a share; 0 when there is none."""
        for row in rows:
            if row.number != self._number:
                self._look_up(row.number)
            missing: Any = row.mask & self._mask
            if missing:
                missing &= share
                if missing:
                    highest: int = missing.bit_length() - 1
                    return slot_of(highest, row.number)
        return 0

    def _look_up(self, number: int) -> None:
        lacking: Any = self._delivered.row(number)
        received: Any = self._ahead.rows.get(number)
        self._number = number
        self._mask = lacking if received is None else lacking ^ (lacking & received)


def sources_of(mask: Mask) -> list[NodeId]:
    """The places of a mask's bits, ascending."""
    written: str = f"{mask:b}"[::-1]
    return [source for source, bit in enumerate(written) if bit == "1"]


def _raise(counts: list[int], mask: Mask, number: int) -> None:
    """These sources have come so far."""
    for source in sources_of(mask):
        counts[source] = number


def _by_number(row: Row) -> int:
    return row.number
