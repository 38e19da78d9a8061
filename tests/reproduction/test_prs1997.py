"""The experiments and claims of prs1997: what is measured, and how often."""

from __future__ import annotations

from pathlib import Path

import pytest

from precede.core.errors import BadInput
from precede.eventlog.sinks import TableSink
from precede.experiments.run import carry_out
from precede.experiments.tables import read_toml
from precede.reproduction.prs1997.points import Point, Precision, measure_run, read_experiments
from precede.reproduction.units import find_paper

PAPER = Path(__file__).parents[2] / "papers" / "prs1997"
SHORT = Precision(warm_up_deliveries=200, deliveries=600, runs=2)
POINT = Point(experiment="figure5", nodes=10, propagation=1.0, gap=1.0, to=(1, 5))


def test_the_paper_scale_has_the_papers_sizes() -> None:
    _, precision = read_experiments(read_toml(PAPER / "experiments.toml")[0])
    assert (precision.warm_up_deliveries, precision.deliveries) == (5_000, 10_000)


def test_a_run_measures_messages_in_the_window_and_is_verified() -> None:
    result = measure_run(POINT, 1, SHORT)
    assert result.violations == 0
    measures = result.measures
    assert 100 < measures["messages"] < 400, "600 deliveries of three copies each"
    assert measures["entries"] == pytest.approx(100 * measures["tuple_share"])
    assert measures["saving"] == 1 - measures["tuple_share"]
    sink = TableSink()
    carry_out(POINT.run(1, SHORT), sink)
    rows = sink.events().to_pylist()
    delivered = sorted(row["at_us"] for row in rows if row["kind"] == "delivered")
    window = range(delivered[199] + 1, delivered[799] + 1)
    copies: dict[tuple[str, int], list[int]] = {}
    for row in rows:
        if row["kind"] == "sent" and row["at_us"] in window:
            copies.setdefault((row["node"], row["at_us"]), []).append(row["control_entries"])
    assert measures["messages"] == len(copies)
    assert measures["entries"] == pytest.approx(sum(each[0] for each in copies.values()) / len(copies))


def test_a_run_that_is_too_short_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    short = POINT.run(1, SHORT)
    monkeypatch.setattr(Point, "run", lambda *_: short)
    with pytest.raises(BadInput, match="too short"):
        measure_run(POINT, 1, Precision(5_000, 10_000, 1))


def test_the_number_of_runs_does_not_depend_on_what_they_show() -> None:
    paper = find_paper("prs1997")
    first, more = (paper.units(PAPER, "paper", more=more) for more in (False, True))
    tables, _ = read_toml(PAPER / "experiments.toml")
    assert len(more) == tables["more"] * len(first)
    assert {unit.id for unit in first} < {unit.id for unit in more}


def test_an_error_names_an_unknown_setting(tmp_path: Path) -> None:
    text = (PAPER / "experiments.toml").read_text()
    (tmp_path / "experiments.toml").write_text(text.replace("selectivity = [", "selektivity = [", 1))
    with pytest.raises(BadInput, match=r"figure5.*selektivity"):
        find_paper("prs1997").units(tmp_path, "paper")
