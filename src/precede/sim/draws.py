"""Single random draws taken from blocks: per draw, numpy needs a tenth of the time for a block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, final

from precede.core.instants import Duration, Instant
from precede.sim.flight import Flight

try:
    from librt.strings import read_i64_le
except ImportError:
    from precede.core.compiling import read_i64_le

MOST_AT_ONCE: Final = 1024
_FIRST_BLOCK: Final = 64
_GROWTH: Final = 4
_WIDTH: Final = 8


@final
class Draws(Flight):
    """Gives whole numbers one at a time. It draws them in blocks, which grow up to `size` numbers.

    As a `Flight` it gives the time of each packet of a node.
    """

    def __init__(self, block: Callable[[int], Any], size: int = MOST_AT_ONCE) -> None:
        self._block = block
        self._size = size
        self._count = min(_FIRST_BLOCK, size)
        self._drawn = b""  # bytes, because a list of numbers would need five times the memory
        self._place = 0

    def next(self) -> int:
        drawn, place = self._drawn, self._place
        if place == len(drawn):
            drawn = self._drawn = self._block(self._count).tobytes()
            self._count = min(_GROWTH * self._count, self._size)
            place = 0
        self._place = place + _WIDTH
        return read_i64_le(drawn, place)

    def takes(self, now: Instant) -> Duration:
        return self.next()
