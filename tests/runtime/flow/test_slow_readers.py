"""A slow reader: its messages wait in the store, memory is bounded, and nobody else is held up."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import precede
from benchmarks.slow_reader import measure
from precede.core.messages import Message
from precede.runtime.deliveries import (
    MOST_BYTES_IN_MEMORY,
    OVERHEAD_BYTES,
    Deliveries,
    DeliveryIterator,
    MemberState,
)
from precede.runtime.flow.sending import MOST_UNSENT_BYTES, Sending
from precede.runtime.history.kept import Kept
from tests.patience import patient

KEY = b"k" * 32


class Outbox:
    """An outbox with or without a store, which holds everything that was added."""

    def __init__(self, has_store: bool) -> None:
        self.has_store = has_store
        self.kept: list[Kept] = []
        self.taken = 0

    def acknowledge(self, place: int) -> None:
        self.taken = place

    def unacknowledged(self, after: int, most: int) -> list[Kept]:
        return self.kept[after : after + most]


class Fixture:
    """Deliveries of one member, whose messages have a fixed size."""

    def __init__(self, has_store: bool, backlog: int, size: int) -> None:
        self.outbox = Outbox(has_store)
        self.state = MemberState("ana")
        self.state.phase = "open"
        self.deliveries = Deliveries(self.outbox, self.state, lambda kept: kept, backlog)  # type: ignore[arg-type, return-value]
        self.size = size

    def add(self, count: int) -> None:
        for _ in range(count):
            place = len(self.outbox.kept) + 1
            kept = Kept(place, Message(precede.MessageId(1, 0, place), bytes(self.size)))
            self.outbox.kept.append(kept)
            self.deliveries.add(kept)

    async def take(self, iterator: DeliveryIterator, count: int) -> list[int]:
        return [(await iterator.__anext__()).place for _ in range(count)]


def test_with_a_store_all_wait_and_few_bytes_of_them_in_memory() -> None:
    async def run() -> None:
        one = Fixture(True, 1_000_000, 100_000)
        one.add(2_000)
        most = MOST_BYTES_IN_MEMORY // 100_000 + 1
        assert one.deliveries.in_memory <= most
        iterator = DeliveryIterator(one.deliveries)
        for begin in range(1, 2_001, 100):
            assert await one.take(iterator, 100) == list(range(begin, begin + 100))
            assert one.deliveries.in_memory <= most + 64  # messages are loaded 64 at a time
        assert (
            len(one.deliveries) == one.deliveries._bytes_in_memory == one.deliveries._bytes_in_store_alone == 0
        )

    asyncio.run(run())


def test_without_a_store_the_loop_says_where_messages_were_dropped() -> None:
    async def run() -> None:
        one = Fixture(False, 10 * (100 + OVERHEAD_BYTES), 100)
        missed: list[int] = []
        one.deliveries.on_missed = lambda: missed.append(1)
        one.add(15)
        assert (len(one.deliveries), len(missed)) == (10, 5)
        iterator = DeliveryIterator(one.deliveries)
        assert await one.take(iterator, 4) == [1, 2, 3, 4]
        one.add(1)  # there is room, but it would come before the dropped ones
        assert await one.take(iterator, 6) == [5, 6, 7, 8, 9, 10]
        with pytest.raises(precede.Missed, match="ana: 6 messages were dropped"):
            await one.take(iterator, 1)
        one.add(2)
        assert await one.take(iterator, 2) == [17, 18]
        assert one.deliveries._bytes_in_memory == 0

    asyncio.run(run())


def test_a_message_larger_than_the_backlog_is_delivered() -> None:
    async def run() -> None:
        one = Fixture(False, 1_000, 5_000)
        one.add(1)
        assert await one.take(DeliveryIterator(one.deliveries), 1) == [1]

    asyncio.run(run())


def test_broadcast_waits_for_a_loop_of_another_task_alone() -> None:
    async def run() -> None:
        one = Fixture(True, 10_000, 1_000)
        sending = Sending(one.state, one.deliveries, [], [])
        one.add(100)
        await asyncio.wait_for(sending.wait(), patient(5))  # nobody reads: nobody would end the wait
        may_go_on = asyncio.Event()

        async def read() -> None:
            iterator = DeliveryIterator(one.deliveries)
            await one.take(iterator, 1)
            await asyncio.wait_for(sending.wait(), patient(5))  # a reader that answers does not wait for itself
            await may_go_on.wait()
            await one.take(iterator, 98)

        reader = asyncio.create_task(read())
        await asyncio.sleep(0.05)
        waits = asyncio.create_task(sending.wait())
        done, _ = await asyncio.wait([waits], timeout=0.2)
        assert not done
        may_go_on.set()
        await asyncio.wait_for(waits, patient(5))
        await reader

    asyncio.run(run())


def test_broadcast_waits_for_the_network_but_not_for_ever() -> None:
    class Full:
        asked = 0

        def unsent_bytes(self) -> int:
            self.asked += 1
            return MOST_UNSENT_BYTES + 1

    async def run() -> None:
        one, transport = Fixture(True, 10_000, 1_000), Full()
        await asyncio.wait_for(Sending(one.state, one.deliveries, [], [transport]).wait(), patient(30))  # type: ignore[list-item]
        assert transport.asked > 10

    asyncio.run(run())


@pytest.mark.parametrize("stored", [True, False])
def test_a_reader_that_stops_costs_the_others_nothing(tmp_path: Path, stored: bool) -> None:
    """Ben reads nothing while Ana broadcasts and Cem reads. Then Ben gets all, or is told of the gap."""

    async def run() -> None:
        given: dict[str, Any] = {"key": KEY, "beacon": 0.05, "backlog": 100_000}
        ana = precede.join("g", "ana", **given)
        async with ana:
            store = tmp_path / "ben.db" if stored else None
            ben = precede.join("g", "ben", peers=[ana.address], store=store, **given)
            cem = precede.join("g", "cem", peers=[ana.address], **given)
            async with ben, cem:
                while len(ana.neighbours()) < 2:  # else most messages come in one piece when the links are up
                    await asyncio.sleep(0.01)
                stuck = asyncio.create_task(anext(aiter(ben)))
                last_of_cem = asyncio.create_task(last(cem, 400))
                for number in range(400):
                    await ana.broadcast(b"%d" % number)
                    await asyncio.sleep(0.001)
                assert await asyncio.wait_for(last_of_cem, patient(30)) == b"399"
                while ben.status()["untaken"] + ben.status()["dropped"].get("missed", 0) < 399:
                    await asyncio.sleep(0.01)
                assert (await stuck).payload == b"0"
                assert ben._deliveries._bytes_in_memory <= 100_000 or stored
                if stored:
                    assert await asyncio.wait_for(last(ben, 399), patient(30)) == b"399"
                else:
                    with pytest.raises(precede.Missed):
                        await asyncio.wait_for(last(ben, 399), patient(30))
                    assert "slow_reader" in [warning.code for warning in ben.status()["warnings"]]

    asyncio.run(run())


async def last(group: precede.Group, count: int) -> bytes:
    payload = b""
    async for message in group:
        payload = message.payload
        count -= 1
        if not count:
            break
    return payload


def test_a_backlog_is_a_number_of_bytes() -> None:
    for wrong in (0, -1, "64MB", 1.5):
        with pytest.raises(precede.BadInput, match="backlog"):
            precede.join("g", "ana", key=None, backlog=wrong)  # type: ignore[arg-type]


@pytest.mark.long
def test_a_reader_that_stops_for_a_minute_gets_everything_later() -> None:
    """The whole of it takes ten minutes: `python -m benchmarks.slow_reader`."""
    result = asyncio.run(measure(seconds=60.0, rate=100.0, stored=True))
    for reader in ("slow", "other"):
        assert (result[f"{reader}_taken"], result[f"{reader}_in_order"]) == (6_000, True), result
    assert result["ratio_memory"] < 1.5, result
