"""Joins through a source that is removed before they count are void (drift2006, section 7)."""

from __future__ import annotations

from random import Random

from precede.core.effects import RADIO, Discard, Effects, Send, SetTimer
from precede.core.identity import MessageId
from precede.core.messages import Message
from precede.core.node import Context
from precede.protocols import registry
from precede.protocols.drift2006.node import DriftNode
from precede.protocols.drift2006.packets import (
    DigestPacket,
    DriftPacket,
    Flood,
    Piggyback,
    ViewPacket,
    ViewRecord,
    WantPacket,
)

VOTERS = ((0, 0), (1, 0), (2, 0))
NEWCOMER = (5, 1)
CUT = ViewRecord(1, ((0, 0), (1, 0)), ((2, 0, 0),))
"""A view without node 2, which had admitted node 5 in its first flood; that flood is cut."""


def node(me: int) -> DriftNode:
    entry = registry.find("drift")
    options = registry.read_options(entry, {"suspect_after": "1s"})
    made = registry.build_node(entry, "node", Context(me, (0, 1, 2), options, Random(1), 0))
    assert isinstance(made, DriftNode)
    made.start(0, {})
    return made


def view_of(effects: Effects) -> ViewRecord:
    """The view in the one view packet among some effects."""
    packets = [e.packet for e in effects if isinstance(e, Send) and isinstance(e.packet, ViewPacket)]
    assert len(packets) == 1
    return packets[0].view


def node_with_admission() -> DriftNode:
    """A node that received the admission and a flood of the newcomer, then the view that cuts both."""
    made = node(0)
    for flood in (Flood(2, 0, 1, 3, admits=NEWCOMER), Flood(*NEWCOMER, 1, 5)):
        made.receive(DriftPacket(flood, Piggyback(0, 0, 0)), 2, 10, RADIO)
    assert NEWCOMER in made.state.seen.columns
    made.receive(ViewPacket(CUT, Piggyback(0, 1, 0)), 1, 20, RADIO)
    return made


def test_messages_of_a_newcomer_that_has_closed_its_stream_are_void_too() -> None:
    """Otherwise nodes that saw it join and close would deliver messages that others never receive."""
    made = node(0)
    message = Message(MessageId(5, 0, 1), b"x")
    newcomers = (Flood(*NEWCOMER, 1, 5, message), Flood(*NEWCOMER, 2, 6, closes=True))
    for flood in (Flood(2, 0, 1, 3, admits=NEWCOMER), *newcomers):
        made.receive(DriftPacket(flood, Piggyback(0, 0, 0)), 2, 10, RADIO)
    assert made.state.view.ends == {NEWCOMER: 2}
    assert [waiting.message for waiting in made.waiting()] == [message.id]
    effects = made.receive(ViewPacket(CUT, Piggyback(0, 1, 0)), 1, 20, RADIO)
    assert made.state.view.ends[NEWCOMER] == 0
    assert not made.waiting()
    assert [e.message for e in effects if isinstance(e, Discard)] == [message]


def node_with_digest() -> DriftNode:
    """A node that never received the admission, but a digest that names a flood of the newcomer."""
    made = node(1)
    made.receive(DigestPacket(((*NEWCOMER, 1),), Piggyback(0, 0, 0)), 0, 10, RADIO)
    made.receive(ViewPacket(CUT, Piggyback(0, 1, 0)), 0, 20, RADIO)
    return made


def test_a_node_that_saw_a_void_join_removes_the_stream() -> None:
    made = node_with_admission()
    assert made.state.seen.columns == ((0, 0), (1, 0))
    assert made.state.view.ends[NEWCOMER] == 0
    assert NEWCOMER not in made.floods.streams
    assert NEWCOMER not in made.state.admitted
    late = DriftPacket(Flood(*NEWCOMER, 1, 5), Piggyback(0, 1, 0))
    made.receive(late, 1, 30, RADIO)
    assert NEWCOMER not in made.floods.streams


def test_a_node_that_requests_floods_of_a_void_join_learns_of_it() -> None:
    requester, informed = node_with_digest(), node_with_admission()
    assert requester.sizes()["gaps"] == 1
    wants = WantPacket(((*NEWCOMER, 1, 1),), Piggyback(0, 1, 0))
    due = [e for e in informed.receive(wants, 1, 30, RADIO) if isinstance(e, SetTimer) and e.key[0] == "view"]
    assert len(due) == 1
    view = view_of(informed.timer(due[0].key, due[0].at))
    assert (*NEWCOMER, 0) in view.ends
    requester.receive(ViewPacket(view, Piggyback(0, 1, 0)), 0, 40, RADIO)
    assert requester.sizes()["gaps"] == 0
    assert NEWCOMER not in requester.floods.streams


def test_a_node_learns_only_void_joins_from_a_neighbour_with_the_same_view() -> None:
    """Only a decided view may set the end of a stream that has floods."""
    requester = node_with_digest()
    record = ViewRecord(1, ((0, 0), (1, 0)), ((2, 0, 0), (*NEWCOMER, 1)))
    requester.receive(ViewPacket(record, Piggyback(0, 1, 0)), 0, 40, RADIO)
    assert requester.sizes()["gaps"] == 1
