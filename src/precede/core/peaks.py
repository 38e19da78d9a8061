"""The peaks of a node's sizes: the largest value that each has reached after any input.

The simulator notes the sizes after every input, because a size changes only there, and the runtime after the
inputs of each turn. A sample now and then misses almost every peak: a buffer that fills during a contact is
often empty again a moment later.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, final

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

    @property
    def names(self) -> tuple[str, ...]:
        return self._names

    def values(self) -> tuple[int, ...]:
        """Return the sizes, in the order of the names."""
        return (self._first, self._second, self._third, self._fourth)[: len(self._names)]

    def largest(self) -> tuple[int, ...]:
        """Return the largest value of each, in the order of the names."""
        most = (self._most_first, self._most_second, self._most_third, self._most_fourth)
        return most[: len(self._names)]

    def mapping(self) -> dict[str, int]:
        return dict(zip(self._names, self.values(), strict=True))

    def restart(self) -> None:
        self._most_first = self._first
        self._most_second = self._second
        self._most_third = self._third
        self._most_fourth = self._fourth


class Sample(NamedTuple):
    """The sizes of a node by name, and the largest value of each since the sample before."""

    names: tuple[str, ...]
    values: tuple[int, ...]
    largest: tuple[int, ...]


@final
class Peaks:
    """The largest value of each size, by name, since the last `sample`.

    If there are `parts`, these keep the largest values of their sizes themselves.
    """

    __slots__ = ("_latest", "largest", "parts")

    def __init__(self) -> None:
        self.largest: dict[str, int] = {}
        self.parts: list[Sizes] = []
        self._latest: Mapping[str, int] = {}

    def note(self, sizes: Mapping[str, int]) -> None:
        """Take the sizes after an input, and raise the peaks that they exceed."""
        before, self._latest = self._latest, sizes
        if sizes is before or sizes != before:  # most inputs change no size; a node may return one dictionary
            largest = self.largest
            for name, value in sizes.items():
                if value > largest.get(name, -1):
                    largest[name] = value

    def sample(self) -> Sample:
        """Return the latest sizes and the largest, and begin anew."""
        if not self.parts:
            latest, largest = self._latest, self.largest
            sample = Sample(tuple(latest), tuple(latest.values()), tuple([largest[name] for name in latest]))
            self.largest = dict(latest)
            return sample
        names: tuple[str, ...] = ()
        values: tuple[int, ...] = ()
        most: tuple[int, ...] = ()
        for part in self.parts:
            names += part.names
            values += part.values()
            most += part.largest()
            part.restart()
        return Sample(names, values, most)
