"""TCP for wired links: one connection between two addresses, made again when it breaks.

Of two that know each other the smaller address dials. A frame is four bytes of length and its bytes. What is
under way when a connection breaks is lost here and sent again by the channel above (`runtime.channel`). A
neighbour that does not read is not waited for: frames beyond a bound are dropped, and the channel sends them
again later. A connection on which no member has been heard for a while is closed, and when there are too many
the oldest of these makes room: strangers who keep connections open keep nobody out.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Sequence
from typing import Final, cast

from precede.core.errors import BadInput
from precede.runtime.transports.transport import OnFrame, Transport, Where
from precede.runtime.transports.udp import Address

LARGEST: Final = 32_000
_LENGTH: Final = struct.Struct(">I")
_MOST_CONNECTIONS: Final = 1024
_MOST_UNSENT: Final = 1 << 20
_FIRST_WAIT: Final = 0.1
_LONGEST_WAIT: Final = 5.0
STRANGER_SECONDS: Final = 10.0


class TcpTransport(Transport):
    """Listens on `bind` and keeps a connection to every peer that does not dial here itself."""

    def __init__(
        self,
        bind: Address,
        peers: Sequence[Address] = (),
        largest: int = LARGEST,
        endpoint: socket.socket | None = None,
    ) -> None:
        """`endpoint` is a socket that is bound already; it stays open."""
        self.largest = largest
        self._given = endpoint
        self._bind = bind
        self._peers = list(peers)
        self._server: asyncio.Server | None = None
        self._dialling: dict[Address, asyncio.Task[None]] = {}
        self._connections: dict[int, _Connection] = {}
        self._strangers: dict[int, asyncio.TimerHandle] = {}
        self._number = 0
        self._on_frame: OnFrame | None = None

    async def start(self, on_frame: OnFrame) -> None:
        self._on_frame = on_frame
        loop = asyncio.get_running_loop()
        try:
            if self._given is None:
                self._server = await loop.create_server(lambda: _Connection(self), *self._bind)
            else:
                self._server = await loop.create_server(lambda: _Connection(self), sock=self._given.dup())
        except OSError as error:
            place = f"{self._bind[0]}:{self._bind[1]}"
            raise BadInput(f"cannot listen on {place}: {error.strerror or error}") from error
        for peer in self._peers:
            self._dial(peer)

    @property
    def address(self) -> Address:
        """Where it really listens (the port may have been given as 0)."""
        assert self._server is not None
        host, port = self._server.sockets[0].getsockname()[:2]
        return str(host), int(port)

    def add_peer(self, address: Address) -> None:
        """One more to be connected with."""
        self._peers.append(address)
        if self._server is not None:
            self._dial(address)

    def send(self, frame: bytes, where: Where) -> None:
        connection = self._connections.get(cast(int, where))
        if connection is not None:
            connection.send(frame)

    def broadcast(self, frame: bytes) -> None:
        for connection in list(self._connections.values()):
            connection.send(frame)

    async def stop(self) -> None:
        for task in self._dialling.values():
            task.cancel()
        for handle in self._strangers.values():
            handle.cancel()
        for connection in list(self._connections.values()):
            connection.close()
        if self._server is not None:
            self._server.close()
            self._server = None

    def _dial(self, peer: Address) -> None:
        if self.address < peer and peer not in self._dialling:
            self._dialling[peer] = asyncio.get_running_loop().create_task(self._keep(peer))

    async def _keep(self, peer: Address) -> None:
        """A connection, and another one when it has broken."""
        loop, wait = asyncio.get_running_loop(), _FIRST_WAIT
        while True:
            try:
                _, connection = await loop.create_connection(lambda: _Connection(self), *peer)
                wait = _FIRST_WAIT
                await connection.lost
            except OSError:
                wait = min(2 * wait, _LONGEST_WAIT)
            await asyncio.sleep(wait)

    # -- what connections tell -----------------------------------------------------------------------------

    def opened(self, connection: _Connection) -> int | None:
        """Its number; None when there are too many, and members on all of them."""
        if len(self._connections) >= _MOST_CONNECTIONS:
            if not self._strangers:
                return None
            self._show_out(next(iter(self._strangers)))
        self._number += 1
        self._connections[self._number] = connection
        self._watch(self._number)
        self.on_link(self._number, True)
        return self._number

    def closed(self, number: int) -> None:
        self._trust(number)
        if self._connections.pop(number, None) is not None:
            self.on_link(number, False)

    def known(self, where: Where, near: bool) -> None:
        number = cast(int, where)
        if near:
            self._trust(number)
        elif number in self._connections:
            self._watch(number)

    def _watch(self, number: int) -> None:
        self._trust(number)
        loop = asyncio.get_running_loop()
        self._strangers[number] = loop.call_later(STRANGER_SECONDS, self._show_out, number)

    def _trust(self, number: int) -> None:
        handle = self._strangers.pop(number, None)
        if handle is not None:
            handle.cancel()

    def _show_out(self, number: int) -> None:
        """The connection is gone for us at once, however long the other end takes."""
        connection = self._connections[number]
        self.closed(number)
        connection.abort()

    def heard(self, frame: bytes, number: int) -> None:
        assert self._on_frame is not None
        self._on_frame(frame, number)


class _Connection(asyncio.Protocol):
    """One stream of frames, either way."""

    def __init__(self, owner: TcpTransport) -> None:
        self._owner = owner
        self._number: int | None = None
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._number = self._owner.opened(self)
        if self._number is None:
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._number is not None:
            self._owner.closed(self._number)
        if not self.lost.done():
            self.lost.set_result(None)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        start, whole = 0, len(self._buffer)
        while whole - start >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer, start)
            if length > self._owner.largest:
                self.close()  # nobody of ours sends this
                return
            end = start + _LENGTH.size + length
            if end > whole:
                break
            assert self._number is not None
            self._owner.heard(bytes(self._buffer[start + _LENGTH.size : end]), self._number)
            start = end
        del self._buffer[:start]

    def send(self, frame: bytes) -> None:
        if self._transport is not None and self._transport.get_write_buffer_size() < _MOST_UNSENT:
            self._transport.write(_LENGTH.pack(len(frame)) + frame)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """What is unsent is not waited for."""
        if self._transport is not None:
            self._transport.abort()
