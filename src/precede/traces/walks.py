"""Generates walks in a rectangle: random waypoint, random walk and Gauss-Markov.

Every node has a random generator of its own, so more nodes do not change the paths of the others. Nodes begin
at uniformly random places at instant 0 and are present until the end. They are called 0, 1, 2, …

These models are in common use, with known faults: nodes of the random waypoint model crowd in the middle of the
field and become slower over time, because slow trips last longer (Yoon, Liu, Noble, INFOCOM 2003). The least
speed must therefore be above 0, and the first part of a run is better left out of its measures.
"""

from collections.abc import Callable, Iterator
from math import cos, hypot, pi, sin, sqrt
from random import Random
from typing import Final, TypeAlias

from msgspec import Struct

from precede.core.errors import BadInput
from precede.core.instants import SECOND, Duration, Instant
from precede.core.randomness import named_generator
from precede.traces.mobility import Mobility, sorted_mobility

MOST_SEGMENTS: Final = 5_000_000
RANGE_M: Final = 10.0
Place: TypeAlias = tuple[float, float]
Row: TypeAlias = tuple[int, Instant, float, float, Instant, float, float]
Leg: TypeAlias = tuple[Instant, float, float, Instant, float, float]


class Walkers(Struct, frozen=True, kw_only=True):
    """How many nodes walk for how long, in a field of which size, at which speeds (m/s) and pauses (s)."""

    nodes: int
    duration: Duration
    field: tuple[float, float] = (1000.0, 1000.0)
    speed: tuple[float, float] = (0.5, 1.5)
    pause: tuple[float, float] = (0.0, 120.0)

    def check(self, legs_s: float) -> None:
        """Raise BadInput if the values make no sense, or for too many segments of `legs_s` seconds each."""
        if self.nodes < 1 or self.duration <= 0:
            raise BadInput("a generator needs at least one node and a duration above 0")
        if not 0 < self.speed[0] <= self.speed[1]:
            raise BadInput(f"speed: expected least and most above 0, got {list(self.speed)}")
        if not 0 <= self.pause[0] <= self.pause[1]:
            raise BadInput(f"pause: expected least and most, got {list(self.pause)}")
        if self.nodes * (self.duration / SECOND / legs_s) > MOST_SEGMENTS:
            raise BadInput(f"more than {MOST_SEGMENTS:,} segments; take fewer nodes or a shorter duration")


def random_waypoint(seed: int, walkers: Walkers) -> Mobility:
    """Nodes go straight to uniformly random places, each at a speed drawn anew, and pause there."""
    width, height = walkers.field
    walkers.check(max(1.0, min(width, height) / 4 / walkers.speed[1]))

    def walk(generator: Random) -> Iterator[Leg]:
        here, at = _anywhere(generator, walkers), 0
        while at < walkers.duration:
            there, speed = _anywhere(generator, walkers), generator.uniform(*walkers.speed)
            arrival = at + max(1, round(hypot(there[0] - here[0], there[1] - here[1]) / speed * SECOND))
            yield at, *here, arrival, *there
            left = arrival + round(generator.uniform(*walkers.pause) * SECOND)
            if left > arrival:
                yield arrival, *there, left, *there
            here, at = there, left

    return each_node(seed, "random-waypoint", walkers.nodes, walkers.duration, walk)


def random_walk(seed: int, walkers: Walkers, leg: Duration = 60 * SECOND) -> Mobility:
    """Nodes turn to a uniformly random direction and draw a speed after every leg; edges reflect them."""
    if leg <= 0:
        raise BadInput("leg: expected a duration above 0")
    walkers.check(leg / SECOND)

    def walk(generator: Random) -> Iterator[Leg]:
        here, at = _anywhere(generator, walkers), 0
        while at < walkers.duration:
            direction, speed = generator.uniform(0, 2 * pi), generator.uniform(*walkers.speed)
            legs, _ = reflected(here, (speed * cos(direction), speed * sin(direction)), at, leg, walkers.field)
            yield from legs
            here, at = legs[-1][4:6], at + leg

    return each_node(seed, "random-walk", walkers.nodes, walkers.duration, walk)


def gauss_markov(seed: int, walkers: Walkers, alpha: float = 0.75, step: Duration = 10 * SECOND) -> Mobility:
    """Speed and direction change gradually: each is `alpha` times the last, plus its mean, plus noise.

    A node's mean direction is drawn once, and turns where an edge reflects the node.
    """
    if not 0 <= alpha <= 1 or step <= 0:
        raise BadInput("gauss-markov: expected alpha between 0 and 1 and a step above 0")
    walkers.check(step / SECOND)
    mean = (walkers.speed[0] + walkers.speed[1]) / 2
    deviation = (walkers.speed[1] - walkers.speed[0]) / 6
    noise = sqrt(1 - alpha * alpha)

    def walk(generator: Random) -> Iterator[Leg]:
        here, at = _anywhere(generator, walkers), 0
        speed, toward = generator.gauss(mean, deviation), generator.uniform(0, 2 * pi)
        direction = toward
        while at < walkers.duration:
            pace = max(0.0, speed)
            motion = pace * cos(direction), pace * sin(direction)
            legs, flips = reflected(here, motion, at, step, walkers.field)
            yield from legs
            here, at = legs[-1][4:6], at + step
            for flip in flips:
                direction, toward = (_mirrored(angle, flip) for angle in (direction, toward))
            speed = alpha * speed + (1 - alpha) * mean + noise * generator.gauss(0, deviation)
            direction = alpha * direction + (1 - alpha) * toward + noise * generator.gauss(0, pi / 8)

    return each_node(seed, "gauss-markov", walkers.nodes, walkers.duration, walk)


def each_node(
    seed: int, model: str, nodes: int, duration: Duration, walk: Callable[[Random], Iterator[Leg]]
) -> Mobility:
    """Return the movement of all nodes, each with a generator of its own, cut at `duration`."""
    rows: list[Row] = []
    for node in range(nodes):
        for leg in walk(named_generator(seed, model, node)):
            if leg[0] >= duration:
                break
            rows.append((node, *cut(leg, duration)))
    return sorted_mobility([str(node) for node in range(nodes)], rows)


def cut(leg: Leg, end: Instant) -> Leg:
    t0, x0, y0, t1, x1, y1 = leg
    if t1 <= end:
        return leg
    part = (end - t0) / (t1 - t0)
    return t0, x0, y0, end, x0 + (x1 - x0) * part, y0 + (y1 - y0) * part


def reflected(
    here: Place, motion: Place, at: Instant, lasts: Duration, field: Place
) -> tuple[list[Leg], list[int]]:
    """Return the straight parts of a motion in a field whose edges reflect it, and the axes that did."""
    place, velocity, end = list(here), list(motion), at + lasts
    legs: list[Leg] = []
    flips: list[int] = []
    while at < end:
        hits = []
        for axis in (0, 1):
            if velocity[axis]:
                edge = field[axis] if velocity[axis] > 0 else 0.0
                hits.append((max(0.0, (edge - place[axis]) / velocity[axis]), axis, edge))
        seconds, axis, edge = min(hits, default=(float("inf"), 0, 0.0))
        left = (end - at) / SECOND
        until = end if seconds >= left else min(end, at + max(1, round(seconds * SECOND)))
        took = min(seconds, left)
        there = [min(max(place[k] + velocity[k] * took, 0.0), field[k]) for k in (0, 1)]
        if seconds < left:
            there[axis] = edge
            velocity[axis] = -velocity[axis]
            flips.append(axis)
        legs.append((at, place[0], place[1], until, there[0], there[1]))
        place, at = there, until
    return legs, flips


def _mirrored(angle: float, axis: int) -> float:
    return pi - angle if axis == 0 else -angle


def _anywhere(generator: Random, walkers: Walkers) -> Place:
    return generator.uniform(0, walkers.field[0]), generator.uniform(0, walkers.field[1])
