"""How far a node has come with each source: a vector clock that answers for many sources at once.

`lacking[n]` is the mask of the sources of which fewer than n messages are counted, so the entries of a message
that are still missing are `row & lacking[n]`. Rows are kept for the latest numbers only: above them everybody
lacks everything, below them the counts are asked one by one.
"""

from __future__ import annotations

from array import array
from typing import Final

from precede.core.identity import NodeId
from precede.protocols.vcube_packets import Rows

KEPT_ROWS: Final = 64


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

    def missing(self, rows: Rows, among: int = -1) -> tuple[int, int] | None:
        """The first (number, mask of sources) of these entries that is not counted yet, or None."""
        lacking = self.lacking
        for number, mask in rows:
            asked = mask & among
            absent = asked & lacking[number] if number in lacking else self._absent(number, asked)
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
