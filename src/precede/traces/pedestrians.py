"""Generates pedestrians in a district of streets: the Östermalm scenario of guidec2021, section VI-B, Table IV.

People enter by a Poisson process at each entrance and walk from corner to corner, each at its own speed (normal
around 1.3 m/s, cut at 0.6 and 2.0), until they leave at an entrance. The paper uses a map of streets; we use
grids with the published figures, because the map is not published.

The paper gives an entry rate of 0.01 nodes/s and 2092 nodes in five hours: that is 0.0097 at each of twelve
entrances, our default. Its mean stay of 5'25" and its 10,557 broadcasts (one after 20 s, then one a minute)
contradict each other by a tenth; our values lie between them.
"""

from dataclasses import dataclass
from itertools import accumulate
from random import Random
from typing import Final

from precede.core.errors import BadInput
from precede.core.instants import HOUR, SECOND, Duration, Instant
from precede.core.randomness import named_generator
from precede.traces.mobility import Mobility, sorted_mobility

RANGE_M: Final = 50.0
Corner = tuple[int, int]


@dataclass(frozen=True)
class District:
    """Streets at these x and y. Each has an entrance at both ends, `stub` metres beyond the outer corners.

    At a corner people go straight on with probability `straight`, else left or right with equal probability;
    they never turn back. With probability `pause` they wait at a corner, for `pause_s` seconds on average.
    """

    xs: tuple[float, ...]
    ys: tuple[float, ...]
    stub: float
    straight: float
    pause: float
    pause_s: float

    def entrances(self) -> list[tuple[Corner, Corner]]:
        """Return, for every end of a street, the entrance outside the grid and the first corner."""
        right, top = len(self.xs), len(self.ys)
        across = [[((i, -1), (i, 0)), ((i, top), (i, top - 1))] for i in range(right)]
        along = [[((-1, j), (0, j)), ((right, j), (right - 1, j))] for j in range(top)]
        return [entrance for street in across + along for entrance in street]

    def place(self, corner: Corner) -> tuple[float, float]:
        return self._along(self.xs, corner[0]), self._along(self.ys, corner[1])

    def inside(self, corner: Corner) -> bool:
        return 0 <= corner[0] < len(self.xs) and 0 <= corner[1] < len(self.ys)

    def _along(self, streets: tuple[float, ...], k: int) -> float:
        if k < 0:
            return streets[0] - self.stub
        return streets[-1] + self.stub if k >= len(streets) else streets[k]


def _drawn(draw: int) -> District:
    """Draw a district of twelve entrances: three streets across three, or four across two."""
    generator = named_generator(draw, "pedestrians", "drawn")

    def streets(number: int) -> tuple[float, ...]:
        gaps = [generator.uniform(100.0, 240.0) for _ in range(number - 1)]
        return tuple(accumulate(gaps, initial=0.0))

    across = generator.choice((3, 4))
    return District(
        streets(across),
        streets(6 - across),
        stub=generator.uniform(4.0, 20.0),
        straight=generator.uniform(0.35, 0.6),
        pause=generator.uniform(0.02, 0.1),
        pause_s=generator.uniform(30.0, 90.0),
    )


DRAWS: Final = {"d": 9, "e": 21, "f": 42, "g": 48, "h": 69}
"""The first draws whose first day has the figures of Table IV, by the test that the fitted districts pass.

No result of a broadcast was looked at."""

LAYOUTS: Final[dict[str, District]] = {
    "a": District((0.0, 165.0, 330.0), (0.0, 165.0, 330.0), 8.0, 0.5, 0.05, 60.0),
    "b": District((0.0, 120.0, 330.0), (0.0, 200.0, 340.0), 8.0, 0.5, 0.05, 60.0),
    "c": District((0.0, 190.0, 380.0, 570.0), (0.0, 200.0), 8.0, 0.45, 0.08, 60.0),
    **{name: _drawn(draw) for name, draw in DRAWS.items()},
}


def pedestrians(seed: int, layout: str = "a", duration: Duration = 5 * HOUR, rate: float = 0.0097) -> Mobility:
    """Generate people N1, N2, … who enter within `duration`, at `rate` per second and entrance."""
    if layout not in LAYOUTS:
        raise BadInput(f"pedestrians: layout {layout!r} is none of {', '.join(LAYOUTS)}")
    if rate <= 0 or duration <= 0:
        raise BadInput("pedestrians: the rate and the duration must be positive")
    district = LAYOUTS[layout]
    arrivals: list[tuple[Instant, int]] = []
    for number in range(len(district.entrances())):
        generator = named_generator(seed, "pedestrians", layout, "entrance", number)
        at = generator.expovariate(rate)
        while at * SECOND < duration:
            arrivals.append((round(at * SECOND), number))
            at += generator.expovariate(rate)
    arrivals.sort()
    rows: list[tuple[int, Instant, float, float, Instant, float, float]] = []
    for node, (at_us, entrance) in enumerate(arrivals):
        walker = named_generator(seed, "pedestrians", layout, "walker", node)
        rows += _walk(district, walker, node, at_us, entrance, duration)
    return sorted_mobility([f"N{k + 1}" for k in range(len(arrivals))], rows)


def _walk(
    district: District, generator: Random, node: int, at: Instant, entrance: int, until: Instant
) -> list[tuple[int, Instant, float, float, Instant, float, float]]:
    """Return the segments of one person's path, cut at `until`."""
    speed = 0.0
    while not 0.6 <= speed <= 2.0:
        speed = generator.gauss(1.3, 0.3)
    here, ahead = district.entrances()[entrance]
    rows = []
    while at < until:
        (x0, y0), (x1, y1) = district.place(here), district.place(ahead)
        arrive = at + max(1, round((abs(x1 - x0) + abs(y1 - y0)) / speed * SECOND))
        end = min(arrive, until)
        part = (end - at) / (arrive - at)
        rows.append((node, at, x0, y0, end, x0 + (x1 - x0) * part, y0 + (y1 - y0) * part))
        at = arrive
        if not district.inside(ahead) or at >= until:
            break
        if generator.random() < district.pause:
            arrive = at + max(1, round(generator.expovariate(1 / district.pause_s) * SECOND))
            rows.append((node, at, x1, y1, min(arrive, until), x1, y1))
            at = arrive
        dx, dy = ahead[0] - here[0], ahead[1] - here[1]
        draw = generator.random()
        if draw >= district.straight:
            dx, dy = (-dy, dx) if draw < (1 + district.straight) / 2 else (dy, -dx)
        here, ahead = ahead, (ahead[0] + dx, ahead[1] + dy)
    return rows
