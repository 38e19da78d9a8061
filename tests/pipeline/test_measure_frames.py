"""Measures as DataFrame code, compared with the same measures in one process."""

from __future__ import annotations

from functools import partial
from statistics import mean, stdev

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from precede.experiments.measuring import measure_folder
from precede.experiments.run import carry_out_into
from precede.experiments.scenario import read_scenario
from precede.lake.schemas import EVENTS, GAUGES, MEASURES, TABLES
from precede.measures.events import EventMeasures, measure_events
from precede.measures.messages import Window
from precede.measures.statistics import confidence_interval
from precede.pipeline.sessions.frames import spark_schema
from precede.pipeline.sweeps.groups import group_measures, group_rows
from precede.pipeline.sweeps.measures import _Runs, measure
from tests.measures.test_measures import STORY, table

RUNS = [("vector_clock", "6s"), ("unordered", "3s")]


@pytest.mark.spark
def test_every_measure_equals_the_one_of_a_single_process(session, tmp_path):
    expected = {"r": measure_events(table(STORY).to_batches())}
    pq.write_table(table(STORY), tmp_path / "story.parquet")
    folders = []
    for protocol, until in RUNS:
        run = read_scenario("small-office", protocol, 3, {"workload.until": until, "run.end": "12s"})
        folders.append(tmp_path / run.id)
        carry_out_into(run, folders[-1])
        expected[run.id] = measure_folder(folders[-1])
    events = session.read.schema(spark_schema(EVENTS)).parquet(
        str(tmp_path / "story.parquet"), *(str(folder / "events.parquet") for folder in folders)
    )
    sampled = [str(folder / "gauges.parquet") for folder in folders]
    gauges = session.read.schema(spark_schema(GAUGES)).parquet(*sampled)
    found = {run_id: {} for run_id in expected}
    for row in measure(events, gauges).toArrow().to_pylist():
        assert row["measure"] not in found[row["run_id"]]
        found[row["run_id"]][row["measure"]] = row["value"]
    for run_id, measures in expected.items():
        expected = {name: float(value) for name, value in measures.items() if value is not None}
        assert found[run_id] == pytest.approx(expected, rel=1e-9)


def test_recorders_write_the_declared_tables():
    from precede.eventlog.schema import event_schema, gauge_schema

    for name, schema in (("events", event_schema()), ("gauges", gauge_schema())):
        plain = [f.type.value_type if pa.types.is_dictionary(f.type) else f.type for f in schema]
        assert TABLES[name].names() == schema.names
        assert [field.type for field in TABLES[name].arrow()] == plain
        assert [field.nullable for field in TABLES[name].arrow()] == [field.nullable for field in schema]


FOUND = {
    "a": {"nodes": 3, "discarded_late": 4, "packets_ask": 2, "observed_shadow": 1, "wait_us_mean": 8},
    "b": {"nodes": 3, "discarded_late": 2, "observed_shadow_age_us_mean": 5},
    "c": {"nodes": 3},
    "d": {"nodes": 3, "packets_ask": 2},
}


def measures_of_runs() -> pa.Table:
    rows = [
        {"sweep": "s", "scope": "run", "run_id": run, "scenario": "x", "protocol": "p", "options": "{}",
         "measure": name, "value": float(value), "runs": 1}
        for run, measures in FOUND.items()
        for name, value in measures.items()
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, MEASURES.arrow())


def check_groups(rows: list[dict[str, object]]) -> None:
    groups = {row["measure"]: row for row in rows}
    expected = {
        "nodes": [3, 3, 3, 3],
        "discarded_late": [4, 2, 0, 0],
        "packets_ask": [2, 0, 0, 2],
        "observed_shadow": [1, 0, 0, 0],
        "wait_us_mean": [8],
        "observed_shadow_age_us_mean": [5],
    }
    assert groups.keys() == expected.keys()
    for name, values in expected.items():
        group = groups[name]
        assert (group["scope"], group["scenario"], group["runs"]) == ("group", "x", len(values))
        assert group["value"] == pytest.approx(mean(values)), name
        if len(values) > 1:
            assert group["sd"] == pytest.approx(stdev(values)), name
            assert (group["low"], group["high"]) == pytest.approx(confidence_interval(values)), name
        else:
            assert (group["sd"], group["low"], group["high"]) == (None, None, None)


@pytest.mark.spark
def test_a_run_without_a_row_for_a_count_contributes_zero(session):
    of_runs = session.createDataFrame(measures_of_runs())
    check_groups([row.asDict() for row in group_measures(of_runs).collect()])


def test_groups_are_the_same_without_spark():
    table = group_rows(measures_of_runs())
    assert table.schema == MEASURES.arrow()
    check_groups(table.to_pylist())


def test_a_task_measures_each_run_of_its_partition_in_the_window():
    """The function that Spark tasks call, here with batches that cut runs apart."""
    story = table(STORY)
    both = pa.concat_tables([story.set_column(0, "run_id", pa.array([name] * story.num_rows)) for name in "ab"])
    for window in (None, Window(0, 150), Window(150, 10**9)):
        task = _Runs(partial(EventMeasures, window))
        rows = [row for batch in task(iter(both.to_batches(5))) for row in batch.to_pylist()]
        expected = measure_events(story.to_batches(), window)
        for run_id in "ab":
            found = {row["measure"]: row["value"] for row in rows if row["run_id"] == run_id}
            assert found == {name: value for name, value in expected.items() if value is not None}
