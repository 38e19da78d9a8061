"""The motion of a vehicle on one trip, along a shape or straight between stops.

A call is an *anchor* if its time is later than that of the anchor before. A call without its own time (none, or
the same minute as the one before) is passed in constant motion between two anchors. Stops are placed on a shape
by `shape_dist_traveled` if both tables have it, else by the ascending sequence of points with the least sum of
squared distances from the stops.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import hypot
from typing import Final, TypeAlias

import numpy as np
from msgspec import Struct

from precede.core.instants import Instant
from precede.traces.intervals import Floats

OFF_SHAPE_M: Final = 300.0
_NEAR_M: Final = 60.0
_CANDIDATES: Final = 12
Leg: TypeAlias = tuple[Instant, float, float, Instant, float, float]


class Anchor(Struct):
    """A call: the vehicle is at (x, y) from arrival to departure; `along` is the feed's distance, if any."""

    arrival: Instant
    departure: Instant
    x: float
    y: float
    along: float | None = None


class Shape:
    """A line on the map, with the distances of its points from its start, in metres and by the feed."""

    def __init__(self, xs: Floats, ys: Floats, along: Floats | None) -> None:
        self.xs, self.ys = xs, ys
        steps = np.hypot(np.diff(xs), np.diff(ys))
        self.metres: Floats = np.concatenate(([0.0], np.cumsum(steps)))
        self.along = along
        self._projected: dict[tuple[tuple[float, float], ...], list[float] | None] = {}

    def by_feed(self, anchors: Sequence[Anchor]) -> list[float] | None:
        """Return the anchors in metres along the shape, by the feed's distances; None if they do not fit."""
        if self.along is None or any(anchor.along is None for anchor in anchors):
            return None
        along = np.array([anchor.along for anchor in anchors])
        if (np.diff(along) < 0).any() or along[0] < self.along[0] - 1e-9:
            return None
        if along[-1] > self.along[-1] + 1e-6 * max(1.0, abs(float(self.along[-1]))):
            return None
        placed = np.interp(along, self.along, self.metres)
        return [float(value) for value in placed] if self._fits(anchors, placed) else None

    def by_projection(self, anchors: Sequence[Anchor]) -> list[float] | None:
        """Return the anchors in metres along the shape, by nearest points; None if a stop is far from it."""
        pattern = tuple((anchor.x, anchor.y) for anchor in anchors)
        if pattern not in self._projected:
            self._projected[pattern] = self._project(anchors)
        return self._projected[pattern]

    def _project(self, anchors: Sequence[Anchor]) -> list[float] | None:
        """Choose ascending positions on the shape, nearest to the anchors; None if a stop is far from it."""
        costs: list[list[float]] = []
        places: list[list[float]] = []
        for anchor in anchors:
            at, off = self._nearest(anchor)
            if not at or min(off) > OFF_SHAPE_M:
                return None
            places.append(at)
            costs.append([distance * distance for distance in off])
        return _forward(places, costs)

    def _fits(self, anchors: Sequence[Anchor], placed: Floats) -> bool:
        x, y = np.interp(placed, self.metres, self.xs), np.interp(placed, self.metres, self.ys)
        off = np.hypot(x - np.array([a.x for a in anchors]), y - np.array([a.y for a in anchors]))
        return bool((off <= OFF_SHAPE_M).all())

    def _nearest(self, anchor: Anchor) -> tuple[list[float], list[float]]:
        """Return the points at which the shape is nearest to a stop, one for each pass, and their distances."""
        dx, dy = np.diff(self.xs), np.diff(self.ys)
        square = np.maximum(dx * dx + dy * dy, 1e-12)
        part = ((anchor.x - self.xs[:-1]) * dx + (anchor.y - self.ys[:-1]) * dy) / square
        part = np.clip(part, 0.0, 1.0)
        off = np.hypot(self.xs[:-1] + part * dx - anchor.x, self.ys[:-1] + part * dy - anchor.y)
        lower = np.concatenate(([np.inf], off[:-1])), np.concatenate((off[1:], [np.inf]))
        best = (off <= lower[0]) & (off <= lower[1]) & (off <= off.min() + _NEAR_M)
        chosen = np.flatnonzero(best)
        if len(chosen) > _CANDIDATES:
            chosen = np.sort(chosen[np.argsort(off[chosen], kind="stable")[:_CANDIDATES]])
        at = self.metres[chosen] + part[chosen] * np.sqrt(square[chosen])
        return [float(value) for value in at], [float(value) for value in off[chosen]]

    def legs(self, begin: Instant, end: Instant, start: float, stop: float) -> list[Leg]:
        """Return motion at constant speed along the shape from `start` to `stop` metres."""
        first, last = np.searchsorted(self.metres, (start, stop), side="right")
        inner = [float(m) for m in self.metres[first:last] if start < m < stop]
        places = [start, *inner, stop]
        xs, ys = np.interp(places, self.metres, self.xs), np.interp(places, self.metres, self.ys)
        span = stop - start
        times = [begin + round((end - begin) * ((m - start) / span)) if span > 0 else begin for m in places]
        times[-1] = end
        return _legs(times, [float(x) for x in xs], [float(y) for y in ys])


def _forward(places: list[list[float]], costs: list[list[float]]) -> list[float] | None:
    """Return one position for every stop, never descending, with the least sum of costs."""
    total = [list(costs[0])]
    before: list[list[int]] = [[0] * len(costs[0])]
    for positions, previous, cost in zip(places[1:], places, costs[1:], strict=False):
        sums, choice = [], []
        for at, own in zip(positions, cost, strict=True):
            allowed = [k for k, earlier in enumerate(previous) if earlier <= at + 1e-6]
            best = min(allowed, key=lambda k: total[-1][k], default=-1)
            choice.append(best)
            sums.append(np.inf if best < 0 else total[-1][best] + own)
        total.append(sums)
        before.append(choice)
    k = int(np.argmin(total[-1]))
    if not np.isfinite(total[-1][k]):
        return None
    chosen = []
    for stop in range(len(places) - 1, -1, -1):
        chosen.append(places[stop][k])
        k = before[stop][k]
    chosen.reverse()
    return [float(value) for value in np.maximum.accumulate(chosen)]


def _legs(times: list[Instant], xs: list[float], ys: list[float]) -> list[Leg]:
    """Return straight legs through the points; of points with the same rounded time one is used."""
    kept = [k for k in range(len(times)) if k in (0, len(times) - 1) or times[k - 1] < times[k] < times[-1]]
    return [(times[p], xs[p], ys[p], times[q], xs[q], ys[q]) for p, q in pairwise(kept) if times[p] < times[q]]


def trip_legs(anchors: Sequence[Anchor], shape: Shape | None) -> tuple[list[Leg], bool]:
    """Return the legs of a trip with its stops, and whether it follows its shape."""
    placed = None
    if shape is not None:
        placed = shape.by_feed(anchors) or shape.by_projection(anchors)
    if shape is not None and placed is not None:
        for anchor, at in zip(anchors, placed, strict=True):
            anchor.x = float(np.interp(at, shape.metres, shape.xs))
            anchor.y = float(np.interp(at, shape.metres, shape.ys))
    legs: list[Leg] = []
    for k, here in enumerate(anchors):
        if here.departure > here.arrival:
            legs.append((here.arrival, here.x, here.y, here.departure, here.x, here.y))
        if k + 1 == len(anchors):
            break
        ahead = anchors[k + 1]
        if shape is not None and placed is not None and placed[k] < placed[k + 1]:
            legs += shape.legs(here.departure, ahead.arrival, placed[k], placed[k + 1])
        else:
            legs.append((here.departure, here.x, here.y, ahead.arrival, ahead.x, ahead.y))
    return legs, placed is not None


def layover(end: Leg, begin: Leg, speed: float = 10.0) -> list[Leg]:
    """Return the legs between two trips: the vehicle stands, then drives to the next start just in time."""
    t0, x0, y0, t1, x1, y1 = end[3], end[4], end[5], begin[0], begin[1], begin[2]
    if t0 >= t1:
        return []
    drive = min(t1 - t0, round(hypot(x1 - x0, y1 - y0) / speed * 1e6))
    legs: list[Leg] = []
    if t1 - drive > t0:
        legs.append((t0, x0, y0, t1 - drive, x0, y0))
    if drive > 0:
        legs.append((t1 - drive, x0, y0, t1, x1, y1))
    return legs
