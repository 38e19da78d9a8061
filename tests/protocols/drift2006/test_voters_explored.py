"""Paxos on the next view under every schedule of a small world, and faults planted into it that are found."""

from __future__ import annotations

from typing import Any

import pytest

from precede.core.effects import Effect, Persist
from precede.core.instants import Instant
from precede.core.node import Saved
from precede.protocols.drift2006.packets import Ballot, Propose, ViewRecord
from precede.protocols.drift2006.votes import Votes, _Ballot
from tests.protocols.drift2006.voters import Broken, Explorer

SMALL: list[dict[str, Any]] = [
    {"leads": 2, "leaders": (0,)},
    {"leads": 1, "crashes": 1},
    {"holds": (1, 0), "leads": 2},
    {"holds": (1, 0, 0), "leads": 1, "leaders": (0,)},
]


@pytest.mark.parametrize("bounds", SMALL, ids=str)
def test_no_schedule_breaks_an_invariant(bounds: dict[str, Any]) -> None:
    assert Explorer(**bounds).explore() > 100


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "bounds",
    [
        {"leads": 2},
        {"leads": 2, "crashes": 1},
        {"leads": 3, "crashes": 1},
        {"leads": 2, "crashes": 2},
        {"leads": 2, "crashes": 1, "alive": True},
        {"holds": (1, 2, 0), "sent": 2, "leads": 2},
        {"holds": (1, 2, 0), "sent": 2, "leads": 1, "crashes": 1},
        {"holds": (1, 2, 0), "sent": 2, "leads": 2, "crashes": 1, "alive": True},
    ],
    ids=str,
)
def test_larger_bounds_breadth_first(bounds: dict[str, Any]) -> None:
    """Three and four voters, up to 200,000 states each."""
    count = Explorer(**bounds).explore(most=200_000)
    print(bounds, count)
    assert count > 1_000


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_twenty_thousand_random_schedules() -> None:
    explorer = Explorer((1, 2, 0), 3, alive=True, leads=4, crashes=3, leaders=(0, 1, 2))
    for seed in range(20_000):
        explorer.walk(seed, 60)


class ForgetsPromises(Votes):
    """A promise is not stored."""

    def _save(self, effects: list[Effect]) -> None:
        if self._accepted is not None:
            super()._save(effects)


class ForgetsAcceptances(Votes):
    """An acceptance is not stored."""

    def _save(self, effects: list[Effect]) -> None:
        effects.append(Persist("vote", (self._view.number, self._promised, None, None)))


class JoinsAnyBallot(Votes):
    """A voter joins a ballot below the one that it has promised itself to."""

    def _may_join(self, ballot: Ballot) -> bool:
        return self._view.voter is not None


class HalfIsEnough(Votes):
    """Half of the voters decide."""

    def _is_majority(self, votes: Any) -> bool:
        return 2 * len(votes) >= len(self._view.voters)


class AcceptsLacking(Votes):
    """A voter accepts a view although it lacks floods that the view keeps."""

    def _on_propose(self, body: Propose, now: Instant, effects: list[Effect]) -> None:
        received = self._floods.received
        self._floods.received = lambda id: 99  # type: ignore[method-assign]
        super()._on_propose(body, now, effects)
        self._floods.received = received  # type: ignore[method-assign]


class ProposesItsOwn(Votes):
    """A leader proposes a view of its own although a promise names an accepted one."""

    def _propose(self, leading: _Ballot, now: Instant, effects: list[Effect]) -> None:
        for voter, promise in leading.promises.items():
            leading.promises[voter] = type(promise)(
                promise.view, promise.ballot, promise.voter, None, None, promise.haves
            )
        super()._propose(leading, now, effects)


class ThawsAfterRestart(Votes):
    """After a restart the floor rises again in spite of a promise."""

    def restore(self, saved: Saved) -> None:
        super().restore(saved)
        self._view.frozen = False


class EndsTooEarly(Votes):
    """The new view ends the missed stream one flood too early."""

    def _next_view(self, leading: _Ballot) -> ViewRecord:
        record = super()._next_view(leading)
        ends = tuple((source, serial, max(0, end - 1)) for source, serial, end in record.ends)
        return ViewRecord(record.number, record.voters, ends)


@pytest.mark.parametrize(
    ("fault", "invariant", "bounds"),
    [
        (ForgetsPromises, "promise", {"leads": 1}),
        (ForgetsAcceptances, "quorum", {"leads": 1}),
        (JoinsAnyBallot, "agreement|choice|promise", {"leads": 2}),
        (HalfIsEnough, "quorum", {"holds": (1, 0, 0), "leads": 1}),
        (AcceptsLacking, "held", {"holds": (1, 0), "leads": 1}),
        (ProposesItsOwn, "choice", {"leads": 2}),
        (ThawsAfterRestart, "flush", {"leads": 1, "crashes": 1}),
        (EndsTooEarly, "flush", {"holds": (1, 0), "leads": 1}),
    ],
)
def test_a_planted_fault_is_found(fault: type[Votes], invariant: str, bounds: dict[str, Any]) -> None:
    with pytest.raises(Broken, match=invariant):
        Explorer(**bounds, votes=fault).explore(most=200_000)
