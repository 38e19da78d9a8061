"""Each example prints what its docstring promises, in a process of its own."""

from __future__ import annotations

import os
import re
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
    """Two members of an invitation talk; after a restart the chat begins with its history."""
    here, there = free_ports(2)
    chat = (str(ROOT / "examples" / "chat" / "chat.py"),)
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, *chat, "invite", "picnic", "ana", "ben"]
    made = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    assert made.stdout.splitlines()[:2] == ["made picnic/ana.json", "made picnic/ben.json"]
    assert (tmp_path / "picnic" / "ana.json").stat().st_mode & 0o777 == 0o600

    def arguments(name: str, own: str, other: str) -> tuple[str, ...]:
        listen = ("--listen", f"127.0.0.1:{own}", "--peer", f"127.0.0.1:{other}", "--no-lan")
        return ("run", f"picnic/{name}.json", *listen)

    def said(line: str) -> str:
        return re.sub(r"^\d\d:\d\d ", "", line)

    with (
        running(*arguments("ana", here, there), program=chat, cwd=tmp_path, env=env) as ana,
        running(*arguments("ben", there, here), program=chat, cwd=tmp_path, env=env) as ben,
    ):
        assert ana.line().startswith("You are ana in picnic.")
        assert ben.line().startswith("You are ben in picnic.")
        assert ana.line() == "      ben is here"
        assert ben.line() == "      ana is here"
        ana.say("dinner?")
        assert said(ben.line()) == "ana: dinner?"
        ben.say("yes \x1b[2J")
        talk = ["ana: dinner?", "ben: yes \N{REPLACEMENT CHARACTER}[2J"]
        assert said(ben.line()) == talk[1]
        assert [said(line) for line in ana.lines(2)] == talk
        ben.close_input()
        assert ben.ended() == 0
        ana.close_input()
        assert ana.ended() == 0
    with running(*arguments("ben", there, here), program=chat, cwd=tmp_path, env=env) as ben:
        assert [said(line) for line in ben.lines(3)][1:] == talk
        ben.close_input()
        assert ben.ended() == 0


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
