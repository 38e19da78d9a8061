"""Buses of a town on a working day: the scenario of guidec2021, section VI-A, Table I.

Lines run from one side of the town to the other and back, by a timetable, and most of them stop for a while at
a hub: there the buses of all lines meet, and between hubs they meet the buses of their own line that come the
other way. Most buses run all day, some for half of it, a few (school buses) for a trip or two. The paper's town
was Vannes, with routes from OpenStreetMap and the real timetables, which are not published with it; a layout
here is a made-up town that meets the published figures. Layouts are fixed towns; the seed makes the day.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import cos, hypot, pi, sin
from random import Random
from typing import Final

from precede.core.errors import BadInput
from precede.core.instants import HOUR, MINUTE, SECOND, Instant
from precede.core.randomness import named_generator
from precede.traces.mobility import Mobility, sorted_mobility

RANGE_M: Final = 200.0
CLOSES: Final[Instant] = 14 * HOUR + 15 * MINUTE
"""Instants count from 05:30; the last bus is off the road by 19:45."""
Place = tuple[float, float]
Row = tuple[int, Instant, float, float, Instant, float, float]


@dataclass(frozen=True)
class Stop:
    """A place on a line; `dwell` is how long a bus stays, in seconds, about."""

    x: float
    y: float
    dwell: float


@dataclass(frozen=True)
class Town:
    """Hubs, and lines as ways from one end over hubs to the other end. Speeds in m/s, dwells in seconds."""

    hubs: tuple[Place, ...]
    lines: tuple[tuple[Place, ...], ...]
    hub_dwell: float
    speed: float = 7.0
    stop_every: float = 450.0
    stop_dwell: float = 18.0
    layover: float = 150.0

    def stops(self, line: int) -> list[Stop]:
        """The stops of a line in order; its first and last are its ends."""
        way = self.lines[line]
        stops = [Stop(*way[0], self.layover)]
        for (x0, y0), (x1, y1) in pairwise(way):
            parts = max(1, round(hypot(x1 - x0, y1 - y0) / self.stop_every))
            for k in range(1, parts + 1):
                f = k / parts
                stops.append(Stop(x0 + (x1 - x0) * f, y0 + (y1 - y0) * f, self.stop_dwell))
            if (x1, y1) in self.hubs:
                stops[-1] = Stop(x1, y1, self.hub_dwell)
        stops[-1] = Stop(stops[-1].x, stops[-1].y, self.layover)
        return stops


SHORT: Final = (2600.0, 3400.0)
MEDIUM: Final = (5000.0, 6000.0)
LONG: Final = (9500.0, 10500.0)


def _arm(angle: float, length: float, bend: float, hub: Place) -> tuple[Place, Place]:
    """A way outwards from a hub, with one bend; its end last."""
    middle = length * 0.45
    x, y = hub[0] + middle * cos(angle), hub[1] + middle * sin(angle)
    return (x, y), (x + (length - middle) * cos(angle + bend), y + (length - middle) * sin(angle + bend))


def _star() -> Town:
    """One hub; ten lines across it, town lines and country lines in turn."""
    random = named_generator(1, "city-bus", "star")
    hub = (0.0, 0.0)
    ways = []
    for k, lengths in enumerate((SHORT, LONG, SHORT, LONG, SHORT, LONG, SHORT, LONG, SHORT, MEDIUM)):
        angles = [(k + side * 10 + 0.3 * random.random()) * pi / 10 for side in (0, 1)]
        out, back = (
            _arm(angle, length, random.uniform(-0.5, 0.5), hub)
            for angle, length in zip(angles, lengths, strict=True)
        )
        ways.append((*reversed(out), hub, *back))
    return Town((hub,), tuple(ways), hub_dwell=120.0)


def _two_hubs() -> Town:
    """A station and a market place: town lines cross one of them, country lines both."""
    random = named_generator(2, "city-bus", "two hubs")
    west, east = (-600.0, 0.0), (600.0, 0.0)
    town = (2300.0, 3000.0)
    ways = []
    for k, lengths in enumerate((town, LONG, town, LONG, town, LONG, town, LONG, town, MEDIUM)):
        angle = pi / 2 + pi * (k + 0.3 * random.random()) / 10
        bends = random.uniform(-0.5, 0.5), random.uniform(-0.5, 0.5)
        if k % 2:
            out, back = _arm(angle, lengths[0], bends[0], west), _arm(pi - angle, lengths[1], bends[1], east)
            ways.append((*reversed(out), west, east, *back))
        else:
            hub = east if k % 4 else west
            out, back = _arm(angle, lengths[0], bends[0], hub), _arm(angle - pi, lengths[1], bends[1], hub)
            ways.append((*reversed(out), hub, *back))
    return Town((west, east), tuple(ways), hub_dwell=140.0)


def _grid() -> Town:
    """Four streets across four with a line on each, which go on beyond by uneven lengths; no hub."""
    beyond = (700.0, 3600.0, 300.0, 1800.0, 2600.0, 500.0, 4200.0, 1000.0)
    streets = (0.0, 600.0, 1200.0, 1800.0)
    ways: list[tuple[Place, ...]] = []
    for k, at in enumerate(streets):
        low, high = -beyond[2 * k], streets[-1] + beyond[2 * k + 1]
        ways.append(((at, low), *((at, crossing) for crossing in streets), (at, high)))
    for k, at in enumerate(streets):
        low, high = -beyond[7 - 2 * k], streets[-1] + beyond[6 - 2 * k]
        ways.append(((low, at), *((crossing, at) for crossing in streets), (high, at)))
    return Town(tuple((x, y) for x in streets for y in streets), tuple(ways), hub_dwell=120.0)


LAYOUTS: Final[dict[str, Town]] = {"a": _star(), "b": _two_hubs(), "c": _grid()}


@dataclass(frozen=True)
class Duty:
    """One bus's day: its line, its place in the line's timetable, from when and until when it is needed."""

    line: int
    slot: int
    begins: Instant
    ends: Instant


def city_bus(seed: int, layout: str = "a", buses: int = 60) -> Mobility:
    """A day of buses, from 05:30 (instant 0) to 19:45. Nodes are called L01-1: line and number in the line."""
    if layout not in LAYOUTS:
        raise BadInput(f"no layout {layout!r} of city-bus (there are: {', '.join(LAYOUTS)})")
    if buses < 1:
        raise BadInput("city-bus: there must be a bus")
    town = LAYOUTS[layout]
    rows: list[Row] = []
    names: list[str] = []
    duties = _duties(len(town.lines), buses, named_generator(seed, "city-bus", layout, "duties"))
    slots = Counter(duty.line for duty in duties)
    for node, duty in enumerate(duties):
        names.append(f"L{duty.line + 1:02d}-{duty.slot + 1}")
        rows += _day(town, duty, slots[duty.line], node, named_generator(seed, "city-bus", layout, "bus", node))
    return sorted_mobility(names, rows)


def _duties(lines: int, buses: int, random: Random) -> list[Duty]:
    """Who drives when: of sixty buses 46 all day, 10 for half of it, 4 (school buses) for a trip or two."""
    school, part = round(buses * 4 / 60), round(buses * 10 / 60)
    wanted: list[tuple[Instant, Instant]] = []
    for _ in range(buses - school - part):
        wanted.append((random.randrange(20 * MINUTE), CLOSES - random.randrange(10 * MINUTE, 115 * MINUTE)))
    for _ in range(part):
        begins = random.randrange(2 * HOUR, 8 * HOUR)
        wanted.append((begins, begins + random.randrange(6 * HOUR, 8 * HOUR)))
    for k in range(school):
        begins = (10 * HOUR if k % 4 else 90 * MINUTE) + random.randrange(90 * MINUTE)
        wanted.append((begins, begins + random.randrange(MINUTE, 60 * MINUTE)))
    return [Duty(k % lines, k // lines, *hours) for k, hours in enumerate(wanted)]


def _half_round(town: Town, line: int) -> float:
    """Seconds from one end to the other and until the bus leaves again, by the timetable."""
    stops = town.stops(line)
    ways = sum(hypot(q.x - p.x, q.y - p.y) for p, q in pairwise(stops))
    return 1.03 * ways / town.speed + sum(stop.dwell for stop in stops[1:])


def _day(town: Town, duty: Duty, slots: int, node: int, random: Random) -> Iterator[Row]:
    """Trips to and fro, as the timetable has them, while the bus is needed; its day ends at an end of its line.

    The buses of a line leave its ends at equal distances in time, whoever happens to be on the road.
    """
    half = round(_half_round(town, duty.line) * SECOND)
    due = round(duty.slot * 2 * half / slots) % half
    trips = -(-(duty.begins - due) // half)
    due += trips * half
    stops = town.stops(duty.line)
    if (trips + (duty.slot * 2 >= slots)) % 2:
        stops.reverse()
    at = due
    while True:
        for here, ahead in pairwise(stops):
            pace = town.speed * random.uniform(0.8, 1.2) * (0.9 if _is_rush(at) else 1.0)
            arrive = at + max(1, round(hypot(ahead.x - here.x, ahead.y - here.y) / pace * SECOND))
            yield node, at, here.x, here.y, arrive, ahead.x, ahead.y
            at = arrive
            if ahead is not stops[-1]:
                leave = at + max(1, round(ahead.dwell * random.uniform(0.6, 1.4) * SECOND))
                yield node, at, ahead.x, ahead.y, leave, ahead.x, ahead.y
                at = leave
        due += half
        if at >= duty.ends or due + half > CLOSES:
            return
        leave = max(due, at + 30 * SECOND)
        yield node, at, stops[-1].x, stops[-1].y, leave, stops[-1].x, stops[-1].y
        at = leave
        stops.reverse()


def _is_rush(at: Instant) -> bool:
    """Half past seven to nine, and half past four to half past six."""
    return 2 * HOUR <= at < 3.5 * HOUR or 11 * HOUR <= at < 13 * HOUR
