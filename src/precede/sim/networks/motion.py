"""The positions of nodes: fixed, on a grid, walking at random, or from a trace (drift2006, section 5).

A node moves on straight legs at constant speed. Which nodes are in range is computed exactly, at the instant
of a transmission. Distances are in metres.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import hypot
from random import Random
from typing import Any, TypeAlias

import numpy as np
from msgspec import Struct

from precede.core.identity import NodeId
from precede.core.instants import SECOND, Instant
from precede.sim.randomness import Generators

Point: TypeAlias = tuple[float, float]
Floats: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"


class Leg(Struct, frozen=True, gc=False):
    """A straight movement at constant speed, from one instant to another."""

    start: Instant
    end: Instant
    x0: float
    y0: float
    x1: float
    y1: float


def scattered(nodes: int, width: float, height: float, random: Random) -> list[Point]:
    """Return positions drawn uniformly at random in a field."""
    return [(random.random() * width, random.random() * height) for _ in range(nodes)]


def grid(columns: int, rows: int, spacing: float) -> list[Point]:
    """Return positions on a grid, row by row, `spacing` apart; the first node is at the origin."""
    return [(column * spacing, row * spacing) for row in range(rows) for column in range(columns)]


def random_waypoints(start: Point, width: float, height: float, speed: float, random: Random) -> Iterator[Leg]:
    """Yield legs to random points at a fixed speed, without pause and without end (drift2006, section 5.5)."""
    x, y = start
    at = 0.0
    while True:
        to_x, to_y = random.random() * width, random.random() * height
        arrives = at + hypot(to_x - x, to_y - y) / speed
        yield Leg(round(at * SECOND), max(round(arrives * SECOND), round(at * SECOND) + 1), x, y, to_x, to_y)
        x, y, at = to_x, to_y, arrives


class Motion:
    """The positions of all nodes. A node without legs does not move."""

    def __init__(self, places: Sequence[Point], legs: Mapping[NodeId, Iterator[Leg]] | None = None) -> None:
        self.nodes = len(places)
        self._legs = dict(legs or {})
        self._x: Floats = np.array([x for x, _ in places], dtype=np.float64)
        self._y: Floats = np.array([y for _, y in places], dtype=np.float64)
        self._speed_x: Floats = np.zeros(self.nodes)
        self._speed_y: Floats = np.zeros(self.nodes)
        self._since: Floats = np.zeros(self.nodes)
        self._ends = np.full(self.nodes, np.iinfo(np.int64).max, dtype=np.int64)
        for node in self._legs:
            self._ends[node] = 0
        self._next_end = 0 if self._legs else int(self._ends.max())
        self._standing: dict[float, list[list[NodeId]]] = {}

    @property
    def moves(self) -> bool:
        return bool(self._legs)

    def place(self, node: NodeId, now: Instant) -> Point:
        """Return the position of a node. `now` must not decrease between calls."""
        self._advance(now)
        passed = now - self._since[node]
        return (
            float(self._x[node] + self._speed_x[node] * passed),
            float(self._y[node] + self._speed_y[node] * passed),
        )

    def in_range(self, node: NodeId, reach: float, now: Instant) -> list[NodeId]:
        """Return all other nodes within reach, in ascending order. `now` must not decrease between calls."""
        if not self._legs:
            neighbours = self._standing.get(reach)
            if neighbours is None:
                neighbours = [self._near(other, reach, now) for other in range(self.nodes)]
                self._standing[reach] = neighbours
            return neighbours[node]
        self._advance(now)
        return self._near(node, reach, now)

    def _near(self, node: NodeId, reach: float, now: Instant) -> list[NodeId]:
        passed = now - self._since
        x = self._x + self._speed_x * passed
        y = self._y + self._speed_y * passed
        away = (x - x[node]) ** 2 + (y - y[node]) ** 2
        near: list[NodeId] = np.flatnonzero(away <= reach * reach).tolist()
        near.remove(node)
        return near

    def _advance(self, now: Instant) -> None:
        """Move every node on to the leg that it walks at this instant."""
        if now < self._next_end:
            return
        for node in np.flatnonzero(self._ends <= now).tolist():
            self._walk(node, now)
        self._next_end = int(self._ends.min())

    def _walk(self, node: NodeId, now: Instant) -> None:
        for leg in self._legs[node]:
            if leg.end > now:
                duration = leg.end - leg.start
                self._x[node], self._y[node] = leg.x0, leg.y0
                self._speed_x[node] = (leg.x1 - leg.x0) / duration
                self._speed_y[node] = (leg.y1 - leg.y0) / duration
                self._since[node] = leg.start
                self._ends[node] = leg.end
                return
            self._x[node], self._y[node] = leg.x1, leg.y1
        self._speed_x[node] = self._speed_y[node] = 0.0
        self._ends[node] = np.iinfo(np.int64).max


def connected(places: Sequence[Point], reach: float) -> bool:
    """True if every node can reach every other over some number of hops."""
    motion = Motion(places)
    reached = {0}
    edge = [0]
    while edge:
        for node in motion.in_range(edge.pop(), reach, 0):
            if node not in reached:
                reached.add(node)
                edge.append(node)
    return len(reached) == len(places)


def scattered_connected(
    nodes: int, width: float, height: float, reach: float, generators: Generators, attempts: int = 10_000
) -> list[Point]:
    """Return random positions of a connected network, or those of the last attempt if none was connected."""
    places: list[Point] = []
    for attempt in range(attempts):
        places = scattered(nodes, width, height, generators.python("places", attempt))
        if connected(places, reach):
            break
    return places
