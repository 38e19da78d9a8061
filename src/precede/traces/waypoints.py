"""A node that moves between waypoints: it stands, moves in a straight line, and stands again."""

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
        seconds = way / speed
        arrival = self.at + round((seconds if seconds < NEVER_S else NEVER_S) * SECOND)
        if arrival > self.at:
            self.go(x, y, arrival)
        return arrival

    def until(self, now: Instant) -> list[SegmentRow]:
        """Return the node's segments up to `now`, which becomes its current instant; `now` never goes back."""
        segments: list[SegmentRow] = []
        at, x, y = self.at, self.x, self.y
        if now <= at:
            return segments
        arrival = self.arrival
        if arrival is not None:
            if now < arrival:
                part = (now - at) / (arrival - at)
                end, to_x, to_y = now, x + (self.to_x - x) * part, y + (self.to_y - y) * part
            else:
                end, to_x, to_y = arrival, self.to_x, self.to_y
                self.arrival = None
            segments.append(SegmentRow._make((self.name, at, x, y, end, to_x, to_y)))
            at, x, y = end, to_x, to_y
        if now > at:
            segments.append(SegmentRow._make((self.name, at, x, y, now, x, y)))
        self.at, self.x, self.y = now, x, y
        return segments
