"""Members of a group in one process, for benchmarks of the runtime: offered load and deliveries."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from typing import Any

import precede
from precede.runtime.group import Group
from precede.runtime.links.authorship import public_of
from precede.runtime.links.keyring import new_key
from precede.runtime.transports.transport import OnFrame, Where
from precede.runtime.transports.udp import UdpTransport

NAMES = ("ana", "ben", "cem")
PAYLOAD = b"x" * 200
KEY = new_key()
SEEDS = {name: os.urandom(32) for name in (*NAMES, "mal")}
ROSTER = {name: public_of(seed) for name, seed in SEEDS.items()}
_OUTSTANDING = 300


class CountingTransport(UdpTransport):
    """A UDP transport that counts received frames and keeps some, for tests that alter them."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0))
        self.heard = 0
        self.frames: list[bytes] = []

    async def start(self, on_frame: OnFrame) -> None:
        def counted(frame: bytes, where: Where) -> None:
            self.heard += 1
            if self.heard % 16 == 0 and where in self._peers:
                self.frames = [*self.frames[-31:], frame]
            on_frame(frame, where)

        await super().start(counted)


class Members:
    """Some members in range of each other. `signed`: with identities; `sealed`: with a group key.

    `options` are added to those of the protocol, for example another dissemination than the default.
    """

    def __init__(
        self, names: Sequence[str] = NAMES, *, sealed: bool = True, signed: bool = True, **options: str
    ) -> None:
        self._options = {"sweep": "1s", **options}
        self.transports = [CountingTransport() for _ in names]
        self.groups = [
            self._member(name, transport, sealed, signed)
            for name, transport in zip(names, self.transports, strict=True)
        ]
        self.sent = 0
        self.delivered = 0

    def _member(self, name: str, transport: UdpTransport, sealed: bool, signed: bool) -> Group:
        given: dict[str, Any] = {"identity": SEEDS[name], "roster": ROSTER} if signed else {}
        return precede.join(
            "bench",
            name,
            key=KEY if sealed else None,
            order="delta",
            lifetime="5s",
            options=self._options,
            transport=transport,
            beacon=0.2,
            **given,
        )

    async def __aenter__(self) -> Members:
        for group in self.groups:
            await group.__aenter__()
        for transport in self.transports:
            for other in self.transports:
                if other is not transport:
                    transport.add_peer(other.address)
        while any(len(group.neighbours()) < len(self.groups) - 1 for group in self.groups):
            await asyncio.sleep(0.02)
        self._taking = [asyncio.create_task(self._take(group)) for group in self.groups]
        return self

    async def __aexit__(self, *exception: object) -> None:
        for task in self._taking:
            task.cancel()
        for group in self.groups:
            await group.close()

    async def _take(self, group: Group) -> None:
        async for message in group:
            if message.source != group.name:
                self.delivered += 1

    async def saturate(self, seconds: float) -> float:
        """Broadcasts as fast as possible; returns deliveries per second at other members than the sender."""
        before, others = self.delivered - self.sent * (len(self.groups) - 1), len(self.groups) - 1
        begin, first = time.perf_counter(), self.delivered
        while time.perf_counter() - begin < seconds:
            for group in self.groups:
                if self.sent * others - (self.delivered - before) < _OUTSTANDING * others:
                    await group.broadcast(PAYLOAD)
                    self.sent += 1
            await asyncio.sleep(0)
        rate = (self.delivered - first) / (time.perf_counter() - begin)
        await self.settle()
        return rate

    async def offer(self, per_second: float, seconds: float) -> float:
        """Offers a steady load; returns how many deliveries happened within the time."""
        others = len(self.groups) - 1
        begin, first, done = time.perf_counter(), self.delivered, 0
        while (passed := time.perf_counter() - begin) < seconds:
            while done < passed * per_second / others:
                await self.groups[done % len(self.groups)].broadcast(PAYLOAD)
                done += 1
            await asyncio.sleep(0.002)
        self.sent += done
        return (self.delivered - first) / (time.perf_counter() - begin)

    async def settle(self) -> None:
        """Waits until no more messages are delivered."""
        seen = -1
        while seen != self.delivered:
            seen = self.delivered
            await asyncio.sleep(0.3)

    def dropped(self) -> dict[str, int]:
        """Discarded frames by reason, of all members together."""
        counts: dict[str, int] = {}
        for group in self.groups:
            for reason, count in group.status()["dropped"].items():
                counts[reason] = counts.get(reason, 0) + count
        return counts
