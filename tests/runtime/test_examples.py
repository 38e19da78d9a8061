"""Each example prints what its docstring promises, in a process of its own."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import socket
import subprocess
import sys
from itertools import permutations
from pathlib import Path
from typing import Any

import precede
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
        for name, member in (("ana", ana), ("ben", ben)):
            hello, commands = member.lines(2)
            assert hello == f"You are {name} in picnic. Type a line and press Enter."
            assert commands.startswith("Commands: /who ")
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
        assert [said(line) for line in ben.lines(4)][2:] == talk
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


def shared_list() -> Any:
    """The module examples/shared_list/shared_list.py."""
    spec = importlib.util.spec_from_file_location("shared_list", ROOT / "examples/shared_list/shared_list.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_lists_that_were_apart_merge_in_any_order_of_arrival() -> None:
    """Each author's changes arrive in their order, those of different authors in any."""
    module, first = shared_list(), {"op": "add", "text": "bread"}
    changes = {
        "ana": [{"op": "text", "item": "1", "value": "white bread", "count": 1}, {"op": "add", "text": "wine"}],
        "ben": [
            {"op": "text", "item": "1", "value": "rye", "count": 1},
            {"op": "done", "item": "1", "value": True, "count": 1},
        ],
        "cem": [{"op": "remove", "item": "2"}, {"op": "text", "item": "2", "value": "beer", "count": 1}],
    }
    results = set()
    for order in set(permutations([name for name in changes for _ in range(2)])):
        items = module.SharedList()
        items.apply("1", "ana", 1, first)
        items.apply("2", "ana", 2, {"op": "add", "text": "water"})
        places = {name: iter(enumerate(each)) for name, each in changes.items()}
        for name in order:
            number, change = next(places[name])
            for _ in range(2):  # the message in hand comes again after a crash
                items.apply(f"{name}{number}", name, 3, change)
        results.add(json.dumps(items.shown()))
    assert len(results) == 1
    assert [item["text"] for _, item in json.loads(results.pop())] == ["rye", "wine"]


def test_nothing_that_a_member_writes_ends_the_list_of_another(tmp_path: Path) -> None:
    kept = shared_list().Kept(tmp_path / "list.json")

    def take(number: int, payload: bytes) -> None:
        id = precede.MessageId(1, 0, number)
        kept.take(precede.Delivered("ana", number, payload, id))

    take(1, b'{"op": "add", "text": "bread"}')
    item = next(iter(kept.list.items)).encode()
    hostile = [b"", b"\xff", b"[" * 100_000, b"3", b"null", b'["op"]', b'{"op": []}', b'{"op": "sell"}']
    for count in (b"1e999", b"NaN", b'"x"', b"null", b"[]"):
        hostile.append(b'{"op": "done", "item": "%b", "value": true, "count": %b}' % (item, count))
    hostile.append(b'{"op": "done", "item": ["1"], "value": true, "count": 1}')
    for number, payload in enumerate(hostile, 2):
        take(number, payload)
    take(99, b'{"op": "text", "item": "%b", "value": "\\ud800", "count": 1}' % item)
    again = shared_list().Kept(tmp_path / "list.json").list
    assert again.items == kept.list.items
    assert not again.items[item.decode()]["done"]
    again.print()


def test_a_shared_list_merges_after_its_members_were_apart(tmp_path: Path) -> None:
    here, there = free_ports(2)
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}

    def command(program: str, *arguments: str) -> list[str]:
        return [sys.executable, str(ROOT / "examples" / program), *arguments]

    def done(*arguments: str) -> list[str]:
        run = subprocess.run(
            arguments, cwd=tmp_path, env=env, capture_output=True, text=True, check=True, timeout=60
        )
        return run.stdout.splitlines()

    done(*command("chat/chat.py", "invite", "picnic", "ana", "ben"))
    lists = "shared_list/shared_list.py"
    apart = ("--no-lan", "--listen", "127.0.0.1:0", "--wait", "0.1")
    done(*command(lists, "picnic/ana.json", *apart, "add", "bread"))
    done(*command(lists, "picnic/ben.json", *apart, "add", "wine"))
    together = ("--no-lan", "--listen", f"127.0.0.1:{here}", "--peer", f"127.0.0.1:{there}")
    others = ("--no-lan", "--listen", f"127.0.0.1:{there}", "--peer", f"127.0.0.1:{here}")
    program = command(lists)[1:]
    both = ["  1 [ ] bread  (ana)", "  2 [ ] wine  (ben)"]
    with (
        running("picnic/ana.json", *together, "sync", program=tuple(program), cwd=tmp_path, env=env) as ana,
        running("picnic/ben.json", *others, "sync", program=tuple(program), cwd=tmp_path, env=env) as ben,
    ):
        for member in (ana, ben):
            member.until(lambda line: line == both[1], "out")
            assert member.printed[-2:] == [f"[out] {line}" for line in both]


def test_a_request_gets_its_reply_and_another_none() -> None:
    assert printed_by("request_reply.py") == ["ben: rain at six", "nobody knows where the keys are"]
