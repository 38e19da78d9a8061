"""Radio cells: stations on a hexagonal grid, hosts that walk, and the station of each host.

As in the evaluation of was2021 (section 5): stations cover an area with little overlap; hosts walk in straight
lines inside it and change direction every few seconds. Positions are sampled at a fixed step.
"""

from math import ceil, sqrt
from typing import Any, TypeAlias

import numpy as np
from msgspec import Struct

from precede.core.errors import BadInput
from precede.core.instants import SECOND, Duration, Instant

Floats: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"
Whole: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"

OUTSIDE = -1


class Positions(Struct, frozen=True):
    """The positions of hosts at each step: host h is at `x[k, h]`, `y[k, h]` at the instant `k * step`."""

    step: Duration
    x: Floats
    y: Floats

    def __post_init__(self) -> None:
        assert self.x.shape == self.y.shape


def hexagonal(stations: int, range_m: float) -> Floats:
    """Return the stations nearest to the origin as rows of (x, y): centres of hexagons of radius `range_m`."""
    if stations < 1 or range_m <= 0:
        raise BadInput(f"expected at least one station and a positive range, got {stations} and {range_m} m")
    spacing = sqrt(3) * range_m
    reach = ceil(sqrt(stations)) + 1
    spots = [
        (spacing * (column + 0.5 * row), spacing * sqrt(3) / 2 * row)
        for row in range(-reach, reach + 1)
        for column in range(-2 * reach, 2 * reach + 1)
    ]
    spots.sort(key=lambda spot: (round(spot[0] ** 2 + spot[1] ** 2, 6), round(spot[1], 6), round(spot[0], 6)))
    return np.array(spots[:stations])


def tree_of_degree(stations: Floats, degree: int) -> list[tuple[int, int]]:
    """Return the links of a tree over the stations with at most `degree` links each; BadInput without one."""
    if degree < 2 and len(stations) > 2:
        raise BadInput(f"a tree of {len(stations)} stations needs a degree of at least 2, not {degree}")
    links: list[tuple[int, int]] = []
    neighbours = [0] * len(stations)
    for child in range(1, len(stations)):
        parent = next(spot for spot in range(child) if neighbours[spot] < degree)
        links.append((parent, child))
        neighbours[parent] += 1
        neighbours[child] += 1
    return links


def walk(
    stations: Floats,
    range_m: float,
    hosts: int,
    speed: float,
    turn: Duration,
    step: Duration,
    end: Instant,
    generator: np.random.Generator,
) -> Positions:
    """Return the positions of hosts that walk straight at one speed, and turn every `turn` within the area.

    Host h begins at a random place in the cell `h mod stations`.
    """
    home = stations[np.arange(hosts) % len(stations)]
    place = home + _in_hexagon(hosts, range_m, generator)
    steps = int(end // step) + 1
    each = max(1, int(turn // step))
    x, y = np.empty((steps, hosts)), np.empty((steps, hosts))
    heading = np.zeros((hosts, 2))
    stride = speed * step / SECOND
    for number in range(steps):
        x[number], y[number] = place[:, 0], place[:, 1]
        if number % each == 0:
            heading = _headings(place, stations, range_m, stride * each, generator) * stride
        place = place + heading
    return Positions(step, x, y)


def associate(positions: Positions, stations: Floats, range_m: float, hysteresis: float) -> Whole:
    """Return the station of each host at each step: the nearest one in range, or OUTSIDE if none is.

    A host keeps a station in range until another one is nearer by more than `hysteresis` metres.
    """
    steps, hosts = positions.x.shape
    cells = np.empty((steps, hosts), np.int64)
    current = np.full(hosts, OUTSIDE)
    all_hosts = np.arange(hosts)
    for number in range(steps):
        dx = positions.x[number][:, None] - stations[None, :, 0]
        dy = positions.y[number][:, None] - stations[None, :, 1]
        distance = np.sqrt(dx * dx + dy * dy)
        nearest = np.argmin(distance, axis=1)
        best = distance[all_hosts, nearest]
        own = np.where(current >= 0, distance[all_hosts, current], np.inf)
        stays = (own <= range_m) & (own <= best + hysteresis)
        current = np.where(stays, current, np.where(best <= range_m, nearest, OUTSIDE))
        cells[number] = current
    return cells


def _in_hexagon(count: int, range_m: float, generator: np.random.Generator) -> Floats:
    """Return random points in a hexagon around the origin with this circumradius and a corner at the top."""
    points = np.empty((0, 2))
    while len(points) < count:
        tried = generator.uniform(-range_m, range_m, (4 * count, 2))
        across = np.abs(tried[:, 0]) * 2 / sqrt(3)
        inside = (across <= range_m) & (np.abs(tried[:, 1]) <= range_m - across / 2)
        points = np.concatenate([points, tried[inside]])
    return points[:count]


def _headings(
    place: Floats, stations: Floats, range_m: float, length: float, generator: np.random.Generator
) -> Floats:
    """Return a random unit direction for each host, such that its next line ends inside the covered area."""
    angle = generator.uniform(0, 2 * np.pi, len(place))
    for _ in range(64):
        target = place + length * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        squared = ((target[:, None, :] - stations[None, :, :]) ** 2).sum(axis=2).min(axis=1)
        out = np.flatnonzero(squared > range_m * range_m)
        if not len(out):
            break
        angle[out] = generator.uniform(0, 2 * np.pi, len(out))
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)
