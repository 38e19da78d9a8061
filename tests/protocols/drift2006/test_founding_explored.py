"""Paxos among the founders under every schedule of a small world, and faults planted into it that are found."""

from __future__ import annotations

from typing import Any

import pytest

from precede.core.effects import Effect
from precede.core.instants import Instant
from precede.protocols.drift2006.founding.ballots import Ballots, _Leading
from precede.protocols.drift2006.packets import (
    Ballot,
    Founder,
    FoundingAccepted,
    FoundingPrepare,
    FoundingPromise,
    FoundingProposal,
    Origin,
    ViewRecord,
)
from tests.protocols.drift2006.founders import FOUNDERS, Explorer, Memory, Split, State


class IgnoresAcceptances(Ballots):
    """A promise does not name the record that was accepted."""

    def _promise(self, ballot: Ballot) -> FoundingPromise:
        assert self.stream is not None
        return FoundingPromise(self.number, ballot, self.stream, None, None)


class MajorityWithoutStore(Ballots):
    """Two of three decide, though a crash makes them forget it."""

    @property
    def quorum(self) -> int:
        return 2

    def _may_accept(self, record: ViewRecord) -> bool:
        return True


class UnboundLeader(Ballots):
    """The leader does not promise its own ballot."""

    def lead(self, now: Instant, effects: list[Effect]) -> None:
        before = self.promised
        super().lead(now, effects)
        self.promised = before


class BallotsWithoutLife(Ballots):
    """A ballot names the founder that leads it, not its incarnation."""

    def lead(self, now: Instant, effects: list[Effect]) -> None:
        own = self._own_stream(effects)
        promised = 0 if self.promised is None else self.promised[0]
        ballot = (promised + 1, own[0], 0)
        self._join(ballot, effects)
        self.leading = _Leading(ballot)
        self._count_promise(self._promise(ballot), now, effects)
        self.repeat(now, effects)

    def _may_accept(self, record: ViewRecord) -> bool:
        return True

    def _receive_acceptance(
        self, leading: _Leading, voter: tuple[int, int], now: Instant, effects: list[Effect]
    ) -> None:
        if leading.record is not None:
            self._count_acceptance(leading, voter[0], now, effects)


PLANTED: dict[str, dict[str, Any]] = {
    "send before persist": {"send_first": True},
    "ignored acceptance": {"ballots": IgnoresAcceptances},
    "majority without store": {"ballots": MajorityWithoutStore, "durable": False},
    "leader unbound by its own Prepare": {"ballots": UnboundLeader},
}


def test_one_leader_and_one_crash_around_any_write_with_stores() -> None:
    assert Explorer(leads=1, crashes=1, leaders=(0,)).explore(recover_every=100) > 4_000


def test_one_leader_and_one_crash_without_stores() -> None:
    assert Explorer(durable=False, leads=1, crashes=1, leaders=(0,)).explore(recover_every=100) > 1_000


@pytest.mark.parametrize("durable", [True, False])
def test_three_leaders_and_two_crashes_on_random_schedules(durable: bool) -> None:
    explorer = Explorer(durable=durable, leads=4, crashes=2, leaders=FOUNDERS)
    founded = 0
    for seed in range(60):
        state = explorer.walk(seed)
        assert explorer.can_finish(state), (durable, seed)
        founded += any(memory.founded is not None for memory in state.founders)
    assert founded >= 8


@pytest.mark.slow
@pytest.mark.parametrize("fault", PLANTED)
def test_planted_faults_are_found(fault: str) -> None:
    explorer = Explorer(**{"leads": 4, "crashes": 2, "leaders": FOUNDERS, **PLANTED[fault]})
    # The first schedule that shows a majority without store is number 808.
    first = 800 if fault == "majority without store" else 0
    for seed in range(first, first + 1_000):
        try:
            explorer.walk(seed)
        except Split:
            return
    raise AssertionError(f"nothing was found in 1,000 schedules: {fault}")


def play(explorer: Explorer, *steps: tuple[int, Any]) -> None:
    """Carry out a schedule: a founder leads, repeats, crashes, or receives every packet of a kind."""
    state = State(tuple(Memory(0) for _ in FOUNDERS), frozenset(), 0, 0)
    for me, what in steps:
        if what == "crash":
            memory = explorer.restart(me, state.founders[me])
            state = explorer.state_with(state, me, memory, [], 0, 0)
            continue
        for packet in sorted(state.packets, key=repr) if isinstance(what, type) else [None]:
            memory = state.founders[me]
            if memory.founded is None and (packet is None or isinstance(packet, what)):
                memory, effects = explorer.effects_of(me, memory, str(what), packet)
                state = explorer.state_with(state, me, memory, effects, 0, 0)
                explorer.check(state)


TWO_DECISIONS = (
    *((0, "lead"), (1, FoundingPrepare), (0, FoundingPromise), (0, "repeat"), (1, FoundingProposal)),
    *((0, FoundingAccepted), (1, "lead"), (2, FoundingPrepare), (1, FoundingPromise), (1, "repeat")),
    *((2, FoundingProposal), (1, FoundingAccepted)),
)
TWO_LIVES = (
    *((0, "lead"), (1, FoundingPrepare), (2, FoundingPrepare), (0, FoundingPromise), (1, FoundingProposal)),
    *((2, FoundingProposal), (0, FoundingAccepted), (1, Origin), (0, "crash"), (0, "lead")),
    *((0, FoundingPromise), (0, FoundingAccepted)),
)


def test_a_group_decided_in_two_ballots_has_one_number() -> None:
    play(Explorer(), *TWO_DECISIONS)
    with pytest.raises(Split):
        play(Explorer(ballot_number=True), *TWO_DECISIONS)


def test_a_ballot_of_an_earlier_incarnation_is_another_ballot() -> None:
    play(Explorer(durable=False), *TWO_LIVES)
    with pytest.raises(Split):
        play(Explorer(durable=False, ballots=BallotsWithoutLife), *TWO_LIVES)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "bounds",
    [{"leads": 2}, {"durable": False, "leads": 2}, {"durable": False, "leads": 1, "crashes": 2}],
    ids=str,
)
def test_larger_bounds_breadth_first(bounds: dict[str, Any]) -> None:
    """Two leaders with stores have more than 150,000 states; the first 200,000 are visited."""
    assert Explorer(**bounds).explore(most=200_000, recover_every=500) > 10_000


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("durable", [True, False])
def test_fifty_thousand_random_schedules(durable: bool) -> None:
    explorer = Explorer(durable=durable, leads=4, crashes=3, leaders=FOUNDERS)
    for seed in range(50_000):
        explorer.walk(seed)


def ballots(me: int, sent: list[Any]) -> Ballots:
    return Ballots(
        me, FOUNDERS, True, lambda out: (me, 0), lambda body, now, out: sent.append(body), lambda *args: None
    )


def test_a_repeated_question_is_answered_again() -> None:
    sent: list[Any] = []
    voter = ballots(1, sent)
    question = FoundingPrepare(voter.number, (1, 0, 0))
    voter.receive(question, 0, [])
    voter.receive(question, 0, [])
    assert [body.ballot for body in sent] == [(1, 0, 0)] * 2


def test_a_refused_leader_learns_the_higher_ballot() -> None:
    sent: list[Any] = []
    voter, leader = ballots(1, sent), ballots(0, [])
    voter.receive(FoundingPrepare(voter.number, (7, 2, 0)), 0, [])
    leader.lead(0, [])
    voter.receive(FoundingPrepare(voter.number, (1, 0, 0)), 0, [])
    leader.receive(sent[-1], 0, [])
    leader.lead(0, [])
    assert leader.promised == (8, 0, 0)


def test_packets_of_other_lists_are_ignored() -> None:
    sent: list[Any] = []
    voter = ballots(1, sent)
    voter.receive(FoundingPrepare(voter.number + 1, (1, 0, 0)), 0, [])
    voter.receive(Founder(voter.number + 1, 0), 0, [])
    assert sent == []
    assert voter.promised is None
    assert voter.believes(Origin(voter.number, ViewRecord(0, ((0, 0),), ())).record, None)
