"""Members in one process that all hear each other, over three media, with every frame counted.

`memory`: a broadcast medium in memory. `multicast`: UDP over loopback with a multicast group. `unicast`: UDP
over loopback where every member has the addresses of all others. One multicast datagram counts as one frame.
Frames that carry packets or acknowledge them are counted apart from beacons and the frames of sessions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import precede
from precede.runtime.group import Group
from precede.runtime.links.neighbours import Links
from precede.runtime.transports.interfaces import Interface
from precede.runtime.transports.transport import OnFrame, Transport, Where
from precede.runtime.transports.udp import UdpTransport
from precede.runtime.transports.udp_endpoint import UdpEndpoint

_MULTICAST: Final = ("239.83.7.1", 47_140)
_SETTLED_S: Final = 12.0


class Counts:
    """Frames and bytes that carry or acknowledge packets; `others` counts beacons and frames of sessions."""

    def __init__(self) -> None:
        self.frames = 0
        self.bytes = 0
        self.others = 0
        self._carries = 0

    def add(self, frame: bytes) -> None:
        if self._carries:
            self.frames += 1
            self.bytes += len(frame)
        else:
            self.others += 1

    def watch(self, links: Links) -> None:
        """Count the frames that leave a member while it sends a packet, or a frame of a channel."""
        for name in ("send", "send_together", "_transmit"):
            setattr(links, name, self._carrying(getattr(links, name)))
        for near in links._near.values():
            near.channel._transmit = self._carrying(near.channel._transmit)

    def _carrying(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            self._carries += 1
            try:
                return function(*given)
            finally:
                self._carries -= 1

        return call


class Room(Transport):
    """A medium in memory: one transmission reaches everybody."""

    largest = 1_400

    def __init__(self, members: list[Room], counts: Counts) -> None:
        self.members = members
        self.counts = counts
        self.where = f"room:{len(members)}"
        self.hear: OnFrame = lambda frame, where: None
        members.append(self)

    async def start(self, on_frame: OnFrame) -> None:
        self.hear = on_frame

    async def stop(self) -> None:
        self.members.remove(self)

    def send(self, frame: bytes, where: Where) -> None:
        self.counts.add(frame)
        for member in self.members:
            if member.where == where:
                asyncio.get_running_loop().call_soon(member.hear, frame, self.where)

    def broadcast(self, frame: bytes) -> None:
        self.counts.add(frame)
        for member in self.members:
            if member is not self:
                asyncio.get_running_loop().call_soon(member.hear, frame, self.where)


class CountedUdp(UdpTransport):
    """UDP over loopback, with every datagram counted."""

    def __init__(self, counts: Counts, multicast: tuple[str, int] | None) -> None:
        super().__init__(("127.0.0.1", 0), multicast=multicast)
        self._counts = counts

    async def start(self, on_frame: OnFrame) -> None:
        await super().start(on_frame)
        for endpoint in self._endpoints.values():
            self._count(endpoint)

    def _count(self, endpoint: UdpEndpoint) -> None:
        send, multicast = endpoint.send, endpoint.multicast

        def counted_send(frame: bytes, where: tuple[str, int] | tuple[str, int, int, int]) -> None:
            self._counts.add(frame)
            send(frame, where)

        def counted_multicast(frame: bytes, interface: Interface) -> None:
            self._counts.add(frame)
            multicast(frame, interface)

        endpoint.send, endpoint.multicast = counted_send, counted_multicast  # type: ignore[method-assign]


def _in_memory(nodes: int, counts: Counts) -> list[Transport]:
    members: list[Room] = []
    return [Room(members, counts) for _ in range(nodes)]


def _multicast(nodes: int, counts: Counts) -> list[Transport]:
    return [CountedUdp(counts, _MULTICAST) for _ in range(nodes)]


def _unicast(nodes: int, counts: Counts) -> list[Transport]:
    return [CountedUdp(counts, None) for _ in range(nodes)]


MEDIA: Final[dict[str, Callable[[int, Counts], list[Transport]]]] = {
    "memory": _in_memory,
    "multicast": _multicast,
    "unicast": _unicast,
}


async def frames_per_broadcast(
    nodes: int, dissemination: str, medium: str, broadcasts: int = 10
) -> dict[str, float]:
    """Sealed frames and bytes per broadcast, one broadcast a second, digests and acknowledgements included."""
    counts = Counts()
    transports = MEDIA[medium](nodes, counts)
    groups = [
        precede.join(
            "dense", f"m{n}", key=bytes(32), transport=transport, options={"dissemination": dissemination}
        )
        for n, transport in enumerate(transports)
    ]
    for group in groups:
        await group.__aenter__()
    if medium == "unicast":
        acquaint(transports)
    await all_near(groups)
    await asyncio.sleep(_SETTLED_S)
    for group in groups:
        counts.watch(group.links)
    counts.others = 0
    for n in range(broadcasts):
        await groups[n % nodes].broadcast(bytes(32))
        await asyncio.sleep(1.0)
    delivered = sum(group.status()["untaken"] for group in groups)
    for group in groups:
        await group.close()
    return {
        "frames": counts.frames / broadcasts,
        "bytes": counts.bytes / broadcasts,
        "deliveries": delivered / broadcasts,
        "other_frames_per_s": counts.others / broadcasts,
    }


def acquaint(transports: list[Transport]) -> None:
    """Give every member on UDP the addresses of all others."""
    for one in transports:
        for other in transports:
            if one is not other and isinstance(one, UdpTransport) and isinstance(other, UdpTransport):
                one.add_peer(other.address)


async def all_near(groups: list[Group]) -> None:
    """Wait until every member has all others as neighbours."""
    while any(len(group.neighbours()) < len(groups) - 1 for group in groups):
        await asyncio.sleep(0.1)
