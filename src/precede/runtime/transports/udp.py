"""UDP: unicast to known addresses, and to a multicast group on a LAN when one is given.

With a multicast group a node finds the others by itself: one-to-many frames go to the group, one by one frames
to wherever a neighbour was heard from. The group's port is shared by all members on a machine.
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
    """A socket for everybody, and one for each admitted neighbour, so that strangers cannot crowd it out.

    What arrives faster than it is handled waits in the system's buffer, and drops there.
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
        """`endpoint` is a socket that is bound already: what it heard before is forgotten; it stays open."""
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
        """A socket that hears the group; any number of members on one machine may have one."""
        shared = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        shared.bind(group)
        shared.setblocking(False)
        both = socket.inet_aton(group[0]) + socket.inet_aton(self._interface)
        shared.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, both)
        return shared

    @property
    def address(self) -> Address:
        """Where it really listens (the port may have been given as 0)."""
        assert self._transport is not None
        host, port = self._transport.get_extra_info("sockname")[:2]
        return str(host), int(port)

    def add_peer(self, address: Address) -> None:
        """One more address to speak to."""
        self._peers[address] = None

    def remove_peer(self, address: Address) -> None:
        """Speak to it no more."""
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
        """A peer's port is closed. Its beacons will stop, which says the same to everybody."""


def _emptied(endpoint: socket.socket) -> socket.socket:
    endpoint.setblocking(False)
    try:
        while True:
            endpoint.recv(1)
    except BlockingIOError:
        return endpoint
