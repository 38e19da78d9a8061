"""View changes of DRIFT: which sources are missed, who leads, and Paxos on the next view (see `views`).

Prepare asks the voters to join a ballot, and how far they have the streams of the missed sources. From then on
a voter's floor is frozen until the next view, so that its answer covers everything that was delivered with its
help. A missed source that answers is alive and stays. A voter accepts a proposal only when it holds every flood
that the proposal keeps. All of these packets are flooded and may be lost; the leader repeats them. Votes are
persisted before they are sent.
"""

from collections.abc import Callable, Mapping, Sequence, Sized
from typing import Final, TypeAlias

from msgspec import Struct

from precede.core.effects import Effect, Key, Persist, SetTimer
from precede.core.instants import Duration, Instant
from precede.core.node import Saved, restore
from precede.protocols.drift2006.dummies import Dummies
from precede.protocols.drift2006.packets import (
    Accepted,
    Ballot,
    Body,
    Carried,
    Prepare,
    Promise,
    Propose,
    ViewRecord,
)
from precede.protocols.drift2006.state import DriftState, View
from precede.protocols.floods.reliable_floods import Floods
from precede.protocols.floods.stream import StreamId

InstallView: TypeAlias = Callable[[ViewRecord, Instant, list[Effect]], None]
"""A function that makes a decided view the current one."""

WATCH: Final[Key] = ("view", "watch")
LEAD: Final[Key] = ("view", "lead")
_ATTEMPTS: Final = 8
_SILENCE: Final = 6
"""A leader silent for this many times `vote_every` counts as gone. A live one sends every one or two times."""

_PATIENCE: Final = 3
"""The leader asks missed sources this many times before it removes them: one may be alive and hard to reach."""


class _Ballot(Struct, eq=False):
    """A ballot that this node leads: the missed sources, promises, acceptances, and proposed view (`value`)."""

    ballot: Ballot
    missed: tuple[StreamId, ...]
    promises: dict[StreamId, Promise] = {}
    value: ViewRecord | None = None
    accepted: dict[StreamId, None] = {}
    attempts: int = 0


class Votes(Struct, eq=False):
    """This node's vote in the current view, and the ballot it leads, if any."""

    _state: DriftState
    _floods: Floods[Carried]
    _dummies: Dummies
    _suspect_after: Duration
    _vote_every: Duration
    _install: InstallView
    _promised: Ballot | None = None
    _accepted: tuple[Ballot, ViewRecord] | None = None
    _leading: _Ballot | None = None
    _round: int = 0
    _led_at: Instant = 0
    _watching: bool = False
    _suspected: dict[StreamId, None] = {}

    @property
    def _view(self) -> View:
        return self._state.view

    def begin_view(self) -> None:
        self._promised = None
        self._accepted = None
        self._leading = None

    def restore(self, saved: Saved) -> None:
        """Restore the vote that this node gave in the current view before a restart."""
        view, promised, accepted, value = restore(
            saved, "vote", tuple[int, Ballot | None, Ballot | None, ViewRecord | None], (-1, None, None, None)
        )
        if view == self._view.number and promised is not None:
            self._promised = promised
            self._round = promised[0]
            self._view.frozen = True
            if accepted is not None and value is not None:
                self._accepted = accepted, value

    # -- suspecting --------------------------------------------------------------------------------------

    def watch(self, now: Instant, effects: list[Effect]) -> None:
        """Set the timer that checks for missed sources, unless it is set or this node does not vote."""
        if not self._watching and self._view.crash_tolerant and self._view.voter is not None:
            self._watching = True
            wait = self._suspect_after + int(self._state.generator.random() * self._suspect_after)
            effects.append(SetTimer(WATCH, now + wait))

    def suspect(self, ids: Sequence[StreamId], now: Instant, effects: list[Effect]) -> None:
        """Count these streams as missed until a view removes them: their node has lost its saved state."""
        if ids:
            self._suspected.update(dict.fromkeys(ids))
            self.watch(now, effects)

    def _check(self, now: Instant, effects: list[Effect]) -> None:
        """Begin a view change if one is due and nobody leads it. Repeat the check while one is unfinished.

        One is due if a source is missed, joined or left, or if the leader of an unfinished change is gone.
        """
        self._watching = False
        state, view = self._state, self._view
        missed = self._missed(now)
        led = view.frozen and now - self._led_at < _SILENCE * self._vote_every
        outdated = view.next_voters(state.seen.columns, view.ends) != view.voters
        if view.voter is None or not (
            missed or view.frozen or outdated or state.has_undelivered() or self._floods.gaps
        ):
            return
        if (missed or view.frozen or outdated) and self._leading is None and not led:
            self._lead(missed, now, effects)
        self.watch(now, effects)

    def _missed(self, now: Instant) -> tuple[StreamId, ...]:
        """List the sources to remove: suspected ones, and those that held up deliveries or floods too long."""
        state, view = self._state, self._view
        self._suspected = {id: None for id in self._suspected if id in state.seen.index}
        missed = dict(self._suspected)
        if state.pending.heap and now - state.progress_at >= self._suspect_after:
            missed.update(dict.fromkeys(state.seen.all_lacking(state.pending.heap[0][0])))
        for id, stream in self._floods.gaps.items():
            if id in state.seen.index and self._floods.missing_for(stream, now) >= self._suspect_after:
                missed[id] = None
        return tuple(sorted(id for id in missed if id != state.own_stream and id not in view.ends))

    # -- leading -----------------------------------------------------------------------------------------

    def _lead(self, missed: tuple[StreamId, ...], now: Instant, effects: list[Effect]) -> None:
        """Begin a ballot on the next view, which is to remove the missed sources."""
        assert self._view.voter is not None
        self._round += 1
        self._leading = _Ballot((self._round, *self._view.voter), missed)
        self._repeat(now, effects)

    def _repeat(self, now: Instant, effects: list[Effect]) -> None:
        """Send the current step of the own ballot again, or propose when a majority has promised.

        After some attempts this node gives its ballot up, and another voter may lead one.
        """
        leading = self._leading
        if leading is None:
            return
        leading.attempts += 1
        if leading.attempts > _ATTEMPTS:
            self._leading = None
            self.watch(now, effects)
            return
        wait = self._vote_every + int(self._state.generator.random() * self._vote_every)
        effects.append(SetTimer(LEAD, now + wait))
        patient = leading.attempts <= _PATIENCE and leading.missed != ()
        number = self._view.number
        if leading.value is None and self._is_majority(leading.promises) and not patient:
            self._propose(leading, now, effects)
        elif leading.value is None:
            self._dummies.send_control(Prepare(number, leading.ballot, leading.missed), now, effects)
        else:
            self._dummies.send_control(Propose(number, leading.ballot, leading.value), now, effects)

    def _is_majority(self, votes: Sized) -> bool:
        return 2 * len(votes) > len(self._view.voters)

    def _propose(self, leading: _Ballot, now: Instant, effects: list[Effect]) -> None:
        """Propose the view accepted in the highest ballot that a promise names, else a view of our own."""
        earlier = [
            (promise.accepted, promise.value)
            for promise in leading.promises.values()
            if promise.accepted is not None and promise.value is not None
        ]
        leading.value = max(earlier, key=lambda pair: pair[0])[1] if earlier else self._next_view(leading)
        leading.attempts = 0
        self._dummies.send_control(Propose(self._view.number, leading.ballot, leading.value), now, effects)

    def _next_view(self, leading: _Ballot) -> ViewRecord:
        """Return a view without the missed sources that did not answer. It ends their streams."""
        view = self._view
        ends = dict(view.ends)
        for promise in leading.promises.values():
            for source, serial, number in promise.haves:
                id = (source, serial)
                if id in leading.missed and id not in leading.promises:
                    ends[id] = max(ends.get(id, 0), number)
        void_joins(ends, view.sponsors)
        listed = tuple((*id, end) for id, end in sorted(ends.items()))
        return ViewRecord(view.number + 1, view.next_voters(self._state.seen.columns, ends), listed)

    # -- voting ------------------------------------------------------------------------------------------

    def receive(self, body: Body, now: Instant, effects: list[Effect]) -> bool:
        """Process a packet of a view change; False for another packet."""
        match body:
            case Prepare():
                self._on_prepare(body, now, effects)
            case Promise():
                self._on_promise(body, now, effects)
            case Propose():
                self._on_propose(body, now, effects)
            case Accepted():
                self._on_accepted(body, now, effects)
            case _:
                return False
        return True

    def _on_prepare(self, body: Prepare, now: Instant, effects: list[Effect]) -> None:
        """Answer with a promise, unless a higher ballot has this voter's promise."""
        if body.view != self._view.number:
            return
        self._round = max(self._round, body.ballot[0])
        if not self._may_join(body.ballot):
            return
        self._join_ballot(body.ballot, now, effects)
        voter = self._view.voter
        assert voter is not None
        haves = tuple((*id, self._floods.received(id)) for id in body.missed)
        accepted, value = self._accepted if self._accepted is not None else (None, None)
        self._answer(Promise(body.view, body.ballot, voter, accepted, value, haves), now, effects)

    def _answer(self, body: Promise | Accepted, now: Instant, effects: list[Effect]) -> None:
        """Flood an answer for the leader; process it directly if this node is the leader."""
        if body.ballot[1:] == self._view.voter:
            self.receive(body, now, effects)
        else:
            self._dummies.send_control(body, now, effects)

    def _may_join(self, ballot: Ballot) -> bool:
        """Does this node vote, and has it promised itself to no higher ballot?"""
        if not self._view.crash_tolerant or self._view.voter is None:
            return False
        return self._promised is None or ballot >= self._promised

    def _join_ballot(self, ballot: Ballot, now: Instant, effects: list[Effect]) -> None:
        """Freeze this voter's floor, promise to refuse lower ballots from now on, and persist the promise."""
        if self._leading is not None and ballot > self._leading.ballot:
            self._leading = None
        self._view.frozen = True
        if self._promised != ballot:
            self._promised = ballot
            self._save(effects)
        self._led_at = now
        self.watch(now, effects)

    def _save(self, effects: list[Effect]) -> None:
        if self._state.durable:
            ballot, value = self._accepted if self._accepted is not None else (None, None)
            effects.append(Persist("vote", (self._view.number, self._promised, ballot, value)))

    def _on_promise(self, body: Promise, now: Instant, effects: list[Effect]) -> None:
        """Count a promise for the ballot this node leads; propose when all voters have promised."""
        leading, view = self._leading, self._view
        if leading is None or body.view != view.number or body.ballot != leading.ballot:
            return
        if body.voter not in view.voters or leading.value is not None:
            return
        leading.promises[body.voter] = body
        if all(voter in leading.promises for voter in view.voters):
            self._propose(leading, now, effects)

    def _on_propose(self, body: Propose, now: Instant, effects: list[Effect]) -> None:
        """Accept a proposal if every flood that it keeps is here; otherwise only request the missing ones."""
        if body.view != self._view.number or not self._may_join(body.ballot):
            return
        floods = self._floods
        self._join_ballot(body.ballot, now, effects)
        lacking = False
        for source, serial, end in body.value.ends:
            if floods.received((source, serial)) < end:
                floods.heard_of(floods.stream((source, serial)), end, now, effects)
                lacking = True
        if lacking:
            return
        if self._accepted != (body.ballot, body.value):
            self._accepted = body.ballot, body.value
            self._save(effects)
        assert self._view.voter is not None
        self._answer(Accepted(body.view, body.ballot, self._view.voter), now, effects)

    def _on_accepted(self, body: Accepted, now: Instant, effects: list[Effect]) -> None:
        """Count an acceptance for the ballot this node leads; a majority decides the view."""
        leading, view = self._leading, self._view
        if leading is None or leading.value is None or body.voter not in view.voters:
            return
        if body.view == view.number and body.ballot == leading.ballot:
            leading.accepted[body.voter] = None
            if self._is_majority(leading.accepted):
                self._install(leading.value, now, effects)

    def timer(self, key: Key, now: Instant, effects: list[Effect]) -> None:
        if key == WATCH:
            self._check(now, effects)
        elif key == LEAD:
            self._repeat(now, effects)


def void_joins(ends: dict[StreamId, int], sponsors: Mapping[StreamId, tuple[StreamId, int]]) -> None:
    """Set the end of a stream to 0 in `ends` if its admission lies behind the end of its sponsor's stream.

    Repeat this for streams whose sponsor has ended at 0 by that. Such a join never happened, so
    nothing of the newcomer counts, not even that it closed its stream.
    """
    changed = True
    while changed:
        changed = False
        for newcomer, (sponsor, number) in sponsors.items():
            if ends.get(newcomer) != 0 and number > ends.get(sponsor, number):
                ends[newcomer] = 0
                changed = True
