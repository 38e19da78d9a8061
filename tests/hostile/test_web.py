"""Strangers and web pages at the ports that a browser can reach: WebSocket gateways and their pages."""

from __future__ import annotations

import asyncio
import logging
import resource
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

import precede
from precede.runtime.transports import connections, websocket
from precede.runtime.transports.pages import page_at
from precede.runtime.transports.websocket import WebSocketTransport
from tests.patience import patient

LOCAL = ("127.0.0.1", 0)
PAGE = "http://elsewhere.example"


async def answer_to(address: tuple[str, int], request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(*address)
    writer.write(request)
    answer = await asyncio.wait_for(reader.read(), patient(20))
    writer.close()
    return answer


async def until(condition: Any) -> None:
    async with asyncio.timeout(patient(20)):
        while not condition():
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    "head",
    [
        "GET //[ HTTP/1.1",
        f"GET /{'a' * 300}.html HTTP/1.1",
        "GET / HTTP/1.1\r\nUpgrade: websocket\r\nUpgrade: websocket",
        "GET / HTTP/1.1\r\nOrigin: a\r\nOrigin: b",
    ],
)
def test_no_request_is_an_error_of_the_gateway(
    head: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Each of these once wrote a traceback to the log: a stranger could fill the disk."""

    async def run() -> None:
        gateway = WebSocketTransport(LOCAL, pages={"/": tmp_path})
        await gateway.start(lambda frame, where: None)
        answer = await answer_to(gateway.address, f"{head}\r\nHost: here\r\n\r\n".encode())
        assert answer.split()[1] in (b"400", b"404", b"426")
        await gateway.stop()

    asyncio.run(run())
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_a_page_with_too_long_a_name_is_not_found(tmp_path: Path) -> None:
    for target in (f"/{'a' * 300}.html", f"/{'a/' * 3000}.html", "//[", "http://[/x.html"):
        assert page_at({"/": tmp_path}, target)[0] == 404


def test_connections_that_ask_for_nothing_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """They once counted only when their handshake was complete."""
    monkeypatch.setattr(websocket, "MOST_OPENING", 8)

    async def run() -> None:
        gateway = WebSocketTransport(LOCAL)
        await gateway.start(lambda frame, where: None)
        lines = [await asyncio.open_connection(*gateway.address) for _ in range(30)]
        for reader, _ in lines[:22]:
            assert await asyncio.wait_for(reader.read(), patient(20)) == b""
        async with connect(gateway.url, proxy=None):
            await until(lambda: len(gateway._connections) == 1)
        assert not any(reader.at_eof() for reader, _ in lines[23:])
        for _, writer in lines:
            writer.close()
        await gateway.stop()

    asyncio.run(run())


def test_connections_leave_files_for_the_rest_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (100, 4096))
    assert connections.most_connections() == 50
    monkeypatch.setattr(resource, "getrlimit", lambda which: (1 << 20, 1 << 20))
    assert connections.most_connections() == 1024


REDIRECTS = ["gopher://x/", "http://[", "ws://127.0.0.1:99999/", f"ws://{'a' * 300}/", "ws://127.0.0.1:x/"]


@pytest.mark.parametrize("location", REDIRECTS)
def test_a_redirection_does_not_end_a_link_for_good(location: str) -> None:
    """A man in the middle once ended the task that connects: the member stayed alone after he was gone."""

    async def run() -> None:
        requests = 0

        async def misdirect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal requests
            requests += 1
            await reader.readuntil(b"\r\n\r\n")
            writer.write(f"HTTP/1.1 302 Found\r\nLocation: {location}\r\n\r\n".encode())
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(misdirect, *LOCAL)
        host, port = server.sockets[0].getsockname()
        member = WebSocketTransport(peers=[f"ws://{host}:{port}"])
        await member.start(lambda frame, where: None)
        await until(lambda: requests > 1)
        await member.stop()
        server.close()

    asyncio.run(run())


def test_a_redirection_is_not_followed() -> None:
    """Only the gateway that the user named is asked."""

    async def run() -> None:
        requests: list[bytes] = []

        async def misdirect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            requests.append((await reader.readuntil(b"\r\n")).split()[1])
            writer.write(b"HTTP/1.1 302 Found\r\nLocation: /other\r\n\r\n")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(misdirect, *LOCAL)
        host, port = server.sockets[0].getsockname()
        member = WebSocketTransport(peers=[f"ws://{host}:{port}"])
        await member.start(lambda frame, where: None)
        await until(lambda: len(requests) == 3)
        assert requests == [b"/"] * 3
        await member.stop()
        server.close()

    asyncio.run(run())


@pytest.mark.parametrize("url", ["ws://[", "ws://host:99999", "ws://", "wss://a/#fragment"])
def test_a_url_that_cannot_be_connected_to_is_refused(url: str) -> None:
    with pytest.raises(precede.BadInput, match="expected a URL such as"):
        WebSocketTransport(peers=[url])


@pytest.mark.parametrize(
    ("key", "origins", "admitted"),
    [(None, None, False), (bytes(32), None, True), (None, [PAGE], True), (bytes(32), ["http://x"], False)],
)
def test_a_web_page_reaches_a_group_without_a_key_only_if_it_is_named(
    key: bytes | None, origins: list[str] | None, admitted: bool
) -> None:
    """Any page in a user's browser can connect to this machine, and without a key it would be a member."""

    async def run() -> None:
        gateway = WebSocketTransport(LOCAL, origins=origins)
        transport = precede.CombinedTransport(gateway)
        async with precede.join("picnic", "ana", key=key, transport=transport, beacon=0.05):
            async with connect(gateway.url, proxy=None):
                pass  # a program that is no browser names no origin
            if admitted:
                async with connect(gateway.url, proxy=None, origin=PAGE):  # type: ignore[arg-type]
                    pass
            else:
                with pytest.raises(InvalidStatus, match="403"):
                    async with connect(gateway.url, proxy=None, origin=PAGE):  # type: ignore[arg-type]
                        pass

    asyncio.run(run())
