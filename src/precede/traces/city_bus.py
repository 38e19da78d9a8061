"""Generates a working day of buses in a town: the scenario of guidec2021, section VI-A, Table I.

Lines run from one side of the town to the other and back, by a timetable. Most lines stop for a while at a hub,
where the buses of all lines meet; between hubs a bus meets buses of its own line that come the other way. Most
buses run all day, some for half of it, a few (school buses) for a trip or two. The paper uses Vannes, with
routes from OpenStreetMap and real timetables; we use made-up towns with the published figures, because its data
are not published. A layout is a fixed town, of which three were fitted by hand and the others drawn; the seed
determines the day.
"""

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
"""The instant of 19:45, before which the last bus stops. Instants count from 05:30."""
Place = tuple[float, float]
Row = tuple[int, Instant, float, float, Instant, float, float]


@dataclass(frozen=True)
class Stop:
    """A stop of a line; `dwell` is about how long a bus stays, in seconds."""

    x: float
    y: float
    dwell: float


@dataclass(frozen=True)
class Town:
    """Hubs, and lines as paths from one end over hubs to the other end. Speeds in m/s, dwells in seconds."""

    hubs: tuple[Place, ...]
    lines: tuple[tuple[Place, ...], ...]
    hub_dwell: float
    speed: float = 7.0
    stop_every: float = 450.0
    stop_dwell: float = 18.0
    layover: float = 150.0

    def stops(self, line: int) -> list[Stop]:
        """Return the stops of a line in order; the first and the last are its ends."""
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
    """Return a path from a hub outwards as two points: its bend and its end."""
    middle = length * 0.45
    x, y = hub[0] + middle * cos(angle), hub[1] + middle * sin(angle)
    return (x, y), (x + (length - middle) * cos(angle + bend), y + (length - middle) * sin(angle + bend))


def _star() -> Town:
    """Return a town with one hub and ten lines across it; town lines and country lines alternate."""
    generator = named_generator(1, "city-bus", "star")
    hub = (0.0, 0.0)
    ways = []
    for k, lengths in enumerate((SHORT, LONG, SHORT, LONG, SHORT, LONG, SHORT, LONG, SHORT, MEDIUM)):
        angles = [(k + side * 10 + 0.3 * generator.random()) * pi / 10 for side in (0, 1)]
        out, back = (
            _arm(angle, length, generator.uniform(-0.5, 0.5), hub)
            for angle, length in zip(angles, lengths, strict=True)
        )
        ways.append((*reversed(out), hub, *back))
    return Town((hub,), tuple(ways), hub_dwell=120.0)


def _two_hubs() -> Town:
    """Return a town with two hubs: town lines cross one of them, country lines both."""
    generator = named_generator(2, "city-bus", "two hubs")
    west, east = (-600.0, 0.0), (600.0, 0.0)
    town = (2300.0, 3000.0)
    ways = []
    for k, lengths in enumerate((town, LONG, town, LONG, town, LONG, town, LONG, town, MEDIUM)):
        angle = pi / 2 + pi * (k + 0.3 * generator.random()) / 10
        bends = generator.uniform(-0.5, 0.5), generator.uniform(-0.5, 0.5)
        if k % 2:
            out, back = _arm(angle, lengths[0], bends[0], west), _arm(pi - angle, lengths[1], bends[1], east)
            ways.append((*reversed(out), west, east, *back))
        else:
            hub = east if k % 4 else west
            out, back = _arm(angle, lengths[0], bends[0], hub), _arm(angle - pi, lengths[1], bends[1], hub)
            ways.append((*reversed(out), hub, *back))
    return Town((west, east), tuple(ways), hub_dwell=140.0)


def _grid() -> Town:
    """Return a town of four streets across four, each with a line that continues beyond it; no hub."""
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


def _drawn(draw: int) -> Town:
    """Draw a town: one to three hubs, eight to twelve lines of any length over one or all of them.

    A line over all hubs passes them in one order; arms bend halfway, as in the towns that were fitted by hand.
    """
    generator = named_generator(draw, "city-bus", "drawn")
    apart = generator.uniform(400.0, 1200.0)
    places: tuple[Place, ...] = ((0.0, 0.0), (apart, 0.0), (apart / 2, apart))
    hubs = places[: generator.randrange(1, 4)]
    longest = generator.uniform(6000.0, 12000.0)
    ways = []
    for _ in range(generator.randrange(8, 13)):
        passed = hubs if generator.random() < 0.5 else (generator.choice(hubs),)
        angle, opposite = generator.uniform(0, 2 * pi), pi + generator.uniform(-0.8, 0.8)
        lengths = [generator.choice((generator.uniform(2000.0, 4000.0), longest)) for _ in range(2)]
        out = _arm(angle, lengths[0], generator.uniform(-0.5, 0.5), passed[0])
        back = _arm(angle + opposite, lengths[1], generator.uniform(-0.5, 0.5), passed[-1])
        ways.append((*reversed(out), *passed, *back))
    return Town(hubs, tuple(ways), generator.uniform(100.0, 160.0), speed=generator.uniform(6.0, 8.0))


DRAWS: Final = {"d": 9, "e": 15, "f": 48, "g": 61, "h": 72, "i": 91}
"""The first draws whose first day has the figures of Table I, by the test that the fitted towns pass.

No result of a broadcast was looked at."""

LAYOUTS: Final[dict[str, Town]] = {
    "a": _star(),
    "b": _two_hubs(),
    "c": _grid(),
    **{name: _drawn(draw) for name, draw in DRAWS.items()},
}


@dataclass(frozen=True)
class Duty:
    """The day of one bus: its line, its slot in the line's timetable, and when it starts and stops working."""

    line: int
    slot: int
    begins: Instant
    ends: Instant


def city_bus(seed: int, layout: str = "a", buses: int = 60) -> Mobility:
    """Generate a day of buses from 05:30 (instant 0) to 19:45. Node L01-2 is the second bus of line 1."""
    if layout not in LAYOUTS:
        raise BadInput(f"city-bus: layout {layout!r} is none of {', '.join(LAYOUTS)}")
    if buses < 1:
        raise BadInput(f"city-bus: expected at least one bus, got {buses}")
    town = LAYOUTS[layout]
    rows: list[Row] = []
    names: list[str] = []
    duties = _duties(len(town.lines), buses, named_generator(seed, "city-bus", layout, "duties"))
    slots = Counter(duty.line for duty in duties)
    for node, duty in enumerate(duties):
        names.append(f"L{duty.line + 1:02d}-{duty.slot + 1}")
        rows += _day(town, duty, slots[duty.line], node, named_generator(seed, "city-bus", layout, "bus", node))
    return sorted_mobility(names, rows)


def _duties(lines: int, buses: int, generator: Random) -> list[Duty]:
    """Return the duties of all buses: of sixty, 46 run all day, 10 for half of it, 4 for a trip or two."""
    school, part = round(buses * 4 / 60), round(buses * 10 / 60)
    hours: list[tuple[Instant, Instant]] = []
    for _ in range(buses - school - part):
        hours.append(
            (generator.randrange(20 * MINUTE), CLOSES - generator.randrange(10 * MINUTE, 115 * MINUTE))
        )
    for _ in range(part):
        begins = generator.randrange(2 * HOUR, 8 * HOUR)
        hours.append((begins, begins + generator.randrange(6 * HOUR, 8 * HOUR)))
    for k in range(school):
        begins = (10 * HOUR if k % 4 else 90 * MINUTE) + generator.randrange(90 * MINUTE)
        hours.append((begins, begins + generator.randrange(MINUTE, 60 * MINUTE)))
    return [Duty(k % lines, k // lines, begins, ends) for k, (begins, ends) in enumerate(hours)]


def _half_round(town: Town, line: int) -> float:
    """Return the seconds by the timetable from leaving one end of a line to leaving the other."""
    stops = town.stops(line)
    ways = sum(hypot(q.x - p.x, q.y - p.y) for p, q in pairwise(stops))
    return 1.03 * ways / town.speed + sum(stop.dwell for stop in stops[1:])


def _day(town: Town, duty: Duty, slots: int, node: int, generator: Random) -> Iterator[Row]:
    """Yield the segments of one bus: trips back and forth by the timetable, until its duty is over.

    Slots leave the ends of a line at equal intervals, even if some buses are not on duty.
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
            pace = town.speed * generator.uniform(0.8, 1.2) * (0.9 if _is_rush(at) else 1.0)
            arrive = at + max(1, round(hypot(ahead.x - here.x, ahead.y - here.y) / pace * SECOND))
            yield node, at, here.x, here.y, arrive, ahead.x, ahead.y
            at = arrive
            if ahead is not stops[-1]:
                leave = at + max(1, round(ahead.dwell * generator.uniform(0.6, 1.4) * SECOND))
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
    """Is it rush hour: half past seven to nine, or half past four to half past six?"""
    return 2 * HOUR <= at < 3.5 * HOUR or 11 * HOUR <= at < 13 * HOUR
