"""Sets of message numbers as sorted ranges: a stream received without gaps is one range, however long it is."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Annotated, TypeAlias, final

from msgspec import Meta

from precede.core.identity import Incarnation, NodeId

StreamId: TypeAlias = tuple[NodeId, int]
"""A source and its incarnation."""

FlatRanges: TypeAlias = tuple[Annotated[int, Meta(ge=-(1 << 62), le=1 << 62)], ...]
"""First and last number of each range, ascending, the ranges apart: `(1, 4, 6, 6)` is 1, 2, 3, 4, 6."""

StreamRanges: TypeAlias = tuple[NodeId, Incarnation, FlatRanges]
"""A stream (source and incarnation) and ranges of its numbers, as packets list them."""

LARGEST: int = 1 << 62


@final
class Ranges:
    """A set of numbers. `flat` is its value as packets list it."""

    __slots__ = ("_firsts", "_lasts")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []

    def add(self, number: int) -> None:
        firsts, lasts = self._firsts, self._lasts
        if lasts and lasts[-1] == number - 1:  # nearly always
            lasts[-1] = number
            return
        place = bisect_right(firsts, number)
        if place and lasts[place - 1] >= number:
            return
        joins_left = place > 0 and lasts[place - 1] == number - 1
        joins_right = place < len(firsts) and firsts[place] == number + 1
        if joins_left and joins_right:
            lasts[place - 1] = lasts.pop(place)
            firsts.pop(place)
        elif joins_left:
            lasts[place - 1] = number
        elif joins_right:
            firsts[place] = number
        else:
            firsts.insert(place, number)
            lasts.insert(place, number)

    def remove(self, number: int) -> None:
        firsts, lasts = self._firsts, self._lasts
        place = bisect_right(firsts, number) - 1
        if place < 0 or lasts[place] < number:
            return
        first, last = firsts[place], lasts[place]
        if first == last:
            del firsts[place], lasts[place]
        elif number == first:
            firsts[place] = number + 1
        elif number == last:
            lasts[place] = number - 1
        else:
            lasts[place] = number - 1
            firsts.insert(place + 1, number + 1)
            lasts.insert(place + 1, last)

    def __contains__(self, number: int) -> bool:
        place = bisect_right(self._firsts, number) - 1
        return place >= 0 and self._lasts[place] >= number

    def __len__(self) -> int:
        """Return the number of ranges, not of numbers."""
        return len(self._firsts)

    def flat(self) -> FlatRanges:
        return tuple(number for pair in zip(self._firsts, self._lasts, strict=True) for number in pair)

    def lacks(self, ranges: FlatRanges) -> list[tuple[int, int]]:
        """Return the parts of some ranges that are not in this set, ascending."""
        lacking: list[tuple[int, int]] = []
        firsts, lasts = self._firsts, self._lasts
        for at in range(0, len(ranges) - 1, 2):
            begin, last = ranges[at], ranges[at + 1]
            place = bisect_right(firsts, begin) - 1
            if place >= 0 and lasts[place] >= last:  # nearly always
                continue
            place = max(place, 0)
            while begin <= last:
                if place == len(firsts) or firsts[place] > last:
                    lacking.append((begin, last))
                    break
                if firsts[place] > begin:
                    lacking.append((begin, firsts[place] - 1))
                begin = max(begin, lasts[place] + 1)
                place += 1
        return lacking

    def common(self, ranges: FlatRanges) -> Iterator[int]:
        """Yield the numbers of some ranges that are in this set, ascending."""
        for first, last in pairs(ranges):
            place = max(bisect_right(self._firsts, first) - 1, 0)
            while place < len(self._firsts) and self._firsts[place] <= last:
                yield from range(max(first, self._firsts[place]), min(last, self._lasts[place]) + 1)
                place += 1


def is_in(number: int, ranges: FlatRanges) -> bool:
    place = bisect_right(ranges, number)
    return place % 2 == 1 or (place > 0 and ranges[place - 1] == number)


def pairs(ranges: FlatRanges) -> list[tuple[int, int]]:
    return list(zip(ranges[::2], ranges[1::2], strict=True))


def flat_ranges(numbers: Sequence[int]) -> FlatRanges:
    flat: list[int] = []
    for number in numbers:
        if flat and flat[-1] == number - 1:
            flat[-1] = number
        else:
            flat += (number, number)
    return tuple(flat)


def compact(ranges: FlatRanges) -> tuple[int, ...]:
    """Shorten flat ranges: a range of one number becomes its negative. `(1, 4, 6, 6)` is `(1, 4, -6)`."""
    short: list[int] = []
    for first, last in pairs(ranges):
        short += (-first,) if first == last else (first, last)
    return tuple(short)


def expanded(short: tuple[int, ...]) -> FlatRanges:
    """Return the flat ranges from which `compact` made this."""
    return tuple(number for entry in short for number in ((-entry, -entry) if entry < 0 else (entry,)))


def are_ranges(ranges: FlatRanges) -> bool:
    """Are these numbers valid flat ranges? A packet of a malicious node can hold any numbers."""
    last = -1
    for place in range(0, len(ranges) - 1, 2):
        if ranges[place] <= max(last + 1, 0) or ranges[place + 1] < ranges[place]:
            return False
        last = ranges[place + 1]
    return len(ranges) % 2 == 0 and last <= LARGEST
