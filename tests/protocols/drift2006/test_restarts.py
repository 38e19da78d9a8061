"""Restarts of a DRIFT node from a store that a crash left between two writes (drift2006, section 7)."""

from __future__ import annotations

from random import Random
from typing import Any

from precede.core.effects import RADIO, Effect, Effects, Persist, Send, SetTimer
from precede.core.identity import MessageId
from precede.core.instants import MINUTE
from precede.core.messages import Message
from precede.core.node import Context, round_trip
from precede.protocols import registry
from precede.protocols.drift2006.node import DriftNode
from precede.protocols.drift2006.options import DriftOptions
from precede.protocols.drift2006.packets import (
    CheckpointPacket,
    DigestPacket,
    DriftPacket,
    Flood,
    KnockPacket,
    Piggyback,
    ViewPacket,
    ViewRecord,
)
from precede.protocols.floods.reliable_floods import ASK
from precede.protocols.floods.stream import StreamId

THREE: tuple[StreamId, ...] = ((0, 0), (1, 0), (2, 0))
Store = dict[Any, Any]


def node(me: int, saved: Store, members: tuple[int, ...] = (0, 1, 2)) -> tuple[DriftNode, Effects]:
    """A node that starts from a store, and the effects of its start."""
    entry = registry.find("drift")
    options = registry.read_options(entry, {"durable": True, "suspect_after": "1s"})
    made = registry.build_node(entry, "node", Context(me, members, options, Random(1), 0))
    assert isinstance(made, DriftNode)
    return made, made.start(0, round_trip(saved))


def written(store: Store, effects: list[Effect] | Effects) -> Store:
    """The store after some effects."""
    after = dict(store)
    for effect in effects:
        if isinstance(effect, Persist):
            after[effect.key] = effect.value
    return {key: value for key, value in after.items() if value is not None}


def own_flood(number: int, serial: int = 0) -> Flood:
    """A flood of node 1 with a message."""
    return Flood(1, serial, number, 10 + number, Message(MessageId(1, 0, number), b"x"))


def held(*floods: Flood) -> Store:
    """The entries of a store that holds these floods."""
    return {("held", flood.source, flood.serial, flood.number): flood for flood in floods}


def writes(effects: Effects) -> list[str]:
    """The keys that are written, in order, with a + for a value and a - for a removal."""
    names = []
    for effect in effects:
        if isinstance(effect, Persist):
            key = effect.key[0] if isinstance(effect.key, tuple) else effect.key
            names.append(f"{'-' if effect.value is None else '+'}{key}")
    return names


def cut_after(first: int) -> ViewRecord:
    """A view without node 1, whose stream ends behind this number."""
    return ViewRecord(1, ((0, 0), (2, 0)), ((1, 0, first),))


IN_GROUP: Store = {"group": (0, ViewRecord(0, THREE, ()), THREE), "own": (1, 0), "number": 3, "clock": 300}


def test_messages_cut_off_are_kept_for_the_next_stream_if_only_the_view_was_written() -> None:
    store = {**IN_GROUP, "view": (0, cut_after(1)), **held(own_flood(1), own_flood(2), own_flood(3))}
    made, effects = node(1, store)
    assert [message.id.number for message in made.joining.resend] == [2, 3]
    assert writes(effects).index("+restamp") < writes(effects).index("-held")
    after = written(store, effects)
    assert [key for key in after if key[0] == "held"] == [("held", 1, 0, 1)]
    again, _ = node(1, after)
    assert [message.id.number for message in again.joining.resend] == [2, 3]


def test_a_message_saved_for_the_next_stream_and_still_held_in_the_old_one_counts_once() -> None:
    two = own_flood(2).message
    store = {**IN_GROUP, "view": (0, cut_after(1)), "restamp": (two,), **held(own_flood(1), own_flood(2))}
    made, _ = node(1, store)
    assert made.joining.resend == [two]


def test_a_restart_sends_the_rest_of_the_messages_that_were_cut_off() -> None:
    """The node crashed while it multicast them again: one of three is in the new stream already."""
    messages = tuple(own_flood(number).message for number in (1, 2, 3))
    new = Flood(1, 1, 1, 20, messages[0])
    sources = ((0, 0), (1, 1), (2, 0))
    store = {
        "group": (0, ViewRecord(1, sources, ((1, 0, 0),)), sources),
        "own": (1, 1),
        "lives": 1,
        "clock": 300,
        "restamp": messages,
        **held(new),
    }
    made, effects = node(1, store)
    kept = made.floods.streams[1, 1].kept
    assert [kept[number].message for number in sorted(kept) if isinstance(kept[number], Flood)] == list(
        messages
    )
    assert "restamp" not in written(store, effects)
    assert made.joining.resend == []


def test_the_end_that_a_view_decided_counts_not_the_one_of_the_closing_flood() -> None:
    """The source had closed its stream, the others agreed on an earlier end, and only the view was written."""
    first = Flood(2, 0, 1, 1, Message(MessageId(2, 0, 1), b"x"))
    store = {
        "group": (0, ViewRecord(0, THREE, ()), THREE),
        "view": (0, ViewRecord(1, ((0, 0), (1, 0)), ((2, 0, 0),))),
        ("ended", 2, 0): 2,
        "clock": 300,
        **held(first, Flood(2, 0, 2, 2, closes=True)),
    }
    made, effects = node(0, store)
    assert made.state.view.ends[2, 0] == 0
    assert not made.state.has_undelivered()
    assert [key for key in written(store, effects) if key[0] == "held"] == []


def test_an_admission_has_no_effect_after_its_stream_has_closed() -> None:
    """A restart processes floods by source: the closing flood of 1 comes before its admission by 2."""
    admission = Flood(2, 0, 1, 5, admits=(1, 1))
    closing = Flood(1, 1, 1, 7, closes=True)
    store = {
        "group": (0, ViewRecord(0, ((2, 0),), ()), ((2, 0),)),
        ("admitted", 1, 1): 5,
        ("ended", 1, 1): 1,
        "lives": 1,
        "clock": 300,
        **held(admission, closing),
    }
    for me in (0, 1):
        made, _ = node(me, store)
        assert made.state.seen.columns == ((2, 0),)
        assert not made.floods.streams[1, 1].early


def test_a_restart_uses_a_stream_that_was_admitted_and_not_begun() -> None:
    store: Store = {"group": (0, ViewRecord(0, THREE, ()), THREE), "clock": 300}
    made, effects = node(1, store)
    assert made.state.own_stream == (1, 0)
    assert written(store, effects)["own"] == (1, 0)


def test_a_void_join_is_written_together_with_the_view_that_cuts_it() -> None:
    """After a crash behind any write, the newcomer is a source if and only if the view was not written."""
    store: Store = {"group": (0, ViewRecord(0, THREE, ()), THREE), "own": (0, 0), "clock": 300}
    made, begun = node(0, store)
    store = written(store, begun)
    admission = DriftPacket(Flood(2, 0, 1, 3, admits=(5, 1)), Piggyback(0, 0, 0))
    store = written(store, made.receive(admission, 2, 10, RADIO))
    assert (5, 1) in made.state.seen.columns
    without = ViewRecord(1, ((0, 0), (1, 0)), ((2, 0, 0),))
    installing = made.receive(ViewPacket(without, Piggyback(0, 1, 0)), 1, 20, RADIO)
    for place in range(len(installing) + 1):
        again, _ = node(0, written(store, installing[:place]))
        assert again.state.seen.columns == (THREE[:2] if again.state.view.number else (*THREE, (5, 1)))


def checkpoint(sources: tuple[StreamId, ...], done: tuple[tuple[int, int, int], ...]) -> CheckpointPacket:
    return CheckpointPacket(ViewRecord(4, sources, ()), 50, sources, done, Piggyback(0, 4, 0))


def test_a_node_enters_a_group_completely_or_not_at_all() -> None:
    """After a crash behind any write, the node has all sources of the group or is in no group."""
    made, begun = node(9, {})
    entering = made.receive(checkpoint(THREE, ((0, 0, 3), (2, 0, 7))), 0, 10, RADIO)
    first = written({}, begun)
    for place in range(len(entering) + 1):
        again, _ = node(9, written(first, entering[:place]))
        if again.state.group >= 0:
            assert again.state.seen.columns == THREE
            assert again.state.delivered == {(0, 0): (3, 0), (2, 0): (7, 0)}
            assert again.state.view.number == 4


def test_a_node_moves_to_an_older_group_completely_or_not_at_all() -> None:
    """After a crash behind any write, it is in its group with all it had, or in the other with none of it."""
    ours, theirs = 5, ((7, 0), (8, 0))
    store: Store = {
        "group": (ours, ViewRecord(0, THREE, ()), THREE),
        "own": (1, 0),
        "clock": 300,
        ("done", 0, 0): (2, 2),
        **held(own_flood(1)),
    }
    made, begun = node(1, store, members=())
    store = written(store, begun)
    asking = made.receive(DigestPacket((), Piggyback(0, 4, 0)), 7, 10, RADIO)
    assert [e.to for e in asking if isinstance(e, Send) and isinstance(e.packet, KnockPacket)] == [7]
    assert made.state.group == ours
    moving = made.receive(checkpoint(theirs, ((7, 0, 3),)), 7, 20, RADIO)
    assert made.state.group == 0
    for place in range(len(moving) + 1):
        after = written(store, moving[:place])
        again, more = node(1, after, members=())
        if place == 0:
            assert (again.state.group, again.state.own_stream) == (ours, (1, 0))
            assert again.state.delivered == {(0, 0): (2, 2)}
            continue
        assert again.state.group == 0
        assert again.state.seen.columns == theirs
        assert again.state.delivered == {(7, 0): (3, 0)}
        kept = [key for key in written(after, more) if key not in ("clock", "number", "lives")]
        assert sorted(kept, key=str) == [("done", 7, 0), "group"]


def test_positions_in_the_group_that_a_node_left_mean_nothing_in_the_next() -> None:
    """The node had delivered up to timestamp 900 in a later group; the checkpoint of the older one is at 50.

    Its floor must not tell the others that it holds messages up to 900, nor its checkpoints that it is there.
    """
    store: Store = {"group": (5, ViewRecord(0, THREE, ()), THREE), ("done", 0, 0): (2, 900), "clock": 1000}
    made, _ = node(1, store, members=())
    assert (made.state.position, made.state.view.held_to) == (900, 900)
    made.receive(checkpoint(((7, 0), (8, 0)), ((7, 0, 3),)), 7, 20, RADIO)
    assert made.state.group == 0
    assert (made.state.position, made.state.view.held_to) == (50, 50)


def test_a_member_of_a_later_group_gets_a_checkpoint_of_an_older_one() -> None:
    made, _ = node(1, IN_GROUP)
    effects = made.receive(KnockPacket(Piggyback(9, 0, 0)), 4, 10, RADIO)
    due = [e for e in effects if isinstance(e, SetTimer) and e.key == ("join", "answer", 4)]
    assert len(due) == 1
    answer = made.timer(due[0].key, due[0].at)
    assert [e.to for e in answer if isinstance(e, Send) and isinstance(e.packet, CheckpointPacket)] == [4]


def test_a_node_that_crashed_outside_any_group_reuses_no_number() -> None:
    """It left a group, crashed, and founds one: its message and its stream have new numbers."""
    made, _ = node(1, {"number": 7, "lives": 3, "clock": 300}, members=())
    effects: list[Effect] = []
    made.groups.found_group(10, effects)
    made.broadcast(b"x", 20)
    assert made.state.message_number == 8
    assert made.state.own_stream == (1, 4)
    assert made.state.clock > 300


def test_a_stream_that_a_node_asked_for_before_a_crash_is_not_asked_for_again() -> None:
    """Others may have admitted the first one: floods of two incarnations would share its numbers."""
    made, _ = node(1, {}, members=())
    effects: list[Effect] = []
    first = made.joining.new_stream(effects)
    again, _ = node(1, written({}, effects), members=())
    assert again.joining.new_stream([]) != first


def test_sources_of_a_checkpoint_survive_a_crash() -> None:
    """A node that lacks floods nobody keeps continues from a checkpoint; a source joined in between."""
    before: Store = {"group": (0, ViewRecord(0, THREE, ()), THREE), "own": (0, 0), "clock": 300}
    made, _ = node(0, before)
    effects: list[Effect] = []
    made.floods.heard_of(made.floods.stream((2, 0)), 5, 0, effects)
    long_after = 2 * DriftOptions().retention
    for now in range(0, long_after, MINUTE):
        made.timer(ASK, now)  # retention counts the time that the node runs
    joined = (*THREE, (8, 1))
    skipping = made.receive(checkpoint(joined, ((2, 0, 5),)), 1, long_after, RADIO)
    assert made.state.seen.columns == joined
    again, _ = node(0, written(before, skipping))
    assert again.state.seen.columns == joined
