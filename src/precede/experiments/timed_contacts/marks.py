"""A set of messages, by their serial numbers in the world: a byte for each that may still be alive."""

from __future__ import annotations

from typing import Final, final

from librt.vecs import vec
from mypy_extensions import i64, u8

_SPARE: Final = 256


@final
class Marks:
    """A set of serial numbers from `_base` on. Lower ones, of expired messages, are not in it."""

    __slots__ = ("_base", "_marks")

    def __init__(self, base: i64, end: i64) -> None:
        """Begin empty, with room for the numbers from `base` to `end`."""
        self._base: i64 = base
        self._marks = vec[u8]([0] * (end - base + _SPARE))

    def has(self, serial: i64) -> bool:
        place = serial - self._base
        return 0 <= place < len(self._marks) and self._marks[place] != 0

    def add(self, serial: i64, first_alive: i64) -> None:
        """Add a number. If there is no room for it, forget those below `first_alive`."""
        place = serial - self._base
        if place >= len(self._marks):
            self._move(first_alive, serial)
            place = serial - self._base
        self._marks[place] = 1

    def remove(self, serial: i64) -> None:
        place = serial - self._base
        if 0 <= place < len(self._marks):
            self._marks[place] = 0

    def _move(self, base: i64, last: i64) -> None:
        old, skipped = self._marks, base - self._base
        kept: i64 = len(old) - skipped
        new = vec[u8]([0] * (max(2 * kept, last - base) + _SPARE))
        place: i64 = 0
        while place < kept:
            new[place] = old[place + skipped]
            place += 1
        self._marks = new
        self._base = base
