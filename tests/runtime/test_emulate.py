"""`precede emulate`: real processes run a scenario and are compared with its simulation; no process is left."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from precede.core.plan import Plan, Stay
from precede.runtime.emulation import play as playing
from precede.runtime.emulation.members import Tally
from precede.runtime.emulation.play import deal, until_killed
from precede.runtime.programs.guard import Guard
from tests.patience import patient
from tests.runtime.watched import running

SCENARIO = """
[world]
kind = "contacts"
contacts = "contacts.csv"
nodes = "nodes.csv"
[workload]
messages = "messages.csv"
[run]
protocol = "causal_barrier"
options = { durable = true }
end = "120s"
[faults]
crashes = [{ node = "ben", at = "40s", restart = "50s" }]
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    contacts = "a,b,start,end\nana,ben,0,30\nben,cem,60,80\ncem,dov,85,100\nana,ben,90,110\n"
    (tmp_path / "contacts.csv").write_text(contacts)
    (tmp_path / "nodes.csv").write_text("node,enter,leave\nana,0,120\nben,0,120\ncem,20,120\ndov,0,120\n")
    messages = "id,src,time\n1,ana,10\n2,ben,20\n3,ben,65\n4,cem,70\n5,dov,90\n6,ana,95\n"
    (tmp_path / "messages.csv").write_text(messages)
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    return tmp_path / "scenario.toml"


def started(scenario: Path, out: Path, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "precede", "emulate", str(scenario), "--out", str(out), *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_real_nodes_deliver_what_the_simulation_delivers(scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = started(scenario, out, "--speed", "6", "--segment", "1", "--json")
    printed, errors = done.communicate(timeout=90)
    assert done.returncode == 0, errors
    result = json.loads(printed)
    assert result["verdict"] == "holds"
    assert result["killed"] == 1
    assert result["said"] == result["said_in_simulation"] == 6
    assert result["first_differences"] == []
    assert result["measured"]["first_differences"] == []
    assert result["deliveries"] == {"simulated": 20, "emulated": 20}
    assert len(list((out / "log" / "ana").glob("events-*.parquet"))) > 1
    assert (out / "differences.csv").read_text().count("\n") == 1, "a heading and nothing under it"
    page = (out / "report" / "index.html").read_text()
    assert "4 real nodes beside their simulation" in page
    assert "with measured times all deliveries are the same" in page
    assert (out / "report" / "run-emulated.html").is_file()
    verified = subprocess.run(
        [sys.executable, "-m", "precede", "verify", str(out / "log"), "--json"],
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert json.loads(verified.stdout)["verdict"] == "holds"
    again = started(scenario, out)
    assert again.communicate(timeout=60)[1].endswith("an emulation needs an empty folder [E017]\n")
    assert again.returncode == 2


def test_ctrl_c_leaves_no_process_behind(scenario: Path, tmp_path: Path) -> None:
    with running("emulate", str(scenario), "--out", str(tmp_path / "out"), "--speed", "1") as emulation:
        children = []
        while len(children) < 2:  # the emulation of a pipe prints nothing before its end
            assert emulation.process.poll() is None
            time.sleep(0.1)
            children = psutil.Process(emulation.process.pid).children(recursive=True)
        emulation.process.send_signal(signal.SIGINT)
        assert emulation.ended() == 130
    deadline = time.monotonic() + patient(10)
    while any(child.is_running() and child.status() != "zombie" for child in children):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_node_that_crashes_has_a_process_of_its_own() -> None:
    stays = (Stay(0, 0), Stay(1, 0, 5, "crashed"), Stay(1, 9), Stay(2, 0, 7, "left"), Stay(3, 2, 8, "crashed"))
    empty = {"options": {}, "roles": (), "members": (), "links": (), "broadcasts": ()}
    plan = Plan(run_id="r", protocol="fifo", order="fifo", names=tuple("abcd"), stays=stays, end=10, **empty)
    shares, actions = deal(plan, 2)
    assert shares == [[0], [2], [1], [3]]
    assert actions == [(5, 2, "kill"), (8, 3, "kill"), (9, 2, "begin")]
    assert until_killed(plan).stays == (Stay(0, 0), Stay(1, 0), Stay(1, 9), stays[3], Stay(3, 2))


def test_a_guard_that_is_closed_leaves_no_file_open() -> None:
    before = psutil.Process().num_fds()
    guard = Guard()
    guard.add(1 << 22)
    guard.remove(1 << 22)
    guard.close()
    assert psutil.Process().num_fds() == before


class RecordedProcesses:
    """Processes that only note what is asked of them. They end after so many looks."""

    def __init__(self, clock: Any, looks: int) -> None:
        self.clock, self.looks = clock, looks
        self.failed: list[int] = []
        self.notes: list[tuple[int, int, str]] = []

    def start(self, number: int, restart: bool = False) -> None:
        self.notes.append((self.clock.now(), number, "begin" if restart else "start"))

    def kill(self, number: int) -> None:
        self.notes.append((self.clock.now(), number, "kill"))

    def running(self) -> bool:
        self.looks -= 1
        return self.looks >= 0

    def stop(self) -> None:
        self.notes.append((self.clock.now(), -1, "stop"))

    def tally(self) -> Tally:
        return Tally(broadcasts=len(self.notes))


def test_processes_are_killed_and_started_when_the_plan_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each action comes at the first look at or after its instant, and none is left out."""
    looks = iter(range(1000))
    clock = SimpleNamespace(now=lambda: now[0], speed=1.0)
    now = [0]

    def sleep(seconds: float) -> None:
        assert 0 <= seconds <= 0.8
        now[0] = next(looks) + 1

    processes = RecordedProcesses(clock, 10)
    monkeypatch.setattr(playing, "Processes", lambda stage, shares, end: processes)
    monkeypatch.setattr(playing, "time", SimpleNamespace(sleep=sleep, monotonic=lambda: float(now[0])))
    stage: Any = SimpleNamespace(clock=clock, plan=SimpleNamespace(end=9))
    actions = [(2, 1, "kill"), (2, 0, "kill"), (5, 1, "begin")]
    reports: list[int] = []
    playing.play(stage, [[0], [1]], actions, lambda at, tally: reports.append(at), every=4.0)
    started = [(0, 0, "start"), (0, 1, "start")]
    assert processes.notes == [*started, (2, 1, "kill"), (2, 0, "kill"), (5, 1, "begin"), (10, -1, "stop")]
    assert reports == [4, 8]
