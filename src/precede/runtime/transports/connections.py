"""What transports over connections share: numbers for connections, and a limit to those without a member.

A connection on which no member was heard for a while is closed; if there are too many connections, the oldest
such one is closed first. So strangers who keep connections open keep no member out.
"""

import asyncio
import sys
from typing import Final, Generic, Protocol, TypeVar, cast

from precede.runtime.transports.transport import OnFrame, Transport, Where

_MOST_CONNECTIONS: Final = 1024
MOST_UNSENT: Final = 1 << 20
"""How many bytes wait for a neighbour that does not read; later frames are dropped."""
FIRST_WAIT: Final = 0.1
LONGEST_WAIT: Final = 5.0
"""Seconds before a broken connection is opened again, doubled after each failure."""
STRANGER_SECONDS: Final = 10.0


def most_connections() -> int:
    """Return how many connections are kept: at most half of the files that this process may open."""
    if sys.platform == "win32":
        return _MOST_CONNECTIONS
    import resource

    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST_CONNECTIONS if files == resource.RLIM_INFINITY else min(_MOST_CONNECTIONS, files // 2)


class Connection(Protocol):
    """One connection, as `ConnectedTransport` sees it."""

    def send(self, frame: bytes) -> None: ...

    def unsent_bytes(self) -> int: ...

    def abort(self) -> None: ...


AnyConnection = TypeVar("AnyConnection", bound=Connection)


class ConnectedTransport(Transport, Generic[AnyConnection]):
    """A transport whose places are the numbers of its connections."""

    one_reaches_all = False

    def __init__(self, largest: int) -> None:
        self.largest = largest
        self._connections: dict[int, AnyConnection] = {}
        self._strangers: dict[int, asyncio.TimerHandle] = {}
        self._number = 0
        self._on_frame: OnFrame | None = None
        self._most = most_connections()

    def send(self, frame: bytes, where: Where) -> None:
        connection = self._connections.get(cast(int, where))
        if connection is not None:
            connection.send(frame)

    def broadcast(self, frame: bytes) -> None:
        for connection in list(self._connections.values()):
            connection.send(frame)

    def unsent_bytes(self) -> int:
        members = [each for number, each in self._connections.items() if number not in self._strangers]
        return min((connection.unsent_bytes() for connection in members), default=0)

    def opened(self, connection: AnyConnection) -> int | None:
        """Register a connection and return its number. If there are too many, close one without a member."""
        if len(self._connections) >= self._most:
            if not self._strangers:
                return None
            self._remove(next(iter(self._strangers)))
        self._number += 1
        self._connections[self._number] = connection
        self._watch(self._number)
        self.on_link(self._number, True)
        return self._number

    def closed(self, number: int) -> None:
        self._trust(number)
        if self._connections.pop(number, None) is not None:
            self.on_link(number, False)

    def heard(self, frame: bytes, number: int) -> None:
        assert self._on_frame is not None
        self._on_frame(frame, number)

    def known(self, where: Where, near: bool) -> None:
        number = cast(int, where)
        if near:
            self._trust(number)
        elif number in self._connections:
            self._watch(number)

    def _watch(self, number: int) -> None:
        """Close a connection in a while, unless a member is heard on it."""
        self._trust(number)
        loop = asyncio.get_running_loop()
        self._strangers[number] = loop.call_later(STRANGER_SECONDS, self._remove, number)

    def _trust(self, number: int) -> None:
        """Cancel the timer that would close a connection without a member."""
        handle = self._strangers.pop(number, None)
        if handle is not None:
            handle.cancel()

    def _forget_strangers(self) -> None:
        """Cancel all timers: the transport stops."""
        for number in list(self._strangers):
            self._trust(number)

    def _remove(self, number: int) -> None:
        connection = self._connections[number]
        self.closed(number)
        connection.abort()
