"""A running node receives hostile datagrams; `python -m benchmarks.hostile` does the same at length."""

from __future__ import annotations

import asyncio
import multiprocessing

import pytest

from benchmarks.hostile import codecs, fire, stranger
from benchmarks.members import Members


def test_a_running_node_survives_hostile_datagrams() -> None:
    seen = asyncio.run(fire(2_000, 3, rest=1.0))
    assert seen["raised"] == 0, seen["first_raised"]
    assert seen["ratio_memory"] < 1.1
    assert seen["members_delivered_per_s"] > 0
    reasons = ("replayed", "tampered", "stranger", "forged", "unsigned", "deadline", "absurd")
    assert [reason for reason in reasons if not seen["dropped"].get(reason)] == []


def test_the_codecs_of_all_protocols_survive_mutated_packets() -> None:
    seen = codecs(10_000, 3)
    assert seen["codec_raised"] == 0
    assert seen["codec_kinds"] > 60
    assert seen["codec"]["packets"] > 500


def test_members_hear_each_other_while_a_stranger_floods() -> None:
    async def run() -> tuple[int, int, int]:
        async with Members() as members:
            stop, sent = multiprocessing.Event(), multiprocessing.Value("q", 0)
            addresses = [transport.address for transport in members.transports]
            process = multiprocessing.Process(target=stranger, args=(addresses, stop, sent))
            process.start()
            try:
                await members.offer(60, 2.0)
                await asyncio.sleep(1.0)
            finally:
                stop.set()
                process.join()
            return members.delivered, members.sent * 2, sent.value

    delivered, due, flooded = asyncio.run(run())
    assert flooded > 1000
    assert delivered == due


@pytest.mark.long
def test_two_million_datagrams() -> None:
    seen = asyncio.run(fire(2_000_000, 4))
    assert seen["raised"] == 0, seen["first_raised"]
    assert seen["ratio_memory"] < 1.1
    assert seen["members_delivered_per_s"] > 50
    assert codecs(2_000_000, 4)["codec_raised"] == 0
