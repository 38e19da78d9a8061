"""Members of one group for the tests of the JavaScript package: in Python, and in a process of Node.js."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

import precede
from precede.runtime.evidence.signatures import SigningKey
from tests.patience import patient

ROOT: Final = Path(__file__).parents[2]
PACKAGE: Final = ROOT / "javascript"
LOCAL: Final = ("127.0.0.1", 0)
GROUP: Final = "picnic"
KEY: Final = bytes(range(32))
NAMES: Final = ("ana", "ben", "cem", "dora", "eva")
SEEDS: Final = {name: bytes([place + 1]) * 32 for place, name in enumerate(NAMES)}
ROSTER: Final = {name: SigningKey(seed).public for name, seed in SEEDS.items()}


def node_program() -> str:
    """The path of Node.js 20; skips the test if it or the libraries of the package are not there."""
    program = shutil.which("node")
    if program is None or not (PACKAGE / "node_modules" / "@noble").is_dir():
        pytest.skip("no Node.js, or no `make javascript` yet; this installs it: apt-get install -y nodejs npm")
    return program


def python_member(name: str, transport: precede.Transport, folder: Path) -> precede.Group:
    return precede.join(
        GROUP,
        name,
        key=KEY,
        identity=SEEDS[name],
        roster=ROSTER,
        transport=transport,
        beacon=0.1,
        store=folder / f"{name}.db",
        log=folder / "log",
    )


def settings(name: str, url: str) -> dict[str, Any]:
    """The settings of a JavaScript member, as JSON."""
    roster = {member: public.hex() for member, public in ROSTER.items()}
    identity = SEEDS[name].hex()
    return {
        "group": GROUP,
        "name": name,
        "key": KEY.hex(),
        "urls": [url],
        "identity": identity,
        "roster": roster,
        "beacon": 100,
    }


async def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    async with asyncio.timeout(patient(seconds)):
        while not condition():
            await asyncio.sleep(0.02)


class Taken:
    """The messages that a Python member's application has taken, `(author, text)` in order.

    After a restart, `earlier` are those that it took before.
    """

    def __init__(self, group: precede.Group, earlier: Taken | None = None) -> None:
        self.messages: list[tuple[str, str]] = [] if earlier is None else earlier.messages
        self._task = asyncio.create_task(self._take(group))

    async def _take(self, group: precede.Group) -> None:
        async for message in group:
            self.messages.append((message.source, message.payload.decode()))

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


class NodeMember:
    """A member in a Node.js process. `taken` has what its application took since it started."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.taken: list[tuple[str, str]] = []
        self.history: list[tuple[str, str]] | None = None
        self.status: dict[str, Any] | None = None
        self._task = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, name: str, url: str, store: Path | None = None, **more: str) -> NodeMember:
        written = json.dumps({**settings(name, url), "store": None if store is None else str(store), **more})
        program = Path(__file__).with_name("member.mjs")
        pipe = asyncio.subprocess.PIPE
        member = cls(
            await asyncio.create_subprocess_exec(
                *(node_program(), str(program), written), stdin=pipe, stdout=pipe, limit=1 << 24
            )
        )
        await until(lambda: member.history is not None)
        return member

    async def _read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            event = json.loads(line)
            if "delivered" in event:
                self.taken.append((event["delivered"][0], event["delivered"][2]))
            elif "status" in event:
                self.status = event["status"]
            else:
                self.history = [tuple(each) for each in event["history"]]

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")

    async def ask_status(self) -> dict[str, Any]:
        self.status = None
        self.say("!status")
        await until(lambda: self.status is not None)
        assert self.status is not None
        return self.status

    async def kill(self) -> None:
        """End the process as by a crash."""
        self.process.kill()
        await self.process.wait()
        await self._task

    async def stop(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        await asyncio.wait_for(self.process.wait(), patient(20))
        await self._task
