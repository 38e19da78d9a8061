"""A node that is told where to go: it stands, walks in a straight line, stands again."""

from __future__ import annotations

from collections.abc import Iterator
from math import hypot
from typing import Final

from msgspec import Struct

from precede.core.instants import SECOND, Instant
from precede.traces.records import SegmentRow

NEVER_S: Final = 1e8
"""A node that would take longer than three years to arrive is taken to arrive then: it hardly moves."""


class Walker(Struct):
    """Where a node was at `at`, and where it is going to be at `arrival`, if it goes anywhere."""

    name: str
    at: Instant
    x: float
    y: float
    to_x: float = 0.0
    to_y: float = 0.0
    arrival: Instant | None = None

    def go(self, x: float, y: float, arrival: Instant) -> None:
        """Set out from where it is now; `arrival` lies ahead."""
        self.to_x, self.to_y, self.arrival = x, y, arrival

    def head_for(self, x: float, y: float, speed: float) -> Instant:
        """Set out at a speed in m/s, or stay at speed 0; the instant of arrival."""
        self.arrival = None
        way = hypot(x - self.x, y - self.y)
        if speed <= 0 or way == 0:
            return self.at
        arrival = self.at + round(min(way / speed, NEVER_S) * SECOND)
        if arrival > self.at:
            self.go(x, y, arrival)
        return arrival

    def until(self, now: Instant) -> Iterator[SegmentRow]:
        """What it did up to `now`, which becomes its new instant; `now` never lies back."""
        if self.arrival is not None and now > self.at:
            if now >= self.arrival:
                yield self._moved(self.arrival, self.to_x, self.to_y)
                self.arrival = None
            else:
                part = (now - self.at) / (self.arrival - self.at)
                yield self._moved(
                    now, self.x + (self.to_x - self.x) * part, self.y + (self.to_y - self.y) * part
                )
        if now > self.at:
            yield self._moved(now, self.x, self.y)

    def _moved(self, at: Instant, x: float, y: float) -> SegmentRow:
        row = SegmentRow(self.name, self.at, self.x, self.y, at, x, y)
        self.at, self.x, self.y = at, x, y
        return row
