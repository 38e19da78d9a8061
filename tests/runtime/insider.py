"""A member that went bad: it has the group key and its own identity, and sends any bytes it likes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from precede.core.identity import NEIGHBOURS
from precede.runtime.links.admission import SealedAdmission
from precede.runtime.links.agreement import Agreement
from precede.runtime.links.introductions import Directory, Identity
from precede.runtime.links.neighbours import Links
from precede.runtime.names import group_key, node_id
from precede.runtime.transports.transport import Where
from precede.runtime.transports.udp import UdpTransport
from tests.patience import patient

Address = tuple[str, int]


class Tapped(UdpTransport):
    """Keeps every frame that is sent."""

    def __init__(self, to: Address) -> None:
        super().__init__(("127.0.0.1", 0), [to])
        self.sent: list[bytes] = []

    def send(self, frame: bytes, where: Where) -> None:
        self.sent.append(frame)
        super().send(frame, where)


NO_TERMS = Agreement("", {}, lambda: 0, None, str, lambda code, text, peer: None)


class Insider:
    """One bad member. `await meet(name)`, then `send` packets to that member in its session."""

    def __init__(
        self,
        name: str,
        group: str,
        key: bytes,
        to: Address,
        identity: bytes | None = None,
        roster: Mapping[str, bytes] | None = None,
    ) -> None:
        keys = Identity.shared(group, name) if identity is None else Identity(identity)
        self.directory = Directory(group, keys.introduce(group, name), node_id, roster)
        self.transport = Tapped(to)
        self.to = to
        self.packets: list[bytes] = []
        self.admission = SealedAdmission(
            node_id(name), keys, self.directory, group, (group_key(key, group),), 1, NO_TERMS
        )
        self.links = Links(
            self.transport,
            self.admission,
            lambda data, sender, to_all: self.packets.append(data),
            lambda peer: None,
            lambda peer: None,
            lambda key, ok: None,
        )

    async def meet(self, name: str) -> None:
        """Begin a session with a member."""
        await self.transport.start(self.links.frame)
        async with asyncio.timeout(patient(30)):
            while node_id(name) not in self.links.neighbours():
                self.links.tick()
                for _ in range(4):
                    self.links.tick_sessions()
                    await asyncio.sleep(0.025)

    def send(self, packet: bytes, name: str) -> bytes:
        """Send a packet to a member in its session; the frame that carries it."""
        self.links.send(packet, node_id(name))
        return self.transport.sent[-1]

    def broadcast(self, packet: bytes) -> None:
        """Send a packet to everybody."""
        self.links.send(packet, NEIGHBOURS)

    def send_frame(self, frame: bytes) -> None:
        """Send any bytes as a frame."""
        self.transport.send(frame, self.to)

    async def stop(self) -> None:
        self.links.stop()
        await self.transport.stop()
