"""Single attacks of a member with valid keys, each of which once stopped, doubled or replaced something."""

from __future__ import annotations

import logging
from collections import Counter
from random import Random
from typing import Any

import msgspec
import pytest

from precede.core.effects import RADIO, Effects, Medium
from precede.core.identity import MessageId, NodeId
from precede.core.instants import MINUTE, SECOND, Instant
from precede.core.messages import Message, Packet
from precede.core.node import Node
from precede.protocols.drift2006.clock_table import WIDE
from precede.protocols.drift2006.packets import (
    DigestPacket,
    DriftPacket,
    DummyPacket,
    Flood,
    Piggyback,
    WantPacket,
)
from precede.protocols.drift2006.state import MOST_LEAP
from precede.protocols.floods.flooding import FloodDigestPacket, FloodGonePacket, FloodPacket, FloodWantPacket
from precede.protocols.floods.reliable_floods import MOST_ANNOUNCED
from precede.protocols.layered.direct_packet import DirectPacket
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.hash_dag import digest_of
from precede.protocols.rules.sds import SdsStamp
from precede.runtime.codec import Codec, Garbled
from precede.runtime.links.authorship import Authors
from precede.runtime.links.fragments import HEADER_BYTES, Fragments
from precede.runtime.links.inspection import MOST_AHEAD, Inspection
from precede.runtime.links.waiting_bound import MOST_WAITING_BYTES_PER_SOURCE, WaitingBound
from precede.runtime.reception import MOST_INPUT_BYTES, Reception
from tests.hostile.members import BEGIN, GROUP, MAL, ROSTER, SEEDS, Combination, Group, Mal, Member

FLOODING = Combination("fifo", "flooding")
DRIFT = Combination("drift")
HUGE = (1 << 40) - 1


def group(combination: Combination) -> tuple[Group, Member]:
    made = Group(combination)
    made.run_until(BEGIN + 5 * SECOND)
    for member in made.members.values():
        made.broadcast(member)
    made.run_until(made.now + 30 * SECOND)
    assert not made.lost()
    return made, made.members[0]


def send(made: Group, member: Member, packet: Packet, signed: bool = True) -> bool:
    """Mal sends a packet, signed if it can."""
    if signed:
        Authors(GROUP, MAL, SEEDS[MAL], ROSTER).sign(packet)
    return made.attack(member, member.codec.encode(packet), RADIO)


def extra(member: Member) -> Piggyback:
    """The virtual-flooding data of a packet of this member's group."""
    state: Any = member.node
    piggyback: Piggyback = state._builder.piggyback()
    return piggyback


@pytest.mark.parametrize("first", [-(1 << 62), 0, 1])
def test_a_want_for_a_huge_range_is_answered_at_once(first: int) -> None:
    for combination, kind in ((FLOODING, FloodWantPacket), (DRIFT, WantPacket)):
        made, member = group(combination)
        wants = tuple((source, 0, first, HUGE) for source in (0, 1, 2)) * 100
        more = () if kind is FloodWantPacket else (extra(member),)
        assert send(made, member, kind(wants, *more)) == (first >= 0)
        assert made.stopwatch.slowest.cpu_s < 1
        assert (member.dropped["absurd"] > 0) == (first < 0)


def test_a_digest_with_a_huge_number_does_not_hang_and_loses_nothing() -> None:
    made, member = group(Combination("vector_clock", "flooding"))
    for incarnation in (0, 1):
        assert send(made, member, FloodDigestPacket(tuple((source, incarnation, HUGE) for source in range(3))))
    made.run_until(made.now + 20 * SECOND)
    assert made.stopwatch.slowest.cpu_s < 1
    for other in made.members.values():
        made.broadcast(other)
    made.run_until(made.now + MINUTE)
    assert not made.lost()


def test_messages_reported_as_gone_by_a_liar_are_delivered_when_they_come() -> None:
    made, member = group(FLOODING)
    send(made, member, FloodDigestPacket(((1, 0, HUGE),)))
    send(made, member, FloodGonePacket(1, 0, HUGE))
    made.run_until(made.now + 11 * MINUTE)
    for _ in range(3):
        made.broadcast(made.members[1])
        made.run_until(made.now + SECOND)
    made.run_until(made.now + MINUTE)
    assert not made.lost()
    assert not made.doubled()


@pytest.mark.parametrize("combination", [FLOODING, DRIFT], ids=str)
def test_digests_make_a_bounded_number_of_streams(combination: Combination) -> None:
    made, member = group(combination)
    node: Any = member.node
    floods = node.floods if combination is DRIFT else node.dissemination.floods
    for digest in range(20):
        haves = tuple((1000 * digest + source, 0, 9) for source in range(1000))
        packet = DigestPacket(haves, extra(member)) if combination is DRIFT else FloodDigestPacket(haves)
        send(made, member, packet)
    assert len(floods.streams) <= MOST_ANNOUNCED + 10
    made.broadcast(made.members[1])
    made.run_until(made.now + 10 * SECOND)
    assert not made.lost()


def drift_flood(
    member: Member, number: int, timestamp: int, message: Message | None, **more: Any
) -> DriftPacket:
    given = {"source": MAL, "serial": 0, "number": number, "timestamp": timestamp, "message": message, **more}
    return DriftPacket(Flood(**given), extra(member), messages=0 if message is None else 1)


def with_mal_as_source() -> tuple[Group, Member]:
    """A group of DRIFT in which mal is a source."""
    made, member = group(DRIFT)
    for honest in made.members.values():
        node: Any = honest.node
        sponsor = node.state.own_stream
        if honest is member:
            effects: list[Any] = []
            node._multicast.send(made.now, effects, admits=(MAL, 0))
            assert sponsor is not None
            member.run(effects)
    made.run_until(made.now + SECOND)
    assert all((MAL, 0) in other.node.state.seen.index for other in made.members.values())  # type: ignore[attr-defined]
    return made, member


def test_one_timestamp_does_not_poison_the_clocks() -> None:
    made, _ = with_mal_as_source()
    for member in made.members.values():
        before = member.node.state.clock  # type: ignore[attr-defined]
        last = (1 << 39) - 1
        for timestamp, reason in ((1 << 62, "absurd"), (last, "")):
            packet = drift_flood(member, 1, timestamp, Message(MessageId(MAL, 0, 1), b"late"))
            for _ in range(50):
                send(made, member, packet)
            assert not reason or member.dropped[reason]
        assert member.node.state.clock <= before + MOST_LEAP  # type: ignore[attr-defined]
        assert WIDE.fits((0, last))


def test_a_message_in_three_floods_is_delivered_once() -> None:
    made, member = with_mal_as_source()
    message = Message(MessageId(MAL, 0, 1), b"again")
    for honest in made.members.values():
        clock = honest.node.state.clock  # type: ignore[attr-defined]
        for number in (1, 2, 3):
            same = msgspec.structs.replace(message)
            assert send(made, honest, drift_flood(honest, number, clock + number, same))
        assert send(made, honest, drift_flood(honest, 4, clock + 4, None, closes=True))
    for honest in made.members.values():
        made.broadcast(honest)
    made.run_until(made.now + MINUTE)
    assert not made.lost()
    assert not made.doubled()
    assert message.id in member.delivered


def test_nobody_takes_a_place_in_the_stream_of_another() -> None:
    made, member = group(DRIFT)
    clock = member.node.state.clock + 1  # type: ignore[attr-defined]
    assert not send(made, member, drift_flood(member, 2, clock, None, source=1))
    assert member.dropped["unsigned"] == 1
    assert not send(made, member, drift_flood(member, 2, clock, None, source=1, signature=bytes(64)))
    assert not send(
        made, member, drift_flood(member, 2, clock, Message(MessageId(MAL, 0, 1), b"mine"), source=1)
    )
    assert not send(made, member, DummyPacket(1, 1 << 60, False, None, extra(member)))
    assert not send(made, member, DummyPacket(MAL, 1 << 60, False, (1, 0, 1, clock + 100), extra(member)))
    assert member.dropped["forged"] >= 3
    made.broadcast(made.members[1])
    made.run_until(made.now + MINUTE)
    assert not made.lost()


def test_empty_pieces_do_not_fill_the_memory() -> None:
    fragments = Fragments()
    for number in range(2000):
        header = number.to_bytes(4, "big") + (1).to_bytes(2, "big") + (4096).to_bytes(2, "big")
        assert fragments.join(header, number) is None
        assert fragments.join(header + b"x", number) is None
    assert fragments.dropped["fragment"] == 2000
    assert fragments._bytes == 2000 * (1 + 128)
    assert len(header) == HEADER_BYTES


def test_the_first_message_of_a_stream_limits_how_far_ahead_the_others_are() -> None:
    inspection = Inspection(0, 0)

    def reason(number: int) -> str | None:
        envelope = Envelope(Message(MessageId(MAL, 0, number), b""), None, None, None, 0, 0)
        return inspection.incoming(FloodPacket(envelope), 100, BEGIN, 0)

    assert reason(5) is None
    assert reason(5 + MOST_AHEAD) is None
    assert reason(6 + MOST_AHEAD) == "far_future"


def test_waiting_messages_are_bounded_in_bytes_and_the_next_one_is_accepted() -> None:
    waiting, size = WaitingBound(), 1 << 20
    for number in range(100, 200):
        message = Message(MessageId(MAL, 0, number), bytes(size))
        if not waiting.is_full_for(message, 0):
            waiting.arrived(message)
    assert waiting.total <= MOST_WAITING_BYTES_PER_SOURCE
    assert not waiting.is_full_for(Message(MessageId(MAL, 0, 1), bytes(size)), 0)
    assert not waiting.is_full_for(Message(MessageId(1, 0, 50), bytes(size)), 0)
    for number in range(100, 200):
        waiting.done(MessageId(MAL, 0, number))
    assert waiting.total == 0


class Raises(Node):
    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        raise KeyError("never expected")


def test_an_exception_drops_one_packet_and_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    dropped: Counter[str] = Counter()
    reception = Reception(Codec((FloodWantPacket,)), dropped)
    with caplog.at_level(logging.ERROR, logger="precede"):
        for _ in range(3):
            assert reception.queued(0, 10)
            assert reception.receive(Raises(), FloodWantPacket(()), 7, RADIO, 10, BEGIN) == ()
    assert dropped["raised"] == 3
    assert len(caplog.records) == 1
    assert reception.queued(0, MOST_INPUT_BYTES)
    assert not reception.queued(0, 1)


def test_numbers_out_of_range_are_absurd() -> None:
    codec = Codec((FloodWantPacket,))
    for want in (
        (-1, 0, 1, 1),
        (1 << 48, 0, 1, 1),
        (1, -1, 1, 1),
        (1, 1 << 31, 1, 1),
        (1, 0, -1, 1),
        (1, 0, 1, 1 << 63),
    ):
        with pytest.raises(Garbled) as garbled:
            codec.decode(codec.encode(FloodWantPacket((want,))))
        assert garbled.value.reason == "absurd"


def test_mal_writes_packets_that_members_accept() -> None:
    made, member = group(FLOODING)
    mal = Mal(made, Random(1), equivocates=False)
    assert any(made.attack(member, mal.packet(), RADIO) for _ in range(200))


def stamp_after(ordering: str, first: Envelope) -> Any:
    """Order data of a message that depends on `first`."""
    id = first.message.id
    stamps = {
        "vector_clock": {id.source: id.number},
        "causal_barrier": ((id.source, id.number),),
        "delta_causal": ((id.source, id.number, BEGIN + 3600 * SECOND),),
        "hash_dag": (digest_of(first),),
        "sds": SdsStamp(1, (id,), b""),
    }
    return stamps[ordering]


@pytest.mark.parametrize("ordering", ["vector_clock", "causal_barrier", "delta_causal", "hash_dag", "sds"])
def test_a_message_may_depend_on_one_that_its_reader_has_yet_to_write(ordering: str) -> None:
    """Others deliver it, so messages that follow it must not wait here for ever."""
    made = Group(Combination(ordering, "direct"))
    reader = made.members[1]
    awaited = Envelope(Message(MessageId(1, 0, 1), b"from 1"), (), None, None, 0, 0)
    liar = Envelope(Message(MessageId(MAL, 0, 1), b"yes"), stamp_after(ordering, awaited), None, None, 0, 0)
    assert send(made, reader, DirectPacket(liar))
    assert reader.delivered == []
    made.broadcast(reader)
    assert reader.delivered == [MessageId(1, 0, 1), MessageId(MAL, 0, 1)]
