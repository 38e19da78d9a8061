"""`precede verify --follow`: exactly the violations are reported, even if segments are late or repeated."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from random import Random
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from precede.cli import main
from precede.core.errors import BadInput
from precede.pipeline.following import follow as follow_module
from precede.pipeline.following.follow import Batches, _wait, follow
from precede.pipeline.following.ledger import FORMAT, Ledger, _Page
from precede.pipeline.following.rows import ABSENT, arrow_schema
from precede.pipeline.following.standings import Standing, StateFile
from precede.pipeline.following.state import Judge
from precede.pipeline.judging.answers import combine
from precede.pipeline.judging.query import settle_query
from precede.witness.live import state
from precede.witness.live.ranges import Numbers, Ranks
from precede.witness.reading.column_names import BROADCAST, DELIVERED
from precede.witness.verify import verify
from tests.pipeline.cluster import kill_tree
from tests.pipeline.segments import Writer, make_run, pieces


def violations_in(reports_so_far):
    return sorted(
        (one.standing.group[0], violation.kind, violation.node, violation.step)
        for one in reports_so_far
        for violation in one.standing.violations
    )


def planted(run_id):
    """The violations of `make_run` with both faults."""
    return [(run_id, "causal", "n5", 12), (run_id, "duplicate", "n1")]


@pytest.mark.spark
def test_exactly_the_planted_faults_are_reported_for_late_and_repeated_segments(session, tmp_path):
    random = Random(7)
    folder = tmp_path / "the segments"
    folder.mkdir()
    writer = Writer(folder)
    runs = {
        "right": make_run("right"),
        "wrong": make_run("wrong", faults=("causal", "duplicate")),
    }
    work = [piece for run in runs.values() for piece in pieces(run, 7, random)]
    random.shuffle(work)

    reports_so_far, begun = [], threading.Event()

    def report(reports):
        reports_so_far.extend(reports)
        begun.set()

    def write():
        for name, rows in work[::2]:
            writer.write(name, rows)
        assert begun.wait(120)
        for at, (name, rows) in enumerate(work[1::2]):
            writer.write(name, rows)
            if at % 20 == 19:
                time.sleep(0.3)

    nodes = threading.Thread(target=write)
    nodes.start()
    verdict = follow(session, folder, "causal", idle_s=6, report=report)
    nodes.join()
    assert len({one.batch for one in reports_so_far}) > 1
    assert [one[:3] for one in violations_in(reports_so_far)] == [one[:3] for one in planted("wrong")]
    violation = next(v for one in reports_so_far for v in one.standing.violations if v.kind == "causal")
    assert "too late" in violation.story
    assert {part.group[0][1]: part.verdict for part in verdict.parts} == {"right": "holds", "wrong": "violated"}
    assert verdict.counts == {"causal": 1, "duplicate": 1}
    distinct = sum(len(own) for run in runs.values() for own in run.values())
    assert verdict.rows == distinct
    # run again, the follower reports nothing new and gives the same verdict
    again = []
    repeated = follow(session, folder, "causal", idle_s=3, report=again.extend)
    assert (violations_in(again), repeated) == ([], verdict)
    with pytest.raises(BadInput, match="begun with other options"):
        follow(session, folder, "fifo", idle_s=1)
    (folder / "_follow" / "question.json").write_text('{"order":"causal"}')
    with pytest.raises(BadInput, match="by another version"):
        follow(session, folder, "causal", idle_s=1)
    rows = [row for run in runs.values() for own in run.values() for row in own]
    assert verify(rows, "causal").counts == verdict.counts


def start_follower(folder):
    command = [sys.executable, "-c", "import sys; from precede.cli import main; sys.exit(main())"]
    arguments = ["verify", str(folder), "--follow", "--idle", "15s", "--json", "--master", "local[2]"]
    return subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.long
@pytest.mark.spark
def test_a_killed_follower_continues(tmp_path):
    folder = tmp_path / "segments"
    folder.mkdir()
    writer = Writer(folder)
    run = make_run("r", messages=200, faults=("causal", "duplicate"))
    work = pieces(run, 11, Random(3))
    early, late = work[: len(work) // 2], work[len(work) // 2 :]
    for name, rows in early:
        writer.write(name, rows)
    first = start_follower(folder)
    until = time.monotonic() + 120
    while not (folder / "_follow" / "ledger.json").is_file():
        assert first.poll() is None, first.communicate(timeout=60)
        assert time.monotonic() < until
        time.sleep(0.05)
    for name, rows in late[: len(late) // 2]:
        writer.write(name, rows)
    kill_tree(first.pid)
    out, _ = first.communicate(timeout=60)
    for name, rows in late[len(late) // 2 :]:
        writer.write(name, rows)
    second = start_follower(folder)
    more, err = second.communicate(timeout=240)
    assert second.returncode == 1, err
    *reported, verdict = [json.loads(line) for line in more.splitlines()]
    assert verdict["counts"] == {"causal": 1, "duplicate": 1}
    assert verdict["rows"] == sum(map(len, run.values()))
    reported += [json.loads(line) for line in out.splitlines()]
    assert {one["kind"] for one in reported} == {"causal", "duplicate"}
    assert len(reported) <= 3  # at most one batch is reported twice
    kept = pq.read_table(folder / "_follow" / "tables" / "violations").to_pylist()
    assert sorted(row["kind"] for row in kept) == ["causal", "duplicate"]


@pytest.mark.parametrize(
    ("arguments", "expected_text"),
    [
        (["--follow", "--steps", "ordered"], "needs counted steps"),
        (["--idle", "3s"], "need --follow"),
        (["--retain", "3s"], "need --follow"),
        (["--follow", "--kafka", "a=b"], "--kafka needs a topic"),
        (["--follow", "--idle", "soon"], "soon"),
    ],
)
def test_bad_calls_print_one_line(tmp_path, capsys, arguments, expected_text):
    assert main(["verify", str(tmp_path), *arguments]) == 2
    error = capsys.readouterr().err
    assert expected_text in error
    assert error.count("\n") == 1


@pytest.mark.spark
def test_bad_folders_are_refused(session, tmp_path):
    with pytest.raises(BadInput, match="no such folder"):
        follow(session, tmp_path / "nowhere")
    with pytest.raises(BadInput, match="no Parquet segment came"):
        follow(session, tmp_path, idle_s=0.5)
    (tmp_path / "a-1.parquet").write_text("not one")
    with pytest.raises(BadInput, match="not a Parquet file"):
        follow(session, tmp_path, idle_s=1)


class SlowStream:
    """Stands for a streaming query; its status messages follow one another, one second each."""

    def __init__(self, messages):
        self.messages, self.seconds = messages, 0

    def awaitTermination(self, timeout):  # noqa: N802 (the name that Spark gives it)
        self.seconds += 1
        return False

    @property
    def status(self):
        return {"message": self.messages[min(self.seconds, len(self.messages)) - 1]}


@pytest.mark.parametrize(
    ("messages", "seconds"),
    [
        (["Getting offsets"] * 20 + ["Processing new data"] + ["Waiting for data"], 21 + 6),
        (["Getting offsets", "Waiting for data"] + ["Getting offsets"] * 20, 1 + 6),
        (["Initializing sources"] * 9 + ["Waiting for data"], 9 + 6),
    ],
)
def test_idle_time_counts_from_the_end_of_the_first_listing(monkeypatch, messages, seconds):
    stream = SlowStream(messages)
    monkeypatch.setattr(follow_module.time, "monotonic", lambda: stream.seconds)
    _wait(stream, Batches(None, None, None, None, ""), idle_s=5)
    assert stream.seconds == seconds


def followed(folder, order, rows, members=None):
    """The verdict of a follower after one batch with these rows, without Spark."""
    columns = ["run_id", *rows[0]]
    query, layout = settle_query(columns, order, members=members)
    absent = {"by0": "r", "source_incarnation": -1, "to": "", "deadline": ABSENT, "clock": ABSENT}
    absent |= {"written": 0.0, "incarnation": 0}
    table = pa.Table.from_pylist([absent | row for row in rows], arrow_schema(query.by))
    ledger = Ledger.open(folder, query, layout.columns)
    report = Judge(query, None, str(folder), 0, {}).judge(1, table)
    ledger.enter(0, [report])
    ledger.close(0, [report])
    again = Ledger.open(folder, query, layout.columns).answers()
    assert again == ledger.answers()
    return combine(again, layout.by)


@pytest.mark.parametrize(
    ("order", "columns", "verdict", "expected_text"),
    [
        ("multicast", {}, "unknown", "needs the column destinations"),
        ("multicast", {"destinations": None, "to": "b"}, "holds", ""),
        ("delta", {}, "unknown", "no broadcast row has a deadline_us"),
        ("delta", {"deadline": 9, "clock": 9}, "holds", ""),
        ("delta", {"deadline": 9}, "unknown", "a delivered row has no clock_us"),
        ("causal", {}, "holds", ""),
    ],
)
def test_missing_columns_that_an_order_needs_make_the_verdict_unknown(
    tmp_path, order, columns, verdict, expected_text
):
    rows = [
        {"node": node, "step": 0, "kind": kind, "source": "a", "number": 1, **columns}
        | {"message_source": "a", "message_number": 1}
        for node, kind in (("a", BROADCAST), ("b", DELIVERED))
    ]
    found = followed(tmp_path, order, rows)
    assert found.verdict == verdict
    assert expected_text in " ".join(found.reasons)


@pytest.mark.parametrize(
    ("file", "content", "expected_text"),
    [
        ("question.json", b'{"order":"causal","columns":{},"by":["run_id"]}', "by another version of precede"),
        ("question.json", b'{"format":1}', "by another version of precede"),
        ("question.json", b"[]", "question.json: Expected `object`"),
        ("question.json", b'{"format":', "question.json: Input data was truncated"),
        ("ledger.json", b'{"batch":3,"buckets":{"1":[{}]}}', "ledger.json: Object missing required field"),
        ("ledger.json", b"", "ledger.json: Input data was truncated"),
    ],
)
def test_a_damaged_checkpoint_or_one_of_another_format_is_bad_input(tmp_path, file, content, expected_text):
    columns = ("run_id", "node", "step", "kind", "message_source", "message_number")
    query, _ = settle_query(columns, "causal")
    Ledger.open(tmp_path, query, columns).close(0, [])
    Ledger.open(tmp_path, query, columns)
    (tmp_path / file).write_bytes(content)
    with pytest.raises(BadInput, match="name another --checkpoint") as refused:
        Ledger.open(tmp_path, query, columns)
    assert expected_text in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_stored_fields_change_only_with_the_format_number():
    stored = (
        state.RunFacts,
        state.Process,
        state.Message,
        state.Missed,
        Numbers,
        Ranks,
        Standing,
        StateFile,
        _Page,
    )
    fields = [struct.__struct_fields__ for struct in stored]
    assert (FORMAT, crc32(repr(fields).encode())) == (6, 336947967)
