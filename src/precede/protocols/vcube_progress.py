"""How far a node has come with each source: a vector clock that answers for many sources at once.

`lacking[n]` is the mask of the sources of which fewer than n messages are counted, so the entries of a message
that are still missing are `row & lacking[n]`. Rows are kept for the latest numbers only: above them everybody
lacks everything, below them the counts are asked one by one.
"""

from __future__ import annotations

from typing import Final

from precede.core.identity import NodeId
from precede.protocols.vcube_packets import Rows

KEPT_ROWS: Final = 64


class Progress:
    """`count(source)` messages of each source, without gaps."""

    __slots__ = ("_bits", "_everybody", "_top", "counts", "lacking", "total")

    def __init__(self, positions: int) -> None:
        self.lacking: dict[int, int] = {}
        self._bits = [1 << source for source in range(positions)]
        self.counts = [0] * positions
        self._everybody = (1 << positions) - 1
        self._top = 0
        self.total = 0

    def count(self, source: NodeId) -> int:
        return self.counts[source] if source < len(self.counts) else 0

    def advance(self, source: NodeId) -> None:
        """One more message of a source is counted."""
        number = self.counts[source] + 1
        self.counts[source] = number
        self.total += 1
        if number > self._top:
            self._open_row(number)
        if number in self.lacking:
            self.lacking[number] ^= self._bits[source]

    def missing(self, rows: Rows, among: int = -1) -> tuple[int, int] | None:
        """The first (number, mask of sources) of these entries that is not counted yet, or None."""
        for number, mask in rows:
            asked = mask & among
            absent = asked & self.lacking[number] if number in self.lacking else self._absent(number, asked)
            if absent:
                return number, absent
        return None

    def _absent(self, number: int, mask: int) -> int:
        """The same for a number that has no row."""
        if number > self._top:
            return mask
        absent = 0
        while mask:
            source = mask.bit_length() - 1
            mask ^= 1 << source
            if self.count(source) < number:
                absent |= 1 << source
        return absent

    def _open_row(self, number: int) -> None:
        """The highest number so far: nobody else has it, and the oldest row makes room."""
        self.lacking[number] = self._everybody
        self._top = number
        self.lacking.pop(number - KEPT_ROWS, None)

    def widen(self, positions: int) -> None:
        """Make room for sources with higher numbers."""
        known = len(self.counts)
        if positions <= known:
            return
        self.counts += [0] * (positions - known)
        self._bits += [1 << source for source in range(known, positions)]
        newcomers = (1 << positions) - (1 << known)
        self._everybody |= newcomers
        for number in self.lacking:
            self.lacking[number] |= newcomers

    def jump(self, source: NodeId, count: int) -> None:
        """Begin a source further on: what came before is history to a node that joins."""
        while self.count(source) < count:
            self.advance(source)

    def vector(self) -> list[int]:
        return list(self.counts)
