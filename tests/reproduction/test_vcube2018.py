"""The measures of vcube2018."""

from __future__ import annotations

import pytest

from precede.reproduction.vcube2018.points import Point, measure_run

NODES = 16


def test_time_held_is_averaged_over_all_copies_and_over_those_that_waited():
    finding = measure_run(Point("main", "window", "triangular(0, 0.6)", NODES), seed=1)
    assert finding.violations == 0
    measures = finding.measures
    assert 0 < measures["delayed"] < NODES * (NODES - 1) / 2
    in_all = measures["wait_ut_mean"] * NODES * (NODES - 1)
    assert measures["held_ut_mean"] * measures["delayed"] == pytest.approx(in_all)


def test_nothing_is_held_if_nothing_waits():
    finding = measure_run(Point("main", "window", "1 s", 2), seed=1)
    assert finding.measures["delayed"] == 0
    assert "held_ut_mean" not in finding.measures
