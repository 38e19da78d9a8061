"""Answers to answers: a run whose answers die out ends; one whose answers grow is refused in one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from precede.core.errors import BadInput
from precede.eventlog.sinks import TableSink
from precede.experiments.run import Outcome, Run, carry_out

OFFICE: dict[str, Any] = {"kind": "point_to_point", "nodes": 5, "delay": "10ms"}
ONE_QUESTION = {"script": [{"src": "0", "at": "1s"}], "reply_after": "exponential(0.02)", "until": "1h"}

pytestmark = pytest.mark.timeout(60)


def carried_out(workload: dict[str, Any], world: dict[str, Any] = OFFICE, **run: Any) -> tuple[Outcome, int]:
    sink = TableSink()
    outcome = carry_out(Run(world=world, workload=workload, protocol="fifo", **run), sink)
    return outcome, sink.events()["kind"].to_pylist().count("broadcast")


@pytest.mark.parametrize("replies", [0.5, 0.3])
def test_more_than_one_answer_to_a_message_is_refused(replies: float) -> None:
    questions = [{"src": "0", "at": f"{number}s"} for number in range(10)]
    with pytest.raises(BadInput, match=r"replies: 2,001 answers to 10 messages .* \(below 1/4 they die out\)"):
        carried_out({**ONE_QUESTION, "script": questions, "replies": replies})


def test_less_than_one_answer_to_a_message_dies_out() -> None:
    talk = {"poisson": "100ms", "until": "60s", "replies": 0.2}
    _, messages = carried_out(talk)
    assert 5 * 3000 * 0.7 < messages < 5 * 3000 * 1.4, "3000 of themselves, and 1/(1 - 0.8) with all answers"


def test_answers_are_counted_by_the_nodes_that_a_message_reaches(tmp_path: Path) -> None:
    """Of 40 nodes only pairs meet: a message causes 0.5 answers on average, not 19.5."""
    pairs = ["a,b,start,end", *(f"{2 * pair},{2 * pair + 1},0,100" for pair in range(20))]
    (tmp_path / "contacts.csv").write_text("\n".join(pairs) + "\n", encoding="utf-8")
    world = {"kind": "contacts", "contacts": "contacts.csv"}
    _, messages = carried_out({"every": "1s", "replies": 0.5, "until": "90s"}, world, base=str(tmp_path))
    assert messages == pytest.approx(2 * 40 * 90, rel=0.1)


def test_a_multicast_has_no_more_receivers_than_destinations() -> None:
    talk = {"poisson": "100ms", "until": "20s", "replies": 0.4, "to": 2}
    sink = TableSink()
    carry_out(Run(world=OFFICE, workload=talk, protocol="prs"), sink)
    assert sink.events().num_rows


def test_two_nodes_may_answer_each_other_as_long_as_answers_take_time() -> None:
    two = {"kind": "point_to_point", "nodes": 2, "delay": "10ms"}
    question = {"script": [{"src": "0", "at": "1s"}], "replies": 1, "until": "31s"}
    assert carried_out(question, two)[1] == 3001
    with pytest.raises(BadInput, match=r"replies: .* without end"):
        carried_out(question, {**two, "delay": "0s"})


@pytest.mark.parametrize("workload", [{"every": "1s"}, {**ONE_QUESTION, "until": "none", "replies": 0.25}])
def test_an_endless_workload_needs_an_end_of_the_run(workload: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="until: endless messages in an endless world"):
        carried_out(workload)
    assert carried_out(workload, end="5s")[1]


def test_the_command_prints_file_line_and_cause(tmp_path: Path) -> None:
    scenario = tmp_path / "talk.toml"
    scenario.write_text(
        '[world]\nkind = "point_to_point"\nnodes = 8\ndelay = "10ms"\n'
        '[workload]\npoisson = "1s"\nuntil = "30s"\nreplies = 0.9\n[run]\nprotocol = "fifo"\n'
    )
    command = [sys.executable, "-m", "precede", "simulate", str(scenario), "--out", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert f"{scenario}:8: replies: " in done.stderr
    assert not list(tmp_path.glob("out/*"))
