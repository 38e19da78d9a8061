"""How far a node has come with each source: a vector clock that answers for many sources at once.

`lacking[n]` is the mask of the sources of which fewer than n messages are counted, so the entries of a message
that are still missing are `row & lacking[n]`. Rows are kept for the latest numbers only: above them everybody
lacks everything, below them the counts are asked one by one.
"""

from __future__ import annotations

from array import array

from precede.core.identity import NodeId
from precede.protocols.vcube_packets import Rows

try:
    from mypy_extensions import mypyc_attr
except ImportError:
    from precede.core.compiling import mypyc_attr

KEPT_ROWS = 64


@mypyc_attr(allow_interpreted_subclasses=True)
class Progress:
    """`counts[source]` messages of each source, without gaps."""

    __slots__ = ("_everybody", "_top", "counts", "lacking")

    def __init__(self, positions: int) -> None:
        self.counts = array("Q", bytes(8 * positions))
        self.lacking: dict[int, int] = {}
        self._everybody = (1 << positions) - 1
        self._top = 0

    def advance(self, source: NodeId, number: int, bit: int) -> None:
        """The next message of a source is counted; `bit` is the source's mask."""
        self.counts[source] = number
        lacking = self.lacking
        if number in lacking:
            lacking[number] ^= bit
        elif number > self._top:
            self._open_row(number, bit)

    def missing(self, rows: Rows) -> tuple[int, int] | None:
        """The first (number, mask of sources) of these entries that is not counted yet, or None."""
        lacking = self.lacking
        for number, mask in rows:
            absent = mask & lacking[number] if number in lacking else self.absent(number, mask)
            if absent:
                return number, absent
        return None

    def absent(self, number: int, mask: int) -> int:
        """Of these sources, those of which fewer messages are counted."""
        if number in self.lacking:
            return mask & self.lacking[number]
        if number > self._top:
            return mask
        absent = 0
        while mask:
            source = mask.bit_length() - 1
            mask ^= 1 << source
            if source >= len(self.counts) or self.counts[source] < number:
                absent |= 1 << source
        return absent

    def _open_row(self, number: int, bit: int) -> None:
        """The highest number so far: nobody else has it, and the oldest row makes room."""
        self.lacking[number] = self._everybody ^ bit
        self._top = number
        self.lacking.pop(number - KEPT_ROWS, None)

    def widen(self, positions: int) -> None:
        """Make room for sources with higher numbers."""
        known = len(self.counts)
        if positions <= known:
            return
        self.counts.extend([0] * (positions - known))
        newcomers = (1 << positions) - (1 << known)
        self._everybody |= newcomers
        for number in self.lacking:
            self.lacking[number] |= newcomers

    def jump(self, source: NodeId, count: int) -> None:
        """Begin a source further on: what came before is history to a node that joins."""
        if count <= self.counts[source]:
            return
        self.counts[source] = count
        bit = 1 << source
        for number in self.lacking:
            if number <= count:
                self.lacking[number] &= ~bit
        if count > self._top:
            self._open_row(count, bit)


@mypyc_attr(allow_interpreted_subclasses=True)
class Ahead:
    """What is received without a gap and not delivered yet: as much of *vector_max* as *vector_clock* lacks.

    Most messages are delivered as they come and never pass through here. `counts` is by source, `rows` has the
    masks of sources by number.
    """

    __slots__ = ("counts", "rows")

    def __init__(self) -> None:
        self.counts: dict[NodeId, int] = {}
        self.rows: dict[int, int] = {}

    def add(self, source: NodeId, number: int, bit: int) -> None:
        self.counts[source] = number
        self.rows[number] = self.rows.get(number, 0) | bit

    def remove(self, source: NodeId, number: int, bit: int) -> None:
        """The first of a source's is delivered; the last takes the source's count with it."""
        if not self.rows[number] ^ bit:
            del self.rows[number]
        else:
            self.rows[number] ^= bit
        if self.counts[source] == number:
            del self.counts[source]

    def cut(self, source: NodeId, number: int, delivered: int) -> None:
        """Nothing of a source counts from this number on."""
        for row in range(number, self.counts.pop(source, 0) + 1):
            self.rows[row] ^= 1 << source
        if number - 1 > delivered:
            self.counts[source] = number - 1

    def absent(self, delivered: Progress, rows: Rows) -> list[tuple[int, int]]:
        """Those of these entries that are not even received, as rows."""
        found: list[tuple[int, int]] = []
        lacking = delivered.lacking
        for number, mask in rows:
            absent = mask & lacking[number] if number in lacking else delivered.absent(number, mask)
            if absent and number in self.rows:
                absent &= ~self.rows[number]
            if absent:
                found.append((number, absent))
        return found
