"""One voter of a view change (drift2006, section 7), which is Paxos: what it promises and remembers."""

from __future__ import annotations

from random import Random

import pytest

from precede.core.context import Context
from precede.core.effects import RADIO, Effect, Effects, Persist, Send, SetTimer
from precede.core.identity import MessageId
from precede.core.instants import SECOND
from precede.core.messages import Message
from precede.protocols import registry
from precede.protocols.drift2006.clock_table import WIDE, ClockTable
from precede.protocols.drift2006.dummies import QUIET
from precede.protocols.drift2006.groups import KNOCK
from precede.protocols.drift2006.node import DriftNode
from precede.protocols.drift2006.packets import (
    Accepted,
    Application,
    Body,
    CheckpointPacket,
    ControlPacket,
    DriftPacket,
    Flood,
    Piggyback,
    Prepare,
    Promise,
    Propose,
    ViewPacket,
    ViewRecord,
)
from precede.protocols.drift2006.state import NO_GROUP
from precede.protocols.drift2006.votes import WATCH
from tests.protocols.drift2006.test_restarts import Store, node, written

FOUR = ((0, 0), (1, 0), (2, 0), (3, 0))
START: Store = {"group": (0, ViewRecord(0, FOUR, ()), FOUR), "own": (0, 0), "clock": 300}
LOW, HIGH = (4, 1, 0), (5, 2, 0)
WITHOUT_3 = ViewRecord(1, FOUR[:3], ((3, 0, 0),))
OTHER = ViewRecord(1, (FOUR[0], FOUR[1], FOUR[3]), ((2, 0, 0),))


class Voter:
    """Node 0 of four sources, with its store."""

    def __init__(self) -> None:
        self.store = dict(START)
        self.node: DriftNode
        self.restart()

    def restart(self) -> Effects:
        """Crash and start again from the store."""
        self.node, effects = node(0, self.store, members=(0, 1, 2, 3))
        self.store = written(self.store, effects)
        return effects

    def hear(self, body: Body, number: int = 1) -> list[Body]:
        """Pass a control packet to the node; returns the bodies that it floods in turn."""
        origin = body.ballot[1] if isinstance(body, Prepare | Propose) else body.voter[0]
        packet = ControlPacket(origin, number, body, Piggyback(0, 0, 0))
        effects = self.node.receive(packet, origin, SECOND, RADIO)
        self.store = written(self.store, effects)
        return [one for one in bodies(effects) if one != body]


def bodies(effects: Effects) -> list[Body]:
    return [e.packet.body for e in effects if isinstance(e, Send) and isinstance(e.packet, ControlPacket)]


def prepare(ballot: tuple[int, int, int]) -> Prepare:
    return Prepare(0, ballot, ((3, 0),))


def test_a_voter_that_promised_a_ballot_takes_no_lower_one() -> None:
    voter = Voter()
    assert [type(body) for body in voter.hear(prepare(HIGH))] == [Promise]
    assert voter.hear(prepare(LOW)) == []
    assert voter.hear(Propose(0, LOW, WITHOUT_3), 2) == []


def test_a_promise_is_in_the_store_before_it_is_sent_and_binds_after_a_restart() -> None:
    voter = Voter()
    packet = ControlPacket(2, 1, prepare(HIGH), Piggyback(0, 0, 0))
    effects = voter.node.receive(packet, 2, SECOND, RADIO)
    vote = next(k for k, e in enumerate(effects) if isinstance(e, Persist) and e.key == "vote")
    sent = next(k for k, e in enumerate(effects) if isinstance(e, Send) and bodies((e,)) != [packet.body])
    assert vote < sent
    assert any(isinstance(effect, SetTimer) and effect.key == WATCH for effect in effects)
    voter.store = written(voter.store, effects)
    voter.restart()
    assert voter.node.state.view.frozen
    assert voter.hear(prepare(LOW)) == []


def test_an_accepted_view_is_in_the_store_and_named_to_the_next_leader() -> None:
    voter = Voter()
    assert voter.hear(Propose(0, LOW, WITHOUT_3)) == [Accepted(0, LOW, (0, 0))]
    voter.restart()
    (promise,) = voter.hear(prepare(HIGH))
    assert isinstance(promise, Promise)
    assert (promise.accepted, promise.value) == (LOW, WITHOUT_3)


def test_a_voter_accepts_no_view_that_keeps_a_flood_it_lacks() -> None:
    voter = Voter()
    keeps = ViewRecord(1, FOUR[:3], ((3, 0, 1),))
    assert voter.hear(Propose(0, LOW, keeps)) == []
    assert (3, 0) in voter.node.floods.gaps, "the missing flood is requested"
    flood = Flood(3, 0, 1, 5, Message(MessageId(3, 0, 1), b"x"))
    voter.node.receive(DriftPacket(flood, Piggyback(0, 0, 0)), 3, SECOND, RADIO)
    assert voter.hear(Propose(0, LOW, keeps), 2) == [Accepted(0, LOW, (0, 0))]


def lead(voter: Voter) -> tuple[tuple[int, int, int], list[Body]]:
    """Make node 0 lead a ballot without 3, whose node has come back; returns the ballot and what it floods."""
    application = Application((3, 1 << 16 | 1), (1, 0))
    packet = ControlPacket(3, 9, application, Piggyback(0, 0, 0))
    effects = voter.node.receive(packet, 3, SECOND, RADIO)
    watch = [e for e in effects if isinstance(e, SetTimer) and e.key == ("view", "watch")]
    led = voter.node.timer(watch[0].key, watch[0].at)
    voter.store = written(voter.store, led)
    (asked,) = [body for body in bodies(led) if isinstance(body, Prepare)]
    return asked.ballot, bodies(led)


def answers(voter: Voter, ballot: tuple[int, int, int], *given: Promise) -> list[Body]:
    """Promises of the others reach the leader; returns what it proposes once it is patient no longer."""
    for number, promise in enumerate(given, 10):
        voter.hear(promise, number)
    proposed: list[Body] = []
    for attempt in range(1, 9):
        effects = voter.node.timer(("view", "lead"), (2 + attempt) * SECOND)
        proposed += [body for body in bodies(effects) if isinstance(body, Propose)]
    return proposed


def promise(ballot: tuple[int, int, int], voter: int, have: int) -> Promise:
    return Promise(0, ballot, (voter, 0), None, None, ((3, 0, have),))


def test_a_stream_ends_behind_the_last_flood_that_any_voter_has() -> None:
    voter = Voter()
    ballot, _ = lead(voter)
    (first, *_) = answers(voter, ballot, promise(ballot, 1, 5), promise(ballot, 2, 3))
    assert isinstance(first, Propose)
    assert (3, 0, 5) in first.value.ends


def test_a_leader_proposes_what_the_highest_ballot_accepted() -> None:
    voter = Voter()
    ballot, _ = lead(voter)
    (first, *_) = answers(
        voter,
        ballot,
        Promise(0, ballot, (1, 0), (3, 2, 0), OTHER, ((3, 0, 0),)),
        Promise(0, ballot, (2, 0), (2, 1, 0), WITHOUT_3, ((3, 0, 0),)),
    )
    assert isinstance(first, Propose)
    assert first.value == OTHER


def test_half_of_the_voters_decide_nothing() -> None:
    voter = Voter()
    ballot, _ = lead(voter)
    assert answers(voter, ballot, promise(ballot, 1, 0)) == [], "two promises of four"
    view = voter.node.state.view
    assert view.number == 0


def test_two_of_four_voters_that_hold_a_message_do_not_release_it() -> None:
    made = Voter().node.state.view
    for holders, released in ((2, False), (3, True)):
        floors = ClockTable([(0, 50)] * holders + [(0, 0)] * (4 - holders), WIDE)
        made.merge_floors(floors.to_bytes())
        assert made.majority_holds(50) is released


@pytest.mark.parametrize("lacking", range(4))
def test_a_message_that_any_one_voter_lacks_is_kept(lacking: int) -> None:
    made = Voter().node.state.view
    floors = ClockTable([(0, 49 if column == lacking else 50) for column in range(4)], WIDE)
    made.merge_floors(floors.to_bytes())
    assert made.all_hold(49)
    assert not made.all_hold(50)


def test_the_next_voters_are_without_ended_streams() -> None:
    view = Voter().node.state.view
    assert view.next_voters(FOUR, {(3, 0): 2}) == FOUR[:3]


def test_messages_cut_off_while_running_are_in_the_store() -> None:
    voter = Voter()
    voter.store = written(voter.store, voter.node.broadcast(b"mine", SECOND))
    without_me = ViewRecord(1, FOUR[1:], ((0, 0, 0),))
    cut = voter.node.receive(ViewPacket(without_me, Piggyback(0, 1, 0)), 1, 2 * SECOND, RADIO)
    voter.store = written(voter.store, cut)
    voter.restart()
    assert [message.payload for message in voter.node.joining.resend] == [b"mine"]


def test_a_member_that_should_be_a_source_applies_again_after_a_restart() -> None:
    voter = Voter()
    voter.store = {"group": (0, ViewRecord(1, FOUR[1:], ((0, 0, 0),)), FOUR[1:]), "clock": 300}
    effects = voter.restart()
    assert ("join", "apply") in [e.key for e in effects if isinstance(e, SetTimer)]


def test_two_nodes_that_found_a_group_at_one_instant_found_two_groups() -> None:
    groups = []
    for me in (1, 2):
        made, _ = node(me, {}, members=())
        made.groups.found_group(10, [])
        groups.append(made.state.group)
    assert groups == [11 << 11 | 1, 11 << 11 | 2]


def test_a_group_that_is_founded_at_the_beginning_has_a_number_that_packets_can_carry() -> None:
    made, _ = node(1, {}, members=())
    made.groups.found_group(0, [])
    assert made.state.group == 1 << 11 | 1


@pytest.mark.parametrize(("members", "after"), [((0, 1), "nothing"), ((0, 1, 2), "state")])
def test_a_store_may_be_copied_if_three_members_vote(members: tuple[int, ...], after: str) -> None:
    made, _ = node(1, {}, members=members)
    assert made.after_copy == after


def test_a_node_whose_flood_waits_sends_a_dummy_if_it_hears_nothing() -> None:
    options = registry.read_options(registry.find("drift"), {"quiet": "1s"})
    made = registry.build_node(registry.find("drift"), "node", Context(1, (0, 1, 2), options, Random(1), 0))
    made.start(0, {})
    effects = made.broadcast(b"x", 10)
    (timer,) = (effect for effect in effects if isinstance(effect, SetTimer) and effect.key == QUIET)
    assert 10 + SECOND <= timer.at <= 10 + 2 * SECOND
    assert any(isinstance(effect, Send) for effect in made.timer(QUIET, timer.at))


def test_a_member_that_goes_out_is_in_no_group_and_knocks_until_it_is_in_one() -> None:
    made, _ = node(1, {}, members=())
    made.groups.found_group(10, [])
    made.groups._go_out(20, [])
    assert made.state.group == NO_GROUP
    effects: list[Effect] = []
    made.groups.timer(KNOCK, 30, effects)
    assert any(isinstance(effect, SetTimer) and effect.key == KNOCK for effect in effects)


def test_a_newcomer_takes_up_a_stream_of_its_own_that_a_checkpoint_names() -> None:
    """Its admission was skipped by the checkpoint; the others wait for the clock of this stream."""
    made, _ = node(9, {})
    sources = (*FOUR, (9, 1))
    made.receive(CheckpointPacket(ViewRecord(4, FOUR, ()), 50, sources, (), Piggyback(0, 4, 0)), 0, 10, RADIO)
    assert made.state.own_stream == (9, 1)
