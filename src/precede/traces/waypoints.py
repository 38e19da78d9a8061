"""A node that moves between waypoints: it stands, moves in a straight line, and stands again."""

from collections.abc import Iterator
from math import hypot
from typing import Final

from msgspec import Struct

from precede.core.instants import SECOND, Instant
from precede.traces.records import SegmentRow

NEVER_S: Final = 1e8
"""The longest travel time: a node that would need more than three years arrives after three."""


class Walker(Struct):
    """The position of a node at `at`, and its destination with the time of arrival if it is moving."""

    name: str
    at: Instant
    x: float
    y: float
    to_x: float = 0.0
    to_y: float = 0.0
    arrival: Instant | None = None

    def go(self, x: float, y: float, arrival: Instant) -> None:
        """Start moving from the current position; `arrival` must be in the future."""
        self.to_x, self.to_y, self.arrival = x, y, arrival

    def head_for(self, x: float, y: float, speed: float) -> Instant:
        """Start moving to (x, y) at a speed in m/s, or stay at speed 0. Returns the instant of arrival."""
        self.arrival = None
        way = hypot(x - self.x, y - self.y)
        if speed <= 0 or way == 0:
            return self.at
        arrival = self.at + round(min(way / speed, NEVER_S) * SECOND)
        if arrival > self.at:
            self.go(x, y, arrival)
        return arrival

    def until(self, now: Instant) -> Iterator[SegmentRow]:
        """Yield the node's segments up to `now`, which becomes its current instant; `now` never goes back."""
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
