"""Single random draws taken from blocks: per draw, numpy needs a tenth of the time for a block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, final

import numpy as np
from mypy_extensions import i64

from precede.core.instants import Duration, Instant
from precede.sim.flight import Flight

try:
    from librt.strings import read_i32_le, read_i64_le
except ImportError:
    from precede.core.compiling import read_i32_le, read_i64_le

MOST_AT_ONCE: Final = 1024
_FIRST_BLOCK: Final = 64
_GROWTH: Final = 4
_SHORT: Final = 4
_LONG: Final = 8


@final
class Draws(Flight):
    """Gives whole numbers one at a time. It draws them in blocks, which grow up to `size` numbers.

    As a `Flight` it gives the time of each packet of a node. The longest blocks are kept in words of 32 bits if
    their numbers fit: each node of a large world has one, and reads it from memory.
    """

    def __init__(self, block: Callable[[int], Any], size: int = MOST_AT_ONCE) -> None:
        self._drawn = b""
        self._place: i64 = 0
        self._width: i64 = _LONG
        self._block = block
        self._size = size
        self._count = min(_FIRST_BLOCK, size)

    def next(self) -> int:
        if self._place == len(self._drawn):
            self._draw()
        place = self._place
        self._place = place + self._width
        if self._width == _SHORT:
            return read_i32_le(self._drawn, place)
        return read_i64_le(self._drawn, place)

    def _draw(self) -> None:
        drawn = self._block(self._count)
        self._width = _LONG
        if self._count == MOST_AT_ONCE:  # converting a shorter one takes longer than it saves
            short = drawn.astype(np.int32)
            if (short == drawn).all():
                drawn, self._width = short, _SHORT
        self._drawn = drawn.tobytes()
        self._count = min(_GROWTH * self._count, self._size)
        self._place = 0

    def takes(self, now: Instant) -> Duration:
        return self.next()
