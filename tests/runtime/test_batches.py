"""The inputs of one turn of the event loop are handled together: one wake-up, one commit, few frames."""

from __future__ import annotations

import asyncio
import shutil
import socket
from pathlib import Path

import pytest

import precede
from precede.core.identity import MessageId
from precede.core.messages import Message
from precede.runtime.links.bundles import bundled, packets_in
from precede.runtime.store import Store
from precede.runtime.transports.transport import Where
from precede.runtime.transports.udp import UdpTransport
from tests.patience import patient


def test_one_wake_up_reads_all_datagrams() -> None:
    async def run() -> None:
        heard: list[bytes] = []
        transport = UdpTransport(("127.0.0.1", 0))
        await transport.start(lambda frame, where: heard.append(frame))
        frames = [b"%d" % number for number in range(50)]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for frame in frames:
                sender.sendto(frame, transport.address)
        await asyncio.sleep(0)  # the loop looks at its sockets
        await asyncio.sleep(0)  # and calls the reader
        assert heard == frames
        await transport.stop()

    asyncio.run(asyncio.wait_for(run(), patient(10)))


def test_broadcasts_of_one_turn_are_one_commit(tmp_path: Path) -> None:
    async def run() -> None:
        async with precede.join("g", "ana", key=None, store=tmp_path / "ana.db") as ana:
            journal, records, statements = ana.driver.store._journal, [], []
            append = journal.append
            journal.append = lambda data: (records.append(data), append(data))
            ana.driver.store._database._connection.set_trace_callback(statements.append)
            await asyncio.gather(*(ana.broadcast(b"%d" % number) for number in range(10)))
            assert len(records) == 1
            assert ana.status()["untaken"] == 10
            with_one = [message.number async for message in taken(ana, 10)]
            assert with_one == list(range(1, 11))
            assert len(records) == 1  # to acknowledge a message takes no commit
            assert not statements  # and the tables have time

    asyncio.run(asyncio.wait_for(run(), patient(10)))


async def taken(group: precede.Group, count: int):
    messages = aiter(group)
    for _ in range(count):
        yield await anext(messages)


def test_acknowledgements_count_for_their_own_store_only(tmp_path: Path) -> None:
    """A store that was put back from a copy delivers its messages again, whatever was taken since."""
    path, copy = tmp_path / "a.db", tmp_path / "copy.db"
    store = Store(path)
    for number in (1, 2):
        store.deliver(Message(MessageId(1, 0, number), b""))
    store.close()
    shutil.copyfile(path, copy)
    store = Store(path)
    place = store.deliver(Message(MessageId(1, 0, 3), b"")).place
    store.commit()
    store.acknowledge(place)
    store.abandon()
    again = Store(path)
    assert again.unacknowledged() == []
    again.close()
    shutil.copyfile(copy, path)
    assert [message.id.number for _, message, *_ in Store(path).unacknowledged()] == [1, 2]


class Counted(UdpTransport):
    """A transport that counts the frames that it sends."""

    sent = 0

    def broadcast(self, frame: bytes) -> None:
        self.sent += 1
        super().broadcast(frame)

    def send(self, frame: bytes, where: Where) -> None:
        self.sent += 1
        super().send(frame, where)


def test_messages_of_one_turn_share_frames() -> None:
    async def run() -> None:
        ours, theirs = Counted(("127.0.0.1", 0)), UdpTransport(("127.0.0.1", 0))
        ana = precede.join("g", "ana", key=bytes(32), transport=ours, beacon=0.05)
        ben = precede.join("g", "ben", key=bytes(32), transport=theirs, beacon=0.05)
        async with ana, ben:
            ours.add_peer(theirs.address)
            while not (ana.neighbours() and ben.neighbours()):
                await asyncio.sleep(0.01)
            before = ours.sent
            await asyncio.gather(*(ana.broadcast(bytes(20)) for _ in range(20)))
            assert ours.sent - before < 2 * 5  # each frame is counted by `broadcast` and by `send`
            assert [message.number async for message in taken(ben, 20)] == list(range(1, 21))

    asyncio.run(asyncio.wait_for(run(), patient(20)))


@pytest.mark.parametrize("sizes", [[10], [10, 20, 30], [500] * 7, [10, 5_000, 10], [1_300, 5]])
def test_packets_are_bundled_in_order_within_a_frame(sizes: list[int]) -> None:
    packets = [bytes([number]) * size for number, size in enumerate(sizes, 1)]
    wholes = list(bundled(packets, 1_340))
    assert [packet for whole in wholes for packet in packets_in(whole) or ()] == packets
    assert all(len(whole) <= 1_340 or len(packets_in(whole) or ()) == 1 for whole in wholes)
    assert len(wholes) <= len(packets)


def test_a_damaged_bundle_has_no_packets() -> None:
    (whole,) = bundled([b"first", b"second"], 100)
    assert packets_in(whole[:-1]) is None
    assert packets_in(whole + b"\0") is None
    assert packets_in(b"\7" + whole[1:]) is None


def test_packets_to_one_neighbour_in_one_turn_are_one_frame() -> None:
    """Over `direct` each message is a packet of its own to each neighbour."""

    async def run() -> None:
        ours, theirs = Counted(("127.0.0.1", 0)), UdpTransport(("127.0.0.1", 0))
        options = {"dissemination": "direct", "rto": "0s"}
        ana, ben = (
            precede.join("g", name, key=bytes(32), transport=each, members=["ana", "ben"], options=options)
            for name, each in (("ana", ours), ("ben", theirs))
        )
        async with ana, ben:
            ours.add_peer(theirs.address)
            while not (ana.neighbours() and ben.neighbours()):
                await asyncio.sleep(0.01)
            before = ours.sent
            await asyncio.gather(*(ana.broadcast(bytes(20)) for _ in range(10)))
            assert ours.sent - before < 5  # also a beacon or an introduction
            assert [message.number async for message in taken(ben, 10)] == list(range(1, 11))

    asyncio.run(asyncio.wait_for(run(), patient(20)))


def test_a_store_that_was_not_closed_has_its_journal(tmp_path: Path) -> None:
    """Also if some of it was written to the tables, and messages taken before that are not delivered again."""
    store = Store(tmp_path / "a.db")
    for number in range(1, 2_001):
        store.persist("last", number)
        store.persist(("held", number), bytes(1_000))
        place = store.deliver(Message(MessageId(1, 0, number), bytes(100))).place
        store.remember("accepted", number)
        store.log(b"%d" % number)
        store.commit()
        if number < 1_990:
            store.acknowledge(place)
            store.persist(("held", number), None)
    store.abandon()
    again = Store(tmp_path / "a.db")
    saved = again.saved()
    assert saved.pop("last") == again.remembered("accepted", 0) == 2_000
    assert list(saved) == [("held", number) for number in range(1_990, 2_001)]
    assert [message.id.number for _, message, *_ in again.unacknowledged()] == list(range(1_990, 2_001))
    assert len(again.logged()) == 2_000
    assert again.deliver(Message(MessageId(1, 0, 2_001), b"")).place == place + 1
