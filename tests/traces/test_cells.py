"""Which station a host belongs to: the nearest in range, kept until another is nearer by the hysteresis."""

from __future__ import annotations

import numpy as np
import pytest

from precede.core.instants import SECOND
from precede.traces.cells import OUTSIDE, Positions, associate


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
