"""`precede verify kafka://… --follow`: against librdkafka's mock broker on loopback."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from random import Random

import pyarrow.parquet as pq
import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

from precede.cli import main
from precede.core.errors import BadInput, Unavailable
from precede.pipeline.following.follow import follow
from precede.pipeline.following.kafka_source import KafkaReader, Slice
from precede.pipeline.following.messages import NAMES, Decoder, read_url
from precede.pipeline.judging.query import settle_query
from precede.witness.reading.column_names import DELIVERED
from precede.witness.verify import verify
from tests.pipeline.broker import Broker
from tests.pipeline.cluster import kill_tree
from tests.pipeline.segments import make_run

BAD = (
    (b"not JSON", "not a JSON object"),
    (b"[1]", "not a JSON object"),
    (b"\xff\xfe", "not a JSON object"),
    (b'{"node": "a", "step": 0, "kind": "sent"}', "run_id is missing"),
    (b'{"run_id": "r", "step": 0, "kind": "sent"}', "node is missing"),
    (b'{"run_id": "r", "node": "a", "kind": "sent"}', "step is missing"),
    (b'{"run_id": "r", "node": "a", "step": -1, "kind": "sent"}', "step is out of range: -1"),
    (b'{"run_id": "r", "node": "a", "step": true, "kind": "sent"}', "step is not a whole number: True"),
    (b'{"run_id": "r", "node": "a", "step": 1e99, "kind": "sent"}', "step is too large"),
    (b'{"run_id": "r", "node": "a", "step": 0}', "kind is missing"),
    (b'{"run_id": "r", "node": "a", "step": 0, "kind": "delivered"}', "message_number is missing"),
    (
        b'{"run_id": "r", "node": "a", "step": 0, "kind": "delivered", "message_number": 1}',
        "message_source is missing",
    ),
    (
        b'{"run_id": "r", "node": "a", "step": 0, "kind": "broadcast", "message_number": 1, "destinations": 5}',
        "destinations are not a list: 5",
    ),
    (b"{" * 5000, "not a JSON object"),
)


def decoder(order="causal"):
    query, layout = settle_query(NAMES, order, keep_times=True)
    return Decoder(layout, query.order)


@pytest.mark.parametrize(("value", "cause"), [*BAD, (None, "the message has no value")])
def test_a_message_that_is_no_row_is_rejected_with_its_place_and_the_cause(value, cause):
    row = decoder().decode("events", 3, 17, value, 1.5)
    assert json.loads(row["place"]) == ["events", 3, 17]
    assert row["cause"].startswith(cause)
    assert len(row["cause"]) <= 200


def test_a_message_is_a_row_of_the_event_log():
    message = {"run_id": 7, "node": "a", "step": 4, "kind": "delivered", "message_source": "b"}
    row = decoder().decode("t", 0, 0, json.dumps(message | {"message_number": 2}).encode(), 1.5)
    assert (row["by0"], row["node"], row["step"], row["kind"]) == ("7", "a", 4, DELIVERED)
    assert (row["source"], row["number"], row.get("cause")) == ("b", 2, None)
    broadcast = {"run_id": "r", "node": "a", "step": 4, "kind": "broadcast", "message_number": 2}
    row = decoder("multicast").decode("t", 0, 0, json.dumps(broadcast).encode(), 1.5)
    assert row["cause"] == "destinations is missing: multicast order needs it (null means all)"
    row = decoder("multicast").decode("t", 0, 0, json.dumps(broadcast | {"destinations": ["b"]}).encode(), 1.5)
    assert row["to"] == '["b"]'


@pytest.mark.parametrize("url", ["kafka://", "kafka://host:1", "kafka:///topic", "kafka://host:1/a/b"])
def test_a_bad_url_prints_one_line(capsys, url, tmp_path):
    with pytest.raises(BadInput, match=re.escape("expected kafka://HOST:PORT/TOPIC")):
        read_url(url)
    assert main(["verify", url, "--follow", "--checkpoint", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_settings_of_the_source_come_from_files_too(tmp_path, capsys):
    url = ["verify", "kafka://127.0.0.1:1/t", "--follow", "--checkpoint", str(tmp_path)]
    (tmp_path / "client").write_text("# secret\nkafka.sasl.password=x\nnonsense\n")
    for given, expected_text in (
        (str(tmp_path / "client"), "line 3: expected KEY=VALUE"),
        ("nowhere", "nor a file"),
    ):
        assert main([*url, "--kafka", given]) == 2
        assert expected_text in capsys.readouterr().err


def test_the_reader_gives_each_message_once_and_bounds_a_batch():
    broker = Broker("rows")
    broker.send([b"%d" % number for number in range(50)])
    reader = KafkaReader({"kafka.bootstrap.servers": broker.servers, "subscribe": "rows"})
    at, seen = reader.initialOffset(), []
    for _ in range(10):
        end = reader.latestOffset(at, ReadMaxRows(7))
        for part in reader.partitions(at, end):
            seen += [int(row[1]) for row in reader.read(part)]
        at = end
    assert seen == list(range(50))
    assert reader.partitions(at, reader.latestOffset(at, ReadMaxRows(7))) == []
    with pytest.raises(Unavailable, match="rows, partition 0, offset 90"):
        list(reader.read(Slice("rows", 0, 90, 95)))
    reader.stop()


def rows_of(run):
    return [
        {name: value for name, value in row.items() if value is not None} for own in run.values() for row in own
    ]


def table(checkpoint, name):
    return pq.read_table(checkpoint / "tables" / name).to_pylist()


@pytest.mark.spark
def test_a_topic_is_followed_and_bad_messages_are_rejected(session, tmp_path):
    broker, checkpoint = Broker("events"), tmp_path / "state"
    rows = rows_of(make_run("right")) + rows_of(make_run("wrong", faults=("causal", "duplicate")))
    Random(1).shuffle(rows)
    half = len(rows) // 2
    broker.send(rows[:half] + [value for value, _ in BAD])
    with pytest.raises(BadInput, match="needs --checkpoint"):
        follow(session, broker.url)
    first = follow(session, broker.url, checkpoint=checkpoint, idle_s=3)
    assert first.rows == half
    broker.send([*rows[half:], *rows[:20]])
    verdict = follow(
        session, broker.url, checkpoint=checkpoint, idle_s=3, kafka={"maxOffsetsPerTrigger": "400"}
    )
    whole = verify(rows, "causal", by="run_id")
    assert (verdict.verdict, verdict.counts, verdict.rows) == (whole.verdict, whole.counts, whole.rows)
    rejects = table(checkpoint, "rejects")
    assert len({row["offset"] for row in rejects}) == len(rejects) == len(BAD)
    assert {(row["topic"], row["partition"]) for row in rejects} == {("events", 0)}
    assert all(any(row["cause"].startswith(cause) for _, cause in BAD) for row in rejects)
    found = [(row["run_id"], row["kind"], row["node"], row["step"]) for row in table(checkpoint, "violations")]
    expected = [(dict(one.group)["run_id"], one.kind, one.node, one.step) for one in whole.listed]
    assert sorted(found) == sorted(expected)
    assert {row["run_id"]: row["verdict"] for row in table(checkpoint, "verdicts")} == {
        "right": "holds",
        "wrong": "violated",
    }
    metrics = (checkpoint / "metrics.prom").read_text().splitlines()
    assert 'precede_follow_violations_total{kind="causal"} 1' in metrics
    assert f"precede_follow_rejects_total {len(BAD)}" in metrics
    assert f"precede_follow_rows_total {len(rows)}" in metrics


def start_follower(url, checkpoint):
    command = [sys.executable, "-c", "import sys; from precede.cli import main; sys.exit(main())"]
    arguments = ["verify", url, "--follow", "--checkpoint", str(checkpoint), "--idle", "20s", "--json"]
    limits = ["--kafka", "maxOffsetsPerTrigger=60", "--master", "local[2]"]
    return subprocess.Popen(
        [*command, *arguments, *limits], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("kills", [6])
def test_the_tables_are_exact_although_the_follower_is_killed_at_random_moments(tmp_path, kills):
    broker, checkpoint, random = Broker("events"), tmp_path / "state", Random(5)
    runs = [
        make_run(f"r{number}", messages=150, faults=("causal", "duplicate"), seed=number) for number in range(3)
    ]
    rows = [row for run in runs for row in rows_of(run)]
    random.shuffle(rows)
    broker.send([*rows, *(value for value, _ in BAD)])
    for kill in range(kills):
        follower = start_follower(broker.url, checkpoint)
        done = checkpoint / "ledger.json"
        before = json.loads(done.read_text())["batch"] if done.is_file() else -1
        until = time.monotonic() + 200
        while not (done.is_file() and json.loads(done.read_text())["batch"] > before):
            assert follower.poll() is None, follower.communicate(timeout=60)
            assert time.monotonic() < until
            time.sleep(0.02)
        time.sleep(random.random() * 2)
        os.kill(follower.pid, signal.SIGKILL) if kill % 2 else kill_tree(follower.pid)
        kill_tree(follower.pid)
        follower.communicate(timeout=60)
    last = start_follower(broker.url, checkpoint)
    out, err = last.communicate(timeout=400)
    assert last.returncode == 1, err
    verdict, whole = json.loads(out.splitlines()[-1]), verify(rows, "causal", by="run_id")
    assert (verdict["rows"], verdict["counts"]) == (whole.rows, whole.counts)
    found = [(row["run_id"], row["kind"], row["node"], row["step"]) for row in table(checkpoint, "violations")]
    expected = [(dict(one.group)["run_id"], one.kind, one.node, one.step) for one in whole.listed]
    assert sorted(found) == sorted(expected)
    assert len(table(checkpoint, "rejects")) == len(BAD)
    assert sorted(row["violations"] for row in table(checkpoint, "verdicts")) == [2, 2, 2]
