"""What is remembered of forgotten messages: ranges of their numbers and ranks, a bounded number of them."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

import msgspec
from msgspec import Struct

RANGES_KEPT: Final = 20
"""At most so many ranges are kept in one list; the oldest are dropped."""


class Numbers(Struct, gc=False):
    """The numbers of one source's forgotten messages, and their ranks.

    `ranges` are triples: first number, last number, rank of the first; the numbers between them are all there.
    `rank` is the highest rank. Numbers up to `blurred` are no longer known exactly.
    """

    ranges: list[tuple[int, int, int]] = msgspec.field(default_factory=list)
    rank: int = 0
    blurred: int | None = None

    def add(self, number: int) -> None:
        """Add the next message of the source; numbers ascend."""
        self.rank += 1
        if self.ranges and self.ranges[-1][1] + 1 == number:
            first, _, rank = self.ranges[-1]
            self.ranges[-1] = (first, number, rank)
            return
        self.ranges.append((number, number, self.rank))
        if len(self.ranges) > RANGES_KEPT:
            self.blurred = self.ranges.pop(0)[1]

    def rank_of(self, number: int) -> int | None:
        """Return the rank of a forgotten message, 0 if it is no longer known; None if it was not forgotten."""
        if self.blurred is not None and number <= self.blurred:
            return 0
        at = bisect_right(self.ranges, number, key=lambda each: each[0]) - 1
        if at < 0 or number > self.ranges[at][1]:
            return None
        first, _, rank = self.ranges[at]
        return rank + number - first


class Ranks(Struct, gc=False):
    """Ranks of one source's forgotten messages that a process had not delivered.

    `ranges` are pairs of the first and the last rank. Ranks up to `blurred` are no longer known exactly.
    """

    ranges: list[tuple[int, int]] = msgspec.field(default_factory=list)
    blurred: int = 0

    def add(self, rank: int) -> None:
        """Add a rank; ranks ascend."""
        if self.ranges and self.ranges[-1][1] + 1 == rank:
            self.ranges[-1] = (self.ranges[-1][0], rank)
            return
        self.ranges.append((rank, rank))
        self._bound()

    def __contains__(self, rank: int) -> bool:
        at = bisect_right(self.ranges, rank, key=lambda each: each[0]) - 1
        return at >= 0 and rank <= self.ranges[at][1]

    def remove(self, rank: int) -> None:
        """Remove a rank: the process has delivered the message after all."""
        at = bisect_right(self.ranges, rank, key=lambda each: each[0]) - 1
        if at < 0 or rank > self.ranges[at][1]:
            return
        first, last = self.ranges[at]
        self.ranges[at : at + 1] = [
            piece for piece in ((first, rank - 1), (rank + 1, last)) if piece[0] <= piece[1]
        ]
        self._bound()

    def _bound(self) -> None:
        if len(self.ranges) > RANGES_KEPT:
            self.blurred = self.ranges.pop(0)[1]
