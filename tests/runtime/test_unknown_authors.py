"""A message that is relayed before its author was introduced waits for the name, and not for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from precede.core.identity import MessageId
from precede.core.messages import Message
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.epidemic.packets import packed
from precede.runtime import names
from precede.runtime.links.admission import SealedAdmission
from precede.runtime.names import MOST_HELD, MemberNames, UnknownAuthors, node_id
from tests.runtime.test_authorship import member
from tests.runtime.test_group import introduce
from tests.runtime.test_removal import codes, until


def packet_of(*authors: str) -> Any:
    return packed(
        [Envelope(Message(MessageId(node_id(name), 0, 1), b""), None, None, None, 0, 0) for name in authors]
    )


class Held:
    """The authors that one member does not know, and what was let pass and told."""

    def __init__(self) -> None:
        self.passed: list[str] = []
        self.told: list[int] = []
        self.names = MemberNames(["ana"], None)
        self.authors = UnknownAuthors(self.names, self.told.append)

    def comes(self, *authors: str) -> bool:
        return self.authors.hold(packet_of(*authors), lambda: self.passed.append("+".join(authors)))


def test_a_packet_waits_for_all_its_authors_and_no_other_packet_waits_for_it() -> None:
    async def live() -> None:
        held = Held()
        assert not held.comes("ana")
        assert held.comes("ben", "cem")
        assert held.comes("cem")
        assert not held.comes("ana")
        held.names.learn(node_id("cem"), "cem")
        assert held.passed == ["cem"]
        held.names.add("ben")
        assert held.passed == ["cem", "ben+cem"]
        assert len(held.authors) == 0
        assert held.told == []

    asyncio.run(live())


def test_after_waiting_in_vain_a_packet_passes_and_nothing_waits_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(names, "WAIT_S", 0.05)

    async def live() -> None:
        held = Held()
        assert held.comes("ben")
        assert held.comes("cem")
        await asyncio.sleep(0.3)
        assert held.passed == ["ben", "cem"]
        assert held.told == [node_id("ben"), node_id("cem")]
        assert not held.comes("dora")

    asyncio.run(live())


def test_only_so_many_packets_wait() -> None:
    async def live() -> None:
        held = Held()
        assert [held.comes("ben") for _ in range(MOST_HELD + 1)] == [True] * MOST_HELD + [False]

    asyncio.run(live())


@pytest.mark.parametrize("comes", [True, False])
def test_an_introduction_that_comes_late(comes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ben passes ana's messages on to cem at once, and her introduction later or never."""
    monkeypatch.setattr(names, "WAIT_S", 20.0 if comes else 0.2)
    passing = [False]
    introductions = SealedAdmission.introductions

    def later(self: SealedAdmission, peer: int) -> Sequence[bytes]:
        return introductions(self, peer) if passing[0] else ()

    monkeypatch.setattr(SealedAdmission, "introductions", later)

    async def live() -> None:
        trust: dict[str, Any] = {"identity": None, "roster": None}
        (ana, a), (ben, b), (cem, c) = (member(name, **trust) for name in ("ana", "ben", "cem"))
        async with ana, ben, cem:
            introduce(a, b)
            introduce(b, c)
            await until(lambda: sorted(ben.neighbours()) == ["ana", "cem"])
            await ana.broadcast(b"hello")
            await until(lambda: ben.status()["untaken"] == 1)
            if comes:
                await asyncio.sleep(0.5)
                assert cem.status()["untaken"] == 0
                passing[0] = True
            async for message in cem:
                assert (message.source, message.payload) == ("ana" if comes else f"{ana.id:08x}", b"hello")
                break
            assert codes(cem) == ([] if comes else ["unknown_author"])

    asyncio.run(live())
