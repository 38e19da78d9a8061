"""VCube's orphans: messages that wait for one which no working node has are given up, and no others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from precede.core.effects import WIRED, Discard, Effect
from precede.core.instants import SECOND
from precede.protocols.vcube2018.diagnosis import DiagnosedVCubeNode
from precede.protocols.vcube2018.packets import (
    Report,
    VCubePacket,
)
from precede.protocols.vcube2018.prepared import slot_of
from tests.protocols.vcube2018.steps import answer_to, delivered, gone, made, report_of, sent, spoken


def with_orphans(
    crashed: bool = True, got: int = 2, **reported: Any
) -> tuple[DiagnosedVCubeNode, list[VCubePacket]]:
    """Node 0 lacks the first message of 2, which has crashed, and has an answer to the second one, and that.

    It has only the answer if it `got` one message. `reported` is what the other nodes have.
    Returns the node after its timer, and the packets it got.
    """
    node, other, source = (made(id, (0, 1, 2)) for id in (0, 1, 2))
    first, second, third = (sent(source.broadcast(b"x", at), VCubePacket) for at in (1, 2, 3))
    for heard in (first, second):
        other.receive(heard[0][1], 2, 4, WIRED)
    packets: list[VCubePacket] = [spoken(other, 5), second[0][1], third[0][1], first[0][1]]
    for packet, sender in ((packets[0], 1), (packets[1], 2))[:got]:
        node.receive(packet, sender, 6, WIRED)
    assert node.sizes()["held"] == got - 1
    tests = node.timer("test", SECOND)
    if crashed:
        node.timer(("silent", 2), 2 * SECOND)
    events = reported.get("events", node._view.events)
    report = Report(events, True, (), reported.get("high", ()), reported.get("early", ()))
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
        (True, {"events": gone(members=(0, 1, 2))}, []),
        (True, {"early": (slot_of(2, 1),)}, []),
        (False, {}, []),
    ],
    ids=["lost", "received", "reported before the crash", "received early", "its source works"],
)
def test_what_waits_for_a_lost_message_is_given_up(
    crashed: bool, reported: dict[str, Any], expected: list[tuple[int, int]]
) -> None:
    node, _ = with_orphans(crashed, **reported)
    assert given_up(node.timer("test", 3 * SECOND)) == expected
    assert len(node.waiting()) == 2 - len(expected)
    if expected:
        assert [node.sizes()[size] for size in node.drains()] == [0, 0, 0]
        assert node._awaited == {}
        report = report_of(node, 1)
        assert (report.high, report.early) == ((0, 0, 0), ())


def test_a_message_is_lost_if_any_before_the_one_that_is_waited_for_is_lost() -> None:
    """Somebody has the second message of 2, and will give it up."""
    node, _ = with_orphans(got=1, early=(slot_of(2, 2),))
    assert given_up(node.timer("test", 3 * SECOND)) == [(1, 1)]


def test_what_waits_for_an_orphan_is_given_up_with_it() -> None:
    """The second message of 3 waits only for the first, which waits for the lost message of 2."""
    node, source, lost = made(0), made(3), made(2)
    source.receive(spoken(lost), 2, 1, WIRED)
    first, second = spoken(source), spoken(source, 2)
    for packet in (second, first):
        node.receive(packet, 1, 3, WIRED)
    tests = node.timer("test", SECOND)
    for crashed in (2, 3):
        node.timer(("silent", crashed), 2 * SECOND)
    report = Report(node._view.events, True, (), (), ())
    node.receive(answer_to(tests, 1, None, report=report), 1, 2 * SECOND + 1, WIRED)
    assert given_up(node.timer("test", 3 * SECOND)) == [(3, 1), (3, 2)]
    for packet in (first, second):
        assert node.receive(packet, 1, 4 * SECOND, WIRED) == []


def test_what_was_given_up_is_not_taken_again_and_no_message_after_it_either() -> None:
    node, packets = with_orphans()
    node.timer("test", 3 * SECOND)
    for packet in packets[:3]:
        assert node.receive(packet, 1, 4 * SECOND, WIRED) == []
    assert delivered(node.receive(packets[3], 1, 5 * SECOND, WIRED)) == [(2, 1)]
    assert node.waiting() == []
