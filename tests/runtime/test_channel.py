"""Channels over bad air: each packet once, in order, whatever is lost, doubled or overtaken; links that begin
anew on one side are noticed on the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any

import pytest

from precede.core.effects import Key
from precede.core.identity import NodeId
from precede.runtime.links.admission import OpenAdmission
from precede.runtime.links.channel import WINDOW
from precede.runtime.links.neighbours import Links
from precede.runtime.transports.transport import OnFrame, Transport, Where
from tests.patience import patient
from tests.runtime.insider import NO_TERMS


class Air:
    """A network in which all nodes hear each other, with loss, duplicates and reordering."""

    def __init__(self, random: Random, loss: float = 0.0) -> None:
        self.random = random
        self.loss = loss
        self.ears: dict[Where, OnFrame] = {}

    def carry(self, frame: bytes, sender: Where, to: Where) -> None:
        for _ in range(1 + (self.random.random() < self.loss / 3)):
            if self.random.random() >= self.loss:
                delay = self.random.random() * 0.01 * (self.loss > 0)
                asyncio.get_running_loop().call_later(delay, self._land, frame, sender, to)

    def _land(self, frame: bytes, sender: Where, to: Where) -> None:
        if to in self.ears:
            self.ears[to](frame, sender)


class Mouth(Transport):
    largest = 200

    def __init__(self, air: Air, place: str) -> None:
        self.air = air
        self.place = place

    async def start(self, on_frame: OnFrame) -> None:
        self.air.ears[self.place] = on_frame

    def send(self, frame: bytes, where: Where) -> None:
        assert len(frame) <= self.largest
        self.air.carry(frame, self.place, where)

    def broadcast(self, frame: bytes) -> None:
        for other in self.air.ears:
            if other != self.place:
                self.send(frame, other)

    async def stop(self) -> None:
        del self.air.ears[self.place]


BOOTS = count(1)


class End:
    """One node's links, and the events they reported."""

    def __init__(self, node: NodeId, air: Air, **how: Any) -> None:
        self.packets: list[bytes] = []
        self.events: list[str] = []
        self.left: list[tuple[Key, bool]] = []
        self.then: Callable[[Key], None] = lambda key: None
        self.mouth = Mouth(air, f"place {node}")
        self.links = Links(
            self.mouth,
            OpenAdmission(node, next(BOOTS), NO_TERMS, "", lambda node, name: None),
            lambda data, sender, to_all: self.packets.append(data),
            lambda peer: self.events.append("up"),
            lambda peer: self.events.append("down"),
            self._on_left,
            **how,
        )

    def _on_left(self, key: Key, ok: bool) -> None:
        self.left.append((key, ok))
        self.then(key)

    async def begin(self) -> None:
        await self.mouth.start(self.links.frame)


def idle(end: End) -> bool:
    """Does no piece wait to leave or to be acknowledged?"""
    return not any(near.channel.queued for near in end.links._near.values())


async def until(condition: Any, seconds: float = 90.0) -> None:
    async with asyncio.timeout(patient(seconds)):
        while not condition():
            await asyncio.sleep(0.01)


async def pair(air: Air, **how: Any) -> tuple[End, End]:
    one, two = End(1, air, **how), End(2, air, **how)
    await one.begin()
    await two.begin()
    for _ in range(200):
        if one.links.neighbours() and two.links.neighbours():
            return one, two
        one.links.tick()
        await asyncio.sleep(0.01)
    raise AssertionError("they never met")


@pytest.mark.parametrize("loss", [0.0, 0.3])
def test_packets_arrive_once_and_in_order_over_a_lossy_network(loss: float) -> None:
    async def run() -> None:
        random = Random(3)
        one, two = await pair(Air(random, loss))
        sent = [random.randbytes(random.choice([5, 90, 700])) for _ in range(150)]
        for packet in sent:
            assert one.links.send(packet, 2)
        await until(lambda: len(two.packets) >= len(sent))
        await until(lambda: idle(one))
        assert two.packets == sent

    asyncio.run(run())


def test_when_one_end_starts_anew_the_other_notices_and_both_agree() -> None:
    async def run() -> None:
        one, two = await pair(Air(Random(4)))
        one.links.send(b"before", 2)
        await until(lambda: two.packets == [b"before"] and idle(one))
        one.links.close(2)
        two.links.send(b"lost or not", 1)
        await until(lambda: one.events == ["up", "down", "up"] and two.events == ["up", "down", "up"])
        await asyncio.sleep(0.1)
        one.links.send(b"after", 2)
        two.links.send(b"after too", 1)
        await until(lambda: two.packets[-1] == b"after" and one.packets[-1:] == [b"after too"])
        assert one.events == two.events == ["up", "down", "up"]

    asyncio.run(run())


def test_a_patient_link_does_not_resend_packets_that_arrived_before_it_broke() -> None:
    """A station floods every packet from a wire, so a second copy would be delivered twice."""

    async def run() -> None:
        air = Air(Random(5))
        one, two = End(1, air, patient=True), End(2, air, patient=True)
        await one.begin()
        await two.begin()
        one.links.tick()
        await until(lambda: one.links.neighbours() and two.links.neighbours())
        await one.mouth.stop()  # it speaks and does not hear
        one.links.send(b"said once", 2)
        await until(lambda: two.packets == [b"said once"])
        for _ in range(6):
            one.links.tick()
        assert one.links.neighbours() == []
        one.links.send(b"said while it was away", 2)
        await one.begin()
        two.links.tick()
        one.links.send(b"said after", 2)
        await until(lambda: two.packets[-1] == b"said after", 10)
        assert two.packets == [b"said once", b"said while it was away", b"said after"]

    asyncio.run(run())


def test_a_patient_link_keeps_packets_it_could_not_send() -> None:
    async def run() -> None:
        air = Air(Random(5))
        one, two = End(1, air, patient=True), End(2, air, patient=True)
        await one.begin()
        assert one.links.send(b"early", 2)
        await two.begin()
        one.links.tick()
        await until(lambda: two.packets == [b"early"])
        await two.mouth.stop()
        one.links.send(b"into the void", 2)
        for _ in range(6):
            one.links.tick()
        assert one.links.neighbours() == []
        await two.begin()
        one.links.tick()
        await until(lambda: two.packets == [b"early", b"into the void"])

    asyncio.run(run())


def test_links_by_hand_are_up_only_while_both_ends_have_opened_them() -> None:
    async def run() -> None:
        air = Air(Random(6))
        one, two = End(1, air, by_hand=True), End(2, air, by_hand=True)
        await one.begin()
        await two.begin()
        one.links.open(2, "place 2")
        await asyncio.sleep(0.05)
        assert one.links.neighbours() == two.links.neighbours() == []
        two.links.open(1, "place 1")
        await until(lambda: one.links.neighbours() == [2] and two.links.neighbours() == [1])
        one.links.send(b"hello", 2)
        await until(lambda: two.packets == [b"hello"])
        one.links.close(2)
        two.links.close(1)
        assert one.links.send(b"gone", 2) == 0
        assert (one.events, two.events) == (["up", "down"], ["up", "down"])

    asyncio.run(run())


def test_a_full_queue_refuses_packets_and_a_keyed_packet_can_be_replaced_or_cancelled() -> None:
    async def run() -> None:
        air = Air(Random(7))
        one, two = await pair(air)
        air.loss = 1.0
        went = [one.links.send(b"x", 2) for _ in range(6000)]
        assert went.count(0) > 1000
        assert one.links.dropped()["queue_full"] == went.count(0)
        one.links.close(2)
        air.loss = 0.0
        two.links.tick()
        await until(lambda: one.links.neighbours() == [2])
        for number in range(100):
            one.links.send(b"%d" % number, 2)
        one.links.send(b"old", 2, "key")
        one.links.send(b"new", 2, "key")
        one.links.send(b"never", 2, "other")
        one.links.cancel("other")
        await until(lambda: two.packets[-1:] == [b"new"] and idle(one))
        assert b"old" not in two.packets
        assert b"never" not in two.packets
        assert one.left == [("key", True)]

    asyncio.run(run())


def test_no_packet_is_lost_when_each_is_sent_as_the_previous_one_leaves() -> None:
    async def run() -> None:
        one, two = await pair(Air(Random(8)))

        def more(key: Key) -> None:
            if isinstance(key, int) and key < 300:
                one.links.send(b"%d" % (key + 1), 2, key + 1)

        one.then = more
        one.links.send(b"0", 2, 0)
        await until(lambda: len(two.packets) == 301)
        assert two.packets == [b"%d" % number for number in range(301)]

    asyncio.run(run())


async def _ticks_until_down(after_frame: bool) -> int:
    """How many beacon intervals pass before a silent link goes down, perhaps after a frame was heard."""
    one, two = await pair(Air(Random(1)))
    if after_frame:
        one.links.tick()
        one.links.tick()
        one.links._on_alive(2)
    two.mouth.air.ears.clear()
    ticks = 0
    while one.links.neighbours():
        one.links.tick()
        ticks += 1
    return ticks


@pytest.mark.parametrize("after_frame", [False, True])
def test_a_silent_link_goes_down_after_the_fifth_beacon_interval(after_frame: bool) -> None:
    assert asyncio.run(_ticks_until_down(after_frame)) == 5


def test_no_more_pieces_than_the_window_are_on_their_way() -> None:
    async def run() -> None:
        one, two = await pair(Air(Random(1)))
        two.mouth.air.ears.clear()
        for _ in range(100):
            assert one.links.send(b"x", 2)
        assert len(one.links._near[2].channel._unacknowledged_pieces) == WINDOW
        assert len(one.links._near[2].channel._queue) == 100 - WINDOW

    asyncio.run(run())
