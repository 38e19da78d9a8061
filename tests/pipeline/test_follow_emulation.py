"""`precede verify --follow` during an emulation with real nodes; forged rows are reported."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from precede.eventlog.schema import DELIVERED, STARTED
from precede.runtime.rows import write_rows
from tests.runtime.watched import Watched, running

LIMIT_S = 300.0


def forge(log: Path, emulation: Watched) -> None:
    """One more node, that delivers a message of the real ones twice."""
    until = time.monotonic() + LIMIT_S
    while True:
        for segment in sorted(log.rglob("events-*.parquet")):
            rows = pq.read_table(segment).to_pylist()
            real = [row for row in rows if row["kind"] == "delivered"]
            if real:
                one = real[0]
                id = (one["message_source"], one["message_incarnation"], one["message_number"])
                twice = [(DELIVERED, one["at_us"], *id, "", None, None)] * 2
                rows = [(STARTED, one["at_us"]), *twice]
                write_rows(rows, log / "intruder", one["run_id"], "intruder", 0, 0)
                return
        assert time.monotonic() < until
        assert emulation.process.poll() is None
        time.sleep(0.5)


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.parametrize("forged", [False, True])
def test_a_follower_reports_forged_rows_of_a_running_emulation(forged: bool, tmp_path: Path) -> None:
    out = tmp_path / "out"
    log = out / "log"
    hour = ("emulate", "city-bus", "--set", "end=1h", "--speed", "20", "--segment", "2", "--json")
    follow = (
        "verify",
        str(log),
        "--follow",
        "--idle",
        "30s",
        "--json",
        "--order",
        "delta",
        "--master",
        "local[2]",
    )
    with running(*hour, "--out", str(out)) as emulation:
        until = time.monotonic() + LIMIT_S
        while not list(log.rglob("events-*.parquet")):
            assert time.monotonic() < until
            time.sleep(0.2)
        with running(*follow) as follower:
            follower.until(lambda line: line.startswith("following"), "err", LIMIT_S)
            if forged:
                forge(log, emulation)
                began = time.monotonic()
                raised = json.loads(follower.line(seconds=LIMIT_S))
                took = time.monotonic() - began
                assert emulation.process.poll() is None, "it was raised while the nodes still lived"
                assert (raised["kind"], raised["node"]) == ("duplicate", "intruder")
                print(f"raised {took:.1f} s after the segment appeared")
            assert emulation.ended(LIMIT_S) == int(forged), "the batch verdict is the same"
            verdict = json.loads(follower.line(seconds=LIMIT_S))
            assert follower.ended(LIMIT_S) == int(forged)
    assert verdict["verdict"] == ("violated" if forged else "holds")
    assert verdict["violations"] == int(forged)
    emulation = json.loads((out / "emulation.json").read_text())
    assert verdict["deliveries_checked"] == emulation["deliveries_checked"]
