"""A member in Node.js among Python members: through restarts, and behind a gateway that lies."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

import precede
from precede.runtime.transports.websocket import WebSocketTransport
from tests.javascript.hostile import FORGED, HostileLinks
from tests.javascript.members import (
    LOCAL,
    PACKAGE,
    SEEDS,
    NodeMember,
    Taken,
    node_program,
    python_member,
    until,
)
from tests.vectors import sealed


def test_the_tests_of_the_package() -> None:
    done = subprocess.run(
        [node_program(), "--test", "test/"],
        cwd=PACKAGE,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "# fail 0" in done.stdout


def test_the_vectors_of_keys_and_frames_are_current() -> None:
    assert json.loads(sealed.PAGE.read_text(encoding="utf-8")) == sealed.make()


def test_a_member_in_node_goes_on_through_a_restart_of_each(tmp_path: Path) -> None:
    """ana is the gateway, ben is on UDP alone, dora is in Node.js. Each of them restarts once."""

    async def run() -> None:
        udp, pages = precede.UdpTransport(LOCAL), WebSocketTransport(LOCAL)
        async with python_member("ana", precede.CombinedTransport(udp, pages), tmp_path) as ana:
            address, url = udp.address, pages.url
            taken = Taken(ana)
            dora = await NodeMember.start("dora", url, tmp_path / "dora.state")
            async with python_member("ben", precede.UdpTransport(LOCAL, [address]), tmp_path) as ben:
                await ben.broadcast(b"bread?")
                await until(lambda: dora.taken == [("ben", "bread?")])
                dora.say("yes")
                await until(lambda: ("dora", "yes") in taken.messages)
            await dora.kill()
            await ana.broadcast(b"while dora is away")
            dora = await NodeMember.start("dora", url, tmp_path / "dora.state")
            await until(lambda: ("ana", "while dora is away") in dora.taken)
            assert dora.history is not None
            assert dora.history[:1] == [("ben", "bread?")]
            await until(lambda: taken.messages[-1] == ("ana", "while dora is away"))
            await taken.stop()
        dora.say("while the gateway is away")
        await until(lambda: dora.taken[-1] == ("dora", "while the gateway is away"))
        again = precede.CombinedTransport(
            precede.UdpTransport(LOCAL), WebSocketTransport(("127.0.0.1", int(url.rpartition(":")[2])))
        )
        async with python_member("ana", again, tmp_path) as ana:
            taken = Taken(ana)
            there = precede.UdpTransport(LOCAL, [ana.address])
            async with python_member("ben", there, tmp_path) as ben:
                of_ben = Taken(ben)
                last = ("dora", "while the gateway is away")
                await until(lambda: taken.messages == [last])
                await until(lambda: of_ben.messages[-1:] == [last])
                expected = [("ben", "bread?"), ("dora", "yes"), ("ana", "while dora is away"), last]
                assert of_ben.messages == expected
                await of_ben.stop()
            await taken.stop()
        # What the application had taken before the kill is history; the message in hand may come again.
        whole = [*(dora.history or []), *dora.taken]
        assert list(dict.fromkeys(whole)) == expected
        assert len(dora.taken) == len(set(dora.taken))
        await dora.stop()

    asyncio.run(run())


def test_nothing_that_a_hostile_gateway_forges_is_delivered(tmp_path: Path) -> None:
    async def run() -> None:
        udp, pages = precede.UdpTransport(LOCAL), WebSocketTransport(LOCAL)
        async with python_member("eva", precede.CombinedTransport(udp, pages), tmp_path) as gateway:
            hostile = HostileLinks(gateway, SEEDS["eva"])
            dora = await NodeMember.start("dora", pages.url)
            async with (
                python_member("ana", precede.UdpTransport(LOCAL, [udp.address]), tmp_path) as ana,
                python_member("ben", precede.UdpTransport(LOCAL, [udp.address]), tmp_path) as ben,
            ):
                of_ana, of_ben = Taken(ana), Taken(ben)
                expected = []
                for number in range(8):  # each answers what it has seen, so the order is fixed
                    author, seen, other = ((ana, of_ana, of_ben), (ben, of_ben, of_ana))[number % 2]
                    await author.broadcast(str(number).encode())
                    expected.append((author.name, str(number)))
                    await until(lambda: seen.messages == other.messages == expected)  # noqa: B023
                await until(lambda: len(dora.taken) >= len(expected))
                assert dora.taken == expected
                status = await dora.ask_status()
                assert status["dropped"]["forged"] > 8
                assert status["dropped"]["unsigned"] >= 1
                assert hostile.forgeries > 50
                assert status["waiting"] == 0
                assert all(FORGED.decode() not in text for _, text in (*of_ana.messages, *of_ben.messages))
                await of_ana.stop()
                await of_ben.stop()
            await dora.stop()

    asyncio.run(run())
