"""Joins through a source that is removed before they count (drift2006, section 7): they never happened."""

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
"""Node 2 goes; it had admitted node 5 in its first flood, which is cut."""


def node(me: int) -> DriftNode:
    entry = registry.find("drift")
    options = registry.read_options(entry, {"suspect_after": "1s"})
    made = registry.build_node(entry, "node", Context(me, (0, 1, 2), options, Random(1), 0))
    assert isinstance(made, DriftNode)
    made.start(0, {})
    return made


def view_of(effects: Effects) -> ViewRecord:
    found = [e.packet for e in effects if isinstance(e, Send) and isinstance(e.packet, ViewPacket)]
    assert len(found) == 1
    return found[0].view


def who_saw_it() -> DriftNode:
    """Received the admission and a flood of the newcomer, then the view that cuts both."""
    made = node(0)
    for flood in (Flood(2, 0, 1, 3, admits=NEWCOMER), Flood(*NEWCOMER, 1, 5)):
        made.receive(DriftPacket(flood, Piggyback(0, 0, 0)), 2, 10, RADIO)
    assert NEWCOMER in made.state.seen.columns
    made.receive(ViewPacket(CUT, Piggyback(0, 1, 0)), 1, 20, RADIO)
    return made


def test_what_a_newcomer_said_and_closed_is_void_too() -> None:
    """Else those who saw it come and go would deliver what the others, who did not, never hear of."""
    made = node(0)
    said = Message(MessageId(5, 0, 1), b"x")
    newcomers = (Flood(*NEWCOMER, 1, 5, said), Flood(*NEWCOMER, 2, 6, closes=True))
    for flood in (Flood(2, 0, 1, 3, admits=NEWCOMER), *newcomers):
        made.receive(DriftPacket(flood, Piggyback(0, 0, 0)), 2, 10, RADIO)
    assert made.state.view.ends == {NEWCOMER: 2}
    assert [waiting.message for waiting in made.waiting()] == [said.id]
    effects = made.receive(ViewPacket(CUT, Piggyback(0, 1, 0)), 1, 20, RADIO)
    assert made.state.view.ends[NEWCOMER] == 0
    assert not made.waiting()
    assert [e.message for e in effects if isinstance(e, Discard)] == [said]


def who_heard_of_it() -> DriftNode:
    """Never received the admission, but a digest with a flood of the newcomer."""
    made = node(1)
    made.receive(DigestPacket(((*NEWCOMER, 1),), Piggyback(0, 0, 0)), 0, 10, RADIO)
    made.receive(ViewPacket(CUT, Piggyback(0, 1, 0)), 0, 20, RADIO)
    return made


def test_nothing_is_left_of_it_where_it_was_seen() -> None:
    made = who_saw_it()
    assert made.state.seen.columns == ((0, 0), (1, 0))
    assert made.state.view.ends[NEWCOMER] == 0
    assert NEWCOMER not in made.floods.streams
    assert NEWCOMER not in made.state.admitted
    late = DriftPacket(Flood(*NEWCOMER, 1, 5), Piggyback(0, 1, 0))
    made.receive(late, 1, 30, RADIO)
    assert NEWCOMER not in made.floods.streams


def test_who_asks_for_its_floods_is_told_and_asks_no_more() -> None:
    asks, knows = who_heard_of_it(), who_saw_it()
    assert asks.sizes()["gaps"] == 1
    wants = WantPacket(((*NEWCOMER, 1, 1),), Piggyback(0, 1, 0))
    due = [e for e in knows.receive(wants, 1, 30, RADIO) if isinstance(e, SetTimer) and e.key[0] == "view"]
    assert len(due) == 1
    told = view_of(knows.timer(due[0].key, due[0].at))
    assert (*NEWCOMER, 0) in told.ends
    asks.receive(ViewPacket(told, Piggyback(0, 1, 0)), 0, 40, RADIO)
    assert asks.sizes()["gaps"] == 0
    assert NEWCOMER not in asks.floods.streams


def test_an_end_that_is_not_the_beginning_is_not_taken_from_hearsay() -> None:
    """Where a stream ends that had floods is for the agreed views to say."""
    asks = who_heard_of_it()
    said = ViewRecord(1, ((0, 0), (1, 0)), ((2, 0, 0), (*NEWCOMER, 1)))
    asks.receive(ViewPacket(said, Piggyback(0, 1, 0)), 0, 40, RADIO)
    assert asks.sizes()["gaps"] == 1
