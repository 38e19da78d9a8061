"""The peaks of a node's sizes: the largest value that each has reached after any input.

The simulator notes the sizes after every input, because a size changes only there, and the runtime after the
inputs of each turn. A sample now and then misses almost every peak: a buffer that fills during a contact is
often empty again a moment later.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

from mypy_extensions import i64


@final
class Sizes:
    """Up to four sizes of a part of a node, by name, and the largest value of each since the last `restart`.

    A simulator looks at the sizes after every input; dictionaries took a tenth of the time of an epidemic.
    """

    __slots__ = (
        "_first",
        "_fourth",
        "_most_first",
        "_most_fourth",
        "_most_second",
        "_most_third",
        "_names",
        "_second",
        "_third",
    )

    def __init__(self, *names: str) -> None:
        self._names = names
        self._first: i64 = 0
        self._second: i64 = 0
        self._third: i64 = 0
        self._fourth: i64 = 0
        self._most_first: i64 = 0
        self._most_second: i64 = 0
        self._most_third: i64 = 0
        self._most_fourth: i64 = 0

    def set(self, first: i64, second: i64 = 0, third: i64 = 0, fourth: i64 = 0) -> Sizes:
        """Set the sizes, in the order of the names."""
        self._first, self._second, self._third, self._fourth = first, second, third, fourth
        self._most_first = max(self._most_first, first)
        self._most_second = max(self._most_second, second)
        self._most_third = max(self._most_third, third)
        self._most_fourth = max(self._most_fourth, fourth)
        return self

    def mapping(self) -> dict[str, int]:
        return dict(zip(self._names, (self._first, self._second, self._third, self._fourth), strict=False))

    def largest(self) -> dict[str, int]:
        most = (self._most_first, self._most_second, self._most_third, self._most_fourth)
        return dict(zip(self._names, most, strict=False))

    def restart(self) -> None:
        self._most_first = self._first
        self._most_second = self._second
        self._most_third = self._third
        self._most_fourth = self._fourth


@final
class Peaks:
    """The largest value of each size, by name, since the last `restart`.

    `parts` keep the largest values of their sizes themselves: then `note` is called before these are read.
    """

    __slots__ = ("_latest", "largest", "parts")

    def __init__(self) -> None:
        self.largest: dict[str, int] = {}
        self.parts: list[Sizes] = []
        self._latest: Mapping[str, int] | None = None

    def note(self, sizes: Mapping[str, int]) -> None:
        """Take the sizes after an input, and raise the peaks that they exceed."""
        for part in self.parts:
            self._raise(part.largest())
        if sizes != self._latest:  # most inputs change no size
            self._latest = sizes
            self._raise(sizes)

    def _raise(self, sizes: Mapping[str, int]) -> None:
        largest = self.largest
        for name, value in sizes.items():
            if value > largest.get(name, -1):
                largest[name] = value

    def restart(self) -> None:
        self.largest = dict(self._latest or {})
        for part in self.parts:
            part.restart()
