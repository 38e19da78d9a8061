"""TCP for wired links: one connection between two addresses, opened again when it breaks.

Of two peers the one with the smaller address connects. A frame is four bytes of length and its bytes. Frames
that are lost when a connection breaks are retransmitted by the channel above (`runtime.links.channel`); so are
frames that are dropped because a neighbour does not read.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Sequence
from typing import Final, cast

from precede.core.errors import BadInput
from precede.runtime.transports.addresses import Address, check_address
from precede.runtime.transports.connections import FIRST_WAIT, LONGEST_WAIT, MOST_UNSENT, ConnectedTransport
from precede.runtime.transports.transport import OnFrame

LARGEST: Final = 32_000
_LENGTH: Final = struct.Struct(">I")
_CLOSE_S: Final = 1.0


class TcpTransport(ConnectedTransport["_Connection"]):
    """Frames over TCP: listens on `bind` and connects to those `peers` whose address is larger.

    `largest` is the largest frame in bytes; `endpoint` is a socket that is bound already; it stays open.

    >>> import asyncio, precede
    >>> async def main() -> None:
    ...     ours, theirs = precede.TcpTransport(("127.0.0.1", 0)), precede.TcpTransport(("127.0.0.1", 0))
    ...     ana = precede.join("picnic", "ana", key=None, transport=ours, beacon=0.05)
    ...     ben = precede.join("picnic", "ben", key=None, transport=theirs, beacon=0.05, members=["ana"])
    ...     async with ana, ben:
    ...         ours.add_peer(theirs.address)
    ...         theirs.add_peer(ours.address)
    ...         await ana.broadcast(b"hello")
    ...         async for message in ben:
    ...             return print(message.source, message.payload)
    >>> asyncio.run(main())
    ana b'hello'
    """

    def __init__(
        self,
        bind: Address,
        peers: Sequence[Address] = (),
        largest: int = LARGEST,
        endpoint: socket.socket | None = None,
    ) -> None:
        super().__init__(largest)
        check_address("bind", bind)
        for peer in peers:
            check_address("peers", peer)
        self._given = endpoint
        self._bind = bind
        self._peers = list(peers)
        self._server: asyncio.Server | None = None
        self._connecting: dict[Address, asyncio.Task[None]] = {}

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
            self._connect_to(peer)

    @property
    def address(self) -> Address:
        """The address it listens on, with the real port if 0 was given."""
        assert self._server is not None
        host, port = self._server.sockets[0].getsockname()[:2]
        return str(host), int(port)

    def add_peer(self, address: Address) -> None:
        """Add the address of another member."""
        check_address("peers", address)
        self._peers.append(address)
        if self._server is not None:
            self._connect_to(address)

    async def stop(self) -> None:
        for task in self._connecting.values():
            task.cancel()
        self._forget_strangers()
        connections = list(self._connections.values())
        for connection in connections:
            connection.close()
        if self._server is not None:
            self._server.close()
            self._server = None
        if connections:
            await asyncio.wait([connection.lost for connection in connections], timeout=_CLOSE_S)
        for connection in connections:
            connection.abort()  # the other end did not take what was still to be sent

    def _connect_to(self, peer: Address) -> None:
        if self.address < peer and peer not in self._connecting:
            self._connecting[peer] = asyncio.get_running_loop().create_task(self._keep_connected(peer))

    async def _keep_connected(self, peer: Address) -> None:
        """Connect, and connect again whenever the connection breaks."""
        loop, wait = asyncio.get_running_loop(), FIRST_WAIT
        while True:
            try:
                _, connection = await loop.create_connection(lambda: _Connection(self), *peer)
                wait = FIRST_WAIT
                await connection.lost
            except OSError:
                wait = min(2 * wait, LONGEST_WAIT)
            await asyncio.sleep(wait)


class _Connection(asyncio.Protocol):
    """One connection: frames in both directions."""

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
                self.close()  # no member sends such a frame
                return
            end = start + _LENGTH.size + length
            if end > whole:
                break
            assert self._number is not None
            self._owner.heard(bytes(self._buffer[start + _LENGTH.size : end]), self._number)
            start = end
        del self._buffer[:start]

    def send(self, frame: bytes) -> None:
        if self._transport is not None and self._transport.get_write_buffer_size() < MOST_UNSENT:
            self._transport.write(_LENGTH.pack(len(frame)) + frame)

    def unsent_bytes(self) -> int:
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()
