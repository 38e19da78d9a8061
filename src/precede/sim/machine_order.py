"""Sorts the events of one bucket by their digits, in machine words; used only where the package is compiled.

It does what `queue.in_order` does with Python's integers, in a fifth of the instructions.
"""

from __future__ import annotations

from typing import Final, final

from librt.vecs import append, vec
from mypy_extensions import i64

from precede.sim.queue import SHIFT, Event

_DIGIT_BITS: Final = (SHIFT + 1) // 2
_DIGITS: Final = 1 << _DIGIT_BITS


@final
class MachineOrder:
    """Sorts twice by one of two digits of `when`, the lower digit first; each time ties keep their order."""

    def __init__(self) -> None:
        self._starts = _longer(vec[i64](), _DIGITS)
        self._keys = vec[i64]()
        self._once = vec[i64]()
        self._twice = vec[i64]()

    def in_order(self, events: list[Event], begin: int) -> list[Event]:
        count: i64 = len(events)
        if count > len(self._keys):
            self._keys = _longer(self._keys, count)
            self._once = _longer(self._once, count)
            self._twice = _longer(self._twice, count)
        keys, once, twice = self._keys, self._once, self._twice
        first: i64 = begin
        k: i64 = 0
        while k < count:
            when: i64 = events[k].when
            keys[k] = when - first
            once[k] = k
            k += 1
        self._sort(once, twice, count, 0)
        self._sort(twice, once, count, _DIGIT_BITS)
        return [events[once[k]] for k in range(count)]

    def _sort(self, order: vec[i64], sorted_order: vec[i64], count: i64, shift: i64) -> None:
        """Sort the places in `order` by one digit of their keys, into `sorted_order`."""
        starts, keys = self._starts, self._keys
        last: i64 = _DIGITS - 1
        digit: i64 = 0
        while digit <= last:
            starts[digit] = 0
            digit += 1
        k: i64 = 0
        while k < count:
            starts[keys[k] >> shift & last] += 1
            k += 1
        start: i64 = 0
        digit = 0
        while digit <= last:
            start += starts[digit]
            starts[digit] = start - starts[digit]
            digit += 1
        k = 0
        while k < count:
            place = order[k]
            digit = keys[place] >> shift & last
            sorted_order[starts[digit]] = place
            starts[digit] += 1
            k += 1


def _longer(words: vec[i64], count: i64) -> vec[i64]:
    """Append words of 0 until there are `count`."""
    while len(words) < count:
        words = append(words, 0)
    return words
