"""`precede host` and `precede station`: two cells of real processes, joined by a wire."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.runtime.watched import Watched, running


def free_port(kind: socket.SocketKind) -> int:
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Town:
    """Two cells: the commands that start their stations and a host in each."""

    def __init__(self, folder: Path) -> None:
        self.keys = str(folder / "town.keys")
        make = [sys.executable, "-m", "precede", "keys", "make", self.keys]
        subprocess.run(make, check=True, capture_output=True, timeout=60)
        self.air = [f"127.0.0.1:{free_port(socket.SOCK_DGRAM)}" for _ in range(2)]
        self.wires = [f"127.0.0.1:{free_port(socket.SOCK_STREAM)}" for _ in range(2)]

    def station(self, place: int) -> tuple[str, ...]:
        wired = ("--wired", self.wires[place], "--neighbour", self.wires[1 - place])
        radio = ("--bind", self.air[place], "--status", "0.2")
        return ("station", f"s{place}", "--keys", self.keys, *radio, *wired)

    def host(self, name: str, other: str, place: int) -> tuple[str, ...]:
        return ("host", name, "--keys", self.keys, "--station", self.air[place], "--member", other)


@pytest.fixture
def town(tmp_path: Path) -> Town:
    return Town(tmp_path)


def hosts(status: str) -> int:
    return int(json.loads(status)["sizes"]["hosts"])


def wait_for_host(station: Watched) -> None:
    """Wait until hosts have joined: a message goes to the hosts that have joined when it is broadcast."""
    station.until(lambda status: hosts(status) == 1)


def test_hosts_of_two_cells_talk(town: Town) -> None:
    with (
        running(*town.station(0)) as north,
        running(*town.station(1)) as south,
        running(*town.host("ana", "ben", 0)) as ana,
        running(*town.host("ben", "ana", 1)) as ben,
    ):
        wait_for_host(south)
        ana.say("hello")
        assert ben.line() == "ana\thello"
        ben.say("hello yourself")
        assert ana.lines(2) == ["ana\thello", "ben\thello yourself"]
        wait_for_host(north)
        for host in (ana, ben):
            host.close_input()
            assert host.ended() == 0
        for station in (north, south):
            station.process.send_signal(signal.SIGTERM)
            assert station.ended() == 0


def test_no_message_is_lost_when_hosts_start_before_stations(town: Town) -> None:
    """Hosts start before stations, and a host finds a cell before the cell's wire is connected."""
    with (
        running(*town.host("ben", "ana", 1)) as ben,
        running(*town.host("ana", "ben", 0)) as ana,
        running(*town.station(0)) as north,
    ):
        north.until(lambda status: json.loads(status)["neighbours"] != [])
        until = time.monotonic() + 3
        while time.monotonic() < until:
            assert hosts(north.line("err")) == 0, "it would say what the other cell never hears"
        with running(*town.station(1)) as south:
            wait_for_host(south)
            ana.say("hello")
            assert ben.line() == "ana\thello"
            assert ana.line() == "ana\thello"


def test_a_host_waits_for_its_station_without_limit(town: Town) -> None:
    with running(*town.host("ana", "ben", 0)) as ana:
        ana.say("is anybody there?")
        ana.until(lambda line: "has not joined yet; still trying" in line)
        with running(*town.station(0)), running(*town.station(1)):
            assert ana.line() == "ana\tis anybody there?"


def test_a_missing_argument_is_reported_in_one_line() -> None:
    for arguments in (("host", "ana", "--station", "127.0.0.1:1"), ("station", "s0")):
        done = subprocess.run(
            [sys.executable, "-m", "precede", *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 2
        assert "--keys FILE is needed" in done.stderr
