"""The verifier on DataFrames gives the answers of one process for every group, also through Spark Connect."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace
from pyspark.sql import functions as sf

import precede.pipeline
from precede.cli import main
from precede.core.errors import BadInput
from precede.pipeline.following.follow import follow
from precede.pipeline.judging import buckets, files, frames, packing
from precede.pipeline.judging.query import settle_query
from precede.pipeline.sessions.java import find_java_home
from precede.witness.reading.tables import TableLog
from precede.witness.verify import verify as verify_here
from tests.pipeline.logs import random_log, table_of

BY = ("topic", "partition")


def answers(frame):
    """One answer for each group, as plain data."""
    return {
        tuple(str(row[name]) for name in BY): (
            row["verdict"],
            row["rows"],
            row["deliveries_checked"],
            row["violations"],
            dict(row["counts"]),
            None if row["first"] is None else json.loads(row["first"])["story"],
        )
        for row in (frame if isinstance(frame, pa.Table) else frame.toArrow()).to_pylist()
    }


def expected(rows, order):
    """The same answers from the verifier in this process: for the whole log, and for each group."""
    whole = verify_here(table_of(rows), order, by=BY, columns="node=who")
    by_group = {}
    for part in whole.parts:
        key = tuple(value for _, value in part.group)
        own = [row for row in rows if (row["topic"], str(row["partition"])) == key]
        log = TableLog(table_of(own))
        log.broadcasts_elsewhere = True
        alone = verify_here(log, order, by=BY, columns="node=who")
        assert (alone.verdict, alone.violations) == (part.verdict, part.violations)
        story = None if alone.first is None else alone.first.story
        by_group[key] = (
            part.verdict,
            len(own),
            part.deliveries_checked,
            part.violations,
            dict(alone.counts),
            story,
        )
    return by_group


@pytest.mark.spark
def test_groups_are_judged_by_as_many_tasks_as_are_asked_for(session):
    rows = [row | {"topic": f"{row['topic']} {copy}"} for copy in range(20) for row in random_log(5)]
    frame = session.createDataFrame(table_of(rows))
    judged = precede.pipeline.verify(frame, "fifo", by=BY, columns="node=who", partitions=9)
    tasks = judged.select(sf.spark_partition_id().alias("task")).distinct().count()
    assert tasks > 5  # a shuffle into 9 may leave some without a group


@pytest.mark.spark
def test_every_group_gets_the_answer_of_one_process(session):
    rows = random_log(5)
    frame = session.createDataFrame(table_of(rows)).repartition(3)
    for order in ("causal", "fifo"):
        judged = precede.pipeline.verify(frame, order, by=BY, columns="node=who")
        assert judged.columns[:3] == ["topic", "partition", "order"]
        assert answers(judged) == expected(rows, order)
    assert {one[0] for one in answers(judged).values()} == {"holds", "violated", "unknown"}


@pytest.mark.spark
def test_lists_of_destinations_go_to_python_as_text(session):
    """Spark hands lists over slowly: 707,428 rows with mostly null lists took 81 CPU s, without them 4.5."""
    rows = [
        row
        | {"destinations": ["n1", "n2"] if row["kind"] == "broadcast" and row["message_number"] % 2 else None}
        for row in random_log(5)
    ]
    frame = session.createDataFrame(table_of(rows))
    assert frame.schema["destinations"].dataType.simpleString() == "array<string>"
    layout = settle_query(frame.columns, "multicast", by=BY, columns="node=who")[1]
    assert frames._narrow(frame, layout).schema["destinations"].dataType.simpleString() == "string"
    judged = precede.pipeline.verify(frame, "multicast", by=BY, columns="node=who")
    assert answers(judged) == expected(rows, "multicast")


@pytest.mark.parametrize("count", [1, 5])
@pytest.mark.parametrize("size", [7, 1000])
def test_blocks_and_buckets_do_not_change_the_answers(count, size, monkeypatch):
    rows = random_log(5)
    query, layout = settle_query(list(rows[0]), "causal", by=BY, columns="node=who")
    monkeypatch.setattr(packing, "ROWS_A_BLOCK", size)
    packer = packing.Packer(BY, layout.names_to_read(), count)
    blobs = list(packing.PackFrame(packer)(iter(table_of(rows).to_batches(size))))
    assert len({blob["bucket"][0] for blob in blobs}) == count
    query = replace(query, broadcasts_elsewhere=True)
    judged = list(buckets.JudgeBuckets(query)(reversed(blobs)))
    assert answers(pa.Table.from_batches(judged)) == expected(rows, "causal")


@pytest.mark.long
@pytest.mark.spark
def test_one_order_without_groups_and_an_empty_frame(session):
    rows = [row for row in random_log(6, groups=2) if row["topic"] == "t1"]
    frame = session.createDataFrame(table_of(rows)).repartition(4)
    (row,) = precede.pipeline.verify(frame, "causal", columns={"node": "who"}).collect()
    here = verify_here(table_of(rows), "causal", columns={"node": "who"})
    assert here.violations > 0
    assert (row.verdict, row.rows, row.violations) == ("violated", len(rows), here.violations)
    assert json.loads(row.first)["story"] == here.first.story
    assert precede.pipeline.verify(frame.limit(0), "causal", columns={"node": "who"}).count() == 0
    assert precede.pipeline.verify(frame.limit(0), "causal", by=BY, columns={"node": "who"}).count() == 0


@pytest.mark.spark
def test_impossible_queries_are_bad_input(session):
    frame = session.createDataFrame(table_of(random_log(1, groups=1)))
    for options, expected_text in [
        ({"columns": "node=nobody"}, "no column 'nobody'"),
        ({"columns": "node=who", "order": "alphabetical"}, "is none of fifo"),
        ({"columns": "node=who", "by": "tropic"}, "tropic"),
        ({"columns": "node=who,step=:row"}, "no order of rows"),
    ]:
        with pytest.raises(BadInput, match=expected_text):
            precede.pipeline.verify(frame, **options)


CONNECT = """
import json, sys, warnings
warnings.simplefilter("ignore")
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
session = SparkSession.builder.remote("local[1]").config("spark.sql.shuffle.partitions", "2").getOrCreate()
try:
    session.sparkContext
except Exception:
    pass
else:
    raise SystemExit("this is no Connect session")
import precede.pipeline
from tests.pipeline.test_verify_frames import BY, answers
frame = session.createDataFrame(pq.read_table(sys.argv[1]))
found = answers(precede.pipeline.verify(frame, "causal", by=BY, columns="node=who"))
print(json.dumps(sorted([list(key), list(value)] for key, value in found.items())))
session.stop()
"""


@pytest.mark.long
@pytest.mark.spark
def test_a_connect_session_works(tmp_path):
    pytest.importorskip("grpc", reason="Spark Connect needs pyspark[connect]")
    rows = random_log(7, groups=6)
    pq.write_table(table_of(rows), tmp_path / "log.parquet")
    environment = os.environ | {"JAVA_HOME": str(find_java_home()), "SPARK_LOCAL_IP": "127.0.0.1"}
    environment |= {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    ran = subprocess.run(
        [sys.executable, "-c", CONNECT, str(tmp_path / "log.parquet")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout.splitlines()[-1])
    by_group = {tuple(key): (*value[:4], value[4], value[5]) for key, value in found}
    assert by_group == expected(rows, "causal")


def without_reasons(verdict):
    """A verdict as JSON without its reasons."""
    plain = verdict.json()
    plain.pop("reasons", None)
    for part in plain.get("by", []):
        part.pop("reasons", None)
    return plain


@pytest.mark.spark
def test_files_on_spark_give_the_verdict_of_one_process(session, tmp_path):
    rows = random_log(8)
    options = {"by": "topic,partition", "columns": "node=who"}
    (tmp_path / "shuffled").mkdir()
    pq.write_table(table_of(rows[: len(rows) // 2]), tmp_path / "shuffled" / "a.parquet")
    pq.write_table(table_of(rows[len(rows) // 2 :]), tmp_path / "shuffled" / "b.parquet")
    by_file = tmp_path / "by file [x]"
    by_file.mkdir()
    keys = dict.fromkeys((row["topic"], row["partition"]) for row in rows)
    for number, key in enumerate(keys):
        own = [row for row in rows if (row["topic"], row["partition"]) == key]
        pq.write_table(table_of(own), by_file / f"{number}.parquet")
    (by_file / "_no.parquet").write_text("not one of them")
    here = verify_here(table_of(rows), "causal", **options)
    assert here.violations > 3
    assert files._whole_orders(files._pieces(by_file), BY)
    for path in (tmp_path / "shuffled", by_file):
        assert without_reasons(files.verify_path(session, str(path), "causal", **options)) == without_reasons(
            here
        )
    one = [row for row in rows if (row["topic"], row["partition"]) == ("t1", 0)]
    pq.write_table(table_of(one), tmp_path / "one.parquet")
    csv = "who,step,kind,message_source,message_number\n" + "".join(
        f"{row['who']},{row['step']},{row['kind']},{row['message_source']},{row['message_number']}\n"
        for row in one
    )
    (tmp_path / "one.csv").write_text(csv)
    here = verify_here(table_of(one), "causal", columns="node=who")
    for name in ("one.parquet", "one.csv"):
        there = files.verify_path(session, str(tmp_path / name), "causal", columns="node=who")
        assert without_reasons(there) == without_reasons(here)
    bad = table_of([{**row, "step": "soon"} for row in rows])
    pq.write_table(bad, tmp_path / "bad.parquet")
    for path, expected_text in (
        (tmp_path / "bad.parquet", "soon"),
        (tmp_path / "nowhere", "No such file"),
        ("-", "input"),
    ):
        with pytest.raises(BadInput, match=expected_text):
            files.verify_path(session, str(path), "causal", **options)


@pytest.mark.spark
@pytest.mark.parametrize("names", [("run_id",), ("run_id", "node")])
def test_partitioned_folders_are_read_here_and_on_spark(session, tmp_path, capsys, names):
    rows = [
        {"run_id": f"0{row['partition']} {row['topic']}", "node": row["who"]}
        | {name: value for name, value in row.items() if name not in ("who", "topic", "partition")}
        for row in random_log(8)
    ]
    path = str(tmp_path / "events [x]")
    session.createDataFrame(table_of(rows)).coalesce(1).write.partitionBy(*names).parquet(path)
    pieces = files._pieces(tmp_path / "events [x]")
    assert "run_id" not in pq.read_schema(pieces[0].path).names
    assert files._whole_orders(pieces, ("run_id",)) == (len(names) == 1)
    here = verify_here(table_of(rows), "causal")
    assert here.violations > 3
    assert without_reasons(verify_here(path, "causal")) == without_reasons(here)
    assert without_reasons(files.verify_path(session, path, "causal")) == without_reasons(here)
    assert main(["verify", path, "--by", "run", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["violations"] == here.violations
    (tmp_path / "events [x]" / "stray.parquet").write_bytes(pieces[0].path.read_bytes())
    with pytest.raises(BadInput, match="the columns differ from those of"):
        files.verify_path(session, path, "causal")


@pytest.mark.spark
def test_a_follower_refuses_columns_from_folder_names(session, tmp_path):
    for number, folder in enumerate(("run_id=r", "incarnation=1")):
        row = {"node": "a", "step": 0, "kind": "broadcast", "message_source": "a", "message_number": 1}
        place = tmp_path / folder / folder
        place.mkdir(parents=True)
        pq.write_table(table_of([row | ({"run_id": "r"} if number else {})]), place / "s.parquet")
        with pytest.raises(BadInput, match=f"not from folders .{folder.partition('=')[0]}="):
            follow(session, tmp_path / folder, idle_s=1)
