"""Parts of the pipeline that need no Spark session: queries, units of files, ledgers, summaries."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from precede.core.errors import BadInput
from precede.core.instants import HOUR
from precede.pipeline.following.follow import RETAIN_US, _check_layout
from precede.pipeline.following.ledger import Ledger
from precede.pipeline.judging.files import _whole_orders
from precede.pipeline.judging.packing import divide
from precede.pipeline.judging.query import settle_query
from precede.pipeline.reproduction.reproduce import _summarise
from precede.pipeline.sessions.pack import pack
from precede.pipeline.sessions.session import _close, _environment
from precede.pipeline.sweeps.groups import summarised
from precede.pipeline.sweeps.worlds import Block, _rows
from precede.witness.reading.partitions import Piece

COLUMNS = ("run_id", "node", "step", "kind", "message_source", "message_number")


def test_a_query_refuses_display_order_and_groups_named_like_an_answer() -> None:
    query, _ = settle_query(COLUMNS, "fifo", by="run_id")
    assert query.order == "fifo"
    with pytest.raises(BadInput, match="display order is judged in one process"):
        settle_query(COLUMNS, "display", by="run_id")
    with pytest.raises(BadInput, match="would collide with the answer's"):
        settle_query((*COLUMNS, "verdict"), "fifo", by="verdict")


def test_a_follower_needs_numbered_messages_steps_and_runs() -> None:
    _check_layout("log", settle_query(COLUMNS, "fifo", by="run_id")[1])
    opaque = ("run_id", "node", "step", "kind", "message")
    for names, by, cause in (
        (opaque, "run_id", "not one opaque id"),
        (COLUMNS[1:], None, "names the run"),
    ):
        with pytest.raises(BadInput, match=cause):
            _check_layout("log", settle_query(names, "fifo", by=by)[1])
    assert RETAIN_US == 24 * HOUR


def written(path: Path, runs: list[str], rows_a_group: int = 2) -> Piece:
    pq.write_table(pa.table({"run_id": runs}), path, row_group_size=rows_a_group)
    return Piece(path)


def test_files_are_divided_into_units_of_whole_row_groups(tmp_path: Path) -> None:
    long, short = written(tmp_path / "a.parquet", ["r"] * 9), written(tmp_path / "b.parquet", ["r"] * 2)
    units = [(unit.piece, unit.groups, unit.rows) for unit in divide([long, short], 4)]
    assert units == [(long, (0, 1), 4), (long, (2, 3), 4), (long, (4,), 1), (short, (0,), 2)]


def test_orders_are_whole_if_none_lies_in_two_files(tmp_path: Path) -> None:
    files = [written(tmp_path / f"{name}.parquet", [name] * 2) for name in ("a", "b")]
    assert _whole_orders(files, ["run_id"])
    assert not _whole_orders([*files, written(tmp_path / "more.parquet", ["a"] * 2)], ["run_id"])


@pytest.mark.parametrize("spoilt", ["query", "buckets", "format"])
def test_a_ledger_is_continued_only_with_its_own_query(tmp_path: Path, spoilt: str) -> None:
    query, layout = settle_query(COLUMNS, "fifo", by="run_id")
    Ledger.open(tmp_path, query, layout.columns, 3)
    Ledger.open(tmp_path, query, layout.columns)
    stored = json.loads((tmp_path / "question.json").read_text())
    assert stored["buckets"] == 3
    (tmp_path / "question.json").write_text(json.dumps({**stored, spoilt: "other"}))
    with pytest.raises(BadInput, match="was begun"):
        Ledger.open(tmp_path, query, layout.columns)


def test_a_group_of_one_run_has_no_deviation_and_no_interval() -> None:
    assert summarised([5.0]) == {
        "scope": "group",
        "value": 5.0,
        "runs": 1,
        "sd": None,
        "low": None,
        "high": None,
    }
    two = summarised([4.0, 6.0])
    assert two["sd"] == pytest.approx(2**0.5)
    assert two["low"] < 4.0
    assert two["high"] > 6.0


def test_a_block_of_worlds_names_its_first_and_last_seed() -> None:
    (row,) = _rows("fifo", {2: Block("v", seeds=0b101, failing=(130, 128))})
    assert (row["first_seed"], row["last_seed"], row["worlds"]) == (128, 191, 2)
    assert row["failing_seeds"] == ["128", "130"]


def test_violations_of_all_units_are_added_and_units_that_were_not_verified_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("precede.pipeline.reproduction.reproduce.sample_of", lambda unit, mark: unit)
    monkeypatch.setattr("precede.pipeline.reproduction.reproduce.judge", lambda *given: [])
    one: Any = SimpleNamespace(request=SimpleNamespace(folder=tmp_path, scale="quick"), claims=None)
    marks: Any = [
        (
            SimpleNamespace(id=str(place)),
            {"status": "finished", "violations": found, "version": "v", "cpu_s": 1.0},
        )
        for place, found in enumerate([2, None, 0, 3])
    ]
    marks.append((SimpleNamespace(id="x"), {"status": "failed", "error": "e", "version": "v", "cpu_s": 1.0}))
    result = _summarise(one, marks, 1)
    assert (result.units, result.finished_before, result.failed) == (5, 1, ("x: e",))
    assert (result.violations, result.unverified, result.cpu_s) == (5, 1, 5.0)


def test_the_environment_is_as_before_after_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "another")
    monkeypatch.setenv("PYSPARK_PYTHON", "/one")
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    monkeypatch.setattr("precede.pipeline.sessions.session.find_java_home", lambda: Path("/java"))
    with _environment("local[2]", "/other"):
        assert os.environ["PYSPARK_PYTHON"] == "/other"
        assert "PYSPARK_SUBMIT_ARGS" not in os.environ
    assert (os.environ["PYSPARK_SUBMIT_ARGS"], os.environ["PYSPARK_PYTHON"]) == ("another", "/one")
    assert "SPARK_LOCAL_IP" not in os.environ


def test_a_session_that_is_closed_leaves_no_gateway_to_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark import SparkContext

    monkeypatch.setattr(SparkContext, "_gateway", object())
    monkeypatch.setattr(SparkContext, "_jvm", object())
    _close(SimpleNamespace(shutdown=lambda: None), io.BytesIO())
    assert SparkContext._gateway is None
    assert SparkContext._jvm is None


def test_an_archive_has_a_name_that_spark_unpacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise NotADirectoryError("the name was accepted")

    monkeypatch.setattr("precede.pipeline.sessions.pack.package_files", stop)
    with pytest.raises(BadInput, match=r"end with \.tar\.gz"):
        pack(tmp_path / "pack.zip", bare=True)
    with pytest.raises(NotADirectoryError):
        pack(tmp_path / "pack.tgz", bare=True)
