"""Signatures cover all that a source wrote and survive relays; forged messages are dropped."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

import precede
from precede.core.errors import BadInput, Refused
from precede.core.identity import MessageId
from precede.core.messages import Message, Packet
from precede.core.node import Context
from precede.protocols import registry
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.epidemic.packets import MessagesPacket, packed
from precede.protocols.layered.saved_state import restored_envelope
from precede.protocols.prs1997.packets import PrsPacket, PrsStamp
from precede.runtime.codec import Codec, Garbled
from precede.runtime.links.authorship import Authors, public_of
from precede.runtime.links.group_seal import GroupSeal, derive_keys
from precede.runtime.links.inspection import MOST_AHEAD, MOST_LIFETIME, Inspection
from precede.runtime.links.keyring import new_key
from precede.runtime.names import group_key, node_id
from precede.runtime.transports.udp import UdpTransport
from tests.runtime.insider import Insider
from tests.runtime.test_group import introduce, take

KEY = new_key()
NAMES = ("ana", "ben", "cem", "mal")
SEEDS = {name: os.urandom(32) for name in NAMES}
ROSTER = {name: public_of(seed) for name, seed in SEEDS.items()}
ANA, BEN, CEM, MAL = map(node_id, NAMES)
NOW = 1_700_000_000_000_000


def authors(name: str, group: str = "picnic") -> Authors:
    return Authors(group, node_id(name), SEEDS[name], {node_id(known): ROSTER[known] for known in NAMES})


def envelope(number: int = 1, **changed: Any) -> Envelope:
    given = Envelope(Message(MessageId(ANA, 0, number), b"dinner?"), ((BEN, 4),), NOW, None, 8, 1, NOW)
    return msgspec.structs.replace(given, **changed)


def signed(**changed: Any) -> Envelope:
    packet = packed([envelope(**changed)])
    authors("ana").sign(packet)
    return packet.envelopes[0]


def reason(packet: Packet, name: str = "cem", group: str = "picnic", **given: Any) -> str | None:
    inspection = Inspection(node_id(name), 0, authors(name, group))
    return inspection.incoming(packet, 100, given.get("now", NOW), given.get("accepted", 0))


def test_a_signature_covers_everything_the_source_wrote() -> None:
    good = signed()
    assert reason(packed([good])) is None
    message = good.message
    other = msgspec.structs.replace
    for changed in (
        other(good, message=other(message, payload=b"lunch?")),
        other(good, message=other(message, id=MessageId(ANA, 0, 2))),
        other(good, message=other(message, id=MessageId(ANA, 1, 1))),
        other(good, stamp=((BEN, 5),)),
        other(good, stamp=()),
        other(good, deadline=NOW + 1),
        other(good, deadline=None),
        other(good, destinations=(CEM,)),
        other(good, born=NOW + 1),
    ):
        assert reason(packed([changed])) == "forged", changed
    assert reason(packed([good]), group="work") == "forged"
    assert reason(packed([other(good, message=other(message, signature=b""))])) == "unsigned"
    assert reason(packed([other(good, message=other(message, signature=b"x" * 7))])) == "forged"
    stranger = other(message, id=MessageId(77, 0, 1))
    assert reason(packed([other(good, message=stranger)])) == "unknown_author"


def test_a_signature_survives_relays_and_restarts() -> None:
    wire = codec()
    packet: Packet = packed([signed(stamp=((BEN, 4), ((CEM, 3), 9)))])
    for _ in range(3):
        packet = wire.decode(wire.encode(packet))
        assert isinstance(packet, MessagesPacket)
        kept = msgspec.msgpack.encode(packet.envelopes[0])
        again = restored_envelope(msgspec.msgpack.decode(kept), tuple[Any, ...])
        assert again.message == packet.envelopes[0].message
    assert reason(packet) is None


def test_the_destinations_of_a_multicast_are_signed() -> None:
    stamp = PrsStamp(2, 1, 8, {BEN: {ANA: 3}})
    packet = PrsPacket(Message(MessageId(ANA, 0, 4), b"for two"), (BEN, CEM), stamp)
    authors("ana").sign(packet)
    assert reason(packet) is None
    assert reason(packet, "mal") == "misaddressed"
    widened = PrsPacket(packet.message, (BEN, CEM, MAL), stamp)
    assert reason(widened, "mal") == "forged"
    assert reason(PrsPacket(packet.message, (BEN, CEM), PrsStamp(2, 1, 8, {BEN: {ANA: 2}}))) == "forged"


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"deadline": NOW + MOST_LIFETIME + 1}, "deadline"),
        ({"message": Message(MessageId(CEM, 0, 9), b"said cem?")}, "forged"),
    ],
)
def test_implausible_numbers_are_dropped_under_their_reason(changed: dict[str, Any], why: str) -> None:
    inspection = Inspection(CEM, 0)
    packet = packed([msgspec.structs.replace(envelope(), **changed)])
    assert inspection.incoming(packet, 100, NOW, 8) == why


@pytest.mark.parametrize("id", [(ANA, 0, 1 << 50), (-1, 0, 1), (ANA, 1 << 20, 1), (ANA, 0, 0)])
def test_ids_outside_their_declared_ranges_are_absurd(id: tuple[int, int, int]) -> None:
    with pytest.raises(Garbled) as garbled:
        codec().decode(encoded([envelope(message=Message(MessageId(*id), b""))]))
    assert garbled.value.reason == "absurd"


def test_messages_far_ahead_or_too_large_are_dropped() -> None:
    inspection = Inspection(CEM, 0)
    inspection.delivered(MessageId(ANA, 0, 5))
    assert inspection.incoming(packed([envelope(5 + MOST_AHEAD)]), 100, NOW, 0) is None
    assert inspection.incoming(packed([envelope(6 + MOST_AHEAD)]), 100, NOW, 0) == "far_future"
    huge = packed([envelope(stamp=tuple((node, 1) for node in range(100_000)))])
    assert inspection.incoming(huge, 400_000, NOW, 0) == "huge_barrier"


def member(name: str, **given: Any) -> tuple[precede.Group, UdpTransport]:
    transport = UdpTransport(("127.0.0.1", 0))
    settings = {"key": KEY, "identity": SEEDS[name], "roster": ROSTER, "beacon": 0.05, "transport": transport}
    return precede.join("picnic", name, **{**settings, **given}), transport


def test_a_signed_message_goes_through_a_relay() -> None:
    async def run() -> None:
        (ana, a), (ben, b), (cem, c) = member("ana"), member("ben"), member("cem")
        async with ana, ben, cem:
            introduce(a, b)
            introduce(b, c)
            await ana.broadcast(b"question")
            assert await take(cem, 1) == [b"question"]
            await cem.broadcast(b"answer")
            assert await take(ana, 2) == [b"question", b"answer"]
            assert cem.neighbours() == ["ben"]
            assert all(group.status()["dropped"].get("forged", 0) == 0 for group in (ana, ben, cem))

    asyncio.run(run())


def codec() -> Codec:
    entry = registry.find("causal_barrier")
    context = Context(CEM, (CEM,), {"dissemination": "epidemic"}, Random(1), 0)
    return Codec(*registry.wire_types(entry, registry.make_entry(entry, "node", context), "epidemic"))


def encoded(envelopes: Sequence[Envelope]) -> bytes:
    return codec().encode(packed(envelopes))


def test_forged_replayed_and_tampered_messages_are_counted_and_never_delivered() -> None:
    mine = Envelope(Message(MessageId(MAL, 0, 1), b"mine"), (), None, None, 16, 0, NOW)
    own = packed([mine])
    authors("mal").sign(own)
    honest = own.envelopes[0]

    def by_ana(**changed: Any) -> bytes:
        return encoded([msgspec.structs.replace(honest, **changed)])

    async def run() -> tuple[list[bytes], dict[str, int]]:
        cem, c = member("cem", options={"dissemination": "epidemic"})
        ben, b = member("ben", options={"dissemination": "epidemic"})
        got: list[bytes] = []

        async def listen() -> None:
            async for message in cem:
                got.append(message.payload)

        async with cem, ben:
            listening = asyncio.create_task(listen())
            insider = Insider("mal", "picnic", KEY, c.address, SEEDS["mal"], ROSTER)
            await insider.meet("cem")
            cem_dropped_before = dict(cem.status()["dropped"])
            assert not cem_dropped_before.get("replayed"), cem_dropped_before
            genuine = insider.send(encoded([honest]), "cem")
            tampered = bytearray(genuine)
            tampered[-1] ^= 1
            tampered[8] ^= 64  # another counter, which was not seen
            stranger = GroupSeal([derive_keys(new_key())]).seal(b"\x00")
            other_group = GroupSeal([derive_keys(group_key(KEY, "work"))]).seal(b"\x00")
            for frame in (genuine, bytes(tampered), stranger, other_group):
                insider.send_frame(frame)
            forged = Message(MessageId(ANA, 0, 1), b"I am ana", honest.message.signature)
            unsigned = Message(MessageId(ANA, 0, 2), b"unsigned")
            unknown = Message(MessageId(5, 0, 1), b"who?", honest.message.signature)
            as_cem = Message(MessageId(CEM, cem.status()["incarnation"], 3), b"cem to cem", b"x" * 64)
            for_ben = Message(MessageId(MAL, 0, 2), b"carried for ben")
            meant = packed([msgspec.structs.replace(mine, message=for_ben, destinations=(BEN,))])
            authors("mal").sign(meant)
            for packet in (
                by_ana(message=forged),
                by_ana(message=unsigned),
                by_ana(message=unknown),
                by_ana(message=as_cem),
                encoded(meant.envelopes),
                by_ana(deadline=NOW * 1000),
                b"\x07\x02\x90",
                b"\x01\x09\x90",
                b"\x01\x02\xc1",
            ):
                insider.send(packet, "cem")
            insider.send_frame(b"\1short")
            introduce(b, c)
            await ben.broadcast(b"still here")
            for _ in range(200):
                if len(got) >= 2:
                    break
                await asyncio.sleep(0.02)
            listening.cancel()
            await insider.stop()
            return got, cem.status()["dropped"]

    got, dropped = asyncio.run(run())
    assert sorted(got) == [b"mine", b"still here"], dropped
    assert {name: dropped.get(name) for name in EXPECTED} == EXPECTED


EXPECTED = {
    "replayed": 1,
    "tampered": 1,
    "stranger": 2,
    "forged": 2,
    "unsigned": 1,
    "unknown_author": 1,
    "deadline": 1,
    "version": 1,
    "kind": 1,
    "encoding": 1,
    "truncated": 1,
}


def test_keys_change_while_messages_flow() -> None:
    async def run() -> None:
        fresh = new_key()
        (ana, a), (ben, b) = member("ana"), member("ben")
        async with ana, ben:
            introduce(a, b)
            sent = [b"%d" % number for number in range(30)]
            steps = {
                8: (ana, (KEY, fresh)),
                11: (ben, (KEY, fresh)),
                14: (ana, (fresh, KEY)),
                17: (ben, (fresh, KEY)),
            }
            steps |= {22: (ana, (fresh,)), 23: (ben, (fresh,))}
            for number, text in enumerate(sent):
                if number in steps:
                    group, keys = steps[number]
                    group.rekey(*keys)
                await ana.broadcast(text)
                assert await take(ben, 1) == [text]
            assert ben.status()["dropped"].get("tampered", 0) == 0
            assert ben.status()["dropped"].get("stranger", 0) == 0

    asyncio.run(run())


def test_an_identity_that_is_not_in_the_roster_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="another key for this member"):
        member("ana", identity=SEEDS["ben"])
    with pytest.raises(BadInput, match="go together"):
        member("ana", roster=None)


async def when_taken(group: precede.Group, payload: bytes) -> None:
    """Broadcast, with retries: in some orders a member may broadcast only after the group has formed."""
    for _ in range(500):
        try:
            return await group.broadcast(payload)
        except Refused:
            await asyncio.sleep(0.02)
    pytest.fail(f"{group.name} never got to send")


@pytest.mark.parametrize("order", ["none", "fifo", "delta", "multicast", "total"])
def test_every_order_carries_signatures(order: str, tmp_path: Path) -> None:
    async def run() -> None:
        names = ("ana", "ben", "cem")
        given: dict[str, Any] = {"order": order, "members": names}
        if order == "delta":
            given["lifetime"] = "1min"
        if order == "total":
            given["options"] = {"quiet": "300ms"}
        made = [
            member(name, store=tmp_path / name if order in ("multicast", "total") else None, **given)
            for name in names
        ]
        (ana, _), (ben, _), (cem, _) = made
        async with ana, ben, cem:
            introduce(*(transport for _, transport in made))
            while min(len(group.neighbours()) for group, _ in made) < 2:
                await asyncio.sleep(0.02)
            if order == "multicast":
                await ana.multicast(b"question", to=["ben", "cem"])
            else:
                await when_taken(ana, b"question")
            assert await take(ben, 1) == [b"question"]
            assert await take(cem, 1) == [b"question"]
            reasons = ("forged", "unsigned", "unknown_author", "misaddressed", "absurd")
            for group, _ in made:
                assert not any(group.status()["dropped"].get(reason) for reason in reasons), group.status()

    asyncio.run(run())
