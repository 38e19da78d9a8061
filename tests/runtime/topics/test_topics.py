"""Topics over loopback: each with its order, none mixed with another, through restarts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable
from pathlib import Path
from typing import Any

import pytest

import precede
from precede.core.errors import BadInput
from precede.core.messages import Message
from precede.runtime.history.kept import Kept
from precede.runtime.links.authorship import public_of
from precede.runtime.topics.unopened import MOST_UNOPENED, Unopened
from precede.witness.verify import verify
from tests.patience import patient

KEY = b"k" * 32
NAMES = ("ana", "ben")


def topic_of(group: precede.Group, name: str, order: Any, *given: Any, **named: Any) -> precede.Topic:
    return group.topic(name, order, *given, **named)


def member(name: str, peers: list[tuple[str, int]], **given: Any) -> precede.Group:
    given = {"key": KEY, "beacon": 0.05, "members": [other for other in NAMES if other != name], **given}
    return precede.join("house", name, peers=peers, **given)


async def take(messages: AsyncIterable[precede.Delivered], count: int) -> list[bytes]:
    taken: list[bytes] = []
    async with asyncio.timeout(patient(20)):
        async for message in messages:
            taken.append(message.payload)
            if len(taken) == count:
                return taken
    raise AssertionError(taken)


async def until(condition: Any) -> None:
    async with asyncio.timeout(patient(20)):
        while not condition():
            await asyncio.sleep(0.01)


async def broadcast(topic: precede.Topic, payload: bytes) -> None:
    """Broadcast as soon as the order of the topic is founded."""
    async with asyncio.timeout(patient(20)):
        while True:
            try:
                return await topic.broadcast(payload)
            except precede.NotYet:
                await asyncio.sleep(0.05)


ORDERS: dict[str, dict[str, Any]] = {
    "none": {},
    "fifo": {},
    "causal": {},
    "delta": {"lifetime": "20min"},
    "total": {},
}


@pytest.mark.parametrize("order", ORDERS)
def test_topics_have_their_own_messages_in_every_order(order: str, tmp_path: Path) -> None:
    async def run() -> None:
        ana = member("ana", [], log=tmp_path / "logs" / "ana")
        async with ana, member("ben", [ana.address], log=tmp_path / "logs" / "ben") as ben:
            topics = [
                topic_of(group, name, order, **ORDERS[order]) for group in (ana, ben) for name in ("x", "y")
            ]
            for topic in topics:
                await broadcast(topic, f"{topic.name} of a member".encode())
            await ana.broadcast(b"to all")
            for topic in topics:
                assert set(await take(topic, 2)) == {f"{topic.name} of a member".encode()}
            assert await take(ben, 1) == [b"to all"]
            assert all(not topic.waiting() for topic in topics)

    asyncio.run(run())
    for folder in ("ana", f"ana-topics-{order}"):
        assert (tmp_path / "logs" / folder).is_dir()
    lanes = tmp_path / "lanes"
    for name in NAMES:
        (lanes / name).parent.mkdir(exist_ok=True)
        (tmp_path / "logs" / f"{name}-topics-{order}").rename(lanes / name)
    judged = {"none": "fifo", "fifo": "fifo", "delta": "causal"}.get(order, order)
    verdict = verify(lanes, order=judged)
    assert verdict.verdict == "holds", verdict
    assert verdict.deliveries_checked == 8, verdict


def test_a_topic_continues_where_it_stopped(tmp_path: Path) -> None:
    async def run() -> None:
        ana = member("ana", [])
        async with ana:
            garden, kitchen = ana.topic("garden"), ana.topic("kitchen")

            def ben() -> precede.Group:
                return member("ben", [ana.address], store=tmp_path / "ben.db")

            async with ben() as first:
                topic = first.topic("garden")
                first.topic("kitchen")
                for text in (b"one", b"two", b"three"):
                    await garden.broadcast(text)
                assert await take(topic, 2) == [b"one", b"two"]  # leaving the loop does not acknowledge "two"
                await until(lambda: topic.untaken == 1)
                await first.crash()
            await kitchen.broadcast(b"soup")
            await garden.broadcast(b"four")
            async with ben() as second:
                await until(second.neighbours)
                await until(lambda: "four" in str(second._topics._lanes[2].unacknowledged("garden", 0, 9)))
                topic = second.topic("garden")
                assert await take(topic, 3) == [b"two", b"three", b"four"]
                await second.topic("garden").broadcast(b"five")
            assert (await take(garden, 5))[-1] == b"five"
            async with ben() as third:  # closed in good order: "four" was in hand
                assert await take(third.topic("garden"), 1) == [b"five"]
                assert await take(third.topic("kitchen"), 1) == [b"soup"]
                history = third.topic("garden").history(limit=2)
                assert [message.payload for message in history] == [b"four", b"five"]
                assert [message.payload for message in third.topic("kitchen").history()] == [b"soup"]

    asyncio.run(run())


def test_a_topic_that_is_opened_late_gets_the_latest_messages() -> None:
    async def run() -> None:
        ana = member("ana", [])
        async with ana, member("ben", [ana.address]) as ben:
            await until(ana.neighbours)
            for number in range(3):
                await ana.topic("late").broadcast(b"%d" % number)
            await until(lambda: 2 in ben._topics._lanes and len(ben._topics._lanes[2]._unopened._messages) == 3)
            assert await take(ben.topic("late"), 3) == [b"0", b"1", b"2"]

    asyncio.run(run())


def test_unopened_topics_take_bounded_memory() -> None:
    kept = Unopened()
    for number in range(3 * MOST_UNOPENED):
        message = Message(precede.MessageId(1, 0, number + 1), b"x")
        kept.add(f"topic {number}", Kept(number, message))
    assert len(kept._messages) == MOST_UNOPENED
    assert kept._bytes == MOST_UNOPENED
    assert kept.take(f"topic {3 * MOST_UNOPENED - 1}")
    assert not kept.take("topic 0")


def test_members_with_other_orders_for_a_topic_are_told_and_not_mixed() -> None:
    async def run() -> None:
        ana = member("ana", [])
        async with ana, member("ben", [ana.address]) as ben:
            await until(lambda: ana.neighbours() and ben.neighbours())
            ours, theirs = ana.topic("garden", "fifo"), ben.topic("garden", "causal")
            await ours.broadcast(b"from ana")
            await theirs.broadcast(b"from ben")
            for group, peer in ((ana, "ben"), (ben, "ana")):
                async with asyncio.timeout(patient(20)):
                    async for event in group.events():
                        if event.kind == "mismatch":
                            break
                assert (event.member, event.topic, event.code) == (peer, "garden", "other_topic_order")
                assert "'fifo'" in event.text
                assert "'causal'" in event.text
            assert await take(ours, 1) == [b"from ana"]
            assert ours.untaken == 0
            assert await take(theirs, 1) == [b"from ben"]
            assert theirs.untaken == 0

    asyncio.run(run())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("", "fifo"), "not empty"),
        (("x" * 65, "fifo"), "at most 64 bytes"),
        (("a", "fancy"), "none, fifo, causal, delta, total"),
        (("a", "multicast"), "none, fifo, causal, delta, total"),
        (("a", "delta"), "needs a lifetime"),
        (("a", "causal", "20s"), "has no lifetime"),
        (("a", "total"), "members"),
        (("open", "fifo"), "is open with order 'causal'"),
        (("\ud800", "fifo"), "UTF-8"),
    ],
)
def test_a_topic_that_cannot_be_is_refused(arguments: tuple[str, ...], words: str) -> None:
    async def run() -> None:
        async with precede.join("house", "ana", key=None) as ana:
            assert ana.topic("open") is ana.topic("open")
            with pytest.raises(BadInput, match=words):
                topic_of(ana, *arguments)

    asyncio.run(run())


def test_a_closed_topic_ends_and_can_be_opened_again() -> None:
    async def run() -> None:
        async with precede.join("house", "ana", key=None) as ana:
            topic = ana.topic("garden")
            await topic.broadcast(b"one")
            topic.close()
            assert [message async for message in topic] == []
            with pytest.raises(RuntimeError, match="garden"):
                await topic.broadcast(b"two")
            again = ana.topic("garden", "fifo")
            await again.broadcast(b"three")
            assert await take(again, 1) == [b"three"]
            assert [message.payload for message in again.history()] == [b"three"]
            assert ana.status()["topics"] == {"garden": {"order": "fifo", "waiting": 0, "untaken": 0}}

    asyncio.run(run())


def test_a_signature_counts_in_its_topic_only() -> None:
    """Another topic is another payload, and another order is another purpose: the signature covers both."""

    async def run() -> None:
        seeds = {name: bytes([number]) * 32 for number, name in enumerate(NAMES, 1)}
        roster = {name: public_of(seed) for name, seed in seeds.items()}
        ana = member("ana", [], identity=seeds["ana"], roster=roster)
        async with ana, member("ben", [ana.address], identity=seeds["ben"], roster=roster) as ben:
            await until(lambda: ana.neighbours() and ben.neighbours())
            caught: list[bytes] = []
            receive = ben._topics.packet
            ben._topics.packet = lambda data, *rest: (caught.append(data), receive(data, *rest))  # type: ignore[method-assign, assignment, func-returns-value]
            garden, attic = ben.topic("garden"), ben.topic("attic")
            await ana.topic("garden").broadcast(b"dig")
            assert await take(garden, 1) == [b"dig"]
            (data,) = [data for data in caught if b"dig" in data]
            lane = ben._topics._lanes[2]
            forged = data.replace(b"\x06garden", b"\x05attic").replace(b"\xc4\x0a\x05", b"\xc4\x09\x05")
            receive(forged, ana.id, 0, False)
            assert lane.driver.dropped["forged"] == 1
            assert attic.untaken == 0
            receive(b"\x81" + data[1:], ana.id, 0, False)  # the same packet in the lane of fifo
            ben._driver.packet(data[1:], ana.id)  # and in the group itself, which is causal as well
            assert ben._topics._lanes[1].driver.dropped.total() == 1
            assert ben._driver.dropped["forged"] == 1

    asyncio.run(run())


def test_packets_of_lanes_that_are_unknown_or_garbled_are_counted() -> None:
    async def run() -> None:
        async with precede.join("house", "ana", key=None) as ana:
            for data in (b"\x80", b"\x84\x01\x00", b"\xf0abc", b"\x85\x01", b"\x82" + bytes(40)):
                ana._on_packet(data, 7, 0, False)
            dropped = ana.status()["dropped"]
            assert dropped["no_topic"] == 3  # multicast, no lane at all, total without founders
            assert ana._topics._lanes[0].driver.dropped == {"truncated": 1}
            assert ana._topics._lanes[2].driver.dropped == {"version": 1}

    asyncio.run(run())
