"""VCube's diagnosis, one input at a time: what a node sends, keeps and refuses, and when."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import pytest

from precede.core.effects import WIRED, CancelTimer, Deliver, Discard, Effect, Send
from precede.core.errors import NotYet, Refused
from precede.core.instants import MILLISECOND, SECOND, Instant
from precede.core.node import Context
from precede.protocols import registry
from precede.protocols.vcube2018.diagnosis import DiagnosedVCubeNode
from precede.protocols.vcube2018.packets import (
    Report,
    StampedMessage,
    VCubeJoinPacket,
    VCubePacket,
    VCubeStatePacket,
    VCubeTestPacket,
)
from precede.protocols.vcube2018.prepared import slot_of
from precede.protocols.vcube2018.running_tests import RunningTests
from precede.protocols.vcube2018.topology import MOST_POSITIONS

OPTIONS = {"diagnosis": True, "test_every": "200ms", "test_timeout": "250ms"}
FOUR = (0, 1, 2, 3)


def made(id: int, members: tuple[int, ...] = FOUR) -> DiagnosedVCubeNode:
    node = registry.make("vcube", "node", Context(id, members, OPTIONS, random.Random(id)))
    assert isinstance(node, DiagnosedVCubeNode)
    node.start(0, {})
    return node


def sent(effects: Iterable[Effect], kind: type) -> list[tuple[int, Any]]:
    """The packets of a kind, with their addressees."""
    return [(each.to, each.packet) for each in effects if type(each) is Send and type(each.packet) is kind]


def messages(effects: Iterable[Effect]) -> list[tuple[int, int, int]]:
    """Who is sent which message: addressee, source, number."""
    packets = sent(effects, VCubePacket)
    ids = [(to, each.message.id) for to, packet in packets for each in packet.content]
    return [(to, id.source, id.number) for to, id in ids]


def delivered(effects: Iterable[Effect]) -> list[tuple[int, int]]:
    return [(each.message.id.source, each.message.id.number) for each in effects if type(each) is Deliver]


def spoken(source: DiagnosedVCubeNode, now: Instant = 1) -> VCubePacket:
    """Let a node broadcast, and return the packet."""
    packet = sent(source.broadcast(b"x", now), VCubePacket)[0][1]
    assert isinstance(packet, VCubePacket)
    return packet


def answer_to(effects: Iterable[Effect], to: int, have: tuple[int, ...] | None, **more: Any) -> VCubeTestPacket:
    """The answer of a node to the test that it was sent."""
    test = next(packet for addressee, packet in sent(effects, VCubeTestPacket) if addressee == to)
    return VCubeTestPacket(test.number, True, test.events, have, more.get("report"))


def gone(*nodes: int, members: tuple[int, ...] = FOUR) -> tuple[tuple[int, int], ...]:
    """The view in which these nodes are gone."""
    return tuple((node, int(node in nodes)) for node in members)


def told(node: DiagnosedVCubeNode, sender: int, events: Any, now: Instant) -> list[Effect]:
    """Give a node a view in a test, and return what it does."""
    return list(node.receive(VCubeTestPacket(77, False, events, None, None), sender, now, WIRED))


# -- repair ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("after", "again"), [(249, []), (250, [(1, 0, 1)])])
def test_a_neighbour_is_sent_again_what_it_lacks_once_it_cannot_be_in_flight(
    after: int, again: list[tuple[int, int, int]]
) -> None:
    node = made(0)
    node.broadcast(b"x", SECOND)
    now = SECOND + after * MILLISECOND
    tests = node.timer("test", now)
    assert [packet.have for _, packet in sent(tests, VCubeTestPacket)] == [(1, 0, 0, 0)] * 2
    assert messages(node.receive(answer_to(tests, 1, ()), 1, now, WIRED)) == again
    assert messages(node.receive(VCubeTestPacket(1, False, gone(), (), None), 1, now, WIRED)) == again


def test_a_node_that_takes_over_is_sent_at_once_what_it_lacks() -> None:
    """Node 2 should have forwarded the message to 3."""
    node = made(0)
    node.broadcast(b"x", SECOND)
    node.timer("test", SECOND)
    tests = node.timer(("silent", 2), SECOND + 1)
    assert [to for to, _ in sent(tests, VCubeTestPacket)] == [3]
    assert messages(node.receive(answer_to(tests, 3, ()), 3, SECOND + 2, WIRED)) == [(3, 0, 1)]


def test_a_test_under_way_of_a_node_that_takes_over_counts_as_one() -> None:
    tests = RunningTests()
    number = tests.begin(3, False)
    assert number is not None
    assert tests.begin(3, True) is None
    assert tests.end(3, number + 1) is None
    ended = tests.end(3, number)
    assert ended is not None
    assert ended.takes_over


def test_an_answer_tells_what_its_node_has() -> None:
    node = made(1)
    node.broadcast(b"x", 1)
    ((to, answer),) = sent(
        node.receive(VCubeTestPacket(5, False, gone(), (0, 1), None), 0, 2, WIRED), VCubeTestPacket
    )
    assert (to, answer.number, answer.answer, answer.have) == (0, 5, True, (0, 1, 0, 0))


def test_a_duplicate_is_not_forwarded_to_a_cluster_that_has_it() -> None:
    node, source = made(2, tuple(range(8))), made(0, tuple(range(8)))
    packet = spoken(source)
    node.receive(packet, 6, 1, WIRED)
    assert messages(node.receive(packet, 6, 2, WIRED)) == []
    assert messages(node.receive(packet, 3, 3, WIRED)) == []


# -- joining -----------------------------------------------------------------------------------------------


def newcomer() -> DiagnosedVCubeNode:
    """Node 2 of four, which is not a member; it has asked to join."""
    node = made(2, (0, 1, 3))
    tests = node.timer("test", SECOND)
    report = Report(node._view.events, True, (), (), ())
    for to, _ in sent(tests, VCubeTestPacket):
        node.receive(answer_to(tests, to, None, report=report), to, SECOND + 1, WIRED)
    asked = node.timer("test", 2 * SECOND)
    assert [to for to, _ in sent(asked, VCubeJoinPacket)] == [3]
    assert [packet.have for _, packet in sent(asked, VCubeTestPacket)] == [None] * 2
    return node


def test_a_newcomer_forwards_and_keeps_a_message_before_it_has_joined() -> None:
    node, source = newcomer(), made(0)
    packet = spoken(source)
    effects = node.receive(packet, 0, 2 * SECOND, WIRED)
    assert (messages(effects), delivered(effects)) == ([(3, 0, 1)], [])
    assert messages(node.receive(packet, 0, 2 * SECOND + 1, WIRED)) == []
    with pytest.raises(NotYet):
        node.broadcast(b"", 2 * SECOND)
    effects = node.receive(VCubeStatePacket((), ()), 3, 3 * SECOND, WIRED)
    assert (delivered(effects), messages(effects)) == ([(0, 1)], [])
    assert node.sizes()["lobby"] == 0


def test_a_newcomer_that_gets_no_answer_asks_the_next_node() -> None:
    node = newcomer()
    asked = [sent(node.timer("join", at * SECOND), VCubeJoinPacket)[0][0] for at in (3, 4, 5)]
    assert asked == [0, 1, 3]
    assert sent(node.timer("test", 6 * SECOND), VCubeJoinPacket) == [], "the timer asks, not each test"


def test_a_newcomer_begins_once() -> None:
    node, source = newcomer(), made(0)
    first, second = (next(iter(spoken(source, at).content)) for at in (1, 2))
    assert delivered(node.receive(VCubeStatePacket((1,), (first, second)), 3, SECOND, WIRED)) == [(0, 2)]
    assert node.begins_after == {0: 1}
    node.receive(VCubeStatePacket((9,), ()), 0, SECOND + 1, WIRED)
    assert node.begins_after == {0: 1}
    assert messages(node.receive(VCubeTestPacket(1, False, gone(), (), None), 3, 9 * SECOND, WIRED)) == [
        (3, 0, 1),
        (3, 0, 2),
    ], "it keeps what came before its beginning for others"


def test_a_state_that_nobody_asked_for_or_that_is_too_wide_is_ignored() -> None:
    member, outside, wide = made(0), made(2, (0, 1, 3)), newcomer()
    for node, packet in (
        (member, VCubeStatePacket((0, 5), ())),
        (outside, VCubeStatePacket((0, 5), ())),
        (wide, VCubeStatePacket((0,) * (MOST_POSITIONS + 1), ())),
    ):
        assert node.receive(packet, 1, 3 * SECOND, WIRED) == []
        assert node.begins_after == {}
    assert not outside.joined
    assert not wide.joined


def test_only_a_member_sponsors_and_only_a_node_that_works() -> None:
    outside, member = made(2, (0, 1, 3)), made(0)
    assert list(outside.receive(VCubeJoinPacket(), 3, 1, WIRED)) == []
    assert list(member.receive(VCubeJoinPacket(), 9, 1, WIRED)) == []
    told(member, 1, gone(3), 2)
    assert list(member.receive(VCubeJoinPacket(), 3, 3, WIRED)) == []


def test_a_newcomer_in_a_new_cluster_is_tested_at_once() -> None:
    node = made(0)
    effects = told(node, 1, ((4, 0),), SECOND)
    assert [to for to, packet in sent(effects, VCubeTestPacket) if not packet.answer] == [4]


def test_messages_of_and_after_a_newcomer_that_was_not_heard_of_are_delivered_in_order() -> None:
    node, late, other = made(0), made(5, (*FOUR, 5)), made(1, (*FOUR, 5))
    first = spoken(late)
    other.receive(first, 5, 2, WIRED)
    answer = spoken(other, 3)
    assert delivered(node.receive(answer, 1, 4, WIRED)) == []
    assert delivered(node.receive(first, 1, 5, WIRED)) == [(5, 1), (1, 1)]


def test_a_message_of_a_source_beyond_the_largest_hypercube_is_dropped() -> None:
    node = made(0)
    for mask in (1 << MOST_POSITIONS, 1 << 3):
        stamped = spoken(made(1)).content[0]
        wide = StampedMessage(
            stamped.message, ((1, mask.to_bytes(MOST_POSITIONS, "little")),), 2, stamped.past + 1
        )
        node.receive(VCubePacket((wide,), 24, 4, 1, 1), 1, 1, WIRED)
        assert node.sizes()["pending"] == int(mask == 1 << 3)


# -- orphans -----------------------------------------------------------------------------------------------


def with_orphans(crashed: bool = True, **reported: Any) -> tuple[DiagnosedVCubeNode, list[VCubePacket]]:
    """Node 0 lacks the first message of 2, which has crashed, and has its second one and an answer to that.

    `reported` is what the other nodes have. Returns the node after its timer, and the packets it got.
    """
    node, other, source = (made(id, (0, 1, 2)) for id in (0, 1, 2))
    first, second, third = (sent(source.broadcast(b"x", at), VCubePacket) for at in (1, 2, 3))
    for packets in (first, second):
        other.receive(packets[0][1], 2, 4, WIRED)
    packets = [spoken(other, 5), second[0][1], third[0][1]]
    for packet in packets[:2]:
        node.receive(packet, 1, 6, WIRED)
    tests = node.timer("test", SECOND)
    if crashed:
        node.timer(("silent", 2), 2 * SECOND)
    report = Report(node._view.events, True, (), reported.get("high", ()), reported.get("early", ()))
    for to in (1,) if crashed else (1, 2):
        node.receive(answer_to(tests, to, None, report=report), to, 2 * SECOND + 1, WIRED)
    return node, packets


def given_up(effects: Iterable[Effect]) -> list[tuple[int, int]]:
    return sorted((each.message.id.source, each.message.id.number) for each in effects if type(each) is Discard)


@pytest.mark.parametrize(
    ("crashed", "reported", "expected"),
    [
        (True, {}, [(1, 1), (2, 2)]),
        (True, {"high": (0, 0, 1)}, []),
        (True, {"early": (slot_of(2, 1),)}, []),
        (False, {}, []),
    ],
    ids=["lost", "received", "received early", "its source works"],
)
def test_what_waits_for_a_lost_message_is_given_up(
    crashed: bool, reported: dict[str, Any], expected: list[tuple[int, int]]
) -> None:
    node, _ = with_orphans(crashed, **reported)
    assert given_up(node.timer("test", 3 * SECOND)) == expected
    assert len(node.waiting()) == 2 - len(expected)
    if expected:
        assert [node.sizes()[size] for size in node.drains()] == [0, 0, 0]


def test_what_was_given_up_is_not_taken_again_and_no_message_after_it_either() -> None:
    node, packets = with_orphans()
    node.timer("test", 3 * SECOND)
    for packet in packets:
        assert node.receive(packet, 1, 4 * SECOND, WIRED) == []
    assert node.waiting() == []


# -- leaves and false suspicion ----------------------------------------------------------------------------


def test_a_node_that_leaves_tells_its_neighbours_and_tests_no_more() -> None:
    node = made(0)
    effects = list(node.leave(SECOND))
    assert [(to, packet.events) for to, packet in sent(effects, VCubeTestPacket)] == [
        (1, gone(0)),
        (2, gone(0)),
    ]
    assert CancelTimer("test") in effects
    with pytest.raises(Refused):
        node.broadcast(b"", SECOND)
    farewell = sent(effects, VCubeTestPacket)[0][1]
    neighbour = made(1)
    neighbour.broadcast(b"x", 1)
    assert messages(neighbour.receive(farewell, 0, 9 * SECOND, WIRED)) == [], "it lacks nothing any more"
    assert not neighbour._view.is_working(0)


def test_a_node_that_leaves_forwards_messages_until_it_is_down() -> None:
    node, source = made(2, tuple(range(8))), made(0, tuple(range(8)))
    node.leave(SECOND)
    told(node, 3, gone(2, 7, members=tuple(range(8))), SECOND + 1)
    assert messages(node.receive(spoken(source), 0, SECOND + 2, WIRED)) == [(3, 0, 1)]


def test_a_node_that_is_taken_for_crashed_falls_silent_and_keeps_nothing() -> None:
    node, source = made(0), made(2)
    spoken(source)
    node.receive(spoken(source, 2), 2, 3, WIRED)
    node.broadcast(b"x", 4)
    assert [node.sizes()[size] for size in ("pending", "held", "log")] == [1, 1, 2]
    assert told(node, 1, gone(0), SECOND) == []
    assert [node.sizes()[size] for size in (*node.drains(), "lobby")] == [0] * 4
    assert node.waiting() == []
    assert list(node.timer("test", 2 * SECOND)) == []
