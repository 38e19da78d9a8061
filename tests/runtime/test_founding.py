"""Groups with order="total" over an in-memory transport: who hears whom is set by hand."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import precede
from precede.core.errors import NotYet
from precede.runtime.transports.transport import OnFrame, Transport, Where

KEY = bytes(range(32))


class Air:
    """Carries frames between members, but not across a cut."""

    def __init__(self) -> None:
        self.ears: dict[str, OnFrame] = {}
        self.cut = False

    def carry(self, frame: bytes, source: str, target: str) -> None:
        if target in self.ears and not self.cut:
            self.ears[target](frame, source)


class Radio(Transport):
    """One member's transport."""

    largest = 1200

    def __init__(self, air: Air, name: str) -> None:
        self.air = air
        self.name = name

    async def start(self, on_frame: OnFrame) -> None:
        self.air.ears[self.name] = on_frame

    def send(self, frame: bytes, where: Where) -> None:
        asyncio.get_running_loop().call_soon(self.air.carry, frame, self.name, str(where))

    def broadcast(self, frame: bytes) -> None:
        for name in self.air.ears:
            if name != self.name:
                self.send(frame, name)

    async def stop(self) -> None:
        self.air.ears.pop(self.name, None)


class Members:
    """Members of one group, and what each of them has taken."""

    def __init__(self, names: tuple[str, ...], folder: Path | None, **options: Any) -> None:
        self.air = Air()
        self.names = names
        self.taken: dict[str, list[bytes]] = {name: [] for name in names}
        self.groups: dict[str, precede.Group] = {}
        self._folder = folder
        self._options = options
        self._taking: list[asyncio.Task[None]] = []

    async def open(self, name: str) -> None:
        group = precede.join(
            "lock",
            name,
            key=KEY,
            order="total",
            members=self.names,
            store=None if self._folder is None else self._folder / name,
            transport=Radio(self.air, name),
            beacon=0.1,
            options={"quiet": "300ms", "beacon": "300ms", **self._options},
        )
        self.groups[name] = await group.__aenter__()
        self._taking.append(asyncio.create_task(self._take(group)))

    async def _take(self, group: precede.Group) -> None:
        async for message in group:
            self.taken[group.name].append(message.payload)

    async def broadcast(self, name: str, payload: bytes) -> None:
        """Broadcast as soon as the group is founded."""
        for _ in range(600):
            try:
                return await self.groups[name].broadcast(payload)
            except NotYet:
                await asyncio.sleep(0.05)
        raise AssertionError(f"{name} could not broadcast for 30 s")

    async def all_have(self, count: int, *names: str) -> None:
        for _ in range(600):
            if all(len(self.taken[name]) >= count for name in names or self.names):
                return
            await asyncio.sleep(0.05)
        raise AssertionError(f"not everything was delivered within 30 s: {self.taken}")

    async def close(self) -> None:
        for task in self._taking:
            task.cancel()
        for group in self.groups.values():
            await group.close()


@pytest.mark.parametrize("stored", [False, True])
def test_members_that_do_not_hear_each_other_do_not_take_the_lock(stored: bool, tmp_path: Path) -> None:
    async def run() -> None:
        members = Members(("ana", "ben", "cem"), tmp_path if stored else None)
        members.air.cut = True
        for name in members.names:
            await members.open(name)
        try:
            for _ in range(15):
                for name in members.names:
                    with pytest.raises(NotYet, match="1 of 3 founders are up"):
                        await members.groups[name].broadcast(b"alone")
                await asyncio.sleep(0.2)
            members.air.cut = False
            for name in members.names:
                await members.broadcast(name, name.encode())
            await members.all_have(3)
        finally:
            await members.close()
        assert members.taken["ana"] == members.taken["ben"] == members.taken["cem"]
        assert sorted(members.taken["ana"]) == [b"ana", b"ben", b"cem"]

    asyncio.run(run())


def test_with_stores_an_absent_member_blocks_nobody_and_gets_everything(tmp_path: Path) -> None:
    async def run() -> None:
        members = Members(("ana", "ben", "cem"), tmp_path)
        await members.open("ana")
        await members.open("ben")
        try:
            await members.broadcast("ana", b"one")
            await members.broadcast("ben", b"two")
            await members.all_have(2, "ana", "ben")
            await members.open("cem")
            await members.broadcast("cem", b"three")
            await members.all_have(3)
        finally:
            await members.close()
        assert members.taken["ana"] == members.taken["ben"] == members.taken["cem"]

    asyncio.run(run())


def test_who_founds_alone_needs_nobody() -> None:
    async def run() -> None:
        members = Members(("ana",), None, founding="alone")
        await members.open("ana")
        try:
            await members.broadcast("ana", b"alone")
            await members.all_have(1)
        finally:
            await members.close()

    asyncio.run(run())
