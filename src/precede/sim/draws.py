"""Single draws out of blocks of draws: numpy draws a block at a tenth of the price."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any, Final, final

_FIRST_BLOCK: Final = 32
_BLOCK: Final = 4096


@final
class Draws:
    """Whole numbers one at a time, from blocks that grow to `size`."""

    def __init__(self, block: Callable[[int], Any], size: int = _BLOCK) -> None:
        self._block = block
        self._size = size
        self._count = min(_FIRST_BLOCK, size)
        self._drawn: Any = array("q")  # a list of numbers would be five times the memory
        self._place = 0
        self._end = 0

    def next(self) -> int:
        """The next draw."""
        place = self._place
        if place == self._end:
            self._drawn = array("q", self._block(self._count).tobytes())
            self._end = len(self._drawn)
            self._count = min(2 * self._count, self._size)
            place = 0
        self._place = place + 1
        drawn: int = self._drawn[place]
        return drawn
