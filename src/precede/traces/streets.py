"""Generates movement on a graph of streets: trips between random corners, and working days.

A graph is a grid of blocks, or it is read from a file of street segments. Nodes take shortest paths. As in the
other models, every node has a random generator of its own and is called by its number.

The working day follows the idea of Ekman, Keränen, Karvo and Ott (MobilityModels 2008): people sleep at home,
work in an office with their colleagues, and go out in groups in the evening. We draw homes, offices and meeting
spots among the corners; people walk up to a kilometre and ride at 8 m/s beyond: there are no buses.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import pairwise
from math import cos, hypot, pi, sin
from pathlib import Path
from random import Random
from typing import Final

from msgspec import Struct

from precede.core.errors import BadInput
from precede.core.instants import HOUR, MINUTE, SECOND, Duration, Instant
from precede.core.randomness import named_generator
from precede.files.lines import BadRow, data_lines, fields_of_csv, opened
from precede.traces.lines import coordinate
from precede.traces.mobility import Mobility
from precede.traces.walks import Leg, Place, Walkers, each_node

_DAY: Final = 24 * HOUR
_RIDE_M: Final = 1000.0
_RIDE_SPEED: Final = 8.0
_ROOM_M: Final = 15.0
_MOST_CORNERS: Final = 200_000


class Streets(Struct, frozen=True):
    """Corners, and for each corner the corners at the other ends of its streets with their distances."""

    corners: tuple[Place, ...]
    ways: tuple[dict[int, float], ...]

    def path(self, start: int, goal: int) -> list[int]:
        """Return the corners of a shortest path; of equally short ones always the same."""
        best, before = {start: 0.0}, {start: start}
        queue = [(0.0, start)]
        while queue:
            so_far, corner = heappop(queue)
            if corner == goal:
                break
            if so_far > best[corner]:
                continue
            for other, length in self.ways[corner].items():
                if so_far + length < best.get(other, float("inf")):
                    best[other], before[other] = so_far + length, corner
                    heappush(queue, (so_far + length, other))
        path = [goal]
        while path[-1] != start:
            path.append(before[path[-1]])
        return path[::-1]

    def length(self, path: Sequence[int]) -> float:
        return sum(self.ways[a][b] for a, b in pairwise(path))


def street_grid(columns: int, rows: int, field: Place) -> Streets:
    """Return the streets around a number of blocks that fill a field."""
    if columns < 1 or rows < 1 or (columns + 1) * (rows + 1) > _MOST_CORNERS:
        raise BadInput(f"blocks: expected columns and rows from 1 on, got {columns} x {rows}")
    xs, ys = ([k * field[side] / count for k in range(count + 1)] for side, count in ((0, columns), (1, rows)))
    across = [((x0, y), (x1, y)) for y in ys for x0, x1 in pairwise(xs)]
    return streets_of([*across, *(((x, y0), (x, y1)) for x in xs for y0, y1 in pairwise(ys))])


def streets_of(segments: Iterable[tuple[Place, Place]]) -> Streets:
    """Return the largest connected part of streets that are given as segments between corners, in metres."""
    ids: dict[Place, int] = {}
    ways: list[dict[int, float]] = []
    for ends in segments:
        a, b = (ids.setdefault((round(x, 2), round(y, 2)), len(ids)) for x, y in ends)
        ways += [{} for _ in range(len(ids) - len(ways))]
        if a != b:
            ways[a][b] = ways[b][a] = hypot(ends[0][0] - ends[1][0], ends[0][1] - ends[1][1])
        if len(ids) > _MOST_CORNERS:
            raise BadInput(f"more than {_MOST_CORNERS:,} corners of streets")
    kept = max(_parts(ways), key=len, default=[])
    if len(kept) < 2:
        raise BadInput("no street between two corners")
    new = {old: place for place, old in enumerate(sorted(kept))}
    corners = list(ids)
    return Streets(
        tuple(corners[old] for old in new),
        tuple({new[other]: length for other, length in ways[old].items()} for old in new),
    )


def _parts(ways: Sequence[dict[int, float]]) -> Iterator[list[int]]:
    """Yield the corners of each connected part."""
    seen: set[int] = set()
    for first in range(len(ways)):
        if first in seen:
            continue
        part, todo = [], [first]
        seen.add(first)
        while todo:
            part.append(todo.pop())
            new = [other for other in ways[part[-1]] if other not in seen]
            seen.update(new)
            todo += new
        yield part


def read_streets(path: Path) -> Streets:
    """Read streets from CSV `x0,y0,x1,y1` in metres, with or without a header, or from WKT lines."""
    segments: list[tuple[Place, Place]] = []
    with opened(path) as lines:
        for line, text in data_lines(lines):
            if text.upper().startswith(("LINESTRING", "MULTILINESTRING")):
                segments += _wkt(text, f"{path}:{line}")
                continue
            values = fields_of_csv(text)
            if not segments and [value.lower() for value in values[:4]] == ["x0", "y0", "x1", "y1"]:
                continue
            try:
                if len(values) < 4:
                    raise BadRow("too few fields")
                x0, y0, x1, y1 = (coordinate(value) for value in values[:4])
            except BadRow as error:
                raise BadInput(f"{path}:{line}: {error}") from error
            segments.append(((x0, y0), (x1, y1)))
    return streets_of(segments)


def _wkt(text: str, where: str) -> Iterator[tuple[Place, Place]]:
    """Yield the segments of a LINESTRING or MULTILINESTRING of points with spaces between x and y."""
    for string in re.findall(r"\(([^()]+)\)", text):
        try:
            numbers = [[coordinate(word) for word in point.split()[:2]] for point in string.split(",")]
            yield from pairwise([(x, y) for x, y in numbers])
        except (BadRow, ValueError) as error:
            raise BadInput(f"{where}: not a line of WKT: {error}") from error


def street_waypoint(seed: int, walkers: Walkers, streets: Streets) -> Mobility:
    """Nodes take shortest paths to random corners, each trip at a speed drawn anew, and pause there."""
    walkers.check(1.0)

    def walk(generator: Random) -> Iterator[Leg]:
        here, at = generator.randrange(len(streets.corners)), 0
        while at < walkers.duration:
            there, speed = generator.randrange(len(streets.corners)), generator.uniform(*walkers.speed)
            for leg in _along(streets, streets.path(here, there), at, speed):
                yield leg
                at = leg[3]
            left = at + max(1, round(generator.uniform(*walkers.pause) * SECOND))
            yield at, *streets.corners[there], left, *streets.corners[there]
            here, at = there, left

    return each_node(seed, "street-waypoint", walkers.nodes, walkers.duration, walk)


def working_day(seed: int, walkers: Walkers, streets: Streets, offices: int = 5, spots: int = 3) -> Mobility:
    """People live through days from midnight on: home, office, in half of the evenings a meeting spot, home.

    They leave home around 8:00, work for about 8 h and move between desk and other places in the office; groups
    of colleagues go out for one to three hours. `pause` is not used.
    """
    if offices < 1 or spots < 1:
        raise BadInput("working-day: expected at least one office and one spot")
    walkers.check(10 * 60.0)
    town = named_generator(seed, "working-day", "town")
    offices_at = [town.randrange(len(streets.corners)) for _ in range(offices)]
    spots_at = [town.randrange(len(streets.corners)) for _ in range(spots)]

    def walk(generator: Random) -> Iterator[Leg]:
        home, office = generator.randrange(len(streets.corners)), generator.randrange(offices)
        speed, at, day = generator.uniform(*walkers.speed), 0, 0
        bed, desk = (_near(streets.corners[corner], generator) for corner in (home, offices_at[office]))
        while at < walkers.duration:
            up = max(at + 1, day * _DAY + 8 * HOUR + round(generator.gauss(0, 30) * MINUTE))
            yield at, *bed, up, *bed
            at = up
            for leg in _along(streets, streets.path(home, offices_at[office]), at, speed, bed, desk):
                yield leg
                at = leg[3]
            over = at + max(HOUR, round(generator.gauss(8, 0.5) * HOUR))
            for leg in _office(generator, at, over, desk, streets.corners[offices_at[office]], speed):
                yield leg
                at = leg[3]
            where, place = offices_at[office], desk
            group = named_generator(seed, "working-day", "evening", office, day)  # colleagues go out together
            goes_out, spot, stays = group.random() < 0.5, group.randrange(spots), group.uniform(1, 3)
            if goes_out and generator.random() < 0.7:
                table = _near(streets.corners[spots_at[spot]], generator)
                for leg in _along(streets, streets.path(where, spots_at[spot]), at, speed, place, table):
                    yield leg
                    at = leg[3]
                yield at, *table, at + round(stays * HOUR), *table
                where, place, at = spots_at[spot], table, at + round(stays * HOUR)
            for leg in _along(streets, streets.path(where, home), at, speed, place, bed):
                yield leg
                at = leg[3]
            day += 1

    return each_node(seed, "working-day", walkers.nodes, walkers.duration, walk)


def _office(
    generator: Random, at: Instant, until: Instant, desk: Place, middle: Place, speed: float
) -> Iterator[Leg]:
    """Yield a day in the office: at the desk, and now and then for some minutes elsewhere in the building."""
    here = desk
    while at < until:
        stay = min(until, at + max(SECOND, round(generator.expovariate(1 / 45) * MINUTE)))
        yield at, *here, stay, *here
        at = stay
        there = _near(middle, generator) if here == desk else desk
        if at < until:
            walked = at + max(1, round(hypot(there[0] - here[0], there[1] - here[1]) / speed * SECOND))
            yield at, *here, walked, *there
            here, at = there, walked
    if here != desk:
        yield at, *here, at + max(1, round(hypot(desk[0] - here[0], desk[1] - here[1]) / speed * SECOND)), *desk


def _near(place: Place, generator: Random) -> Place:
    """Return a place in the building at a corner."""
    angle, distance = generator.uniform(0, 2 * pi), generator.uniform(0, _ROOM_M)
    return place[0] + distance * cos(angle), place[1] + distance * sin(angle)


def _along(
    streets: Streets,
    path: Sequence[int],
    at: Instant,
    speed: float,
    start: Place | None = None,
    goal: Place | None = None,
) -> Iterator[Leg]:
    """Yield the legs of a trip along a path, from and to places beside its ends; long trips are ridden."""
    if start is not None and streets.length(path) > _RIDE_M:
        speed = _RIDE_SPEED
    places = [*([] if start is None else [start]), *(streets.corners[corner] for corner in path)]
    places += [] if goal is None else [goal]
    for here, there in pairwise(places):
        if here == there:
            continue
        arrival: Duration = at + max(1, round(hypot(there[0] - here[0], there[1] - here[1]) / speed * SECOND))
        yield at, *here, arrival, *there
        at = arrival
