"""UDP: unicast to known addresses, and multicast on a LAN.

With a multicast group members find each other: frames to all neighbours go to the group on every interface,
frames to one neighbour go to the address it was heard from. IPv4 and IPv6 are used side by side: IPv6 on
interfaces without an IPv4 address, while no member is near, and while a member is near that is reached by IPv6.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from precede.core.errors import BadInput
from precede.runtime.transports.addresses import Address, check_address
from precede.runtime.transports.interfaces import Interface, lan_interfaces
from precede.runtime.transports.transport import OnFrame, Transport, Where
from precede.runtime.transports.udp_endpoint import UdpEndpoint, bound_sockets, groups_of

LARGEST: Final = 1400
LAN_GROUP: Final[Address] = ("239.83.7.1", 4700)
"""The multicast address where members find each other, if the application names none."""
_LOOK_AGAIN_S: Final = 2.0


class UdpTransport(Transport):
    """Frames as UDP datagrams: `bind` is the address to listen on, `peers` are addresses of other members.

    `multicast` is the address of a multicast group. It is joined on the interface of `bind`; with host "" on
    every interface, also on those that come later, for IPv4 and IPv6. Each admitted neighbour has a socket of
    its own, so that strangers cannot fill its receive buffer. `endpoint` is a socket that is bound already; it
    stays open.

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
        endpoint: socket.socket | None = None,
    ) -> None:
        check_address("bind", bind)
        if multicast is not None:
            check_address("multicast", multicast)
        self.largest = largest
        self.one_reaches_all = multicast is not None
        self._bind = bind
        self._peers: dict[Address, None] = {}
        for peer in peers:
            self.add_peer(peer)
        self._multicast = multicast
        self._groups = {} if multicast is None else groups_of(multicast)
        self._given = endpoint
        self._endpoints: dict[socket.AddressFamily, UdpEndpoint] = {}
        self._interfaces: list[Interface] = []
        self._looked_at = 0.0
        self._near: dict[tuple[str, int], None] = {}

    async def start(self, on_frame: OnFrame) -> None:
        try:
            for made in bound_sockets(self._bind) if self._given is None else [_emptied(self._given.dup())]:
                endpoint = UdpEndpoint(made, on_frame, may_share_port=self._given is None)
                self._endpoints[endpoint.family] = endpoint
                endpoint.start()
        except OSError as error:
            raise BadInput(f"bind: cannot listen on {_text(self._bind)}: {error.strerror or error}") from error
        if self._multicast is not None:
            self._join(self._multicast)

    def _join(self, multicast: Address) -> None:
        self._look_at_interfaces()
        for family, group in self._groups.items():
            if family in self._endpoints:
                try:
                    self._endpoints[family].join(group, self._interfaces)
                except OSError as error:
                    reason = error.strerror or error
                    raise BadInput(f"lan: cannot listen on {_text(group)}: {reason}") from error
        if not any(family in self._endpoints for family in self._groups):
            raise BadInput(f"lan: {_text(multicast)} cannot be reached from bind={_text(self._bind)}")

    def _look_at_interfaces(self) -> None:
        self._looked_at = time.monotonic()
        self._interfaces = lan_interfaces(self._bind[0])

    @property
    def address(self) -> Address:
        """The address it listens on, with the real port if 0 was given."""
        return next(iter(self._endpoints.values())).address

    def add_peer(self, address: Address) -> None:
        """Add an address of another member."""
        check_address("peers", address)
        self._peers[address] = None

    def remove_peer(self, address: Address) -> None:
        """Remove an address of another member."""
        self._peers.pop(address, None)

    def send(self, frame: bytes, where: Where) -> None:
        if isinstance(where, tuple):
            endpoint = self._endpoints.get(_family(where[0]))
            if endpoint is not None:
                endpoint.send(frame, where)

    def broadcast(self, frame: bytes) -> None:
        if self._groups:
            self._to_the_groups(frame)
        for address in self._peers:
            self.send(frame, address)

    def _to_the_groups(self, frame: bytes) -> None:
        if time.monotonic() > self._looked_at + _LOOK_AGAIN_S:
            self._look_at_interfaces()
            for family in self._groups:
                if family in self._endpoints:
                    self._endpoints[family].join_on(self._interfaces)
        first, *others = [self._endpoints[family] for family in self._groups if family in self._endpoints]
        both = not self._near or any(_family(where[0]) == socket.AF_INET6 for where in self._near)
        for interface in self._interfaces:
            if first.reaches(interface):
                first.multicast(frame, interface)
            for other in others:
                if other.reaches(interface) and (both or not first.reaches(interface)):
                    other.multicast(frame, interface)

    def broadcast_reaches(self, where: Where) -> bool:
        return where in self._peers or bool(self._groups)

    def unsent_bytes(self) -> int:
        return sum(endpoint.unsent_bytes() for endpoint in self._endpoints.values())

    def known(self, where: Where, near: bool) -> None:
        if not isinstance(where, tuple):
            return
        if near:
            self._near[where] = None
        else:
            self._near.pop(where, None)
        endpoint = self._endpoints.get(_family(where[0]))
        if endpoint is not None:
            endpoint.known(where, near)

    def why_silent(self) -> str:
        if self._multicast is not None:
            names = ", ".join(each.name for each in self._interfaces) or "none"
            return (
                f"nobody is heard on the multicast group {_text(self._multicast)} (interfaces: {names}); "
                "the others are not running or have another lan address, or a firewall drops multicast"
            )
        if self._peers:
            some = ", ".join(_text(peer) for peer in list(self._peers)[:3])
            return f"no peer answers ({some}); they are not running there, or a firewall drops UDP"
        return (
            f"neither lan nor peers are given: only members that know {_text(self.address)} can find this one"
        )

    async def stop(self) -> None:
        endpoints, self._endpoints = self._endpoints, {}
        for endpoint in endpoints.values():
            endpoint.close()


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _text(address: Address) -> str:
    host, port = address[0] or "*", address[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _emptied(endpoint: socket.socket) -> socket.socket:
    """Discard the datagrams that a bound socket has received so far, and return the socket."""
    endpoint.setblocking(False)
    with suppress(BlockingIOError):
        while True:
            endpoint.recv(1)
    return endpoint
