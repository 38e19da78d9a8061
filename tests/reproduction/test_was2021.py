"""The experiments of was2021: what a small one gives, at one rate and up the stairs, seen by the witness."""

from __future__ import annotations

from typing import Any

import msgspec
import pyarrow as pa
import pytest

from precede.core.errors import BadInput
from precede.reproduction.was2021 import points as was2021_points
from precede.reproduction.was2021.points import Point, measure_run
from precede.witness.verify import verify


def test_one_rate_counts_both_protocols_on_the_same_broadcasts() -> None:
    was, ck = (
        measure_run(Point("comparison", protocol, hosts=40, stations=2, rate=20, seconds=2), 1)
        for protocol in ("was", "ck")
    )
    assert was.violations == ck.violations == 0
    assert was.measures["broadcasts"] == ck.measures["broadcasts"] > 25
    assert was.measures["delivered_share"] == ck.measures["delivered_share"] == 1.0
    assert ck.measures["acknowledgements_per_s"] > 5 * was.measures["acknowledgements_per_s"]
    assert ck.measures["repetitions_per_s"] > 0


def test_stairs_end_where_deliveries_come_too_late() -> None:
    point = Point("throughput", "ck", hosts=40, stations=2, rate=40, seconds=0.5, stairs=24, within=0.5)
    ran = measure_run(point, 1)
    result = ran.measures
    assert ran.violations == 0
    assert 40 <= result["throughput_per_s"] < 40 * 2**6
    assert result["share_of_last_step"] < 0.9
    with pytest.raises(BadInput, match="the staircase has too few steps"):
        measure_run(Point("throughput", "ck", hosts=4, stations=1, rate=1, seconds=0.5, stairs=2), 1)


@pytest.mark.parametrize("protocol", ["was", "ck", "ck_host"])
def test_a_whole_staircase_is_verified(protocol: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every delivery of every step that was climbed; and what the witness says is what the run says."""
    seen = []

    def ask(log: pa.Table, order: str, **options: Any) -> Any:
        seen.append(verify(log, order, **options))
        return seen[-1]

    monkeypatch.setattr(was2021_points, "verify", ask)
    point = Point("throughput", protocol, hosts=20, stations=2, rate=60, seconds=0.5, stairs=24, within=0.5)
    ran = measure_run(point, 1)
    (verdict,) = seen
    assert (ran.violations, verdict.verdict) == (0, "holds")
    least = sum(rate for rate in was2021_points.rates(point) if rate <= ran.measures["throughput_per_s"])
    assert verdict.deliveries_checked > 0.5 * least * point.seconds * point.hosts
    broken = msgspec.structs.replace(verdict, verdict="violated", violations=3)
    monkeypatch.setattr(was2021_points, "verify", lambda log, order, **options: broken)
    assert measure_run(point, 1).violations == 4


@pytest.mark.parametrize("experiment", ["buffers", "failures"])
def test_a_run_that_is_drawn_has_its_stations_second_by_second(experiment: str) -> None:
    point = Point("drawn", "was", hosts=20, seconds=50, bitrate=1e6, like=experiment, drawn=True)
    stations = measure_run(point, 1).series["stations"]
    assert {name: len(values) for name, values in stations.items()} == dict.fromkeys(
        ("at_s", "fullest", "mean_of_others", "deviation_of_others"), len(stations["at_s"])
    )
    assert stations["at_s"] == [float(second) for second in range(len(stations["at_s"]))]
    assert len(stations["at_s"]) >= 50
    pairs = zip(stations["fullest"], stations["mean_of_others"], strict=True)
    assert all(fullest >= mean for fullest, mean in pairs)
    assert max(stations["fullest"]) > 5
    assert measure_run(msgspec.structs.replace(point, drawn=False), 1).series == {}
