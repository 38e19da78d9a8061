"""Sockets of their own for neighbours that were admitted, so that strangers cannot fill their buffers.

A UDP socket has one buffer for everybody: a stranger who sends faster than a node reads crowds the members out
before a key is looked at. A second socket on the same port, connected to a member's address, gets that member's
datagrams alone: the system sorts them, and the stranger fills only the buffer he shares with other strangers.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Callable
from typing import Final, TypeAlias

Address: TypeAlias = tuple[str, int]

MOST_LINES: Final = 256
_AT_ONCE: Final = 32
_BUFFER: Final = 1 << 20
_LARGEST: Final = 1 << 16


class PrivateLines:
    """At most `MOST_LINES` neighbours; whoever has none is heard on the common socket."""

    def __init__(self, bound: Address, heard: Callable[[bytes, Address], None]) -> None:
        self._bound = bound
        self._heard = heard
        self._lines: dict[Address, socket.socket] = {}

    def __len__(self) -> int:
        return len(self._lines)

    def open(self, peer: Address) -> None:
        """A line to this place; none where the system cannot do it (then nothing changes)."""
        if peer in self._lines or len(self._lines) >= MOST_LINES:
            return
        line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
            line.setblocking(False)
            line.bind(self._bound)
            line.connect(peer)
        except OSError:
            line.close()
            return
        self._lines[peer] = line
        asyncio.get_running_loop().add_reader(line, self._read, line, peer)

    def close(self, peer: Address) -> None:
        """The neighbour is gone; it is heard on the common socket if it comes again."""
        line = self._lines.pop(peer, None)
        if line is not None:
            asyncio.get_running_loop().remove_reader(line)
            line.close()

    def close_all(self) -> None:
        for peer in list(self._lines):
            self.close(peer)

    def _read(self, line: socket.socket, peer: Address) -> None:
        """Some datagrams, then let others run."""
        for _ in range(_AT_ONCE):
            try:
                data = line.recv(_LARGEST)
            except BlockingIOError:
                return
            except OSError:
                continue  # the peer's port is closed: its beacons will stop, which says the same to everybody
            self._heard(data, peer)
            if self._lines.get(peer) is not line:
                return


def share_port(endpoint: socket.socket) -> bool:
    """Let private lines bind to the port of this socket; False where the system does not sort by peer.

    After the socket was bound: before, the system might have given it a port that somebody else shares.
    """
    if not sys.platform.startswith("linux"):
        return False
    endpoint.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    return True
