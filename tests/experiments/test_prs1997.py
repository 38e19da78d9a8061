"""The experiments and claims of prs1997: what is measured, how points are resumed, how claims are judged."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from precede.experiments.prs1997_claims import Claim, judge, read_claims, run_missing

from precede.core.errors import BadInput
from precede.eventlog.sinks import TableSink
from precede.experiments import prs1997_claims
from precede.experiments.prs1997 import (
    Estimate,
    Measured,
    Point,
    Precision,
    estimate,
    measure_run,
    read_experiments,
)
from precede.experiments.runs import carry_out

PAPER = Path(__file__).parents[2] / "papers" / "prs1997"
SHORT = Precision(warm_up_deliveries=200, deliveries=600, fewest_runs=2, most_runs=2)
POINT = Point(experiment="figure5", nodes=10, propagation=1.0, gap=1.0, to=(1, 5))


def test_every_claim_has_an_experiment_and_every_withheld_value_stays_withheld() -> None:
    experiments, precision = read_experiments(PAPER / "experiments.toml")
    assert (precision.warm_up_deliveries, precision.deliveries) == (5_000, 10_000)
    claims = read_claims(PAPER / "claims.toml")
    assert len({claim.id for claim in claims}) == len(claims)
    for claim in claims:
        assert claim.experiment == "*" or claim.experiment in experiments
        assert ("[withheld]" in claim.says) == (claim.kind == "withheld")
    every = [_estimate(point, 0.3) for points in experiments.values() for point in points]
    assert len(judge(claims, every)) == len(claims)


def test_a_run_measures_messages_in_the_window_and_asks_the_witness() -> None:
    found = measure_run(POINT, 1, SHORT)
    assert found.verdict == "holds"
    assert found.violations == 0
    assert 100 < found.messages < 400, "600 deliveries of three copies each"
    assert found.entries == pytest.approx(100 * found.tuple_share)
    sink = TableSink()
    carry_out(POINT.run(1, SHORT), sink)
    rows = sink.events().to_pylist()
    delivered = sorted(row["at_us"] for row in rows if row["kind"] == "delivered")
    window = range(delivered[199] + 1, delivered[799] + 1)
    copies: dict[tuple[str, int], list[int]] = {}
    for row in rows:
        if row["kind"] == "sent" and row["at_us"] in window:
            copies.setdefault((row["node"], row["at_us"]), []).append(row["control_entries"])
    assert found.messages == len(copies)
    assert found.entries == pytest.approx(sum(each[0] for each in copies.values()) / len(copies))


def test_a_run_that_is_too_short_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    short = POINT.run(1, SHORT)
    monkeypatch.setattr(Point, "run", lambda *_: short)
    with pytest.raises(BadInput, match="too short"):
        measure_run(POINT, 1, Precision(5_000, 10_000, 1, 1))


def test_runs_are_added_until_the_interval_is_narrow() -> None:
    shares = [0.30, 0.34, 0.30, 0.34, 0.30, 0.34] + [0.32] * 40

    def measured(point: Point, seed: int, precision: Precision) -> Measured:
        return Measured(seed, 10, shares[seed - 1], 1.0, 1.0, "holds", 0)

    found = estimate(POINT, Precision(1, 1, 5, 40), measured)
    assert 5 < found.runs < 40
    assert found.half_width <= 0.03
    assert found.first_five_apart == pytest.approx(0.04 / 0.316)
    few = estimate(POINT, Precision(1, 1, 2, 3), measured)
    assert few.runs == 3
    assert few.half_width > 0.03


def test_what_is_measured_is_not_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Point] = []

    def fake(point: Point, precision: Precision) -> Estimate:
        made.append(point)
        return _estimate(point, 0.2)

    monkeypatch.setattr(prs1997_claims, "estimate", fake)
    results = tmp_path / "results.jsonl"
    first = run_missing(PAPER, "paper", results)
    assert len(made) == len(first) > 100
    lines = results.read_bytes().splitlines(keepends=True)
    results.write_bytes(b"".join(lines[:-3]))
    made.clear()
    assert run_missing(PAPER, "paper", results) == first
    assert len(made) == 3


def test_an_unknown_setting_is_named(tmp_path: Path) -> None:
    text = (PAPER / "experiments.toml").read_text()
    (tmp_path / "experiments.toml").write_text(text.replace("selectivity = [", "selektivity = [", 1))
    with pytest.raises(BadInput, match=r"figure5.*selektivity"):
        read_experiments(tmp_path / "experiments.toml")


def _estimate(point: Point, mean: float, apart: float = 0.02) -> Estimate:
    return Estimate(point, 5, mean, mean, mean, mean * point.nodes**2, 1.0, apart, 0)


def _curve(axis: str, **means: float) -> list[Estimate]:
    return [
        _estimate(msgspec.structs.replace(POINT, **{axis: float(place.replace("_", "."))}), mean)
        for place, mean in ((key.removeprefix("at_"), mean) for key, mean in means.items())
    ]


@pytest.mark.parametrize(
    ("claim", "means", "status"),
    [
        ({"kind": "between", "low": 0.2, "high": 0.4}, (0.25, 0.35), "reproduced"),
        ({"kind": "between", "low": 0.2, "high": 0.4, "tolerance": 0.01}, (0.195, 0.35), "close"),
        (
            {"kind": "between", "low": 0.2, "high": 0.4, "smaller_is_better": True},
            (0.1, 0.3),
            "better than published",
        ),
        ({"kind": "between", "low": 0.2, "high": 0.4, "smaller_is_better": True}, (0.1, 0.5), "not reproduced"),
        ({"kind": "about", "value": 0.9, "tolerance": 0.05}, (0.88, 0.93), "reproduced"),
        (
            {"kind": "about", "value": 0.9, "tolerance": 0.05, "smaller_is_better": True},
            (0.3, 0.4),
            "better than published",
        ),
        ({"kind": "at_most", "value": 0.7}, (0.1, 0.7), "reproduced"),
        ({"kind": "at_most", "value": 0.7}, (0.1, 0.71), "not reproduced"),
        ({"kind": "falls", "along": "gap"}, (0.5, 0.4), "reproduced"),
        ({"kind": "falls", "along": "gap", "tolerance": 0.03}, (0.5, 0.51), "close"),
        ({"kind": "falls", "along": "gap", "tolerance": 0.03}, (0.5, 0.6), "not reproduced"),
        ({"kind": "rises", "along": "gap", "tolerance": 0.03}, (0.5, 0.6), "reproduced"),
        ({"kind": "withheld"}, (0.5, 0.6), "withheld"),
        ({"kind": "at_most", "value": 0.75, "measure": "saving"}, (0.3, 0.5), "reproduced"),
        ({"kind": "at_most", "value": 0.52, "measure": "bitmap_share"}, (0.3, 0.5), "not reproduced"),
    ],
)
def test_statuses(claim: dict[str, object], means: tuple[float, float], status: str) -> None:
    whole = msgspec.convert({"id": "c", "place": "p", "says": "s", "experiment": "figure5", **claim}, Claim)
    (found,) = judge([whole], _curve("gap", at_1=means[0], at_10=means[1]))
    assert found.status == status
    assert found.points == 2


def test_statuses_of_sentences_about_several_curves() -> None:
    claim = Claim("c", "p", "s", "figure5", "steeper_last", along="selectivity", at=(0.0, 0.95, 1.0))
    flat_then_steep = _curve("selectivity", at_0_0=0.5, at_0_5=0.5, at_0_95=0.45, at_1_0=0.1)
    steep_then_flat = _curve("selectivity", at_0_0=0.5, at_0_5=0.5, at_0_95=0.2, at_1_0=0.1)
    assert judge([claim], flat_then_steep)[0].status == "reproduced"
    assert judge([claim], steep_then_flat)[0].status == "not reproduced"
    wider = Claim("c", "p", "s", "figure5", "range_rises", along="to", over="gap", tolerance=0.03)
    sets = {(1, 5): (0.5, 0.4), (3, 7): (0.5, 0.3), (5, 9): (0.5, 0.1)}
    curves = [
        _estimate(msgspec.structs.replace(POINT, to=to, gap=gap), mean)
        for to, means in sets.items()
        for gap, mean in zip((1.0, 10.0), means, strict=True)
    ]
    assert judge([wider], curves)[0].status == "reproduced"
    curves[1] = msgspec.structs.replace(curves[1], mean=0.05)
    assert judge([wider], curves)[0].status == "not reproduced"
    same = Claim("c", "p", "s", "figure6", "same", beside="figure5", tolerance=0.1)
    beside = _curve("gap", at_1=0.5, at_10=0.4)
    ours = [
        msgspec.structs.replace(
            found, point=msgspec.structs.replace(found.point, experiment="figure6"), mean=mean
        )
        for found, mean in zip(beside, (0.52, 0.42), strict=True)
    ]
    assert judge([same], [*beside, *ours])[0].status == "reproduced"
    ours[0] = msgspec.structs.replace(ours[0], mean=0.7)
    assert judge([same], [*beside, *ours])[0].status == "not reproduced"
    with pytest.raises(BadInput, match="no point"):
        judge([same], beside)
