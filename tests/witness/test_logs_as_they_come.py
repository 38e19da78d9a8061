"""Other people's logs: formats, column names, opaque ids, independent orders, tables in memory."""

from __future__ import annotations

import gzip
import json
import os
import resource
import subprocess
import sys
from urllib.parse import quote

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import precede
from precede.eventlog.schema import event_schema
from precede.witness.reading import logs
from precede.witness.verify import verify
from tests.witness.every_way import verify_every_way
from tests.witness.histories import parse

LATE = "a: +1 a1\nb: a1 +1 b1\nc: b1 a1"


def csv_of(rows, separator=","):
    names = list(rows[0])
    lines = [separator.join(names)]
    lines += [separator.join("" if row[name] is None else str(row[name]) for name in names) for row in rows]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("engine", ["plain", "numba"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_csv(tmp_path, engine, separator):
    log = tmp_path / "log.csv"
    log.write_text(csv_of(parse(LATE).table(), separator))
    assert verify(log, engine=engine).counts == {"causal": 1}


@pytest.mark.parametrize("engine", ["plain", "numba"])
def test_csv_with_windows_line_ends_and_gzipped(tmp_path, engine):
    text = "\ufeff" + csv_of(parse(LATE).table()).replace("\n", "\r\n")
    log = tmp_path / "log.csv.gz"
    log.write_bytes(gzip.compress(text.encode()))
    assert verify(log, engine=engine).counts == {"causal": 1}


@pytest.mark.parametrize("engine", ["plain", "numba"])
def test_json_lines_whose_first_rows_lack_fields(tmp_path, engine, monkeypatch):
    monkeypatch.setattr(logs, "_LOOK_AHEAD", 2)
    monkeypatch.setattr(logs, "BATCH", 3)
    rows = parse("a: +1 a1 +2 a2\nb: a1 a2\nc: a1 a2").table()
    rows.sort(key=lambda row: row["message_number"])
    for row in rows:
        if row["kind"] == "broadcast" and row["message_number"] == 2:
            row["destinations"] = ["b"]
    log = tmp_path / "log.jsonl"
    log.write_text("\n\n".join(json.dumps(row) for row in rows))
    assert verify(log, "multicast", engine=engine).counts == {"not_addressed": 1}


@pytest.mark.parametrize("engine", ["plain", "numba"])
def test_numbers_as_text_and_names_as_numbers(tmp_path, engine):
    log = tmp_path / "log.jsonl"
    rows = [
        {"node": 1, "step": "1", "kind": "broadcast", "message_source": 1, "message_number": "10"},
        {"node": 1, "step": "2", "kind": "broadcast", "message_source": 1, "message_number": "9999"},
        {"node": 2.0, "step": 1, "kind": "delivered", "message_source": "1", "message_number": 9999},
        {"node": 2, "step": 2.0, "kind": "delivered", "message_source": 1.0, "message_number": 10},
    ]
    log.write_text("\n".join(json.dumps(row) for row in rows))
    verdict = verify(log, "fifo", engine=engine)
    assert verdict.counts == {"fifo": 1}
    assert verdict.first is not None
    assert verdict.first.message == "1:10"


def test_columns_by_other_names_and_opaque_ids():
    rows = [
        {"who": "a", "seq": 1, "what": "send", "uuid": "f00"},
        {"who": "b", "seq": 1, "what": "recv", "uuid": "f00"},
        {"who": "b", "seq": 2, "what": "send", "uuid": "bar"},
        {"who": "c", "seq": 1, "what": "recv", "uuid": "bar"},
        {"who": "c", "seq": 2, "what": "recv", "uuid": "f00"},
    ]
    options = {
        "columns": "node=who, step=seq, kind=what, message=uuid",
        "kinds": {"broadcast": "send", "delivered": "recv"},
    }
    verdict = verify(rows, "causal", **options)
    assert verdict == verify(rows, "causal", engine="numba", **options)
    assert verdict.first is not None
    assert verdict.first.chain == ("f00", "bar")
    ghost = [*rows, {"who": "c", "seq": 3, "what": "recv", "uuid": "nobody's"}]
    assert verify(ghost, "fifo", **options).counts == {"ghost": 1}
    assert verify(ghost, "fifo", engine="numba", **options).counts == {"ghost": 1}


def partitions(broken=()):
    rows = []
    for topic in ("t1", "t2", "t10"):
        for partition in (0, 1):
            text = LATE if (topic, partition) in broken else "a: +1 a1\nb: a1 +1 b1\nc: a1 b1"
            rows += [row | {"topic": topic, "partition": partition} for row in parse(text).table()]
    return rows


def test_many_independent_orders_in_one_log():
    assert verify_every_way(partitions(), "causal", by="topic,partition").verdict == "holds"
    verdict = verify_every_way(partitions({("t2", 1), ("t10", 0)}), "causal", by=["topic", "partition"])
    assert verdict.counts == {"causal": 2}
    assert [(dict(part.group)["topic"], part.verdict) for part in verdict.parts] == [
        *[("t1", "holds")] * 2,
        *[("t2", "holds"), ("t2", "violated"), ("t10", "violated"), ("t10", "holds")],
    ]
    assert verdict.first is not None
    assert dict(verdict.first.group) == {"topic": "t2", "partition": "1"}
    assert verdict.json()["first"]["by"] == {"topic": "t2", "partition": "1"}


def test_three_columns_split_as_well():
    rows = [row | {"region": region} for region in "xy" for row in partitions({("t1", 1)})]
    verdict = verify_every_way(rows, "causal", by="region,topic,partition")
    assert (len(verdict.parts), verdict.violations) == (12, 2)


def test_one_part_that_cannot_be_judged_makes_all_unknown():
    rows = [
        row for row in partitions() if (row["topic"], row["partition"], row["kind"]) != ("t1", 0, "delivered")
    ]
    verdict = verify_every_way(rows, "causal", by="topic,partition", steps="ordered")
    assert verdict.verdict == "unknown"
    assert [part.verdict for part in verdict.parts].count("unknown") == 1
    assert verdict.reasons == ("topic=t1, partition=0, no deliveries at all",)


def test_an_id_may_name_different_messages_in_different_parts():
    rows = []
    for part, sent, shown in (("x", "123", "123"), ("y", "21", "12"), ("z", "3142", "34129")):
        for step, number in enumerate(sent, 1):
            rows.append({"part": part, "node": "a", "step": step, "kind": "broadcast", "message": number})
        for step, number in enumerate(shown, 1):
            rows.append({"part": part, "node": "b", "step": step, "kind": "delivered", "message": number})
    verdict = verify_every_way(rows, "fifo", by="part")
    assert [part.violations for part in verdict.parts] == [0, 1, 2]
    assert [(one.kind, one.message) for one in verdict.listed] == [("fifo", "2"), ("ghost", "9"), ("fifo", "1")]


def test_runs_are_split_by_default():
    rows = [row | {"run_id": run} for run in ("r1", "r2") for row in parse(LATE).table()]
    verdict = verify_every_way(rows, "causal")
    assert (len(verdict.parts), verdict.violations) == (2, 2)
    assert verify_every_way(rows, "causal", by="run") == verdict


@pytest.mark.parametrize("engine", ["plain", "numba"])
def test_tables_in_memory(engine):
    rows = parse(LATE).table()
    holes = [{"node": 9, "step": 1, "kind": "started"}]
    numbered = [row | {"node": ord(row["node"]), "message_source": ord(row["message_source"])} for row in rows]
    for source in (
        pa.Table.from_pylist(rows),
        pa.RecordBatch.from_pylist(rows),
        pa.Table.from_pylist(rows).to_reader(),
        pd.DataFrame(rows),
        pd.DataFrame(numbered + holes),
        pl.DataFrame(rows),
    ):
        assert precede.verify(source, "causal", engine=engine).counts == {"causal": 1}


def in_our_schema(text, **more):
    rows = [
        {"run_id": "r", "incarnation": 0, "at_us": 0, "clock_us": 0, "message_incarnation": 0, **row, **more}
        for row in parse(text).table()
    ]
    return pa.Table.from_pylist(rows, schema=event_schema())


@pytest.mark.parametrize("engine", ["plain", "numba"])
@pytest.mark.parametrize(
    ("promise", "order"), [("fifo", "fifo"), ("causal", "causal"), ("none", "causal"), (None, "causal")]
)
def test_a_run_folder_is_verified_on_the_order_it_promises(tmp_path, engine, promise, order):
    pq.write_table(in_our_schema(LATE), tmp_path / "events.parquet", row_group_size=3)
    (tmp_path / "run.json").write_text(json.dumps({} if promise is None else {"order": promise}))
    verdict = verify(tmp_path, engine=engine)
    assert verdict.order == order
    assert verdict.verdict == ("holds" if order == "fifo" else "violated")
    assert verify(tmp_path, "total", engine=engine).order == "total"


@pytest.mark.parametrize("engine", ["plain", "numba"])
def test_a_folder_of_parquet_files_is_one_log(tmp_path, engine):
    table = in_our_schema(LATE)
    pq.write_table(table.slice(0, 3), tmp_path / "part-0.parquet")
    pq.write_table(table.slice(3), tmp_path / "part-1.parquet")
    pq.write_table(table.slice(3), tmp_path / "_half-written.parquet")
    assert verify(tmp_path, "causal", engine=engine).counts == {"causal": 1}


@pytest.mark.parametrize("engine", ["plain", "numba"])
def test_destinations_can_be_written_in_several_ways(engine):
    for written in ("b;c", "b c", "b, c", '["b", "c"]', ["b", "c"]):
        rows = parse("a: +1 a1\nb: a1\nc: a1\nd: a1").table()
        for row in rows:
            row["destinations"] = written if row["kind"] == "broadcast" else None
        verdict = verify(rows, "multicast", engine=engine)
        assert verdict.counts == {"not_addressed": 1}, written


def test_large_logs_are_read_with_numba(monkeypatch, tmp_path):
    monkeypatch.setattr(logs, "LARGE_TEXT_BYTES", 10)
    from precede.witness.reading import arrays

    used = []
    monkeypatch.setattr(arrays.ArrayBuilder, "read", lambda self, progress: used.append(1) or [])
    log = tmp_path / "log.csv"
    log.write_text(csv_of(parse(LATE).table()))
    with pytest.raises(precede.core.errors.BadInput):
        verify(log)
    assert used


def test_timestamps_can_be_steps():
    table = pa.table(
        {
            "node": ["a", "b"],
            "step": pa.array([5, 1_000_000], pa.timestamp("us")),
            "kind": ["broadcast", "delivered"],
            "message": ["x", "x"],
        }
    )
    for engine in ("plain", "numba"):
        assert verify(table, "causal", steps="ordered", engine=engine).verdict == "holds"


@pytest.mark.parametrize("hidden", ["_temporary/0", ".staging"])
def test_unfinished_files_of_a_folder_are_not_read(tmp_path, hidden):
    table = pa.Table.from_pylist(parse(LATE).table())
    (tmp_path / "year=2026").mkdir()
    pq.write_table(table, tmp_path / "year=2026" / "part-0.parquet")
    (tmp_path / hidden).mkdir(parents=True)
    pq.write_table(table, tmp_path / hidden / "part-1.parquet")
    assert verify(tmp_path).counts == {"causal": 1}


@pytest.mark.parametrize("engine", ["plain", "numba"])
def test_names_can_have_thousands_of_digits(engine):
    many = "1" * 5000
    rows = [row | {"node": many} if row["node"] == "c" else row for row in parse(LATE).table()]
    verdict = verify(rows, engine=engine)
    assert verdict.counts == {"causal": 1}
    assert verdict.first.node == many


@pytest.mark.parametrize("engine", ["plain", "numba"])
def test_rows_with_pandas_values_are_read(engine):
    rows = [row | {"destinations": None, "message_incarnation": pd.NA} for row in parse(LATE).table()]
    first = next(row for row in rows if row["kind"] == "broadcast")
    first["destinations"] = np.array(["b", "d"])
    assert verify(rows, engine=engine).counts == {"causal": 1, "not_addressed": 1}


def by_folder(folder, rows, *names):
    """Rows in folders named for some of their columns, as Hive does it."""
    for number, row in enumerate(rows):
        place = folder.joinpath(*(f"{name}={quote(str(row[name]), safe='')}" for name in names))
        place.mkdir(parents=True, exist_ok=True)
        kept = {name: value for name, value in row.items() if name not in names}
        pq.write_table(pa.Table.from_pylist([kept]), place / f"part-{number}.parquet")
    return folder


@pytest.mark.parametrize("engine", ["plain", "numba"])
@pytest.mark.parametrize("names", [("run_id",), ("run_id", "node"), ("run_id", "node", "step", "kind")])
def test_folder_names_can_be_columns(tmp_path, engine, names):
    kept = "a: +1 a1\nb: a1 +1 b1\nc: a1 b1"
    runs = {"7": LATE, "007": kept, "a/b c": LATE}
    rows = [row | {"run_id": run} for run, text in runs.items() for row in parse(text).table()]
    result = verify(by_folder(tmp_path / "log", rows, *names), engine=engine)
    assert result.counts == {"causal": 2}
    assert {part.group[0][1]: part.verdict for part in result.parts} == {
        "7": "violated",
        "007": "holds",
        "a/b c": "violated",
    }
    assert result.first.story == verify(rows, engine=engine).first.story


def test_folder_names_that_repeat_a_column_or_name_none(tmp_path):
    rows = [row | {"run_id": "r"} for row in parse(LATE).table()]
    (tmp_path / "run_id=other" / "_year=2026").mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "run_id=other" / "_year=2026" / "part.parquet")
    assert verify(tmp_path).first.group == (("run_id", "r"),)
    by_folder(tmp_path / "mixed", rows, "run_id")
    by_folder(tmp_path / "mixed", parse(LATE).table())
    with pytest.raises(precede.core.errors.BadInput, match="the columns differ from those of"):
        verify(tmp_path / "mixed")
    nobody = by_folder(
        tmp_path / "null", [row | {"node": "__HIVE_DEFAULT_PARTITION__"} for row in rows], "node"
    )
    with pytest.raises(precede.core.errors.BadInput, match="node is missing"):
        verify(nobody)


def test_a_log_can_have_more_files_than_may_be_open(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = len(os.listdir("/proc/self/fd")) + 40
    rows = [row | {"run_id": str(run)} for run in range(12) for row in parse(LATE).table()]
    folder = by_folder(tmp_path, rows, "run_id")
    assert len(list(folder.rglob("*.parquet"))) > 50
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (few, hard))
        assert verify(folder).counts == {"causal": 12}
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_parquet_log_is_verified_without_importing_pandas(tmp_path):
    log = tmp_path / "log.parquet"
    pq.write_table(pa.Table.from_pylist(parse(LATE).table()), log)
    program = (
        "import sys; from precede.witness.verify import verify; "
        f"print(verify({str(log)!r}, engine='numba').counts, 'pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "{'causal': 1} False\n"


def test_names_may_be_dictionaries_with_unsigned_indices(tmp_path):
    nodes = [f"n{node}" for node in range(200)]
    table = pa.table(
        {
            "node": pa.DictionaryArray.from_arrays(pa.array(range(200), pa.uint8()), nodes),
            "step": [1] * 200,
            "kind": ["broadcast"] + ["delivered"] * 199,
            "message_source": ["n0"] * 200,
            "message_number": [1] * 200,
        }
    )
    verdict = verify(table, engine="numba")
    assert (verdict.verdict, verdict.deliveries_checked) == ("holds", 199)


@pytest.mark.parametrize("engine", ["plain", "numba"])
def test_numbers_of_64_bits_are_not_confused(engine):
    """The second message has a number whose low 32 bits are those of the first."""
    rows = parse("a: +1 +2\nb: a1 a2").table()
    rows = [row | {"message_number": 2**32 + 1} if row["message_number"] == 2 else row for row in rows]
    assert verify(rows, engine=engine).verdict == "holds"
