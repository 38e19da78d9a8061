"""Small networks of network namespaces: hosts with interfaces, joined by wires that lose, delay and reorder.

A wire is a namespace with one end of a veth pair for each host on it. `wire.py` runs there and passes frames
from each end to all others. It loses, delays and limits frames itself: many kernels are built without netem.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).parent
SOURCE: Final = HERE.parents[1] / "src"
KEY: Final = "07" * 32


def why_not() -> str | None:
    """Why namespaces cannot be made here; None if they can."""
    for tool in ("ip", "nft"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed"
    name = f"precede-{os.getpid()}-try"
    tried = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if tried.returncode:
        return f"network namespaces cannot be made: {tried.stderr.strip()}"
    subprocess.run(["ip", "netns", "del", name], check=True)
    return None


class Process:
    """A process in a namespace; it is driven by lines on its standard input."""

    def __init__(self, process: subprocess.Popen[str], output: Path) -> None:
        self.process = process
        self._output = output

    def say(self, **command: Any) -> None:
        """Give a command; the program lists them."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def close_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def kill(self) -> None:
        """Kill it as `kill -9` does."""
        self.process.kill()
        self.process.wait()

    def ended(self, seconds: float) -> int | None:
        """Its exit code, if it ends within so many seconds."""
        with suppress(subprocess.TimeoutExpired):
            return self.process.wait(seconds)
        return None


class Member(Process):
    """A process that runs `member.py`."""

    def events(self, kind: str) -> list[dict[str, Any]]:
        """What it has reported so far: `delivered`, `neighbours` (of the last status) or `warnings`."""
        lines = self._output.read_text(encoding="utf-8").splitlines(keepends=True)
        reports = [json.loads(line) for line in lines if line.endswith("\n")]
        return [report for report in reports if report["kind"] == kind]

    def delivered(self) -> list[tuple[str, str]]:
        return [(report["source"], report["payload"]) for report in self.events("delivered")]

    def status(self) -> dict[str, Any]:
        return (self.events("status") or [{"neighbours": [], "warnings": []}])[-1]


class Net:
    """Namespaces that are removed at the end, with all processes in them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._prefix = f"precede-{os.getpid()}"
        self._spaces: list[str] = []
        self._processes: list[subprocess.Popen[str]] = []
        self._devices = 0

    def space(self, name: str) -> str:
        """A namespace. Its name is unique on this machine."""
        space = f"{self._prefix}-{name}"
        self.run("ip", "netns", "add", space)
        self._spaces.append(space)
        self.run("ip", "-n", space, "link", "set", "lo", "up")
        return space

    def run(self, *command: str) -> None:
        subprocess.run(command, check=True, capture_output=True, text=True)

    def wire(self, name: str, ends: dict[str, list[str]], mtu: int = 1500, **how: float) -> Process:
        """Join spaces by a wire: `ends` has the addresses (with prefix length) of each space on it.

        `how`: `loss`, `delay` and `jitter` in seconds, `reorder`, `rate` in bytes a second. The wire takes the
        command `cut`: lists of ends, by their place, that reach only each other; an empty list heals it.
        """
        middle = self.space(name)
        ports = []
        for space, addresses in ends.items():
            self._devices += 1
            outer, inner = f"p{self._devices}", f"e{self._devices}"
            self.run(
                *("ip", "link", "add", inner, "netns", space, "mtu", str(mtu), "type", "veth"),
                *("peer", "name", outer, "netns", middle, "mtu", str(mtu)),
            )
            for address in addresses:
                nodad = ["nodad"] if ":" in address else []
                self.run("ip", "-n", space, "addr", "add", address, "dev", inner, *nodad)
            self.run("ip", "-n", space, "link", "set", inner, "up")
            self.run("ip", "-n", middle, "link", "set", outer, "up")
            ports.append(outer)
        plan = json.dumps({"ports": ports, **how})
        return self.start(middle, (str(HERE / "wire.py"), plan), self._folder / f"{name}.wire")

    def member(self, space: str, name: str, **settings: Any) -> Member:
        """Run a member in a namespace."""
        output = self._folder / f"{name}.{len(self._processes)}.events"
        command = (str(HERE / "member.py"), json.dumps({"name": name, **settings}))
        return Member(self.start(space, command, output).process, output)

    def start(
        self, space: str, command: tuple[str, ...], output: Path, path: tuple[Path, ...] = (SOURCE,)
    ) -> Process:
        """Run a Python program in a namespace; its output is added to a file."""
        whole = ["ip", "netns", "exec", space, sys.executable, *command]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))}
        with output.open("a") as file:
            process = subprocess.Popen(
                whole, stdin=subprocess.PIPE, stdout=file, env=environment, text=True, cwd=self._folder
            )
        self._processes.append(process)
        return Process(process, output)

    def remove(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()
            if process.stdin is not None:
                process.stdin.close()
        for space in self._spaces:
            subprocess.run(["ip", "netns", "del", space], check=False, capture_output=True)


@contextmanager
def network(folder: Path) -> Iterator[Net]:
    net = Net(folder)
    try:
        yield net
    finally:
        net.remove()


def until(condition: Callable[[], bool], seconds: float, what: Callable[[], object]) -> None:
    """Wait for a condition; `what` is shown if it never holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what()
        time.sleep(0.05)
