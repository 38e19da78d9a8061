"""Which station a host belongs to: the nearest in range, kept until another is nearer by the hysteresis."""

from __future__ import annotations

import numpy as np
import pytest

from precede.core.instants import SECOND
from precede.traces.cells import OUTSIDE, Positions, _in_hexagon, associate


@pytest.mark.parametrize(
    ("hysteresis", "cells"),
    [
        (60.0, [0, 0, 1, 1, OUTSIDE]),
        (50.0, [0, 0, 1, 1, OUTSIDE]),
        (49.0, [0, 1, 1, 1, OUTSIDE]),
    ],
)
def test_a_host_keeps_its_station_to_the_edge_of_its_range(hysteresis: float, cells: list[int]) -> None:
    """Stations at 0 m and 150 m reach 100 m; the host walks from one to the other and beyond."""
    stations = np.array([[0.0, 0.0], [150.0, 0.0]])
    x = np.array([[0.0], [100.0], [101.0], [250.0], [251.0]])
    given = associate(Positions(SECOND, x, np.zeros_like(x)), stations, 100.0, hysteresis)
    assert given[:, 0].tolist() == cells


def test_hosts_begin_at_the_points_inside_of_the_hexagon_that_are_drawn_first() -> None:
    points = _in_hexagon(5, 100.0, np.random.default_rng(1))
    drawn = np.random.default_rng(1).uniform(-100.0, 100.0, (20, 2))
    inside = [(x, y) for x, y in drawn.tolist() if abs(x) <= 75**0.5 * 10 and abs(y) <= 100 - abs(x) / 3**0.5]
    assert points.tolist() == [list(point) for point in inside[:5]]
