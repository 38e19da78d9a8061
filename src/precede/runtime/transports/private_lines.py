"""A UDP socket for each admitted neighbour, so that strangers cannot fill the neighbours' receive buffers.

A UDP socket has one receive buffer for all senders. A stranger who sends faster than the node reads fills it,
and members' datagrams are dropped before any key is checked. A second socket on the same port, connected to a
member's address, receives only that member's datagrams: the operating system sorts them by sender, and the
stranger fills only the common socket's buffer.
"""

import asyncio
import socket
import sys
from collections.abc import Callable
from typing import Final, TypeAlias

Address: TypeAlias = tuple[str, int]

MOST_LINES: Final = 256
_AT_ONCE: Final = 128
_BUFFER: Final = 1 << 20
_LARGEST: Final = 1 << 16


class PrivateLines:
    """Sockets for at most `MOST_LINES` neighbours; the others are heard on the common socket."""

    def __init__(self, bound: Address, heard: Callable[[bytes, Address], None]) -> None:
        self._bound = bound
        self._heard = heard
        self._lines: dict[Address, socket.socket] = {}

    def __len__(self) -> int:
        return len(self._lines)

    def open(self, peer: Address) -> None:
        """Open a socket for a neighbour. If the system refuses, it is heard on the common socket as before."""
        if peer in self._lines or len(self._lines) >= MOST_LINES:
            return
        family = socket.AF_INET6 if ":" in self._bound[0] else socket.AF_INET
        line = socket.socket(family, socket.SOCK_DGRAM)
        try:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
            line.setblocking(False)
            if family == socket.AF_INET6:
                line.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            line.bind(self._bound)
            line.connect(peer)
        except OSError:
            line.close()
            return
        self._lines[peer] = line
        asyncio.get_running_loop().add_reader(line, self._read, line, peer)

    def close(self, peer: Address) -> None:
        """Close a neighbour's socket; from now on it is heard on the common socket."""
        line = self._lines.pop(peer, None)
        if line is not None:
            asyncio.get_running_loop().remove_reader(line)
            line.close()

    def close_all(self) -> None:
        for peer in list(self._lines):
            self.close(peer)

    def _read(self, line: socket.socket, peer: Address) -> None:
        """Read some datagrams, then let other tasks run."""
        for _ in range(_AT_ONCE):
            try:
                data = line.recv(_LARGEST)
            except BlockingIOError:
                return
            except OSError:
                continue  # the peer's port is closed; its missing beacons report that
            self._heard(data, peer)
            if self._lines.get(peer) is not line:
                return


def share_port(endpoint: socket.socket) -> bool:
    """Let private lines bind to this bound socket's port. False if the system does not sort by sender."""
    if not sys.platform.startswith("linux"):
        return False
    endpoint.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    return True
