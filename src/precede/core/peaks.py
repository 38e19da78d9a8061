"""The peaks of a node's sizes: the largest value that each has reached after any input.

The simulator notes the sizes after every input, because a size changes only there, and the runtime after the
inputs of each turn. A sample now and then misses almost every peak: a buffer that fills during a contact is
often empty again a moment later.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import final


@final
class Peaks:
    """The largest value of each size, by name, since the last `restart`."""

    __slots__ = ("_latest", "largest")

    def __init__(self) -> None:
        self.largest: dict[str, int] = {}
        self._latest: Mapping[str, int] | None = None

    def note(self, sizes: Mapping[str, int]) -> None:
        """Take the sizes after an input, and raise the peaks that they exceed."""
        if sizes == self._latest:
            return  # most inputs change no size
        self._latest = sizes
        largest = self.largest
        for name, value in sizes.items():
            if value > largest.get(name, -1):
                largest[name] = value

    def restart(self) -> None:
        self.largest = dict(self._latest or {})
