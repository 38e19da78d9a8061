"""A small HTTP server for metrics and status: GET only, bounded requests, one answer for each connection.

It has no keys: whoever can connect can read names and numbers, never payloads. So it belongs on a loopback
address, or behind something that checks who asks. On a loopback address it answers only requests that name the
machine by an address or as localhost: a web page that reaches it under a name of its own gets nothing.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from ipaddress import ip_address
from typing import Final, NamedTuple

from precede.core.errors import BadInput

MOST_REQUEST_BYTES: Final = 8192
MOST_CONNECTIONS: Final = 32
REQUEST_S: Final = 5.0
_HEADERS: Final = "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n"


class Answer(NamedTuple):
    """What a path answers: its content type, its bytes, and further header lines."""

    content_type: str
    body: bytes
    headers: Mapping[str, str] = {}


class Endpoint:
    """Serves `pages`, functions by path, on one address."""

    def __init__(self, bind: tuple[str, int], pages: Mapping[str, Callable[[], Answer]]) -> None:
        self._bind = bind
        self._pages = pages
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()

    async def start(self) -> None:
        """Listen. Raise BadInput if the address cannot be used."""
        host, port = self._bind
        try:
            self._server = await asyncio.start_server(self._serve, host, port, limit=MOST_REQUEST_BYTES)
        except OSError as error:
            raise BadInput(f"metrics: cannot listen on {host}:{port}: {error.strerror or error}") from error

    @property
    def address(self) -> tuple[str, int]:
        """The address it listens on, with the real port if 0 was given."""
        assert self._server is not None
        host, port = self._server.sockets[0].getsockname()[:2]
        return str(host), int(port)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            for writer in list(self._open):
                writer.transport.abort()
            await self._server.wait_closed()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._open) >= MOST_CONNECTIONS:
            writer.transport.abort()
            return
        self._open.add(writer)
        try:
            with suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                async with asyncio.timeout(REQUEST_S):
                    writer.write(self._answer(await reader.readuntil(b"\r\n\r\n")))
                    await writer.drain()
        finally:
            self._open.discard(writer)
            writer.close()

    def _answer(self, request: bytes) -> bytes:
        """Return the whole answer to a request's head."""
        first, *lines = request.decode("latin-1").split("\r\n")
        words = first.split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            return _plain("400 Bad Request", "not a request of HTTP/1")
        if words[0] not in ("GET", "HEAD"):
            return _plain("405 Method Not Allowed", "only GET", "Allow: GET, HEAD\r\n")
        if not self._may_ask(lines):
            return _plain("403 Forbidden", "the Host header names neither an address nor localhost")
        page = self._pages.get(words[1].partition("?")[0])
        if page is None:
            return _plain("404 Not Found", "there are: " + ", ".join(self._pages))
        answer = page()
        head = "".join(f"{name}: {value}\r\n" for name, value in answer.headers.items())
        return _response("200 OK", answer.content_type, answer.body, head, with_body=words[0] == "GET")

    def _may_ask(self, lines: list[str]) -> bool:
        if not _is_loopback(self._bind[0]):
            return True
        host = next((line[5:].strip() for line in lines if line.lower().startswith("host:")), "")
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        return name == "localhost" or _is_address(name.strip("[]"))


def _is_loopback(host: str) -> bool:
    return host == "localhost" or (_is_address(host) and ip_address(host).is_loopback)


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _plain(status: str, text: str, headers: str = "") -> bytes:
    return _response(status, "text/plain; charset=utf-8", f"{text}\n".encode(), headers)


def _response(status: str, kind: str, body: bytes, headers: str = "", *, with_body: bool = True) -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{_HEADERS}{headers}\r\n"
    )
    return head.encode("latin-1") + (body if with_body else b"")
