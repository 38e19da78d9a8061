"""`precede host` and `precede station`: two cells of real processes, joined by a wire."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def free_port(kind: socket.SocketKind) -> int:
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "precede", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def say(host: subprocess.Popen[str], line: str) -> None:
    assert host.stdin is not None
    host.stdin.write(line + "\n")
    host.stdin.flush()


def heard(host: subprocess.Popen[str], count: int) -> list[str]:
    assert host.stdout is not None
    return [host.stdout.readline().rstrip("\n") for _ in range(count)]


def test_hosts_of_two_cells_talk(tmp_path: Path) -> None:
    keys = str(tmp_path / "town.keys")
    subprocess.run([sys.executable, "-m", "precede", "keys", "make", keys], check=True, capture_output=True)
    air = [f"127.0.0.1:{free_port(socket.SOCK_DGRAM)}" for _ in range(2)]
    wires = [f"127.0.0.1:{free_port(socket.SOCK_STREAM)}" for _ in range(2)]

    def station(place: int) -> tuple[str, ...]:
        wired = ("--wired", wires[place], "--neighbour", wires[1 - place], "--stations", "2")
        return ("station", f"s{place}", "--keys", keys, "--bind", air[place], *wired, "--status", "1")

    with (
        running(*station(0)) as north,
        running(*station(1)) as south,
        running("host", "ana", "--keys", keys, "--station", air[0], "--member", "ben") as ana,
        running("host", "ben", "--keys", keys, "--station", air[1], "--member", "ana") as ben,
    ):
        say(ana, "hello")
        assert heard(ben, 1) == ["ana\thello"]
        say(ben, "hello yourself")
        assert heard(ana, 2) == ["ana\thello", "ben\thello yourself"]
        assert north.stderr is not None
        while json.loads(north.stderr.readline())["sizes"]["hosts"] != 1:
            pass  # reports of before she joined
        for process in (ana, ben):
            assert process.stdin is not None
            process.stdin.close()
            assert process.wait(30) == 0
        for process in (north, south):
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0


def test_what_is_missing_is_said_in_one_line() -> None:
    for arguments in (("host", "ana", "--station", "127.0.0.1:1"), ("station", "s0")):
        done = subprocess.run(
            [sys.executable, "-m", "precede", *arguments], capture_output=True, text=True, check=False
        )
        assert done.returncode == 2
        assert "--keys FILE is needed" in done.stderr
