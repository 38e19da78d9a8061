"""A member under packets of state transfer and of topics that a malicious neighbour invents or alters."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Any

import pytest

import precede
from precede.core.effects import RADIO
from precede.runtime.topics.lane_plan import FIRST_LANE
from precede.runtime.transfer import packets
from tests.hostile.packets import any_packet
from tests.patience import patient

LOCAL = ("127.0.0.1", 0)
FIRST_LANES = range(FIRST_LANE[0], FIRST_LANE[0] + 16)


def hostile_bytes(random: Random) -> bytes:
    """Bytes of one packet: of state transfer, with its kinds or with noise, or of a topic."""
    chance = random.random()
    if chance < 0.6:
        data = b"\x01"
        while len(data) == 1:
            try:
                data = packets.encode(any_packet(random.choice(packets.KINDS), random))
            except (TypeError, OverflowError, ValueError):
                continue  # so badly typed that it cannot be encoded
    elif chance < 0.8:
        data = bytes((1, random.randrange(packets.FIRST_KIND, 256))) + random.randbytes(
            random.choice((0, 1, 60))
        )
    else:
        inner = (b"", b"\x02", b"\x02\x01", random.randbytes(40), packets.encode(packets.SnapshotAsk(0)))
        data = bytes((random.choice(FIRST_LANES),)) + random.choice(inner)
    if random.random() < 0.2:
        place = random.randrange(len(data))
        data = data[:place] + bytes((data[place] ^ 1 << random.randrange(8),)) + data[place + 1 :]
    return data


@pytest.mark.parametrize("snapshots", [True, False])
def test_senseless_transfers_and_topics_do_not_stop_a_member(snapshots: bool, tmp_path: Path) -> None:
    async def run() -> None:
        raised: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: raised.append(context))
        rest: dict[str, Any] = {}
        if snapshots:
            rest = {"on_snapshot": lambda: bytes(20_000), "on_restore": lambda snapshot: None}
        common: dict[str, Any] = {"key": bytes(32), "beacon": 0.05}
        at = precede.UdpTransport(LOCAL)
        async with precede.join("g", "ana", store=tmp_path / "ana.db", transport=at, **common, **rest) as ana:
            there = precede.UdpTransport(LOCAL, [at.address])
            async with precede.join("g", "ben", transport=there, **common) as ben, asyncio.timeout(patient(60)):
                garden = ana.topic("garden", order="fifo")
                while not ana.neighbours():
                    await asyncio.sleep(0.02)
                (sender,), random = ana._links.neighbours(), Random(5)
                for step in range(4_000):
                    ana._on_packet(hostile_bytes(random), sender, RADIO, random.random() < 0.1)
                    if step % 200 == 0:
                        await asyncio.sleep(0)
                await ben.broadcast(b"alive")
                await ben.topic("garden", order="fifo").broadcast(b"in bloom")
                assert (await anext(aiter(ana))).payload == b"alive"
                assert (await anext(aiter(garden))).payload == b"in bloom"
                dropped = ana.status()["dropped"]
                assert min(dropped["transfer"], dropped["no_topic"]) > 100
                assert dropped.get("raised", 0) == 0
        assert raised == []

    asyncio.run(run())
