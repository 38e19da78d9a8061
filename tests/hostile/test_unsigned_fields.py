"""Which fields of packets are not signed, and what a lie in them changes.

`UNSIGNED` lists them all: the first test finds them by altering each field of each packet. Every field has an
answer: a test in this file or in the file named, or a paragraph of docs/security.md.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from precede.core.effects import RADIO, WIRED, Send
from precede.core.identity import MessageId
from precede.core.instants import MINUTE, SECOND
from precede.core.messages import Packet
from precede.protocols import registry
from precede.protocols.acknowledgement import AckPacket
from precede.protocols.layered.epidemic.packets import HavePacket, SummaryPacket
from precede.protocols.layered.gossip.packets import DigestPacket
from precede.protocols.multicast.packets import LifePacket
from precede.protocols.vcube2018.packets import VCubeStatePacket, VCubeTestPacket
from precede.runtime.links.authorship import Authors
from precede.runtime.transfer.history_wants import HistoryWants
from precede.runtime.transfer.packets import KINDS, HistoryAsk, HistoryPart, SnapshotOffer, TransferPacket
from precede.runtime.transfer.snapshot import signed_bytes
from tests.hostile.members import (
    BEGIN,
    GROUP,
    MAL,
    ROSTER,
    SEEDS,
    Combination,
    Group,
    Member,
    as_mal,
    combinations,
)
from tests.hostile.packets import any_packet

PAGE = (Path(__file__).parents[2] / "docs" / "security.md").read_text(encoding="utf-8")
SIZES = {"size_bytes", "control_bytes", "control_entries", "messages", "first_deadline"}
"""For tables of results, or for the simulator alone: `test_sizes_change_nothing`."""
SAID = {
    "epidemic": "**Summaries and notices of `epidemic`.**",
    "ack": "**Acknowledgements**",
    "flooding": "**Digests, requests and reports of `flooding`.**",
    "drift": "**DRIFT: tables of clocks, floors, views, checkpoints.**",
    "vcube": "**VCube: diagnosis**",
    "stations": "**Stations**",
    "gossip": "**Over `gossip`**",
    "routing": "**Over the routings**",
    "transfer": "**State transfer.**",
}
UNSIGNED: dict[str, tuple[str, set[str]]] = {
    "direct": ("", set()),
    "ack": ("ack", {"ids"}),
    "summary": ("epidemic", {"ids"}),
    "have": ("epidemic", {"ids"}),
    "messages": ("epidemic", set()),
    "flood": ("", set()),
    "flood_want": ("flooding", {"wants"}),
    "flood_digest": ("flooding", {"haves"}),
    "flood_gone": ("flooding", {"source", "incarnation", "number"}),
    "gossip": ("gossip", {"list_version", "neighbours"}),
    "gossip_digest": ("gossip", {"hash", "full", "streams", "list_version", "neighbours"}),
    "gossip_want": ("gossip", {"wants"}),
    "gossip_summary": ("gossip", {"streams"}),
    "hello": ("routing", {"ids", "likelihoods", "delivered"}),
    "got": ("routing", {"id", "taken"}),
    "routed": ("routing", {"copies", "hops"}),
    "vcube": ("", set()),
    "vcube_test": ("vcube", {"number", "answer", "events", "have", "report"}),
    "vcube_join": ("vcube", set()),
    "vcube_state": ("vcube", {"delivered"}),
    **{kind: ("", set()) for kind in ("prs", "prs_broadcast", "prs_optimal", "rst", "ses")},
    "life": ("ack", {"incarnation", "gone"}),
    **{kind: ("drift", {"extra"}) for kind in ("drift", "drift_dummy", "drift_control")},
    "drift_digest": ("drift", {"haves", "extra"}),
    "drift_want": ("drift", {"wants", "extra"}),
    "drift_view": ("drift", {"view", "extra"}),
    "drift_knock": ("drift", {"extra"}),
    "drift_checkpoint": ("drift", {"view", "timestamp", "sources", "done", "extra", "origin"}),
}
"""Kind of packet: the paragraph about it, and its unsigned fields. Those of the stations are all unsigned."""
UNSIGNED_TRANSFERS: dict[str, set[str]] = {
    "HistoryAsk": {"after", "tops"},
    "HistoryPart": {"after", "last", "more", "ends", "packets"},
    "SnapshotAsk": {"number"},
    "SnapshotOffer": set(),
    "SnapshotFetch": {"number", "offset"},
    "SnapshotChunk": {"number", "offset", "more", "data"},
}
"""The same for state transfer. Packets in a part are signed in themselves, chunks by the offer's digest."""


def kinds() -> dict[str, type[Packet]]:
    """Every kind of packet of the registry, except those of stations and hosts."""
    found: dict[str, type[Packet]] = {}
    for name in registry.disseminations():
        found |= {kind.kind: kind for kind in registry.find_dissemination(name).packets}
    for name in registry.names():
        if name not in ("was", "ck", "prs_mobile"):
            found |= {kind.kind: kind for kind in registry.find(name).packets}
    return found


def unsigned(kind: type[Packet]) -> set[str]:
    """The fields of a packet that can be altered without a signature showing it."""
    random, mal = Random(7), Authors(GROUP, MAL, SEEDS[MAL], ROSTER)
    found = set(kind.__struct_fields__)
    for _ in range(60):
        packet = as_mal(any_packet(kind, random), random)
        try:
            mal.sign(packet)
        except AttributeError:  # so badly typed that not even its author can sign it
            continue
        if not packet.written() or mal.check(list(packet.written())) is not None:
            continue
        for field in found.copy():
            other = msgspec.structs.replace(packet, **{field: getattr(any_packet(kind, random), field)})
            try:
                seen = mal.check(list(other.written())) is not None or not other.written()
            except (AttributeError, TypeError):
                seen = True
            if seen:
                found.discard(field)
    return found - SIZES - {"signature"}


def test_every_unsigned_field_is_known_and_answered() -> None:
    assert set(kinds()) == set(UNSIGNED)
    for name, kind in kinds().items():
        paragraph, fields = UNSIGNED[name]
        assert unsigned(kind) == fields, name
        assert not fields or SAID[paragraph] in PAGE, name
    assert SAID["stations"] in PAGE


def unsigned_of_transfer(kind: type[Any]) -> set[str]:
    """The fields of a packet of state transfer that its maker's signature does not cover."""
    fields = set(kind.__struct_fields__) - {"signature"}
    if kind is not SnapshotOffer:
        return fields
    offer = SnapshotOffer(1, 1, bytes(32), b"", b"")
    others = {"number": 2, "size": 2, "digest": bytes([1] * 32), "cut": b"other"}
    return {
        field
        for field in fields
        if signed_bytes(GROUP, MAL, offer)
        == signed_bytes(GROUP, MAL, msgspec.structs.replace(offer, **{field: others[field]}))
    }


def test_every_unsigned_field_of_state_transfer_is_known_and_answered() -> None:
    assert {kind.__name__: unsigned_of_transfer(kind) for kind in KINDS} == UNSIGNED_TRANSFERS
    assert SAID["transfer"] in PAGE


@pytest.mark.parametrize("step", [0, 1, (1 << 40) - 1])
@pytest.mark.parametrize("ends", [True, False])
def test_a_liar_that_gives_history_does_not_keep_another_members_history_away(
    step: int, ends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The liar's parts cover nothing, little or everything, perhaps without an end. Then another is asked."""
    now = [0.0]
    monkeypatch.setattr("precede.runtime.transfer.history_wants.time.monotonic", lambda: now[0])
    taken: list[bytes] = []
    wants: HistoryWants

    def answer(packet: TransferPacket, to: int) -> None:
        assert isinstance(packet, HistoryAsk)
        if to == MAL:
            wants.part(HistoryPart(packet.after, packet.after + step, True, ends, (b"senseless",)), MAL)
        else:
            wants.part(HistoryPart(packet.after, 3, False, True, (b"honest",)), to)

    wants = HistoryWants(list, lambda packet, sender: taken.append(packet), answer)
    while b"honest" not in taken and now[0] < 120:
        now[0] += 0.25
        wants.step(True, [MAL, 0])
    assert b"honest" in taken


def test_a_neighbour_that_never_answers_is_asked_three_times_and_then_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr("precede.runtime.transfer.history_wants.time.monotonic", lambda: now[0])
    requests: list[tuple[float, int]] = []
    wants = HistoryWants(list, lambda packet, sender: None, lambda packet, to: requests.append((now[0], to)))
    while now[0] < 36:
        wants.step(True, [7, 8])
        now[0] += 1.0
    assert requests == [(0.0, 7), (11.0, 7), (22.0, 7), (34.0, 8)]


def test_the_pause_between_rounds_grows_until_a_neighbour_has_something(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr("precede.runtime.transfer.history_wants.time.monotonic", lambda: now[0])
    requests: list[float] = []
    packets: list[bytes] = []
    wants: HistoryWants

    def answer(packet: TransferPacket, to: int) -> None:
        requests.append(now[0])
        wants.part(HistoryPart(0, 0, False, True, tuple(packets)), to)

    wants = HistoryWants(list, lambda packet, sender: None, answer)
    while now[0] < 37:
        wants.step(True, [7])
        now[0] += 1.0
    assert requests == [0.0, 6.0, 17.0]
    packets.append(b"something")
    while now[0] < 60:
        wants.step(True, [7])
        now[0] += 1.0
    packets.clear()
    begun = requests[3]
    while now[0] < 80:
        wants.step(True, [7])
        now[0] += 1.0
    assert requests[3:6] == [begun, begun + 10, begun + 20], "after a success it is short again"


def running(combination: Combination, **options: Any) -> Group:
    made = Group(combination, **options)
    made.run_until(BEGIN + 5 * SECOND)
    return made


PLAIN = [each for each in combinations() if each.protocol in ("fifo", "vcube")]


@pytest.mark.parametrize("combination", PLAIN, ids=str)
def test_sizes_change_nothing(combination: Combination) -> None:
    """Mal passes messages of others on, with other sizes: they are delivered as they were written."""
    made = running(combination)
    heard: list[Packet] = []
    original = made.send

    def overheard(sender: Member, effect: Send, data: bytes) -> None:
        if effect.packet.messages:
            heard.append(effect.packet)
        original(sender, effect, data)

    made.send = overheard  # type: ignore[method-assign]
    for member in made.members.values():
        made.broadcast(member)
    made.run_until(made.now + 10 * SECOND)
    assert heard
    other = running(combination)
    for packet in heard:
        sizes = SIZES & set(packet.__struct_fields__) - {"first_deadline", "messages"}
        bent = msgspec.structs.replace(packet, **dict.fromkeys(sizes, 1 << 20))
        if "first_deadline" in packet.__struct_fields__:
            bent = msgspec.structs.replace(bent, first_deadline=1)
        for member in other.members.values():
            other.attack(member, member.codec.encode(bent), RADIO)
    other.sent_messages = dict(made.sent_messages)
    assert not other.doubled()
    delivered = {id for member in other.members.values() for id in member.delivered}
    assert delivered == set(made.sent_messages)


@pytest.mark.parametrize("protocol", ["prs", "rst", "ses", "fifo"])
def test_a_liar_acknowledges_and_leaves_for_itself_only(protocol: str) -> None:
    made = running(Combination(protocol, "direct" if protocol == "fifo" else ""))
    ana = made.members[0]
    kept: list[Any] = []
    original, made.send = made.send, lambda sender, effect, data: kept.append(effect)  # type: ignore[method-assign]
    made.broadcast(ana)
    (id,) = made.sent_messages
    lies: list[Packet] = [AckPacket((id, MessageId(1, 0, 1), MessageId(2, 0, 1)))]
    if protocol != "fifo":
        lies += [LifePacket(9), LifePacket(0, True)]
    for lie in lies:
        assert made.attack(ana, ana.codec.encode(lie), RADIO)
    made.send = original  # type: ignore[method-assign]
    assert any(isinstance(effect, Send) for effect in kept)  # all of it was lost on the way
    made.run_until(made.now + 30 * SECOND)
    made.broadcast(ana)
    made.run_until(made.now + 30 * SECOND)
    assert len(made.sent_messages) == 2
    assert not made.lost()


def test_a_liar_that_claims_to_hold_everything_does_not_hide_it_from_others() -> None:
    made = running(Combination("causal_barrier", "epidemic"))
    made.members[2].node.link_down(0, made.now, RADIO)
    ids = tuple(MessageId(source, 0, number) for source in (0, 1, 2) for number in range(1, 9))
    for _ in range(3):
        for member in made.members.values():
            made.broadcast(member)
            for lie in (SummaryPacket(ids), HavePacket(ids)):
                assert made.attack(member, member.codec.encode(lie), RADIO)
        made.run_until(made.now + SECOND)
    made.run_until(made.now + 30 * SECOND)
    assert not made.lost()


def test_false_digests_of_gossip_delay_and_hide_nothing_for_good() -> None:
    made = running(Combination("fifo", "gossip"))
    for step in range(20):
        for member in made.members.values():
            made.broadcast(member)
            streams = tuple((source, 0, (1, 1 + step)) for source in (0, 1, 2))
            lie = DigestPacket(step, True, streams, step, (0, 1, 2))
            assert made.attack(member, member.codec.encode(lie), RADIO)
            honest = [packet for packet in made.heard if isinstance(packet, DigestPacket)]
            if honest:  # the hash of another member
                copy = msgspec.structs.replace(honest[-1], neighbours=(0, 1, 2))
                made.attack(member, member.codec.encode(copy), RADIO)
        made.run_until(made.now + SECOND // 10)
    made.run_until(made.now + MINUTE)
    assert not made.lost()
    assert not made.doubled()


def test_a_state_that_nobody_asked_for_changes_nothing() -> None:
    made = running(Combination("vcube"), diagnosis=True)
    for member in made.members.values():
        assert made.attack(member, member.codec.encode(VCubeStatePacket((90, 90, 90), ())), WIRED)
        made.broadcast(member)
    made.run_until(made.now + 30 * SECOND)
    assert len(made.sent_messages) == 3
    assert not made.lost()


def test_a_liar_stops_a_member_that_it_declares_crashed() -> None:
    """The page says so of VCube with `diagnosis`: this is the harm, and without the option there is none."""
    assert "can have any member declared crashed" in PAGE
    for diagnosis in (True, False):
        made = running(Combination("vcube"), diagnosis=diagnosis)
        for member in made.members.values():
            lie = VCubeTestPacket(1, True, ((0, 0), (1, 1), (2, 0)), None, None)
            assert made.attack(member, member.codec.encode(lie), WIRED)
        made.run_until(made.now + SECOND)
        for member in made.members.values():
            made.broadcast(member)
        made.run_until(made.now + 30 * SECOND)
        assert bool(made.lost()) == diagnosis
