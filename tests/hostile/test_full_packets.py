"""A malicious member fills packets as full as they may be: each costs little CPU, and spoils nothing."""

from __future__ import annotations

import gc
from random import Random
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from precede.core.effects import RADIO
from precede.core.identity import MessageId
from precede.core.instants import MINUTE, SECOND
from precede.core.messages import MOST_MESSAGES, Message, Packet
from precede.protocols.drift2006.packets import MOST_ENDS, MOST_VOTERS, ViewPacket, ViewRecord
from precede.protocols.floods.flooding import FloodDigestPacket
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.epidemic.packets import MessagesPacket, packed
from precede.protocols.layered.gossip.packets import DigestPacket
from precede.protocols.multicast.packets import LifePacket
from precede.protocols.routing.copies import MOST_ACKNOWLEDGED, HelloPacket, RoutedPacket
from precede.runtime.codec import LARGEST
from precede.runtime.links.admission import SealedAdmission, encode_introductions
from precede.runtime.links.agreement import Agreement
from precede.runtime.links.authorship import Authors
from precede.runtime.links.bundles import BUNDLE, MOST_BUNDLED, bundled, packets_in
from precede.runtime.links.introductions import MOST_TOGETHER, Directory, Identity
from precede.runtime.names import node_id
from tests.hostile.full_packets import filled, lists_in
from tests.hostile.members import (
    BEGIN,
    GROUP,
    MAL,
    ROSTER,
    SEEDS,
    Combination,
    Group,
    Mal,
    Member,
    combinations,
)
from tests.hostile.test_liars import send

LONGEST_CALL_S = 0.1
KINDS_OF_PACKETS = [
    each for each in combinations() if each.protocol == "causal_barrier" or not each.dissemination
]
"""The packets of a dissemination are the same under every ordering."""


def running(combination: Combination) -> tuple[Group, Member]:
    made = Group(combination)
    made.run_until(BEGIN + 5 * SECOND)
    return made, made.members[0]


def messages_of_mal(count: int, **changed: Any) -> list[Envelope]:
    first = Envelope(Message(MessageId(MAL, 0, 1), b"x"), None, None, None, 0, 0, BEGIN)
    return [
        msgspec.structs.replace(first, message=Message(MessageId(MAL, 0, number), b"x"), **changed)
        for number in range(1, count + 1)
    ]


def test_a_digest_of_forty_thousand_streams_costs_little() -> None:
    made, member = running(Combination("fifo", "flooding"))
    haves = tuple((1000 + stream, 0, 7) for stream in range(40_000))
    gc.collect()
    assert send(made, member, FloodDigestPacket(haves))
    assert made.stopwatch.slowest.cpu_s < 1  # it took six seconds


@pytest.mark.parametrize(
    ("dissemination", "packet"),
    [
        ("epidemic", packed(messages_of_mal(MOST_MESSAGES + 1))),
        ("gossip", DigestPacket(7, True, tuple((node, 0, (1, 2)) for node in range(2_049)), 0, None)),
        (
            "maxprop",
            HelloPacket(
                frozenset(), {}, frozenset(MessageId(MAL, 0, n) for n in range(1, MOST_ACKNOWLEDGED + 2))
            ),
        ),
    ],
)
def test_no_packet_has_more_than_a_receiver_handles_at_once(dissemination: str, packet: Packet) -> None:
    made, member = running(Combination("unordered", dissemination))
    assert not send(made, member, packet)
    assert member.dropped == {"types": 1}


def test_what_a_node_has_to_send_is_divided() -> None:
    parts = packed(messages_of_mal(2 * MOST_MESSAGES + 1)).divided(MOST_MESSAGES)
    assert [part.messages for part in parts] == [MOST_MESSAGES, MOST_MESSAGES, 1]
    assert all(type(part) is MessagesPacket for part in parts)


@pytest.mark.parametrize("claimed", [(1 << 20) + 1, 1 << 28])
def test_a_claimed_size_does_not_spoil_the_packets_of_others(claimed: int) -> None:
    """The sum of such sizes was too large for a packet: with a liar's message honest ones were refused."""
    made, member = running(Combination("unordered", "epidemic"))
    for envelope in messages_of_mal(9, control_bytes=claimed):
        send(made, member, packed([envelope]))
    assert member.dropped == {"absurd": 9}
    for envelope in messages_of_mal(9, control_bytes=1 << 20):
        assert send(made, member, packed([envelope]))
    for other in made.speakers():
        made.broadcast(other)
    made.run_until(made.now + MINUTE)
    assert not made.lost()


def test_a_huge_number_of_hops_does_not_stop_a_carrier() -> None:
    """The number that it sent on was too large to be encoded."""
    made, member = running(Combination("unordered", "prophet"))
    (envelope,) = messages_of_mal(1)
    assert not send(made, member, RoutedPacket(envelope, 1, (1 << 64) - 1))
    assert send(made, member, RoutedPacket(envelope, 1, 1 << 15))
    made.run_until(made.now + MINUTE)
    assert all(envelope.message.id in other.delivered for other in made.speakers())


def test_an_announcement_is_acknowledged_by_a_packet_that_others_accept() -> None:
    made, member = running(Combination("prs"))
    made.heard.clear()
    assert send(made, member, LifePacket(3))
    assert [member.codec.decode(data).kind for data in made.heard] == ["ack"]


def test_a_view_does_not_grow_without_bound() -> None:
    """A liar reported streams that never began, without end: every member kept, stored and repeated them."""
    made, member = running(Combination("drift"))
    node: Any = member.node
    view, piggyback = node.state.view, node._builder.piggyback()
    for begin in range(0, 5 * MOST_ENDS, MOST_ENDS):
        ends = tuple((1000 + begin + place, 1, 0) for place in range(MOST_ENDS))
        assert send(made, member, ViewPacket(ViewRecord(view.number, view.voters, ends), piggyback))
    assert len(view.ends) == MOST_ENDS
    for record in (
        ViewRecord(view.number, view.voters, tuple((1000 + n, 1, 0) for n in range(2 * MOST_ENDS + 1))),
        ViewRecord(view.number + 1, tuple((1000 + n, 1) for n in range(MOST_VOTERS + 1)), ()),
    ):
        assert not send(made, member, ViewPacket(record, piggyback))


def test_so_many_packets_are_in_a_bundle() -> None:
    packets = [b"%d" % number for number in range(300)]
    bundles = list(bundled(packets, 1 << 20))
    assert [len(packets_in(bundle) or ()) for bundle in bundles] == [MOST_BUNDLED, MOST_BUNDLED, 44]
    assert [packet for bundle in bundles for packet in packets_in(bundle) or ()] == packets
    assert packets_in(BUNDLE + b"\0\1x" * (MOST_BUNDLED + 1)) is None
    assert packets_in(BUNDLE + (b"\x40\0" + bytes(1 << 14)) * 2) is None


def test_so_many_introductions_travel_together() -> None:
    """A member with many keys once had thousands of signatures checked at once."""
    admissions = [_admission(name) for name in ("ana", "ben")]
    everybody = [Identity.shared("picnic", f"m{n}").introduce("picnic", f"m{n}") for n in range(MOST_TOGETHER)]
    admissions[0].introduced(encode_introductions([*everybody, everybody[0]]), 0.0)
    assert admissions[0].dropped == {"introduction": 1}
    admissions[0].introduced(encode_introductions(everybody), 0.0)
    parts = admissions[0].introductions(node_id("ben"))
    assert len(parts) == 2
    for part in parts:
        admissions[1].introduced(part, 0.0)
    assert len(admissions[1].directory) == len(admissions[0].directory) + 1 == MOST_TOGETHER + 2


def _admission(name: str) -> SealedAdmission:
    own, number = Identity.shared("picnic", name), node_id(name)
    agreement = Agreement(name, {}, lambda: 0, None, str, lambda *_: None)
    directory = Directory("picnic", own.introduce("picnic", name), node_id)
    return SealedAdmission(number, own, directory, "picnic", (bytes(32),), 1, agreement)


@pytest.mark.long
@pytest.mark.parametrize("combination", KINDS_OF_PACKETS, ids=str)
def test_every_list_of_every_packet_filled_to_the_brim_costs_little(combination: Combination) -> None:
    made, member = running(combination)
    for kind in Mal(made, Random(1), True).kinds:
        declared = inspect.type_info(kind)
        for path in dict.fromkeys(lists_in(declared)):
            packet = filled(member.codec, declared, path, LARGEST)
            if packet is None:
                continue
            Authors(GROUP, MAL, SEEDS[MAL], ROSTER).sign(packet)
            data = member.codec.encode(packet)
            gc.collect()
            made.attack(member, data, RADIO)
            assert made.stopwatch.slowest.cpu_s < LONGEST_CALL_S, (path, len(data), made.stopwatch.slowest)
