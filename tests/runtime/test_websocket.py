"""Members over WebSocket: broken connections, a gateway between a LAN and pages, files that stay inside."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect

import precede
from precede.runtime.transports import connections
from precede.runtime.transports.pages import page_at
from precede.runtime.transports.transport import Where
from precede.runtime.transports.websocket import WebSocketTransport
from tests.patience import patient

LOCAL = ("127.0.0.1", 0)
KEY = bytes(range(32))


async def until(condition: Any, seconds: float = 20.0) -> None:
    async with asyncio.timeout(patient(seconds)):
        while not condition():
            await asyncio.sleep(0.01)


def test_a_broken_connection_is_opened_again() -> None:
    async def run() -> None:
        heard: list[tuple[bytes, Where]] = []
        ours: list[bool] = []
        theirs: list[bool] = []
        one = WebSocketTransport(LOCAL)
        one.on_link = lambda where, up: ours.append(up)
        await one.start(lambda frame, where: heard.append((frame, where)))
        two = WebSocketTransport(peers=[one.url])
        two.on_link = lambda where, up: theirs.append(up)
        await two.start(lambda frame, where: None)
        await until(lambda: ours == theirs == [True])
        two.broadcast(bytes(20_000))
        await until(lambda: heard == [(bytes(20_000), 1)])
        one._connections[1].abort()
        await until(lambda: ours == theirs == [True, False, True])
        two.broadcast(b"second")
        await until(lambda: heard[1:] == [(b"second", 2)])
        await two.stop()
        await one.stop()

    asyncio.run(run())


@pytest.mark.parametrize("hostile", [bytes(40_000), "text"])
def test_a_message_that_no_member_sends_ends_the_connection(hostile: bytes | str) -> None:
    async def run() -> None:
        heard: list[bytes] = []
        one = WebSocketTransport(LOCAL)
        await one.start(lambda frame, where: heard.append(frame))
        async with connect(one.url, proxy=None) as line:
            await line.send(hostile)
            await asyncio.wait_for(line.wait_closed(), patient(10))
        assert heard == []
        await one.stop()

    asyncio.run(run())


def test_a_connection_without_a_member_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "STRANGER_SECONDS", 0.2)

    async def run() -> None:
        one = WebSocketTransport(LOCAL)
        await one.start(lambda frame, where: None)
        async with connect(one.url, proxy=None) as line:
            await asyncio.wait_for(line.wait_closed(), patient(10))
        await one.stop()

    asyncio.run(run())


def test_a_gateway_relays_between_a_lan_and_websockets() -> None:
    """ana is on UDP, cem on WebSocket; ben, on both, is their only link."""

    async def run() -> None:
        def member(name: str, transport: precede.Transport) -> precede.Group:
            return precede.join("picnic", name, key=KEY, transport=transport, beacon=0.05)

        udp, pages = precede.UdpTransport(LOCAL), WebSocketTransport(LOCAL)
        async with member("ben", precede.CombinedTransport(udp, pages)) as ben:
            ana = member("ana", precede.UdpTransport(LOCAL, peers=[ben.address]))
            cem = member("cem", WebSocketTransport(peers=[pages.url]))
            async with ana, cem:
                await until(lambda: ana.neighbours() == cem.neighbours() == ["ben"])
                await until(lambda: sorted(ben.neighbours()) == ["ana", "cem"])
                await ana.broadcast(b"from the LAN")
                first = await anext(aiter(cem))
                await cem.broadcast(b"from the page")
                taken = aiter(ana)
                second = [(await anext(taken)).payload for _ in range(2)]
                assert (first.source, first.payload) == ("ana", b"from the LAN")
                assert second == [b"from the LAN", b"from the page"]

    asyncio.run(run())


def test_pages_are_served_from_their_folders_alone(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "index.html").write_text("<p>hello")
    (site / "secret.key").write_text("x")
    (tmp_path / "outside.js").write_text("x")
    (site / "link.js").symlink_to(tmp_path / "outside.js")
    folders = {"/": site}
    status, headers, content = page_at(folders, "/?name=ana")
    assert (status, content) == (200, b"<p>hello")
    assert headers["Content-Type"].startswith("text/html")
    for target in ("/../outside.js", "/%2e%2e/outside.js", "/link.js", "/secret.key", "/%00", "/none.js", "//"):
        assert page_at(folders, target)[0] == 404, target


def test_a_page_comes_over_the_port_of_the_websocket(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<p>hello")

    async def run() -> None:
        one = WebSocketTransport(LOCAL, pages={"/": tmp_path})
        await one.start(lambda frame, where: None)
        reader, writer = await asyncio.open_connection(*one.address)
        writer.write(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
        answer = await asyncio.wait_for(reader.read(), patient(10))
        assert answer.startswith(b"HTTP/1.1 200")
        assert answer.endswith(b"<p>hello")
        writer.close()
        await one.stop()

    asyncio.run(run())


@pytest.mark.parametrize(
    "url", ["10.0.0.7:8080", "ws://", "ws://10.0.0.7:99999", "ws://:8080", "http://10.0.0.7"]
)
def test_a_peer_that_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(precede.BadInput, match="expected a URL such as"):
        WebSocketTransport(peers=[url])
    with pytest.raises(precede.BadInput, match="expected a URL such as"):
        WebSocketTransport().add_peer(url)


def test_requests_of_strangers_write_nothing_into_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "index.html").write_text("<p>hello")

    async def answer(port: int, request: bytes, ends: bool = False) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)
        if ends:
            writer.write_eof()
        try:
            return await asyncio.wait_for(reader.read(), patient(20))
        finally:
            writer.close()

    async def run() -> None:
        one = WebSocketTransport(LOCAL, pages={"/": tmp_path})
        await one.start(lambda frame, where: None)
        port = one.address[1]
        for target in ("/" + "a" * 5000 + ".html", "//[bad", "/%00.html", "/x/" * 500 + "y.html"):
            said = await answer(port, f"GET {target} HTTP/1.1\r\nHost: here\r\n\r\n".encode())
            assert said.startswith(b"HTTP/1.1 404 ")
        for garbage in (
            b"",
            bytes(range(256)) * 40,
            b"GET / HTTP/9\r\n\r\n",
            b"GET / HTTP/1.1\r\n" + b"x" * 99_999,
        ):
            await answer(port, garbage, ends=True)
        upgrade = b"GET / HTTP/1.1\r\nHost: here\r\nUpgrade: websocket\r\n\r\n"
        assert b" 4" in (await answer(port, upgrade))[:12]
        assert b"<p>hello" in await answer(port, b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
        await one.stop()

    asyncio.run(run())
    assert [record.getMessage() for record in caplog.records if record.levelname != "DEBUG"] == []
