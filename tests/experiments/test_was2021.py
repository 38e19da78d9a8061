"""The experiments of was2021: what a small one gives, how claims are judged, and that results are continued."""

from __future__ import annotations

from pathlib import Path

import pytest

from precede.core.errors import BadInput
from precede.experiments import was2021_claims
from precede.experiments.was2021_claims import Claim, Ran, judge, point_lines, read_claims, run_missing
from precede.experiments.was2021_comparison import Measured, Point, measure_run, read_experiments

PAPER = Path(__file__).parents[2] / "papers" / "was2021"


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
    found = measure_run(point, 1).measures
    assert 40 <= found["throughput_per_s"] < 40 * 2**6
    assert found["share_of_last_step"] < 0.9
    with pytest.raises(BadInput, match="stairs end too soon"):
        measure_run(Point("throughput", "ck", hosts=4, stations=1, rate=1, seconds=0.5, stairs=2), 1)


def ran(protocol: str, hosts: int, values: list[float]) -> list[Ran]:
    point = Point("growth", protocol, hosts=hosts)  # type: ignore[arg-type]
    return [Ran(point, Measured(seed, {"x": value}, 0)) for seed, value in enumerate(values, 1)]


def test_claims_are_judged_seed_by_seed_within_their_tolerance() -> None:
    runs = [
        *ran("was", 100, [1, 2]),
        *ran("ck", 100, [10, 24]),
        *ran("was", 200, [2, 2]),
        *ran("ck", 200, [30, 26]),
    ]
    about = Claim("a", "", "", "growth", "x", "about", hosts=100, ratio="ck/was", value=10, relative=0.1)
    rises = Claim("b", "", "", "growth", "x", "rises", ratio="ck/was")
    first, second, third, fourth = judge([about, rises], runs)
    assert (first.rival, first.status, first.ours, first.runs) == ("ck", "reproduced", (11.0,), 2)
    assert first.intervals[0] is not None
    assert second.status == "not run", "nothing was run with ck_host"
    assert (third.status, third.ours, third.hosts) == ("reproduced", (11.0, 14.0), (100, 200))
    assert fourth.status == "not run"
    for value, status in ((12.0, "reproduced"), (13.0, "close"), (20.0, "not reproduced")):
        claim = Claim("a", "", "", "growth", "x", "about", hosts=100, ratio="ck/was", value=value, relative=0.1)
        assert judge([claim], runs)[0].status == status


def test_points_are_told_with_their_intervals() -> None:
    assert point_lines(ran("was", 100, [1, 2, 3])) == [
        "growth was, 100 hosts, 10 stations:",
        "  x 2 [-0.48414, 4.4841], 3 runs",
    ]


def test_every_claim_names_an_experiment_and_a_size_of_it() -> None:
    points = [point for point, _ in read_experiments(PAPER / "experiments.toml")]
    for claim in read_claims(PAPER / "claims.toml"):
        assert any(
            point.experiment == claim.experiment and claim.hosts in (None, point.hosts) for point in points
        ), claim.id


def test_a_results_file_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "experiments.toml").write_text(
        '[measured]\nruns = 2\n[quick]\nruns = 1\n[experiment.growth]\ngrid = { protocol = ["was", "ck"] }\n'
        "set = { hosts = 10, stations = 2, seconds = 1 }\n",
        encoding="utf-8",
    )
    asked: list[tuple[str, int]] = []

    def fake(point: Point, seed: int) -> Measured:
        asked.append((point.protocol, seed))
        return Measured(seed, {"x": float(seed)}, 0)

    monkeypatch.setattr(was2021_claims, "measure_run", fake)
    results = tmp_path / "runs.jsonl"
    run_missing(tmp_path, "quick", results)
    assert asked == [("was", 1), ("ck", 1)]
    found = run_missing(tmp_path, "paper", results)
    assert asked == [("was", 1), ("ck", 1), ("was", 2), ("ck", 2)]
    assert [one.run.measures["x"] for one in found] == [1.0, 1.0, 2.0, 2.0]
