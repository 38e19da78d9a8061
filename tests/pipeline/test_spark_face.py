"""`precede.spark`: lazy DataFrame functions with the answers of one process; every example runs."""

from __future__ import annotations

import doctest

import pyarrow as pa
import pytest

import precede.spark
from precede.core.errors import BadInput
from precede.lake.layout import Lake
from precede.lake.schemas import TABLES
from tests.pipeline.test_contacts_job import expected, walk

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("name", precede.spark.__all__)
def test_the_example_of_a_function_runs(name, session, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = getattr(precede.spark, name).__doc__
    test = doctest.DocTestParser().get_doctest(text, {"session": session, "precede": precede}, name, None, 0)
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0


def test_runs_become_events_verdicts_and_measures_as_in_one_process(session):
    names = ["scenario", "protocol", "seed", "options"]
    described = [("small-office", "vector_clock", 3, '{"loss": 0.3}'), ("small-office", "unordered", 4, None)]
    session.sparkContext.setJobGroup("lazy", "no job may run")
    runs = session.createDataFrame(described, names)
    events = precede.spark.simulate(runs, tasks=2)
    gauges = precede.spark.simulate(runs, rows="gauges", tasks=2)
    verdicts = precede.spark.verify(events, "causal")
    measures = precede.spark.measure(events, gauges)
    assert session.sparkContext.statusTracker().getJobIdsForGroup("lazy") == []
    alone = [
        precede.simulate("small-office", "vector_clock", 3, settings={"loss": 0.3}),
        precede.simulate("small-office", "unordered", 4),
    ]
    rows = events.toArrow()
    assert rows.column_names == TABLES["events"].names()
    assert "own event counter" in events.schema["step"].metadata["comment"]
    measured = measures.toArrow().to_pylist()
    answers = {row["run_id"]: row for row in verdicts.toArrow().to_pylist()}
    for run in alone:
        theirs = rows.filter(pa.compute.equal(rows["run_id"], run.run_id))
        assert theirs.to_pylist() == run.events.cast(TABLES["events"].arrow()).to_pylist()
        verdict = run.verify("causal")
        assert (answers[run.run_id]["verdict"], answers[run.run_id]["violations"]) == (
            verdict.verdict,
            verdict.violations,
        )
        mine = {row["measure"]: row["value"] for row in measured if row["run_id"] == run.run_id}
        for name, value in run.measures().items():
            assert name not in mine or mine[name] == value
        assert mine["deliveries"] == run.measures()["deliveries"]


def test_contacts_do_not_depend_on_the_slices(session, tmp_path):
    table = walk(Lake(tmp_path / "lake"), nodes=12, legs=10)
    segments = session.createDataFrame(table)
    for length in ("7s", "1h"):
        found = precede.spark.contacts(segments, 40.0, slice=length).toArrow()
        assert found.column_names == TABLES["contacts"].names()
        rows = [(row["a"], row["b"], row["start_us"], row["end_us"]) for row in found.to_pylist()]
        assert sorted(rows) == sorted(expected(table, 40.0))


def test_segments_end_at_gaps(session):
    rows = [("t", node, at * 1_000_000, float(at), 0.0) for node in ("a", "b") for at in (5, 0, 2, 100)]
    positions = session.createDataFrame(rows, ["trace", "node", "t_us", "x", "y"])
    found = sorted(map(tuple, precede.spark.segments(positions, gap="1min").collect()))
    ends = [(0, 2), (2, 5)]
    second = 1_000_000
    assert found == [
        ("t", node, low * second, float(low), 0.0, high * second, float(high), 0.0)
        for node in ("a", "b")
        for low, high in ends
    ]
    with pytest.raises(BadInput, match="no column 'trace'"):
        precede.spark.segments(session.range(1))


def test_wrong_arguments_are_named_before_any_job(session):
    with pytest.raises(BadInput, match="no column 'scenario'"):
        precede.spark.simulate(session.range(1))
    with pytest.raises(BadInput, match="expected events or gauges"):
        precede.spark.simulate(session.range(1), rows="others")
