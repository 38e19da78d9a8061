"""Agreement of a known membership on Spark and in a follower: the verdicts of one process."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from precede.pipeline.following.follow import follow
from precede.pipeline.judging import files, frames
from precede.witness.reading.column_names import BROADCAST, DELIVERED
from precede.witness.verify import verify
from tests.pipeline.segments import Writer, make_run
from tests.pipeline.test_follow import followed
from tests.witness.test_agreement import ALONE, DISAGREE, LACKS, TOGETHER, rows

MEMBERS = "a,b,c"


def from_step_0(text):
    """The rows of a history, with steps that count from 0."""
    return [{**row, "step": row["step"] - 1} for row in rows(text)]


def live(folder, log, members, order="total"):
    """The verdict of a follower about these rows."""
    kinds = {"broadcast": BROADCAST, "delivered": DELIVERED}
    given = [
        {**row, "kind": kinds[row["kind"]], "source": row["message_source"], "number": row["message_number"]}
        for row in log
    ]
    return followed(folder, order, given, members)


@pytest.mark.parametrize("text", [ALONE, TOGETHER, LACKS, DISAGREE])
@pytest.mark.parametrize("members", [None, "a,b", "a,b,c", "a,b,c,d"])
def test_a_follower_gives_the_verdict_of_one_process(tmp_path, text, members):
    log = from_step_0(text)
    there, here = live(tmp_path, log, members), verify(log, "total", members=members)
    assert (there.verdict, there.counts, there.reasons) == (here.verdict, here.counts, here.reasons)
    if "agreement" in here.counts:
        assert there.first.node == here.first.node
        assert f"{there.first.message}; {there.first.node} never did." in there.first.story


def test_members_of_other_orders_need_not_agree(tmp_path):
    assert live(tmp_path, from_step_0(LACKS), MEMBERS, "causal").verdict == "holds"


def test_rows_that_have_not_arrived_prove_no_lack(tmp_path):
    """Everything is delivered, but the first row of c is missing: c waits, and lacks nothing."""
    log = [row for row in from_step_0(TOGETHER) if (row["node"], row["step"]) != ("c", 0)]
    found = live(tmp_path, log, MEMBERS)
    assert (found.verdict, found.counts) == ("unknown", {})


@pytest.mark.spark
def test_spark_gives_the_verdict_of_one_process(session, tmp_path):
    texts = {"alone": ALONE, "together": TOGETHER, "lacks": LACKS}
    log = [{"run_id": name, **row} for name, text in texts.items() for row in rows(text)]
    here = verify(log, "total", members=MEMBERS)
    assert here.counts == {"agreement": 7}
    path = tmp_path / "log"
    path.mkdir()
    pq.write_table(pa.Table.from_pylist(log[::2]), path / "a.parquet")
    pq.write_table(pa.Table.from_pylist(log[1::2]), path / "b.parquet")
    there = files.verify_path(session, str(path), "total", members=MEMBERS)
    assert (there.verdict, there.counts, there.parts) == (here.verdict, here.counts, here.parts)
    frame = frames.verify(session.read.parquet(str(path)), "total", members=MEMBERS)
    found = {row["run_id"]: row["verdict"] for row in frame.collect()}
    assert found == {"alone": "violated", "together": "holds", "lacks": "violated"}
    single = tmp_path / "one.parquet"
    pq.write_table(pa.Table.from_pylist(rows(LACKS)), single)
    there = files.verify_path(session, str(single), "total", members=MEMBERS)
    assert there == verify(str(single), "total", members=MEMBERS)


@pytest.mark.spark
def test_a_follower_on_spark_reads_the_members_from_run_json(session, tmp_path):
    run = make_run("r", nodes=3, messages=5)
    del run["n2"][-1]  # n2 lacks the last message
    writer = Writer(tmp_path)
    for name, own in run.items():
        writer.write(name, own)
    (tmp_path / "run.json").write_text(json.dumps({"order": "total", "members": ["n0", "n1", "n2"]}))
    verdict = follow(session, tmp_path, idle_s=3)
    assert (verdict.order, verdict.counts) == ("total", {"agreement": 1})
    assert verdict.first.node == "n2"
