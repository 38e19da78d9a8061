"""UDP: unicast to known addresses, and multicast on a LAN.

With a multicast group members find each other: frames to all neighbours go to the group, frames to one
neighbour go to the address it was heard from. All members on a machine share the group's port.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from typing import Final, TypeAlias

from precede.core.errors import BadInput
from precede.runtime.links.private_lines import PrivateLines, share_port
from precede.runtime.transports.transport import OnFrame, Transport, Where

Address: TypeAlias = tuple[str, int]
LARGEST: Final = 1400


class UdpTransport(Transport, asyncio.DatagramProtocol):
    """Frames as UDP datagrams: `bind` is the address to listen on, `peers` are addresses of other members.

    Each admitted neighbour has a socket of its own, so that strangers cannot fill its receive buffer.
    `multicast` is the address of a multicast group, `interface` the local address it is joined on, `endpoint` a
    socket that is bound already; it stays open.

    >>> import asyncio, precede
    >>> async def main() -> None:
    ...     transport = precede.UdpTransport(("127.0.0.1", 0))
    ...     async with precede.join("picnic", "ana", key=None, transport=transport):
    ...         print(transport.address[0])
    >>> asyncio.run(main())
    127.0.0.1
    """

    def __init__(
        self,
        bind: Address,
        peers: Sequence[Address] = (),
        multicast: Address | None = None,
        largest: int = LARGEST,
        interface: str = "0.0.0.0",
        endpoint: socket.socket | None = None,
    ) -> None:
        self.largest = largest
        self._bind = bind
        self._peers: dict[Address, None] = dict.fromkeys(peers)
        self._multicast = multicast
        self._interface = interface
        self._given = endpoint
        self._transport: asyncio.DatagramTransport | None = None
        self._group: asyncio.DatagramTransport | None = None
        self._on_frame: OnFrame | None = None
        self._lines: PrivateLines | None = None

    async def start(self, on_frame: OnFrame) -> None:
        self._on_frame = on_frame
        loop = asyncio.get_running_loop()
        try:
            endpoint = self._own_socket() if self._given is None else _emptied(self._given.dup())
            if self._multicast is not None:
                endpoint.setsockopt(
                    socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(self._interface)
                )
                shared = self._join(self._multicast)
                self._group, _ = await loop.create_datagram_endpoint(lambda: self, sock=shared)
            self._transport, _ = await loop.create_datagram_endpoint(lambda: self, sock=endpoint)
            if self._given is None and share_port(endpoint):
                self._lines = PrivateLines(self.address, on_frame)
        except OSError as error:
            raise BadInput(
                f"cannot listen on {self._bind[0]}:{self._bind[1]}: {error.strerror or error}"
            ) from error

    def _own_socket(self) -> socket.socket:
        endpoint = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        endpoint.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        endpoint.bind(self._bind)
        endpoint.setblocking(False)
        return endpoint

    def _join(self, group: Address) -> socket.socket:
        """A socket that receives the multicast group's datagrams; members on one machine share the port."""
        shared = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        shared.bind(group)
        shared.setblocking(False)
        both = socket.inet_aton(group[0]) + socket.inet_aton(self._interface)
        shared.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, both)
        return shared

    @property
    def address(self) -> Address:
        """The address it listens on, with the real port if 0 was given."""
        assert self._transport is not None
        host, port = self._transport.get_extra_info("sockname")[:2]
        return str(host), int(port)

    def add_peer(self, address: Address) -> None:
        """Add an address of another member."""
        self._peers[address] = None

    def remove_peer(self, address: Address) -> None:
        """Remove an address of another member."""
        self._peers.pop(address, None)

    def send(self, frame: bytes, where: Where) -> None:
        if self._transport is not None and isinstance(where, tuple):
            self._transport.sendto(frame, where)

    def broadcast(self, frame: bytes) -> None:
        if self._transport is None:
            return
        if self._multicast is not None:
            self._transport.sendto(frame, self._multicast)
        for address in self._peers:
            self._transport.sendto(frame, address)

    def broadcast_reaches(self, where: Where) -> bool:
        return where in self._peers or self._multicast is not None

    def known(self, where: Where, near: bool) -> None:
        if self._lines is not None and isinstance(where, tuple):
            if near:
                self._lines.open(where)
            else:
                self._lines.close(where)

    async def stop(self) -> None:
        if self._lines is not None:
            self._lines.close_all()
            self._lines = None
        if self._transport is not None:
            self._transport.close()
            self._transport = None
        if self._group is not None:
            self._group.close()
            self._group = None

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        assert self._on_frame is not None
        self._on_frame(data, (addr[0], addr[1]))

    def error_received(self, exc: Exception) -> None:
        """Ignore a peer whose port is closed: its missing beacons report that."""


def _emptied(endpoint: socket.socket) -> socket.socket:
    """A bound socket without the datagrams that it received before."""
    endpoint.setblocking(False)
    try:
        while True:
            endpoint.recv(1)
    except BlockingIOError:
        return endpoint
