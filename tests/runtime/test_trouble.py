"""Faults around a node: a full disk, a clock that is set back, strangers who hold connections open."""

from __future__ import annotations

import asyncio
import os
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

import precede
from precede.core.effects import Effects, SetTimer
from precede.core.errors import BadInput, Refused, StoreFailed
from precede.core.identity import MessageId
from precede.core.instants import DAY, MILLISECOND, SECOND, Instant
from precede.core.messages import Message
from precede.core.node import Context, Node, Saved
from precede.protocols import registry
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.epidemic.packets import packed
from precede.runtime.clock import SteadyClock
from precede.runtime.codec import Codec
from precede.runtime.driver import Driver
from precede.runtime.links.inspection import MOST_AHEAD, Inspection
from precede.runtime.links.keyring import new_key
from precede.runtime.no_store import NoStore
from precede.runtime.transports import connections
from precede.runtime.transports.tcp import TcpTransport
from precede.runtime.transports.udp import UdpTransport
from tests.patience import patient

KEY = new_key()


async def until(condition: Any, seconds: float = 10.0) -> None:
    async with asyncio.timeout(patient(seconds)):
        while not condition():
            await asyncio.sleep(0.01)


def fill_disk(group: Any) -> None:
    """Let the store fail when its journal is written to, or a table needs another page."""
    store = group.driver.store
    pages = store._database.execute("PRAGMA page_count").fetchone()[0]
    store._database.execute(f"PRAGMA max_page_count={pages}")
    full = os.open("/dev/full", os.O_RDWR)
    os.dup2(full, store._journal._file)
    os.close(full)


async def pair(folder: Path) -> tuple[Any, Any]:
    ours, theirs = UdpTransport(("127.0.0.1", 0)), UdpTransport(("127.0.0.1", 0))
    ana = precede.join("g", "ana", key=KEY, store=folder / "ana.db", transport=ours, beacon=0.05)
    ben = precede.join("g", "ben", key=KEY, store=folder / "ben.db", transport=theirs, beacon=0.05)
    await ana.__aenter__()
    await ben.__aenter__()
    ours.add_peer(theirs.address)
    theirs.add_peer(ours.address)
    await until(lambda: ana.neighbours() and ben.neighbours())
    return ana, ben


def test_a_full_disk_stops_a_member_before_it_sends_uncommitted_messages(tmp_path: Path) -> None:
    async def run() -> None:
        ana, ben = await pair(tmp_path)
        await ana.broadcast(b"first")
        fill_disk(ana)
        with pytest.raises(StoreFailed, match=r"ana\.db: .*No space left on device"):
            await ana.broadcast(bytes(20_000))
        with pytest.raises(StoreFailed, match="No space left"):
            await ana.broadcast(b"after it")
        await until(lambda: not ben.neighbours())
        await ana.close()
        again = precede.join("g", "ana", key=KEY, store=tmp_path / "ana.db")
        assert again.driver.store.remembered("accepted", 0) == 1
        again.driver.crash()
        assert [message.payload async for message in taken(ben)] == [b"first"]
        await ben.close()

    asyncio.run(asyncio.wait_for(run(), patient(30)))


async def taken(group: Any) -> Any:
    """The messages that can be taken without waiting."""
    messages = aiter(group)
    while group.status()["untaken"]:
        yield await anext(messages)


def test_a_full_disk_is_raised_in_a_loop_that_waits_for_messages(tmp_path: Path) -> None:
    async def run() -> None:
        ana, ben = await pair(tmp_path)
        waits = asyncio.create_task(anext(aiter(ben)))
        listens = asyncio.create_task(anext(ben.arrivals()))
        await asyncio.sleep(0)
        fill_disk(ben)
        await ana.broadcast(bytes(20_000))
        for task in (waits, listens):
            with pytest.raises(StoreFailed, match=r"ben\.db: .*No space left on device"):
                await asyncio.wait_for(task, patient(10))
        await ben.close()
        await ana.close()

    asyncio.run(asyncio.wait_for(run(), patient(30)))


def test_rows_that_cannot_be_written_stay_in_the_store_and_the_member_runs_on(tmp_path: Path) -> None:
    async def run() -> None:
        log = tmp_path / "log"
        ana = precede.join("g", "ana", key=KEY, store=tmp_path / "ana.db", log=log, beacon=0.02)
        log.rmdir()
        log.write_text("a file where a folder should be", encoding="utf-8")
        with pytest.raises(BadInput, match="no folder for an event log"):
            precede.join("g", "ben", key=KEY, log=log)
        ana._housekeeping[0].segments.seconds = 0.05
        async with ana:
            await ana.broadcast(b"one")
            await until(lambda: ana.status()["dropped"].get("log_unwritten", 0) > 1)
            log.unlink()
            await until(lambda: list(log.glob("*.parquet")))

    asyncio.run(asyncio.wait_for(run(), patient(30)))


class Ticks(Node):
    """A node that sets a timer every tenth of a second."""

    def __init__(self) -> None:
        self.woken: list[Instant] = []

    def start(self, now: Instant, saved: Saved) -> Effects:
        return [SetTimer("tick", now + 100 * MILLISECOND)]

    def timer(self, key: Any, now: Instant) -> Effects:
        self.woken.append(now)
        return [SetTimer("tick", now + 100 * MILLISECOND)]

    def broadcast(self, *given: Any, **named: Any) -> Effects:
        return []

    def receive(self, *given: Any) -> Effects:
        return []


def test_timers_fire_after_the_clock_was_set_a_day_ahead_and_back() -> None:
    async def run() -> None:
        node, ahead = Ticks(), [0]
        loop = asyncio.get_running_loop()
        driver = Driver(
            lambda life: node, Codec(()), NoStore(), clock=lambda: round(loop.time() * SECOND) + ahead[0]
        )
        driver.start()
        await until(lambda: len(node.woken) >= 2, 5)
        ahead[0] = DAY
        await until(lambda: len(node.woken) >= 4, 5)
        ahead[0] = 0
        await until(lambda: len(node.woken) >= 7, 5)
        assert node.woken == sorted(node.woken)
        driver.stop()

    asyncio.run(run())


def test_time_runs_at_half_speed_until_a_clock_that_was_set_back_has_caught_up() -> None:
    clock = [100 * SECOND]
    steady = SteadyClock(lambda: clock[0])
    assert steady.now() == 100 * SECOND
    readings = []
    for read in (90, 92, 92, 91, 93, 108, 109, 110):
        clock[0] = read * SECOND
        readings.append(steady.now() / SECOND)
    assert readings == [100, 101, 101, 101, 102, 108, 109, 110]


def test_a_number_far_ahead_of_the_last_delivered_one_is_dropped() -> None:
    """The bound that docs/security.md names."""

    async def run() -> None:
        options = {"dissemination": "epidemic"}
        entry = registry.find("causal_barrier")
        context = Context(1, (1, 2), options, Random(1))
        node = registry.make("causal_barrier", "node", context)
        codec = Codec(*registry.wire_types(entry, node, "epidemic"))
        driver = Driver(lambda life: node, codec, NoStore(), clock=lambda: 0)
        driver.inspection = Inspection(1, driver.incarnation)
        driver.start()
        for number in (1, MOST_AHEAD + 2):
            envelope = Envelope(Message(MessageId(2, 0, number), b"theirs"), (), None, None, 0, 0)
            driver.packet(codec.encode(packed((envelope,))), 2)
            await asyncio.sleep(0)
        assert driver.dropped == {"far_future": 1}
        driver.stop()

    asyncio.run(run())


def test_idle_connections_of_strangers_keep_no_member_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """They open as many connections as allowed, send half a frame, and keep the connections open."""
    monkeypatch.setattr(connections, "_MOST_CONNECTIONS", 8)
    monkeypatch.setattr(connections, "STRANGER_SECONDS", 0.5)

    async def run() -> None:
        ours, theirs = TcpTransport(("127.0.0.1", 0)), TcpTransport(("127.0.0.1", 0))
        ana = precede.join("g", "ana", key=KEY, transport=ours, beacon=0.05)
        ben = precede.join("g", "ben", key=KEY, transport=theirs, beacon=0.05)
        async with ana, ben:
            strangers = [await asyncio.open_connection(*ours.address) for _ in range(8)]
            for _, writer in strangers:
                writer.write(b"\x00\x00\x04\x00half")
            await until(lambda: len(ours._connections) == 8)
            ours.add_peer(theirs.address)
            theirs.add_peer(ours.address)
            await until(lambda: ana.neighbours() and ben.neighbours())
            await until(lambda: len(ours._connections) == 1)
            for reader, writer in strangers:
                await asyncio.wait_for(reader.read(), patient(5))
                writer.close()
            await asyncio.sleep(0.7)
            assert ana.neighbours(), "a member is no stranger, however long it stays"

    asyncio.run(asyncio.wait_for(run(), patient(30)))


def test_payloads_that_receivers_cannot_decode_are_refused() -> None:
    """A text, or more bytes than a packet holds: every later message would wait for it for ever."""

    async def run() -> None:
        ours, theirs = UdpTransport(("127.0.0.1", 0)), UdpTransport(("127.0.0.1", 0))
        ana = precede.join("g", "ana", key=KEY, transport=ours, beacon=0.05)
        ben = precede.join("g", "ben", key=KEY, transport=theirs, beacon=0.05)
        with pytest.raises(RuntimeError, match="not joined yet"):
            await ana.broadcast(b"too early")
        async with ana, ben:
            ours.add_peer(theirs.address)
            with pytest.raises(TypeError, match="bytes, not str: encode it"):
                await ana.broadcast("hello")  # type: ignore[arg-type]
            with pytest.raises(Refused, match="1,100,000 bytes does not fit"):
                await ana.broadcast(bytes(1_100_000))
            await ana.broadcast(bytearray(1_000_000))
            await ana.broadcast(b"after it")
            messages = aiter(ben)
            taken = [len((await asyncio.wait_for(anext(messages), patient(20))).payload) for _ in range(2)]
            assert taken == [1_000_000, 8]
        with pytest.raises(RuntimeError, match="left already"):
            await ana.broadcast(b"too late")
        with pytest.raises(RuntimeError, match="join\\(\\) again"):
            await ana.__aenter__()

    asyncio.run(asyncio.wait_for(run(), patient(60)))


def test_lifetimes_are_texts_or_timedeltas_and_destinations_are_names(tmp_path: Path) -> None:
    async def run() -> None:
        async with precede.join("g", "ana", key=KEY, order="delta", lifetime="1min") as ana:
            await ana.broadcast(b"x", lifetime="5s")
            await ana.broadcast(b"x", lifetime=timedelta(seconds=5))
            with pytest.raises(BadInput, match="such as '20s' or a timedelta, got 5"):
                await ana.broadcast(b"x", lifetime=5)  # type: ignore[arg-type]
        async with precede.join("g", "ana", key=KEY, order="delta", lifetime=timedelta(minutes=1)) as ana:
            await ana.broadcast(b"x")
        given: dict[str, Any] = {"order": "multicast", "members": ["ben"], "store": tmp_path / "a.db"}
        async with precede.join("g", "ana", key=KEY, **given) as ana:
            with pytest.raises(TypeError, match="a list of names"):
                await ana.multicast(b"x", to="ben")
            with pytest.raises(Refused, match="known by the name 'zoe'"):
                await ana.multicast(b"x", to=["zoe"])

    asyncio.run(asyncio.wait_for(run(), patient(20)))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"key": []}, "key: the list is empty"),
        ({"key": b""}, "32 secret bytes"),
        ({"key": b"short"}, "got 5 bytes"),
        ({"key": "k" * 32}, "No such file"),
        ({"lifetime": 20}, "lifetime: expected a duration such as '20s' or a timedelta, got 20"),
        ({"lifetime": "0s"}, "lifetime: expected at least one millisecond"),
        ({"lifetime": "20s"}, "order='causal' has no lifetime: order='delta' is causal order with lifetimes"),
        ({"lifetime": "20s", "order": "fifo"}, "order='fifo' has no lifetime"),
        ({"order": "delta"}, "order='delta' needs a lifetime"),
        ({"options": 3}, "options: expected a mapping"),
        ({"peers": ["10.0.0.7:5001"]}, "peers: "),
        ({"bind": "127.0.0.1:0"}, "bind: "),
        ({"lan": ("239.83.7.1", 470000)}, "lan: "),
        ({"beacon": 0}, "beacon: "),
        ({"members": "ben"}, "a list of names"),
        ({"options": {"cache": -1}}, "'cache': -1 is not between 0"),
        ({"identity": b"x", "roster": {"ana": b"y" * 32}}, "has 32 bytes"),
        ({"name": ""}, "name: "),
    ],
)
def test_wrong_settings_of_a_member_are_refused_in_one_line(given: dict[str, Any], said: str) -> None:
    """The worst was an empty list of keys: the group was not encrypted at all."""
    with pytest.raises(BadInput, match=said):
        precede.join("g", given.pop("name", "ana"), **{"key": KEY, **given})


def test_a_message_is_delivered_again_if_the_loop_body_raised(tmp_path: Path) -> None:
    """As after kill -9 at the same place; a message whose loop ended normally is not delivered again."""

    async def run(fail: bool) -> list[bytes]:
        seen = []
        async with precede.join("g", "ana", key=KEY, store=tmp_path / "ana.db") as ana:
            if fail:
                await ana.broadcast(b"one")
                await ana.broadcast(b"two")
            while ana.status()["untaken"]:
                async for message in ana:
                    seen.append(message.payload)
                    if fail and message.payload == b"two":
                        raise ZeroDivisionError
                    break
        return seen

    with pytest.raises(ZeroDivisionError):
        asyncio.run(run(True))
    assert asyncio.run(run(False)) == [b"two"]
    assert asyncio.run(run(False)) == []


def test_a_second_loop_over_a_group_is_refused_and_the_first_continues() -> None:
    async def run() -> None:
        async with precede.join("g", "ana", key=KEY) as ana:
            first = aiter(ana)
            waits = asyncio.create_task(anext(first))
            await asyncio.sleep(0)
            for other in (aiter(ana), first):
                with pytest.raises(RuntimeError, match="another loop takes the messages"):
                    await anext(other)
            await ana.broadcast(b"one")
            await ana.broadcast(b"two")
            assert (await asyncio.wait_for(waits, patient(5))).payload == b"one"
            with pytest.raises(RuntimeError, match="ana: another loop"):  # it works on the first message
                async for _ in ana:
                    pass
            assert (await anext(first)).payload == b"two"
            del first, other
            await ana.broadcast(b"three")
            assert [message.payload async for message in taken(ana)] == [b"three"]

    asyncio.run(asyncio.wait_for(run(), patient(20)))


@pytest.mark.parametrize("stored", [True, False])
def test_messages_that_the_application_has_not_taken_wait_in_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stored: bool
) -> None:
    monkeypatch.setattr("precede.runtime.deliveries.MOST_IN_MEMORY", 4)
    store = tmp_path / "ana.db" if stored else None

    def payloads(*numbers: int) -> list[bytes]:
        return [b"%d" % number for number in numbers]

    async def broadcast_and_take(begin: int, take: int) -> list[bytes]:
        seen: list[bytes] = []
        async with precede.join("g", "ana", key=KEY, store=store) as ana:
            for payload in payloads(*range(begin, begin + 10)):
                await ana.broadcast(payload)
            assert ana._deliveries.in_memory <= (4 if stored else 10)
            while len(seen) < take:
                async for message in ana:
                    seen.append(message.payload)
                    if len(seen) == 5:
                        await ana.broadcast(b"%d" % (begin + 10))
                    assert not stored or ana._deliveries.in_memory <= 4
                    if len(seen) == take:
                        break
            left = ana.status()["untaken"]
        assert left == begin + 11 - int(seen[-1]) - 1
        return seen

    async def run() -> None:
        assert await broadcast_and_take(0, 7) == payloads(*range(7))
        if stored:  # four that were left, and all the new ones, in their order
            assert await broadcast_and_take(11, 15) == payloads(*range(7, 22))
        else:
            assert await broadcast_and_take(11, 11) == payloads(*range(11, 22))

    asyncio.run(asyncio.wait_for(run(), patient(30)))
