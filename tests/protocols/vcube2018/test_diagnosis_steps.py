"""VCube's diagnosis, one input at a time: what a node sends, keeps and refuses, and when."""

from __future__ import annotations

import pytest

from precede.core.effects import WIRED, CancelTimer, SetTimer
from precede.core.errors import NotYet, Refused
from precede.core.instants import MILLISECOND, SECOND
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
from tests.protocols.vcube2018.steps import (
    FOUR,
    answer_to,
    delivered,
    gone,
    made,
    messages,
    report_of,
    sent,
    spoken,
    told,
)

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
    node = made(2, tuple(range(8)))
    assert messages(node.receive(packet, 0, 1, WIRED)) == [(3, 0, 1)]
    assert messages(node.receive(packet, 6, 2, WIRED)) == [(0, 0, 1)]
    assert messages(node.receive(packet, 6, 3, WIRED)) == []


def concluded(node: DiagnosedVCubeNode, low: tuple[int, ...], high: tuple[int, ...]) -> None:
    """Let both neighbours report, and the node draw its conclusions."""
    report = Report(node._view.events, True, low, high, ())
    for now in (SECOND, 2 * SECOND):
        tests = node.timer("test", now)
        for to in (1, 2):
            node.receive(answer_to(tests, to, None, report=report), to, now + 1, WIRED)


def test_a_message_is_kept_until_every_node_has_it() -> None:
    node = made(0)
    node.broadcast(b"x", 1)
    concluded(node, (), (1,))
    assert node.sizes()["log"] == 1
    concluded(node, (1,), (1,))
    assert node.sizes()["log"] == 0


def test_a_newcomer_is_given_a_message_that_waits_though_every_node_has_it() -> None:
    node, other, lost = made(0), made(1), made(2)
    other.receive(spoken(lost), 2, 1, WIRED)
    node.receive(spoken(other), 1, 2, WIRED)
    concluded(node, (0, 1), (0, 1))
    assert [node.sizes()[size] for size in ("pending", "log")] == [1, 0]
    told(node, 1, ((4, 0),), 3 * SECOND)
    ((_, state),) = sent(node.receive(VCubeJoinPacket(), 4, 3 * SECOND, WIRED), VCubeStatePacket)
    assert [each.message.id.source for each in state.content] == [1]


def test_messages_that_wait_outlast_a_change_of_the_view() -> None:
    """Node 0 gets the second message first; node 5 then crashes, of which the messages do not depend."""
    everybody = tuple(range(8))
    node, source = made(0, everybody), made(4, everybody)
    first, second = spoken(source), spoken(source, 2)
    node.receive(second, 4, 3, WIRED)
    assert node.sizes()["held"] == 2
    told(node, 1, gone(5, members=everybody), SECOND)
    assert node.sizes()["held"] == 2
    effects = node.receive(first, 4, SECOND + 1, WIRED)
    assert delivered(effects) == [(4, 1), (4, 2)]
    assert messages(effects) == [(1, 4, 2), (1, 4, 1), (2, 4, 2), (2, 4, 1)]
    only_waits = made(1, everybody)
    only_waits.receive(second, 0, 3, WIRED)
    told(only_waits, 0, gone(5, members=everybody), SECOND)
    assert delivered(only_waits.receive(first, 0, SECOND + 1, WIRED)) == [(4, 1), (4, 2)]


# -- joining -----------------------------------------------------------------------------------------------


def newcomer() -> DiagnosedVCubeNode:
    """Node 2 of four, which is not a member; it has asked to join once all nodes knew it for long enough."""
    node = made(2, (0, 1, 3))
    for settled in (False, True):
        tests = node.timer("test", SECOND)
        assert sent(tests, VCubeJoinPacket) == []
        report = Report(node._view.events, settled, (), (), ())
        for to, _ in sent(tests, VCubeTestPacket):
            node.receive(answer_to(tests, to, None, report=report), to, SECOND + 1, WIRED)
    effects = node.timer("test", 2 * SECOND)
    assert [to for to, _ in sent(effects, VCubeJoinPacket)] == [3]
    assert SetTimer("join", 2 * SECOND + 250 * MILLISECOND) in effects
    assert [packet.have for _, packet in sent(effects, VCubeTestPacket)] == [None] * 2
    return node


def test_a_newcomer_forwards_and_keeps_a_message_before_it_has_joined() -> None:
    node, source = newcomer(), made(0)
    packet = spoken(source)
    effects = node.receive(packet, 0, 2 * SECOND, WIRED)
    assert (messages(effects), delivered(effects)) == ([(3, 0, 1)], [])
    assert messages(node.receive(packet, 0, 2 * SECOND + 1, WIRED)) == []
    assert report_of(node, 0).early == (slot_of(0, 1),), "an orphan is not lost while a newcomer has it"
    with pytest.raises(NotYet):
        node.broadcast(b"", 2 * SECOND)
    effects = node.receive(VCubeStatePacket((), ()), 3, 3 * SECOND, WIRED)
    assert (delivered(effects), messages(effects)) == ([(0, 1)], [])
    assert node.sizes()["lobby"] == 0


def test_a_newcomer_that_gets_no_answer_asks_the_next_node() -> None:
    node = newcomer()
    sponsors = [sent(node.timer("join", at * SECOND), VCubeJoinPacket)[0][0] for at in (3, 4, 5)]
    assert sponsors == [0, 1, 3]
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


def test_a_newcomer_begins_after_sources_that_it_has_not_heard_of() -> None:
    node = newcomer()
    node.receive(VCubeStatePacket((0, 0, 0, 0, 0, 3), ()), 3, 3 * SECOND, WIRED)
    assert node.joined
    assert node.begins_after == {5: 3}


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
