"""How far a node has come with each source: a vector clock that answers for many sources at once.

`lacking[n - first]` is the mask of the sources of which fewer than n messages are counted, so the entries of a
message that are still missing are `row & lacking[n - first]`. Rows are kept for the latest numbers only: above
them everybody lacks everything, below them the counts are asked one by one.
"""

from __future__ import annotations

from typing import Any, final

from precede.core.identity import NodeId
from precede.protocols.vcube_prepared import SOURCE_BITS, Mask, Prepared, Row, Slot

KEPT_ROWS = 64


@final
class Progress:
    """`counts[source]` messages of each source, without gaps."""

    __slots__ = ("_everybody", "counts", "first", "lacking")

    def __init__(self, positions: int) -> None:
        self.counts: list[int] = [0] * positions
        self._everybody: Any = (1 << positions) - 1
        self.first = 1
        self.lacking: list[Any] = [self._everybody]

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
        self.counts[message.source] = message.number
        return True

    def advance(self, message: Prepared) -> None:
        """The next message of a source is counted."""
        number = message.number
        self.counts[message.source] = number
        at = number - self.first
        if at >= len(self.lacking):
            self._open_rows(number, message.bit)
        elif at >= 0:
            self.lacking[at] ^= message.bit

    def lacked(self, rows: list[Row]) -> Slot:
        """One message that these entries name and that is not counted yet; 0 when all are."""
        lacking, first = self.lacking, self.first
        for row in rows:
            at = row.number - first
            inside = 0 <= at < len(lacking)
            absent: Any = row.mask & lacking[at] if inside else self.absent(row.number, row.mask)
            if absent:
                highest: int = absent.bit_length() - 1
                return row.number << SOURCE_BITS | highest
        return 0

    def absent(self, number: int, mask: Mask) -> Mask:
        """Of these sources, those of which fewer messages are counted."""
        at = number - self.first
        if at >= len(self.lacking):
            return mask
        if at >= 0:
            return mask & self.lacking[at]
        absent: Any = 0
        while mask:
            source: int = mask.bit_length() - 1
            bit: Any = 1 << source
            mask ^= bit
            if source >= len(self.counts) or self.counts[source] < number:
                absent |= bit
        return absent

    def _open_rows(self, number: int, bit: Mask) -> None:
        """The highest number so far: nobody else has it, and the oldest rows make room."""
        lacking = self.lacking
        begin = max(self.first + len(lacking), number - KEPT_ROWS + 1)
        spare = min(len(lacking), max(number - KEPT_ROWS + 1 - self.first, 0))
        del lacking[:spare]
        self.first = begin - len(lacking)
        for _ in range(begin, number + 1):
            lacking.append(self._everybody ^ bit)

    def widen(self, positions: int) -> None:
        """Make room for sources with higher numbers."""
        known = len(self.counts)
        if positions <= known:
            return
        self.counts.extend([0] * (positions - known))
        newcomers: Any = (1 << positions) - (1 << known)
        self._everybody |= newcomers
        for at in range(len(self.lacking)):
            self.lacking[at] |= newcomers

    def jump(self, source: NodeId, count: int) -> None:
        """Begin a source further on: what came before is history to a node that joins."""
        if count <= self.counts[source]:
            return
        self.counts[source] = count
        bit: Any = 1 << source
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
        counts = delivered.counts[:]
        for number in sorted(self.rows):
            mask: Any = self.rows[number]
            while mask:
                source: int = mask.bit_length() - 1
                mask ^= 1 << source
                counts[source] = number
        return counts

    def absent(self, delivered: Progress, rows: list[Row]) -> list[Row]:
        """Those of these entries that are not even received, as rows."""
        found: list[Row] = []
        for row in rows:
            absent: Any = delivered.absent(row.number, row.mask)
            if absent:
                received: Any = self.rows.get(row.number)
                if received is not None:
                    absent &= ~received
                    if not absent:
                        continue
                found.append(Row(row.number, absent))
        return found
