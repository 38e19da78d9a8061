"""The generated scenarios have the figures of Tables I and IV of guidec2021, and depend on the seed only."""

from __future__ import annotations

import os
import sys
from hashlib import sha256
from subprocess import run

import numpy as np
import pytest

from precede.core.errors import BadInput
from precede.core.instants import HOUR, MINUTE
from precede.traces import city_bus, pedestrians
from precede.traces.mobility import Mobility, mobility_of, statistics


def digest(mobility: Mobility) -> str:
    return sha256(b"".join(np.ascontiguousarray(column).tobytes() for column in mobility.segments)).hexdigest()


@pytest.mark.parametrize("layout", city_bus.LAYOUTS)
def test_buses_have_the_figures_of_table_one(layout: str):
    figures = statistics(city_bus.city_bus(1, layout).contacts(city_bus.RANGE_M))
    assert figures.nodes == 60
    assert 54 <= figures.most_at_once <= 58
    assert 13.5 * 3600 < figures.duration_s <= 14.25 * 3600
    assert figures.contacts == pytest.approx(8892, rel=0.06)
    assert figures.contact.mean == pytest.approx(84, rel=0.06)
    assert figures.contact.deviation == pytest.approx(65, rel=0.3)
    assert figures.activity.mean == pytest.approx((10 * 60 + 58) * 60, rel=0.04)
    assert figures.activity.deviation == pytest.approx((3 * 60 + 26) * 60, rel=0.12)
    assert figures.activity.most == pytest.approx((14 * 60 + 8) * 60, rel=0.04)
    assert 15 * 60 < figures.activity.least < 60 * 60


@pytest.mark.parametrize("layout", pedestrians.LAYOUTS)
def test_pedestrians_have_the_figures_of_table_four(layout: str):
    figures = statistics(pedestrians.pedestrians(1, layout).contacts(pedestrians.RANGE_M))
    assert figures.nodes == pytest.approx(2092, rel=0.05)
    assert figures.most_at_once == pytest.approx(57, rel=0.12)
    assert figures.duration_s == pytest.approx(5 * 3600, rel=0.01)
    assert figures.contacts == pytest.approx(14807, rel=0.12)
    assert figures.contact.mean == pytest.approx(45, rel=0.07)
    assert figures.activity.mean == pytest.approx(5 * 60 + 25, rel=0.14)
    assert figures.activity.deviation == pytest.approx(4 * 60 + 9, rel=0.06)


def test_a_seed_gives_the_same_trace_for_every_hash_seed():
    text = (
        "from hashlib import sha256; import numpy as np; from precede.traces.city_bus import city_bus;"
        "from precede.traces.pedestrians import pedestrians;"
        "print(*(sha256(b''.join(np.ascontiguousarray(c).tobytes() for c in m.segments)).hexdigest()"
        " for m in (city_bus(7), pedestrians(7, duration=3600000000))))"
    )
    here = f"{digest(city_bus.city_bus(7))} {digest(pedestrians.pedestrians(7, duration=HOUR))}"
    for hash_seed in ("0", "77"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        there = run([sys.executable, "-c", text], env=environment, capture_output=True, text=True, check=True)
        assert there.stdout.strip() == here
    assert digest(city_bus.city_bus(8)) != digest(city_bus.city_bus(7))


def test_no_node_jumps_or_is_too_fast():
    for mobility, most in ((city_bus.city_bus(3), 9.0), (pedestrians.pedestrians(3, duration=HOUR), 2.01)):
        s = mobility.segments
        assert (s.t1_us > s.t0_us).all()
        speed = np.hypot(s.x1 - s.x0, s.y1 - s.y0) / ((s.t1_us - s.t0_us) / 1e6)
        assert speed.max() < most
        joins = (s.node[1:] == s.node[:-1]) & (s.t0_us[1:] == s.t1_us[:-1])
        assert (np.hypot(s.x0[1:] - s.x1[:-1], s.y0[1:] - s.y1[:-1])[joins] < 1e-9).all()
        presence = mobility.presence()
        assert presence.node.tolist() == sorted(set(presence.node.tolist())), (
            "everybody is there once, without a gap"
        )


def test_pedestrians_scale_with_time_and_are_cut_at_the_end():
    hour = pedestrians.pedestrians(1, duration=HOUR)
    assert hour.segments.t1_us.max() <= HOUR
    assert len(hour.names) == pytest.approx(2092 / 5, rel=0.15)
    assert hour.names[:2] == ("N1", "N2")


@pytest.mark.parametrize(
    "make",
    [
        lambda: city_bus.city_bus(1, "zz"),
        lambda: city_bus.city_bus(1, buses=0),
        lambda: pedestrians.pedestrians(1, "zz"),
        lambda: pedestrians.pedestrians(1, duration=0),
        lambda: pedestrians.pedestrians(1, rate=0.0),
    ],
)
def test_impossible_parameters_are_bad_input(make):
    with pytest.raises(BadInput):
        make()


def test_overlapping_segments_of_a_node_are_bad_input():
    rows = [("b", 0, 0.0, 0.0, 10, 1.0, 0.0), ("a", 5, 0.0, 0.0, 6, 0.0, 0.0), ("b", 9, 0.0, 0.0, 12, 1.0, 0.0)]
    with pytest.raises(BadInput, match="node b is in two places"):
        mobility_of(rows)
    apart = mobility_of(
        [rows[0], ("b", 10, 1.0, 0.0, MINUTE, 2.0, 0.0), ("b", HOUR, 0.0, 0.0, 2 * HOUR, 0.0, 0.0)]
    )
    presence = apart.presence()
    assert (presence.enter_us.tolist(), presence.leave_us.tolist()) == ([0, HOUR], [MINUTE, 2 * HOUR])


def test_the_lines_of_the_grid_continue_beyond_the_town_by_these_lengths():
    ways = city_bus.LAYOUTS["c"].lines
    assert [(way[0][1], way[-1][1]) for way in ways[:4]] == [
        (-700.0, 5400.0),
        (-300.0, 3600.0),
        (-2600.0, 2300.0),
        (-4200.0, 2800.0),
    ]
    assert [(way[0][0], way[-1][0]) for way in ways[4:]] == [
        (-1000.0, 6000.0),
        (-500.0, 4400.0),
        (-1800.0, 2100.0),
        (-3600.0, 2500.0),
    ]
