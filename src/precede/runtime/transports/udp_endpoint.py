"""The UDP sockets of one address family: unicast, and one multicast group on many interfaces."""

import asyncio
import socket
import struct
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final, TypeAlias

from precede.core.errors import BadInput
from precede.runtime.transports.addresses import Address
from precede.runtime.transports.interfaces import Interface
from precede.runtime.transports.private_lines import PrivateLines, share_port
from precede.runtime.transports.transport import OnFrame

Place: TypeAlias = tuple[str, int] | tuple[str, int, int, int]
_BUFFER: Final = 1 << 20
_LARGEST: Final = 1 << 16
_AT_ONCE: Final = 128
_MOST_UNSENT: Final = 1024
_TRANSIENT_LINK_LOCAL: Final = 0xFF12 << 112


class UdpEndpoint:
    """A socket that is bound, and, with `join`, a second one that receives a multicast group.

    The second socket is bound to the group's port, which all members on a machine share. Frames to the group
    leave through the first one, so that answers come to this member alone. One wake-up reads all datagrams that
    have arrived, so the node handles them in one turn. (The datagram transport of asyncio reads one at a time.)
    """

    def __init__(self, endpoint: socket.socket, on_frame: OnFrame, *, may_share_port: bool) -> None:
        self.family = endpoint.family
        self._socket = endpoint
        self._on_frame = on_frame
        self._may_share_port = may_share_port
        self._is_open = False
        self._unsent: deque[tuple[bytes, Place]] = deque()
        self._group_socket: socket.socket | None = None
        self._group: Address = ("", 0)
        self._joined: dict[int, None] = {}
        self._sends_through = -1
        self._lines: PrivateLines | None = None

    def start(self) -> None:
        self._socket.setblocking(False)
        asyncio.get_running_loop().add_reader(self._socket, self._read, self._socket)
        self._is_open = True
        if self._may_share_port and share_port(self._socket):
            self._lines = PrivateLines(self.address, self._on_frame)

    def join(self, group: Address, interfaces: Sequence[Interface]) -> None:
        """Receive a multicast group's frames on these interfaces. Raise OSError if its port cannot be bound."""
        receiver = _socket(self.family)
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            # A link-local IPv6 group could be bound on one interface only.
            receiver.bind(("::", group[1]) if self.family == socket.AF_INET6 else group)
        except OSError:
            receiver.close()
            raise
        self._group, self._group_socket = group, receiver
        self.join_on(interfaces)
        asyncio.get_running_loop().add_reader(receiver, self._read, receiver)

    def join_on(self, interfaces: Sequence[Interface]) -> None:
        """Join the group on new interfaces, forget those that are gone, and try failed ones again next time."""
        self._joined = {index: None for index in self._joined if index in {each.number for each in interfaces}}
        for each in interfaces:
            if each.number not in self._joined and self.reaches(each):
                with suppress(OSError):
                    self._join_one(each.number)
                    self._joined[each.number] = None

    def _join_one(self, index: int) -> None:
        assert self._group_socket is not None
        group = socket.inet_pton(self.family, self._group[0])
        if self.family == socket.AF_INET6:
            level, option, value = socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, struct.pack("@I", index)
        else:
            level, option, value = socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, struct.pack("@4xi", index)
        self._group_socket.setsockopt(level, option, group + value)

    def reaches(self, interface: Interface) -> bool:
        return interface.ipv6 if self.family == socket.AF_INET6 else interface.ipv4 is not None

    @property
    def joined(self) -> int:
        return len(self._joined)

    @property
    def address(self) -> Address:
        host, port = self._socket.getsockname()[:2]
        return str(host), int(port)

    def send(self, frame: bytes, where: Place) -> None:
        """Send a frame. If the system has no room for it now, it leaves as soon as there is some."""
        if not self._is_open:
            return
        if self._unsent or not self._take(frame, where):
            if not self._unsent:
                asyncio.get_running_loop().add_writer(self._socket, self._send_rest)
            if len(self._unsent) < _MOST_UNSENT:
                self._unsent.append((frame, where))

    def unsent_bytes(self) -> int:
        """Return the bytes of the frames that the system has had no room for."""
        return sum(len(frame) for frame, _ in self._unsent)

    def _take(self, frame: bytes, where: Place) -> bool:
        """Give a frame to the system. False if it has no room now; a frame that it refuses is lost."""
        try:
            self._socket.sendto(frame, where)
        except BlockingIOError:
            return False
        except OSError:
            pass
        return True

    def _send_rest(self) -> None:
        while self._unsent and self._take(*self._unsent[0]):
            self._unsent.popleft()
        if not self._unsent:
            asyncio.get_running_loop().remove_writer(self._socket)

    def multicast(self, frame: bytes, interface: Interface) -> None:
        """Send a frame to the group through one interface. A frame that the system does not take is lost."""
        with suppress(OSError):
            if self.family == socket.AF_INET6:
                self._socket.sendto(frame, (*self._group, 0, interface.number))
                return
            if self._sends_through != interface.number:
                through = struct.pack("@8xi", interface.number)
                self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, through)
                self._sends_through = interface.number
            self._socket.sendto(frame, self._group)

    def known(self, where: tuple[str, int], near: bool) -> None:
        """Open a socket for a member that was admitted (`near`), or close that of a member that has gone."""
        if self._lines is not None and near:
            self._lines.open(where)
        elif self._lines is not None:
            self._lines.close(where)

    def close(self) -> None:
        """Close all sockets; the port is free when this returns."""
        if self._lines is not None:
            self._lines.close_all()
        loop = asyncio.get_running_loop()
        self._is_open = False
        self._unsent.clear()
        loop.remove_writer(self._socket)
        for each in (self._socket, self._group_socket):
            if each is not None:
                loop.remove_reader(each)
                each.close()

    def _read(self, receiver: socket.socket) -> None:
        """Read the datagrams that have arrived, at most `_AT_ONCE` of them; then other tasks run."""
        for _ in range(_AT_ONCE):
            try:
                data, where = receiver.recvfrom(_LARGEST)
            except BlockingIOError:
                return
            except OSError:
                continue  # a peer's port is closed; its missing beacons report that
            # A link-local IPv6 address means something only together with its interface, the fourth part.
            self._on_frame(data, where if len(where) == 4 and where[3] else where[:2])
            if not self._is_open:
                return


def bound_sockets(bind: Address) -> list[socket.socket]:
    """Return the bound sockets of a member; with host "" one for IPv4 and, if possible, one for IPv6."""
    host, port = bind
    if host:
        return [_bound(socket.AF_INET6 if ":" in host else socket.AF_INET, bind)]
    first = _bound(socket.AF_INET, ("0.0.0.0", port))
    for wanted in (first.getsockname()[1], 0):
        with suppress(OSError):
            return [first, _bound(socket.AF_INET6, ("::", wanted))]
    return [first]


def _bound(family: socket.AddressFamily, address: Address) -> socket.socket:
    endpoint = _socket(family)
    try:
        endpoint.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        endpoint.bind(address)
    except OSError:
        endpoint.close()
        raise
    return endpoint


def _socket(family: socket.AddressFamily) -> socket.socket:
    made = socket.socket(family, socket.SOCK_DGRAM)
    made.setblocking(False)
    if family == socket.AF_INET6:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    return made


def groups_of(lan: Address) -> dict[socket.AddressFamily, Address]:
    """Return the multicast groups of a LAN address, by address family. Raise BadInput if it is no such address.

    To an IPv4 group belongs an IPv6 group with the same last 32 bits.
    """
    host, port = lan
    try:
        group = ip_address(host)
    except ValueError:
        group = None
    if group is None or not group.is_multicast or port == 0:
        example = '("239.83.7.1", 4700)'
        raise BadInput(f"lan: expected a multicast address and a port, such as {example}, got {lan!r}")
    if isinstance(group, IPv4Address):
        sixth = IPv6Address(_TRANSIENT_LINK_LOCAL | int(group))
        return {socket.AF_INET: lan, socket.AF_INET6: (str(sixth), port)}
    return {socket.AF_INET6: lan}
