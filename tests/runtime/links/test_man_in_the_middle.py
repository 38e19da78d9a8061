"""A man in the middle of a group copies, delays, reorders, redirects and replays every frame, then stops.

He knows no key. Nothing may be forged, nothing may be lost once he stops, and to an address that no member has
proven at most three times the bytes go that came from it.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Any

import pytest

import precede
from precede.core.errors import Refused
from precede.runtime.transports.transport import OnFrame, Transport, Where

NAMES = ("ana", "ben", "cem", "dora", "eva", "finn", "gina", "hal")
ORDERS: tuple[Any, ...] = ("none", "fifo", "causal", "delta", "multicast", "total")
KEY = bytes(range(32))


class Air:
    """Every frame of every member passes the man in the middle while he is there."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.ears: dict[str, OnFrame] = {}
        self.evil = True
        self.recorded: list[bytes] = []
        self.from_victim = self.to_victim = 0

    def carry(self, frame: bytes, source: str, target: Where) -> None:
        if target == "victim":
            self.to_victim += len(frame)
            return
        if not self.evil:
            self.put(frame, source, str(target))
            return
        random = self.random
        self.recorded = [*self.recorded[-300:], frame]
        if random.random() < 0.8:
            self.later(random.uniform(0, 0.05), frame, source, str(target))
        for _ in range(random.randrange(3)):  # copies, in time or late, from anywhere to anywhere
            other = random.choice(list(self.ears))
            spoofed, to = random.choice([source, other, "victim"]), random.choice([str(target), other])
            copy = random.choice([frame, random.choice(self.recorded)])
            self.later(random.uniform(0, 0.3), copy, spoofed, to)

    def later(self, seconds: float, frame: bytes, source: str, target: str) -> None:
        asyncio.get_running_loop().call_later(seconds, self.put, frame, source, target)

    def put(self, frame: bytes, source: str, target: str) -> None:
        if target in self.ears:
            if source == "victim":
                self.from_victim += len(frame)
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
        asyncio.get_running_loop().call_soon(self.air.carry, frame, self.name, where)

    def broadcast(self, frame: bytes) -> None:
        for name in self.air.ears:
            if name != self.name:
                self.send(frame, name)

    async def stop(self) -> None:
        self.air.ears.pop(self.name, None)


async def trial(seed: int, folder: Path) -> None:
    random = Random(seed)
    order = ORDERS[seed % len(ORDERS)]
    names = NAMES[: random.randint(3, len(NAMES) if order != "total" else 5)]
    air = Air(seed)
    durable = order in ("multicast", "total")
    groups = [
        precede.join(
            "picnic",
            name,
            key=KEY,
            order=order,
            lifetime="1min" if order == "delta" else None,
            store=folder / f"{seed}-{name}" if durable else None,
            members=names if durable else (),
            transport=Radio(air, name),
            beacon=0.1,
            options={"quiet": "300ms"} if order == "total" else {},
        )
        for name in names
    ]
    taken: dict[str, list[tuple[str, bytes]]] = {name: [] for name in names}

    async def take(group: precede.Group) -> None:
        async for message in group:
            taken[group.name].append((message.source, message.payload))

    sent: list[tuple[str, bytes]] = []
    for group in groups:
        await group.__aenter__()
    taking = [asyncio.create_task(take(group)) for group in groups]
    try:
        end = asyncio.get_running_loop().time() + 2.5
        number = 0
        while asyncio.get_running_loop().time() < end:
            group = random.choice(groups)
            payload = b"%d" % number
            try:
                if order == "multicast":
                    await group.multicast(payload, to=names)
                else:
                    await group.broadcast(payload)
            except Refused:
                await asyncio.sleep(0.05)
                continue
            sent.append((group.name, payload))
            number += 1
            await asyncio.sleep(random.uniform(0, 0.2))
        air.evil = False
        await everything_taken(sent, taken, names)
    finally:
        for task in taking:
            task.cancel()
        for group in groups:
            await group.close()
    for name in names:
        assert sorted(taken[name]) == sorted(sent), (seed, order, name)
    assert air.to_victim <= 3 * air.from_victim, (seed, order)


async def everything_taken(
    sent: list[tuple[str, bytes]], taken: dict[str, list[tuple[str, bytes]]], names: tuple[str, ...]
) -> None:
    """Wait until everybody has everything, at most as long as a loaded machine may need."""
    for _ in range(600):
        if all(len(taken[name]) >= len(sent) for name in names):
            return
        await asyncio.sleep(0.1)


@pytest.mark.parametrize("seed", range(6))
def test_nothing_is_forged_and_nothing_is_lost_once_he_stops(seed: int, tmp_path: Path) -> None:
    asyncio.run(trial(seed, tmp_path))


@pytest.mark.long
def test_two_hundred_trials(tmp_path: Path) -> None:
    async def run() -> None:
        for start in range(1000, 1200, 8):
            await asyncio.gather(*(trial(seed, tmp_path) for seed in range(start, start + 8)))

    asyncio.run(run())
