"""Lanes: who carries, rosters that change, stores that fail, loops that end."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import precede
from precede import SignedRoster
from precede.core.errors import StoreFailed
from precede.runtime.links.authorship import public_of
from precede.runtime.topics.lane import Lane
from tests.patience import patient
from tests.runtime.topics.test_topics import member, take, until

ADMIN = os.urandom(32)
SEEDS = {name: os.urandom(32) for name in ("ana", "mal")}
FIRST = SignedRoster.signed(ADMIN, "house", {name: public_of(seed) for name, seed in SEEDS.items()})


def test_a_member_carries_topics_that_it_has_not_opened() -> None:
    """Ana and Ben hear only Cem, whose application knows no topic."""

    async def run() -> None:
        cem = member("cem", [])
        async with cem, member("ana", [cem.address]) as ana, member("ben", [cem.address]) as ben:
            await until(lambda: len(cem.neighbours()) == 2)
            garden = ben.topic("garden")
            await ana.topic("garden").broadcast(b"dig")
            assert await take(garden, 1) == [b"dig"]
            assert ana.neighbours() == ben.neighbours() == ["cem"]
            assert cem.status()["topics"] == {}

    asyncio.run(run())


@pytest.mark.parametrize("opened_before", [True, False])
def test_a_removed_member_is_refused_in_topics_too(opened_before: bool) -> None:
    async def run() -> None:
        given: dict[str, Any] = {"roster": FIRST, "admin": public_of(ADMIN)}
        ana = member("ana", [], identity=SEEDS["ana"], **given)
        mal = member("mal", [], identity=SEEDS["mal"], **given)
        async with ana, mal:
            if opened_before:
                ana.topic("garden")
            left = {"ana": FIRST.members["ana"]}
            ana.update_roster(SignedRoster.signed(ADMIN, "house", left, FIRST))
            garden = ana.topic("garden")
            await mal.topic("garden").broadcast(b"let me in")
            (said,) = mal.topic("garden").history()
            authors = ana._topics._lanes[2].membership.authors
            assert authors is not None
            assert authors._keys_for(said.id) == []
            assert garden.untaken == 0

    asyncio.run(run())


def test_a_lane_whose_store_fails_stops_the_member(tmp_path: Path) -> None:
    async def run() -> None:
        ana = member("ana", [], store=tmp_path / "ana.db")
        async with ana:
            topic = ana.topic("garden")
            waits = [asyncio.create_task(anext(aiter(each))) for each in (ana, topic)]
            await asyncio.sleep(0.01)

            def full() -> None:
                raise StoreFailed("No space left on device")

            ana._topics._lanes[2].driver.store.commit = full  # type: ignore[method-assign]
            with pytest.raises(StoreFailed, match="No space left"):
                await topic.broadcast(b"one")
            for task in waits:
                with pytest.raises(StoreFailed, match="No space left"):
                    await asyncio.wait_for(task, patient(10))
            with pytest.raises(StoreFailed):
                await ana.broadcast(b"two")

    asyncio.run(run())


def test_loops_over_topics_end_with_the_member() -> None:
    async def run() -> None:
        ana = member("ana", [])
        topic = ana.topic("garden")  # before the member runs
        with pytest.raises(RuntimeError, match="not joined yet"):
            await topic.broadcast(b"early")
        async with ana:
            await topic.broadcast(b"one")
            loop = asyncio.create_task(take(topic, 2))
            news = asyncio.create_task(anext(topic.arrivals()))
            await asyncio.sleep(0.05)
        with pytest.raises(AssertionError, match="one"):  # it ended after the first
            await asyncio.wait_for(loop, patient(10))
        with pytest.raises(StopAsyncIteration):
            await asyncio.wait_for(news, patient(10))

    asyncio.run(run())


def test_what_lanes_drop_is_in_the_status() -> None:
    async def run() -> None:
        async with member("ana", []) as ana:
            ana._on_packet(b"\x82" + bytes(40), 7, 0, False)
            assert ana.status()["dropped"]["version"] == 1

    asyncio.run(run())


def test_a_store_drops_messages_that_no_topic_here_waits_for(tmp_path: Path) -> None:
    async def run() -> None:
        async with member("ana", [], store=tmp_path / "ana.db") as ana:
            ana.topic("other")
            lane = ana._topics._lanes[2]
            for number in range(600):
                lane.broadcast(b"\x06unread%d" % number, None)
                await asyncio.sleep(0)
            assert len(lane.driver.unacknowledged(0, 1_000)) < 300

    asyncio.run(run())


SPEAKER = """
import sys, precede
with precede.open_group("house", "ana", key=None, store=sys.argv[1]) as group:
    topic = group.topic("garden")
    for number in range(10_000):
        topic.broadcast(b"%d" % number)
        if number % 3 == 0:
            next(topic.messages())
        print(number, flush=True)
"""


def test_a_topic_of_a_killed_member_continues(tmp_path: Path) -> None:
    store = tmp_path / "ana.db"
    with subprocess.Popen([sys.executable, "-c", SPEAKER, store], stdout=subprocess.PIPE, text=True) as speaker:
        assert speaker.stdout is not None
        said = 0
        while said < 50:
            said = int(speaker.stdout.readline())
        speaker.kill()
    with precede.open_group("house", "ana", key=None, store=store) as ana:
        numbers = [int(message.payload) for message in ana.topic("garden").messages(timeout=1.0)]
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    assert numbers[0] <= said // 3 + 1  # nothing is lost that was not taken
    assert numbers[-1] >= said  # nothing is lost that was broadcast


def test_a_topic_that_is_opened_while_a_lane_runs_is_made_durable_in_the_next_turn() -> None:
    lane, flushed = object.__new__(Lane), []
    lane._places = SimpleNamespace(flush=lambda: flushed.append(True))  # type: ignore[assignment]

    async def main() -> None:
        for lane._is_running in (False, True):
            lane._flush_soon()
            await asyncio.sleep(0)
            assert len(flushed) == lane._is_running

    asyncio.run(main())
