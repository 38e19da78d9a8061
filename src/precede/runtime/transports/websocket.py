"""WebSocket: how a member reaches browsers, which can open connections of no other kind.

A frame is one binary message. A member listens, connects to the URLs of others, or both. A broken connection is
opened again. Connections carry no key: frames are sealed by the layers above, as on every transport.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl as tls
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, cast

from websockets.asyncio.client import connect
from websockets.asyncio.connection import Connection
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.http11 import Request, Response

from precede.core.errors import BadInput
from precede.runtime.transports.addresses import Address, check_address, check_url
from precede.runtime.transports.connections import FIRST_WAIT, LONGEST_WAIT, MOST_UNSENT, ConnectedTransport
from precede.runtime.transports.pages import page_at
from precede.runtime.transports.transport import OnFrame

LARGEST: Final = 32_000
MOST_OPENING: Final = 64
"""How many connections have not completed their handshake, or are sent a page."""
_CLOSE_S: Final = 1.0
_ANYBODYS: Final = ("opening handshake failed", "keepalive ping failed", "parser failed")
"""What the library logs with a traceback because of bytes of the other end: strangers could fill the log."""
_logger: Final = logging.getLogger("precede.websocket")
_logger.addFilter(lambda record: record.msg not in _ANYBODYS)


class WebSocketTransport(ConnectedTransport["_Connection"]):
    """Frames over WebSocket: listens on `bind` and connects to `peers` (URLs such as "ws://10.0.0.7:8080").

    `ssl` is a context for a listener with TLS ("wss"). `pages` are folders served over HTTP on the same
    address, by the beginning of their path: `{"/": Path("site")}`. `origins` are the web pages that may connect
    ("https://chat.example"); without it every page may if the group has a key, and none if it has not. Programs
    that are no browsers may always. `largest` is the largest frame in bytes. It needs the library `websockets`
    (`pip install "precede[websocket]"`).

    >>> import asyncio, precede
    >>> async def main() -> None:
    ...     ours = precede.WebSocketTransport(("127.0.0.1", 0))
    ...     async with precede.join("picnic", "ana", key=None, transport=ours, beacon=0.05) as ana:
    ...         theirs = precede.WebSocketTransport(peers=[ours.url])
    ...         ben = precede.join("picnic", "ben", key=None, transport=theirs, beacon=0.05, members=["ana"])
    ...         async with ben:
    ...             await ana.broadcast(b"hello")
    ...             async for message in ben:
    ...                 return print(message.source, message.payload)
    >>> asyncio.run(main())
    ana b'hello'
    """

    def __init__(
        self,
        bind: Address | None = None,
        peers: Sequence[str] = (),
        *,
        pages: Mapping[str, Path] | None = None,
        ssl: tls.SSLContext | None = None,
        origins: Sequence[str] | None = None,
        largest: int = LARGEST,
    ) -> None:
        super().__init__(largest)
        if bind is not None:
            check_address("bind", bind)
        for url in peers:
            check_url(url)
        self._bind = bind
        self._peers = list(peers)
        self._pages = dict(pages or {})
        self._ssl = ssl
        self._origins = None if origins is None else tuple(origins)
        self._opening: dict[_Incoming, None] = {}
        self._server: Server | None = None
        self._connecting: dict[str, asyncio.Task[None]] = {}

    async def start(self, on_frame: OnFrame) -> None:
        self._on_frame = on_frame
        if self._bind is not None:
            host, port = self._bind
            try:
                self._server = await serve(
                    self._carry,
                    host or None,
                    port,
                    process_request=self._answer,
                    create_connection=cast(Any, partial(_Incoming, self._opening)),
                    ssl=self._ssl,
                    backlog=MOST_OPENING,
                    **self._limits(),
                )
            except OSError as error:
                raise BadInput(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
        for url in self._peers:
            self._connect_to(url)

    def _limits(self) -> dict[str, Any]:
        return {"compression": None, "max_size": self.largest, "close_timeout": _CLOSE_S, "logger": _logger}

    @property
    def address(self) -> Address:
        """The address it listens on, with the real port if 0 was given."""
        if self._server is None:
            raise BadInput("this transport does not listen: it was made without bind=")
        sockets = list(self._server.sockets)
        bound = next((each for each in sockets if each.family == socket.AF_INET), sockets[0])
        host, port = bound.getsockname()[:2]
        return str(host), int(port)

    @property
    def url(self) -> str:
        """The URL that others on this machine connect to."""
        host, port = self.address
        return f"{'ws' if self._ssl is None else 'wss'}://{'127.0.0.1' if host == '0.0.0.0' else host}:{port}"

    def add_peer(self, url: str) -> None:
        """Add the URL of another member."""
        check_url(url)
        self._peers.append(url)
        if self._on_frame is not None:
            self._connect_to(url)

    def why_silent(self) -> str:
        if self._peers:
            return f"no gateway answers at {', '.join(self._peers)}"
        return "nobody has connected over WebSocket"

    async def stop(self) -> None:
        self._forget_strangers()
        tasks = list(self._connecting.values())
        for task in tasks:
            task.cancel()
        connections = list(self._connections.values())
        for connection in connections:
            connection.finish()
        if self._server is not None:
            self._server.close()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._server.wait_closed(), 2 * _CLOSE_S)
            self._server = None
        await asyncio.gather(*tasks, return_exceptions=True)

    def _connect_to(self, url: str) -> None:
        if url not in self._connecting:
            self._connecting[url] = asyncio.get_running_loop().create_task(self._keep_connected(url))

    async def _keep_connected(self, url: str) -> None:
        """Connect, and connect again whenever the connection breaks."""
        wait = FIRST_WAIT
        while True:
            with suppress(OSError, InvalidHandshake, TimeoutError):
                async with _Connect(url, proxy=None, **self._limits()) as line:
                    wait = FIRST_WAIT
                    await self._carry(line)
            await asyncio.sleep(wait)
            wait = min(2 * wait, LONGEST_WAIT)

    async def _carry(self, line: Connection) -> None:
        """Receive frames of one connection until it ends."""
        if isinstance(line, _Incoming):
            self._opening.pop(line, None)
        connection = _Connection(line)
        number = self.opened(connection)
        if number is None:
            return
        try:
            await connection.receive(lambda frame: self.heard(frame, number))
        finally:
            connection.abort()
            self.closed(number)

    def _answer(self, line: ServerConnection, request: Request) -> Response | None:
        """Answer a request for a page; None lets a WebSocket open."""
        if [value.lower() for value in request.headers.get_all("Upgrade")] != ["websocket"]:
            return _response(*page_at(self._pages, request.path))
        if all(map(self._may_connect, request.headers.get_all("Origin"))):
            return None
        text = b"pages of this origin may not connect: name it in origins= of the gateway\n"
        return _response(HTTPStatus.FORBIDDEN, {"Content-Type": "text/plain; charset=utf-8"}, text)

    def _may_connect(self, origin: str) -> bool:
        return self.sealed if self._origins is None else origin in self._origins


def _response(status: HTTPStatus, headers: dict[str, str], content: bytes) -> Response:
    headers |= {"Content-Length": str(len(content)), "Connection": "close"}
    headers["X-Content-Type-Options"] = "nosniff"
    return Response(status.value, status.phrase, Headers(headers), content)


class _Connect(connect):
    """Opens a connection to the URL that the user named, and to no other."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


class _Incoming(ServerConnection):
    """A connection of somebody else. Until its handshake is complete it is one of few; the oldest is closed."""

    def __init__(self, opening: dict[_Incoming, None], *arguments: Any, **limits: Any) -> None:
        super().__init__(*arguments, **limits)
        self._opening = opening

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._opening[self] = None
        if len(self._opening) > MOST_OPENING:
            oldest = next(iter(self._opening))
            del self._opening[oldest]
            oldest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._opening.pop(self, None)
        super().connection_lost(exc)


class _Connection:
    """One connection: frames wait within a bound until the other end takes them."""

    def __init__(self, line: Connection) -> None:
        self._line = line
        self._unsent: deque[bytes] = deque()
        self._unsent_bytes = 0
        self._wake = asyncio.Event()
        self._writing = asyncio.get_running_loop().create_task(self._write())

    def send(self, frame: bytes) -> None:
        if self._unsent_bytes + len(frame) <= MOST_UNSENT:
            self._unsent.append(frame)
            self._unsent_bytes += len(frame)
            self._wake.set()

    def unsent_bytes(self) -> int:
        return self._unsent_bytes

    async def _write(self) -> None:
        with suppress(ConnectionClosed):
            while True:
                await self._wake.wait()
                self._wake.clear()
                while self._unsent:
                    frame = self._unsent.popleft()
                    await self._line.send(frame)
                    self._unsent_bytes -= len(frame)

    async def receive(self, heard: Any) -> None:
        """Hand over each frame. A text message, which no member sends, ends the connection."""
        with suppress(ConnectionClosed):
            async for frame in self._line:
                if not isinstance(frame, bytes):
                    return
                heard(frame)

    def finish(self) -> None:
        """Write nothing more; the server or the client closes the connection."""
        self._writing.cancel()

    def abort(self) -> None:
        self._writing.cancel()
        self._line.transport.abort()
