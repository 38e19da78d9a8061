"""A column has one type in all tables; files of earlier versions are read and rewritten in today's types."""

from __future__ import annotations

import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from precede.core.errors import BadInput
from precede.eventlog.schema import FILE_VERSION, VERSION_KEY, event_schema
from precede.experiments.run import carry_out_into
from precede.experiments.scenario import read_scenario
from precede.lake.layout import Lake
from precede.lake.schemas import TABLES
from precede.lake.sql import create_view, statements


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder of one short run."""
    folder = tmp_path_factory.mktemp("run") / "run"
    described = read_scenario("small-office", "vector_clock", 3, {"workload.until": "3s", "run.end": "9s"})
    carry_out_into(described, folder)
    return folder


def test_a_column_has_one_type_in_all_tables():
    types = {}
    for table in TABLES.values():
        for field in table.arrow():
            types.setdefault(field.name, set()).add(str(field.type))
            assert field.metadata[b"comment"], (table.name, field.name)
    types.pop("value")  # of a gauge a number of entries, of a measure any number; nobody joins by it
    assert {name: kinds for name, kinds in types.items() if len(kinds) > 1} == {}


def test_polars_joins_events_with_other_tables(run):
    events, gauges = (polars.read_parquet(run / f"{name}.parquet") for name in ("events", "gauges"))
    runs = polars.DataFrame({"run_id": [events["run_id"][0]], "protocol": ["vector_clock"]})
    assert len(events.join(runs, on="run_id")) == len(events) > 0
    assert len(gauges.join(runs, on="run_id")) == len(gauges) > 0
    for name in ("events", "gauges"):
        written = pq.read_schema(run / f"{name}.parquet")
        assert [field.type for field in written] == [field.type for field in TABLES[name].arrow()]
        assert int(written.metadata[VERSION_KEY]) == FILE_VERSION


def test_rows_are_sorted_as_declared(run):
    for name in ("events", "gauges"):
        (column,) = TABLES[name].order
        values = pq.read_table(run / f"{name}.parquet")[column].to_numpy()
        assert (values[1:] >= values[:-1]).all()
        sorting = pq.read_metadata(run / f"{name}.parquet").row_group(0).sorting_columns
        assert [pq.read_schema(run / f"{name}.parquet").names[one.column_index] for one in sorting] == [column]


def test_files_of_version_1_are_read_in_the_types_of_today(run, tmp_path):
    rows = pq.read_table(run / "events.parquet")
    lake = Lake(tmp_path / "lake")
    (tmp_path / "lake" / "events").mkdir(parents=True)
    old = rows.cast(event_schema())
    assert old.schema.metadata[VERSION_KEY] == b"1"
    pq.write_table(old, tmp_path / "lake" / "events" / "old.parquet")
    assert pa.types.is_dictionary(
        pq.read_schema(tmp_path / "lake" / "events" / "old.parquet").field("run_id").type
    )
    plain = [field.type for field in TABLES["events"].arrow()]
    read = lake.read("events", "old")
    assert [field.type for field in read.schema] == plain
    assert read.to_pylist() == rows.to_pylist()
    batches = list(lake.batches("events", "old", ["run_id", "node", "at_us"], ["node"]))
    assert batches[0].schema.field("run_id").type == pa.string()
    assert pa.types.is_dictionary(batches[0].schema.field("node").type)


def test_files_of_a_later_version_are_refused(run, tmp_path):
    rows = pq.read_table(run / "gauges.parquet")
    (tmp_path / "lake" / "gauges").mkdir(parents=True)
    path = tmp_path / "lake" / "gauges" / "new.parquet"
    pq.write_table(rows.replace_schema_metadata({VERSION_KEY: b"3"}), path)
    with pytest.raises(BadInput, match=r"new.parquet: written by a later version of Precede \(table version 3"):
        Lake(tmp_path / "lake").read("gauges", "new")


def test_the_statements_for_sql_name_every_column():
    text = "\n".join(statements("s3a://bucket/lake"))
    for table in TABLES.values():
        assert f"location 's3a://bucket/lake/{table.name}'" in text
        assert all(f"`{column.name}` {column.kind} comment" in text for column in table.columns)
    assert create_view(TABLES["verdicts"]) is None
    assert "timestamp_micros(`at_us`) as `at`" in create_view(TABLES["events"])


@pytest.mark.long
@pytest.mark.spark
def test_spark_declares_the_tables_and_their_views(run, tmp_path):
    from precede.pipeline.sessions.session import open_session

    lake = tmp_path / "lake"
    for name in ("events", "gauges"):
        (lake / name).mkdir(parents=True)
        (lake / name / "run.parquet").write_bytes((run / f"{name}.parquet").read_bytes())
    with open_session() as session:
        for statement in statements(str(lake)):
            session.sql(statement)
        described = {row.col_name: row.comment for row in session.sql("describe events").collect()}
        assert described["at_us"] == next(c.meaning for c in TABLES["events"].columns if c.name == "at_us")
        row = session.sql("select at_us, at, at_elapsed from events_times where at_us > 0 limit 1").first()
        assert row.at_elapsed.total_seconds() == pytest.approx(row.at_us / 1e6, abs=1e-9)
        assert row.at.timestamp() == pytest.approx(row.at_us / 1e6, abs=1e-6)
