"""Frames for everybody are sealed with the group key: a member can name any sender in them.

So only packets that protocols send to all neighbours are accepted from such frames. What one neighbour says to
another, such as an acknowledgement, counts in their session alone.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Any

import pytest

import precede
from precede.core.identity import MessageId
from precede.core.node import Context
from precede.protocols import registry
from precede.protocols.acknowledgement import AckPacket
from precede.protocols.layered.epidemic.packets import HavePacket, SummaryPacket
from precede.protocols.multicast.packets import LifePacket
from precede.runtime.codec import Codec
from precede.runtime.names import node_id
from tests.runtime.insider import Insider
from tests.runtime.test_authorship import KEY, NAMES, ROSTER, SEEDS, member
from tests.runtime.test_group import introduce, take
from tests.runtime.test_removal import until

ANA, BEN = map(node_id, ("ana", "ben"))


def codec_of(protocol: str, dissemination: str = "direct") -> Codec:
    entry = registry.find(protocol)
    options = {"dissemination": dissemination} if entry.ordering is not None else {}
    node = registry.make_entry(entry, "node", Context(ANA, tuple(map(node_id, NAMES)), options, Random(1), 0))
    return Codec(*registry.wire_types(entry, node, dissemination))


class Impostor(Insider):
    """A member that puts another name into its frames for everybody."""

    def send_as(self, name: str, packet: bytes) -> None:
        own, self.admission.number = self.admission.number, node_id(name)
        self.broadcast(packet)
        self.admission.number = own


async def impostor_at(address: tuple[str, int]) -> Impostor:
    impostor = Impostor("mal", "picnic", KEY, address, SEEDS["mal"], ROSTER)
    await impostor.meet("ana")
    return impostor


async def dropped(ana: precede.Group, count: int) -> None:
    await until(lambda: ana.status()["dropped"].get("no_session", 0) >= count)


def test_nobody_else_says_that_a_member_has_left(tmp_path: Path) -> None:
    """A forged farewell once ended what ana sent to ben, for good."""
    given: dict[str, Any] = {"order": "multicast", "members": ("ana", "ben")}
    wire = codec_of("prs")

    async def live() -> None:
        (ana, a), (ben, b) = (member(name, store=tmp_path / name, **given) for name in ("ana", "ben"))
        async with ana, ben:
            introduce(a, b)
            await until(ana.neighbours)
            impostor = await impostor_at(a.address)
            for packet in (LifePacket(0, True), LifePacket(7)):
                impostor.send_as("ben", wire.encode(packet))
            await dropped(ana, 2)
            await impostor.stop()
            await ana.multicast(b"still there?", to=["ben"])
            assert await take(ben, 1) == [b"still there?"]

    asyncio.run(live())


@pytest.mark.parametrize("dissemination", ["direct", "epidemic"])
def test_nobody_else_acknowledges_for_a_member(dissemination: str, tmp_path: Path) -> None:
    """Ben is killed; before ana notices, mal acknowledges for him what she sends."""
    wire = codec_of("fifo", dissemination)
    options = {"dissemination": dissemination}
    given: dict[str, Any] = {"order": "fifo", "members": ("ana", "ben"), "options": options, "beacon": 0.5}

    async def live() -> None:
        (ana, a), (ben, b) = member("ana", **given), member("ben", store=tmp_path / "ben", **given)
        async with ana:
            await ben.__aenter__()
            introduce(a, b)
            impostor = await impostor_at(a.address)
            await until(lambda: "ben" in ana.neighbours())
            await ben.crash()
            await ana.broadcast(b"to ben, who is away")
            ids = (MessageId(ANA, ana.status()["incarnation"], 1),)
            kinds = [AckPacket(ids)] if dissemination == "direct" else [SummaryPacket(ids), HavePacket(ids)]
            for packet in kinds:
                impostor.send_as("ben", wire.encode(packet))
            await dropped(ana, len(kinds))
            await impostor.stop()
            again, c = member("ben", store=tmp_path / "ben", **given)
            async with again:
                introduce(a, c)
                assert await take(again, 1, 20) == [b"to ben, who is away"]

    asyncio.run(live())
