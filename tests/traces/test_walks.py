"""Generated walks have the properties that are known of their models, and one seed is one world."""

from __future__ import annotations

from itertools import pairwise
from math import cos, hypot, sin
from pathlib import Path
from random import Random
from statistics import correlation, mean

import networkx
import numpy as np
import pytest

from precede.core.errors import BadInput
from precede.core.instants import HOUR, SECOND
from precede.traces.mobility import Mobility
from precede.traces.streets import (
    Streets,
    _office,
    read_streets,
    street_grid,
    street_waypoint,
    streets_of,
    working_day,
)
from precede.traces.walks import Walkers, _mirrored, gauss_markov, random_walk, random_waypoint

SIDE = 1000.0
GRID = street_grid(6, 4, (1200.0, 800.0))
CROWD = Walkers(nodes=40, duration=10 * HOUR, field=(SIDE, SIDE), speed=(1.0, 2.0), pause=(10.0, 60.0))
MODELS = {
    "random-waypoint": random_waypoint,
    "random-walk": random_walk,
    "gauss-markov": gauss_markov,
    "street-waypoint": lambda seed, walkers: street_waypoint(seed, walkers, GRID),
    "working-day": lambda seed, walkers: working_day(seed, walkers, GRID),
}


def lengths(mobility: Mobility) -> np.ndarray:
    s = mobility.segments
    return np.hypot(s.x1 - s.x0, s.y1 - s.y0)


def seconds(mobility: Mobility) -> np.ndarray:
    return (mobility.segments.t1_us - mobility.segments.t0_us) / SECOND


def places_at(mobility: Mobility, at: int) -> np.ndarray:
    """The place of every node at an instant."""
    s = mobility.segments
    now = (s.t0_us <= at) & (at < s.t1_us)
    part = (at - s.t0_us[now]) / (s.t1_us[now] - s.t0_us[now])
    return np.stack((s.x0[now] + (s.x1 - s.x0)[now] * part, s.y0[now] + (s.y1 - s.y0)[now] * part), axis=1)


@pytest.mark.parametrize("model", MODELS)
def test_one_seed_is_one_world_and_paths_are_whole(model: str) -> None:
    walkers = Walkers(nodes=5, duration=30 * HOUR, field=(1200.0, 800.0))
    first, again = (MODELS[model](3, walkers).segments for _ in range(2))
    assert all((one == two).all() for one, two in zip(first, again, strict=True))
    other = MODELS[model](4, walkers).segments
    assert len(other.x1) != len(first.x1) or (other.x1 != first.x1).any()
    more = MODELS[model](3, Walkers(nodes=7, duration=30 * HOUR, field=(1200.0, 800.0))).segments
    kept = more.node < 5
    assert all((one == two[kept]).all() for one, two in zip(first, more, strict=True))
    for node in range(5):
        of_node = first.node == node
        t0, t1, x0, x1 = (column[of_node] for column in (first.t0_us, first.t1_us, first.x0, first.x1))
        assert (t0[0], t1[-1]) == (0, 30 * HOUR)
        assert (t0[1:] == t1[:-1]).all()
        assert x0[1:] == pytest.approx(x1[:-1])
    room = 15.0 if model == "working-day" else 1e-6
    for xs, most in ((first.x1, 1200.0), (first.y1, 800.0)):
        assert xs.min() >= -room
        assert xs.max() <= most + room


def test_legs_of_random_waypoints_have_the_mean_distance_of_two_points_in_a_square() -> None:
    walk = random_waypoint(1, CROWD)
    moving = lengths(walk) > 0
    whole = walk.segments.t1_us < CROWD.duration
    assert mean(lengths(walk)[moving & whole]) == pytest.approx(0.5214 * SIDE, rel=0.03)
    speeds = (lengths(walk) / seconds(walk))[moving]
    assert speeds.min() >= 0.999
    assert speeds.max() <= 2.001
    pauses = seconds(walk)[~moving & whole]
    assert pauses.min() >= 10
    assert pauses.max() <= 60


def test_random_waypoints_crowd_in_the_middle_and_random_walks_do_not() -> None:
    inner = {}
    for name in ("random-waypoint", "random-walk"):
        walk = MODELS[name](2, Walkers(nodes=60, duration=10 * HOUR, field=(SIDE, SIDE), pause=(0.0, 1.0)))
        places = np.concatenate([places_at(walk, at) for at in range(HOUR, 10 * HOUR, HOUR // 4)])
        inner[name] = float((np.abs(places - SIDE / 2) < SIDE / 4).all(axis=1).mean())
    assert inner["random-waypoint"] > 0.35, "a quarter of the field has over a third of the nodes"
    assert inner["random-walk"] == pytest.approx(0.25, abs=0.04)


def test_speed_of_gauss_markov_remembers_by_alpha() -> None:
    wide = Walkers(nodes=20, duration=2 * HOUR, field=(1e6, 1e6), speed=(1.0, 2.0))
    for alpha in (0.2, 0.9):
        walk = gauss_markov(7, wide, alpha=alpha)
        speed, node = lengths(walk) / seconds(walk), walk.segments.node
        pairs = [(a, b) for (a, n), (b, m) in pairwise(zip(speed, node, strict=True)) if n == m]
        assert correlation(*zip(*pairs, strict=True)) == pytest.approx(alpha, abs=0.06)
        assert speed.mean() == pytest.approx(1.5, abs=0.05)


def test_trips_on_streets_stay_on_streets_and_are_shortest() -> None:
    walk = street_waypoint(5, Walkers(nodes=3, duration=6 * HOUR, pause=(1.0, 9.0)), GRID)
    s = walk.segments
    on_grid = (np.isclose(s.x0, s.x1) & np.isclose(s.x0 % 200, 0)) | (
        np.isclose(s.y0, s.y1) & np.isclose(s.y0 % 200, 0)
    )
    assert on_grid.all()
    graph = networkx.Graph()
    for corner, others in enumerate(GRID.ways):
        graph.add_weighted_edges_from((corner, other, length) for other, length in others.items())
    for goal in range(0, len(GRID.corners), 3):
        expected = networkx.shortest_path_length(graph, 0, goal, weight="weight")
        assert GRID.length(GRID.path(0, goal)) == pytest.approx(expected)


def test_people_are_at_home_at_night_and_with_colleagues_by_day() -> None:
    walk = working_day(11, Walkers(nodes=30, duration=72 * HOUR), GRID, offices=3)
    nights = [places_at(walk, day * 24 * HOUR + 4 * HOUR) for day in range(3)]
    assert np.allclose(nights[0], nights[1])
    assert np.allclose(nights[1], nights[2])
    days = [places_at(walk, day * 24 * HOUR + 12 * HOUR) for day in range(3)]
    assert all(len({(round(x / 100), round(y / 100)) for x, y in places}) <= 12 for places in days)
    contacts = walk.contacts(20.0)
    hour = contacts.start_us // HOUR % 24
    assert ((hour >= 9) & (hour < 17)).sum() > 5 * (hour < 6).sum()


def test_streets_are_read_from_a_file_and_joined_at_corners(tmp_path: Path) -> None:
    path = tmp_path / "streets.csv"
    path.write_text("x0,y0,x1,y1\n0,0,100,0\n100,0,100,50\n900,900,950,900\n")
    streets = read_streets(path)
    assert streets.corners == ((0.0, 0.0), (100.0, 0.0), (100.0, 50.0)), "the largest connected part"
    assert streets.length(streets.path(0, 2)) == 150
    path.write_text("0,0,100,0\n0,0,x,1\n")
    with pytest.raises(BadInput, match=r"streets\.csv:2: coordinate is not a number"):
        read_streets(path)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: random_waypoint(1, Walkers(nodes=0, duration=HOUR)),
        lambda: random_waypoint(1, Walkers(nodes=1, duration=HOUR, speed=(0.0, 1.0))),
        lambda: random_walk(1, Walkers(nodes=1, duration=HOUR), leg=0),
        lambda: gauss_markov(1, Walkers(nodes=1, duration=HOUR), alpha=2),
        lambda: gauss_markov(1, Walkers(nodes=100_000, duration=1000 * HOUR)),
        lambda: street_grid(0, 1, (1.0, 1.0)),
        lambda: streets_of([((0.0, 0.0), (0.0, 0.0))]),
        lambda: working_day(1, Walkers(nodes=1, duration=HOUR), GRID, offices=0),
    ],
)
def test_values_that_make_no_sense_are_refused(wrong: object) -> None:
    with pytest.raises(BadInput):
        wrong()  # type: ignore[operator]


def test_a_reflected_walk_keeps_its_speed() -> None:
    walk = random_walk(6, Walkers(nodes=4, duration=HOUR, field=(30.0, 20.0), speed=(1.0, 1.0)))
    assert hypot(30, 20) > lengths(walk).max()
    assert lengths(walk).sum() == pytest.approx(4 * 3600, rel=1e-4)
    assert isinstance(GRID, Streets)


@pytest.mark.parametrize("angle", [0.3, 2.0, -1.0])
def test_a_walker_that_meets_a_wall_turns_back_from_it_and_goes_on_along_it(angle: float) -> None:
    for axis, (away, along) in enumerate([(cos, sin), (sin, cos)]):
        assert away(_mirrored(angle, axis)) == pytest.approx(-away(angle))
        assert along(_mirrored(angle, axis)) == pytest.approx(along(angle))


def test_a_day_in_the_office_is_walked_at_the_walkers_speed_and_ends_at_the_desk() -> None:
    desk, middle = (10.0, 5.0), (0.0, 0.0)
    legs = list(_office(Random(3), 0, 8 * HOUR, desk, middle, 1.25))
    assert all(one[3:] == other[:3] for one, other in pairwise(legs)), "no jumps"
    walks = [leg for leg in legs if leg[1:3] != leg[4:]]
    assert len(walks) > 4
    for start, x, y, end, u, v in walks:
        assert hypot(u - x, v - y) / ((end - start) / SECOND) == pytest.approx(1.25, rel=1e-3)
    assert legs[-1][4:] == desk
