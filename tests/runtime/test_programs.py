"""`precede emulate --program`: foreign programs as nodes are judged rightly, and a bad one harms no other."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from precede import cli
from precede.core.instants import SECOND
from precede.core.plan import Plan, Stay
from precede.runtime.programs.carrier import Carrier
from precede.runtime.programs.state import Settings

NODES = Path(__file__).parents[2] / "examples" / "nodes"
PYTHON = f"{sys.executable} {NODES / 'causal.py'}"
JAVASCRIPT = f"node {NODES / 'causal.js'}"
SHELL = f"sh {NODES / 'flood.sh'}"


def left_running() -> list[str]:
    """The processes that this one has started and that are still there; the Java of other tests apart."""
    return [one.name() for one in psutil.Process().children() if one.name() != "java"]


WALKS = """
[world]
kind = "contacts"
generator = "random-waypoint"
nodes = 5
field = [60, 60]
range = 35
duration = "12s"
speed = [2, 6]
pause = [0, 1]
[workload]
every = "500ms"
first = "100ms"
size = 100
[run]
protocol = "unordered"
end = "12s"
[faults]
crashes = [{ node = "3", at = "4s", restart = "6s" }]
"""
TOGETHER = """
[world]
kind = "contacts"
nodes = 4
meetings = [["0", "1", "0s", "6s"], ["0", "2", "0s", "6s"], ["0", "3", "0s", "6s"], ["1", "2", "0s", "6s"],
            ["1", "3", "0s", "6s"], ["2", "3", "0s", "6s"]]
[workload]
every = "2s"
first = "500ms"
until = "5s"
size = 100
[run]
protocol = "unordered"
end = "6s"
"""
BAD = """
import json, os, signal, subprocess, sys, time
sys.path.insert(0, {nodes!r})
import causal
line = sys.stdin.buffer.raw.readline()
me = json.loads(line)["body"]["node_id"]
def message(body, src=me, dest="n0"):
    return json.dumps({{"src": src, "dest": dest, "body": body}}) + "\\n"
how = sys.argv[1]
unsaid = {{"terse": ["topology_ok"], "silent": ["broadcast_ok", "deliver"]}}.get(how, [])
if me == "n2" and unsaid:
    say = causal.say
    causal.say = lambda dest, body: body["type"] in unsaid or say(dest, body)
elif me == "n2" and how == "ghost":
    causal.messages[999] = []
    causal.me["id"] = me
    causal.deliver(999)
elif me == "n2":
    if how != "mute":
        answer = {{"type": "init_ok", "in_reply_to": json.loads(line)["body"]["msg_id"]}}
        print(message(answer, dest="c0"), end="", flush=True)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if how in ("mute", "hangs"):
        while True: time.sleep(1)
    if how == "floods":
        while True: sys.stdout.write(message({{"type": "x"}}) * 100)
    if how == "swells":
        while True: sys.stdout.write(message({{"type": "x", "y": "z" * 500_000}}))
    if how == "screams":
        while True: sys.stderr.write("no " * 10_000)
    if how == "endless":
        while True: sys.stdout.write("x" * 100_000)
    if how == "garbage":
        print("hello \\x1b[31m world", flush=True); time.sleep(60)
    if how == "nested":
        print("[" * 100_000, flush=True); time.sleep(60)
    if how == "lies":
        print(message({{"type": "x"}}, src="n0"), end="", flush=True); time.sleep(60)
    if how == "invents":
        print(message({{"type": "deliver", "message": {{}}}}, dest="c0"), end="", flush=True); time.sleep(60)
    if how == "dies":
        sys.exit("out of \\x07 luck")
    if how == "killed":
        os.kill(os.getpid(), signal.SIGSEGV)
    if how == "closes":
        os.close(1); time.sleep(60)
    if how == "leaves-a-child":
        subprocess.Popen(["sleep", "600.125"]); sys.exit(3)
causal.handle(json.loads(line))
sys.stdout.flush()
causal.main()
"""


def emulate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, program: str, *more: str
) -> tuple[int, dict[str, Any]]:
    scenario, out = tmp_path / "scenario.toml", tmp_path / "out"
    scenario.write_text(text)
    words = ["emulate", str(scenario), "--program", program, "--out", str(out), "--json", *more]
    code = cli.main(words)
    said = capsys.readouterr()
    assert code in (0, 1), said.err
    return code, json.loads(said.out)


WORLD = ("--speed", "12", "--loss", "0.1", "--delay", "uniform(0, 2)", "--patience", "120")


@pytest.mark.parametrize(
    ("program", "verdict"),
    [(PYTHON, "holds"), (f"{JAVASCRIPT} --as-it-comes", "violated"), (SHELL, "violated")],
    ids=["python", "javascript-wrong", "shell-wrong"],
)
def test_a_program_is_judged_rightly(
    program: str, verdict: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, result = emulate(tmp_path, capsys, WALKS, program, *WORLD)
    assert result["verdict"] == verdict
    assert code == (verdict != "holds")
    assert result["failed"] == []
    assert (result["killed"], result["restarted"]) == (1, 1)
    assert result["broadcasts"] > 50
    assert result["deliveries_checked"] > 3 * result["broadcasts"]
    assert result["lost"] > 0
    assert result["in_flight"] >= 0
    assert left_running() == []
    assert cli.main(["verify", str(tmp_path / "out" / "log"), "--order", "causal"]) == code
    capsys.readouterr()


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("program", [PYTHON, JAVASCRIPT], ids=["python", "javascript"])
@pytest.mark.parametrize(("how", "verdict"), [("", "holds"), (" --as-it-comes", "violated")])
def test_a_hundred_worlds_are_judged_rightly(
    program: str, how: str, verdict: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verdicts = []
    for seed in range(100):
        folder = tmp_path / str(seed)
        folder.mkdir()
        _, result = emulate(folder, capsys, WALKS, program + how, "--seed", str(seed), *WORLD, "--speed", "24")
        assert result["failed"] == []
        verdicts.append(result["verdict"])
    assert verdicts == [verdict] * 100


CAUSES = {
    "mute": "hangs: no answer to init",
    "hangs": "hangs: no answer to broadcast",
    "floods": "floods: more than",
    "swells": "floods: more than",
    "screams": "hangs: no answer to broadcast",
    "silent": "hangs: no answer to broadcast",
    "endless": "prints a line of more than 1,048,576 bytes",
    "garbage": "line 2 of its output is no message",
    "nested": "line 2 of its output is no message",
    "lies": "sends as 'n0', but it is 'n2'",
    "invents": "delivers something that is no message: '{}'",
    "dies": "ended with exit code 1: out of \ufffd luck",
    "killed": "was killed by SIGSEGV",
    "closes": "closed its output",
    "leaves-a-child": "ended with exit code 3",
}


QUICK = ("mute", "floods", "garbage", "dies", "silent", "closes")


@pytest.mark.parametrize(
    "how", [how if how in QUICK else pytest.param(how, marks=pytest.mark.long) for how in CAUSES]
)
def test_a_bad_program_gets_one_line_and_costs_nobody_else(
    how: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text(BAD.format(nodes=str(NODES)))
    patience = "4" if CAUSES[how].startswith("hangs") else "60"
    command = f"{sys.executable} {bad} {how}"
    code, result = emulate(tmp_path, capsys, TOGETHER, command, "--speed", "6", "--patience", patience)
    assert code == 1
    (failure,) = result["failed"]
    assert failure["node"] == "2"
    assert failure["cause"].startswith(CAUSES[how]), failure
    assert failure["cause"].isprintable()
    assert len(failure["cause"]) < 400
    assert result["verdict"] == "holds"
    assert result["broadcasts"] == 9
    assert result["deliveries"] >= 27  # each of the three others delivers what the three broadcast
    assert (tmp_path / "out" / "nodes" / "2" / "stderr.txt").stat().st_size <= 1 << 20
    assert left_running() == []
    assert ["sleep", "600.125"] not in [one.info["cmdline"] for one in psutil.process_iter(["cmdline"])]


def test_a_program_need_not_answer_topology(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.py").write_text(BAD.format(nodes=str(NODES)))
    command = f"{sys.executable} {tmp_path / 'bad.py'} terse"
    code, result = emulate(tmp_path, capsys, TOGETHER, command, "--speed", "6", "--patience", "60")
    assert (code, result["verdict"], result["failed"]) == (0, "holds", [])
    assert result["deliveries"] == 12 * 4


def test_a_message_that_nobody_broadcast_is_a_violation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.py").write_text(BAD.format(nodes=str(NODES)))
    command = f"{sys.executable} {tmp_path / 'bad.py'} ghost"
    code, result = emulate(tmp_path, capsys, TOGETHER, command, "--speed", "6", "--patience", "60")
    assert (code, result["verdict"], result["failed"]) == (1, "violated", [])
    assert cli.main(["verify", str(tmp_path / "out" / "log"), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["counts"]["ghost"] >= 1


def test_a_durable_program_that_delivers_again_after_a_restart_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, result = emulate(tmp_path, capsys, WALKS, PYTHON, *WORLD, "--durable")
    assert (code, result["verdict"], result["restarted"]) == (1, "violated", 1)
    assert cli.main(["verify", str(tmp_path / "out" / "log"), "--order", "causal", "--json"]) == 1
    assert "duplicate" in json.loads(capsys.readouterr().out)["counts"]


def test_programs_end_when_the_emulation_is_killed(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(TOGETHER)
    mark = f"--mark-{os.getpid()}"
    stubborn = tmp_path / "stubborn.py"
    stubborn.write_text("import signal, time\nsignal.signal(15, 1)\nwhile True: time.sleep(1)\n")
    words = ["emulate", "scenario.toml", "--program", f"{sys.executable} {stubborn} {mark}"]
    running = subprocess.Popen([sys.executable, "-m", "precede", *words], cwd=tmp_path)

    def programs() -> list[psutil.Process]:
        return [one for one in psutil.process_iter(["cmdline"]) if mark in (one.info["cmdline"] or ())]

    deadline = time.monotonic() + 60
    while len(programs()) < 4 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(programs()) == 4
    running.send_signal(signal.SIGKILL)
    running.wait()
    while programs() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert programs() == []


STUBBORN = """
import json, os, sys, time
print(os.getpid(), file=open("{pids}", "a"), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    body = message["body"]
    answer = {{"type": body["type"] + "_ok", "in_reply_to": body["msg_id"]}}
    print(json.dumps({{"src": message["dest"], "dest": message["src"], "body": answer}}), flush=True)
time.sleep(60)
"""


def test_a_program_that_does_not_leave_is_killed_when_its_node_starts_again(tmp_path: Path) -> None:
    """The second program may use the folder of the first: the two must never run at the same time."""
    stubborn, pids = tmp_path / "stubborn.py", tmp_path / "pids.txt"
    stubborn.write_text(STUBBORN.format(pids=pids))
    stays = (Stay(0, 0, SECOND // 100), Stay(0, SECOND // 50))
    empty = {"options": {}, "roles": ("",), "members": (0,), "links": (), "broadcasts": ()}
    plan = Plan(run_id="r", protocol="fifo", order="fifo", names=("0",), stays=stays, end=SECOND // 4, **empty)
    command = (sys.executable, str(stubborn))
    carrier = Carrier(plan, tmp_path, Settings(command=command, speed=1.0, patience=60, fate=lambda a, b: 0))
    carrier.run()
    assert (carrier.failures, carrier.counts.restarted, carrier.counts.killed) == ([], 1, 0)
    first, second = map(int, pids.read_text().split())
    assert first != second
    assert not psutil.pid_exists(first)
    assert not psutil.pid_exists(second)
    assert left_running() == []


EXERCISE = """
import json, sys
me, peers, has = "", [], []
for line in sys.stdin:
    message = json.loads(line)
    src, body = message["src"], message["body"]
    kind, answer = body["type"], {}
    if kind == "init": me = body["node_id"]
    if kind == "topology": peers = body["topology"][me]
    late = sys.argv[1:] == ["late"] and me == "n1" and body.get("message") == 0
    if kind in ("broadcast", "gossip") and body["message"] not in has and not late:
        has.append(body["message"])
        for peer in peers:
            gossip = {"type": "gossip", "message": has[-1]}
            print(json.dumps({"src": me, "dest": peer, "body": gossip}))
    if kind == "read":
        answer = {"messages": list(has)}
        if len(has) == 11: has.append(0)
    if "msg_id" in body:
        reply = {"type": kind + "_ok", "in_reply_to": body["msg_id"], **answer}
        print(json.dumps({"src": me, "dest": src, "body": reply}))
    sys.stdout.flush()
"""


@pytest.mark.parametrize(("how", "verdict"), [("", "unknown"), ("late", "violated")])
def test_answers_to_read_can_show_a_violation_and_never_that_an_order_holds(
    how: str, verdict: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A program of Maelstrom's exercise answers read with what it has; one takes a message in too late."""
    (tmp_path / "exercise.py").write_text(EXERCISE)
    command = f"{sys.executable} {tmp_path / 'exercise.py'} {how}"
    code, result = emulate(
        tmp_path, capsys, TOGETHER, command, "--speed", "3", "--watch", "read", "--patience", "60"
    )
    assert (code, result["verdict"], result["violations"]) == (1, verdict, int(how == "late"))
    assert ("not in which order" in " ".join(result["reasons"])) == (how == "")
    assert result["deliveries"] == 12 * 4


@pytest.mark.parametrize(
    ("more", "cause"),
    [
        (["--program", "./no-such-program"], "not a program that can be run here"),
        (["--program", "'"], "No closing quotation"),
        (["--program", "true", "--loss", "1.5"], "expected a probability"),
        (["--program", "true", "--delay", "never"], "not a distribution"),
        (["--program", "true", "--order", "casual"], "is none of"),
        (["--program", "true", "--watch", "hear"], "expected deliver or read"),
        (["--program", "true", "--patience", "0"], "expected more than 0"),
        (["--loss", "0.5"], "need --program"),
    ],
)
def test_a_mistake_is_one_line(
    more: list[str], cause: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "scenario.toml").write_text(TOGETHER)
    assert cli.main(["emulate", str(tmp_path / "scenario.toml"), "--out", str(tmp_path / "out"), *more]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert cause in said
