"""Each example prints what its docstring promises, in a process of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

from tests.runtime.watched import running

ROOT = Path(__file__).parents[2]


def free_ports(count: int) -> list[str]:
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [str(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports


def test_two_terminals_chat(tmp_path: Path) -> None:
    here, there = free_ports(2)
    chat = (str(ROOT / "examples" / "chat.py"),)
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with (
        running("ana", here, there, program=chat, cwd=tmp_path, env=env) as ana,
        running("ben", there, here, program=chat, cwd=tmp_path, env=env) as ben,
    ):
        ana.say("dinner?")
        assert ben.line() == "ana: dinner?"
        ben.say("yes")
        ben.close_input()
        assert ben.line() == "ben: yes"
        assert ana.lines(2) == ["ana: dinner?", "ben: yes"]
        ana.close_input()
        assert (ana.ended(), ben.ended()) == (0, 0)


def printed_by(example: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / example)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.splitlines()


def test_a_list_goes_wrong_without_order_and_right_with_it() -> None:
    assert printed_by("shared_list.py") == [
        "order none   -> ana: bread, ben: bread, cem: bread milk",
        "order causal -> ana: bread, ben: bread, cem: bread",
    ]


def test_two_nodes_at_the_ends_of_a_serial_line() -> None:
    assert printed_by("serial_line.py") == ["ben got 347 bytes from ana", "ana got 'because' from ben"]
