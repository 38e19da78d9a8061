"""A view change of DRIFT: whom we miss, who leads, and Paxos on what the next view is (see `drift_views`).

Prepare asks the voters to follow a ballot and how far they have the streams of those who are missed. From then
on a voter's floor stands still until the next view, so that its answer stays true of everything delivered with
its help. A missed source that answers is alive and stays. A voter accepts a proposal only when it has all that
the proposal keeps. All of this is flooded, may be lost, and is said again until it has moved on; votes are
persisted before they are given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from typing import TYPE_CHECKING, Final

from precede.core.effects import Effect, Key, Persist, SetTimer
from precede.core.instants import Duration, Instant
from precede.core.node import Saved, restore
from precede.protocols.drift2006.packets import Accepted, Ballot, Body, Prepare, Promise, Propose, ViewRecord
from precede.protocols.floods.reliable_floods import StreamId

if TYPE_CHECKING:
    from precede.protocols.drift2006.node import DriftNode
    from precede.protocols.drift2006.views import Views

WATCH: Final[Key] = ("view", "watch")
LEAD: Final[Key] = ("view", "lead")
_ATTEMPTS: Final = 8
_SILENCE: Final = 6
"""A leader speaks every one or two times `vote_every`; one that is silent for longer is not there any more."""

_PATIENCE: Final = 3
"""So often a source that is missed is asked before it is given up: it may be alive and hard to hear."""


class _Leading:
    """A view change that this node leads."""

    __slots__ = ("accepted", "attempts", "ballot", "missed", "promises", "value")

    def __init__(self, ballot: Ballot, missed: tuple[StreamId, ...]) -> None:
        self.ballot = ballot
        self.missed = missed
        self.promises: dict[StreamId, Promise] = {}
        self.value: ViewRecord | None = None
        self.accepted: dict[StreamId, None] = {}
        self.attempts = 0


class Votes:
    """This node's vote in the current view, and the view change it leads, if any."""

    def __init__(self, node: DriftNode, views: Views, suspect_after: Duration, vote_every: Duration) -> None:
        self.frozen = False
        self._node = node
        self._views = views
        self._suspect_after = suspect_after
        self._vote_every = vote_every
        self._promised: Ballot | None = None
        self._accepted: tuple[Ballot, ViewRecord] | None = None
        self._leading: _Leading | None = None
        self._round = 0
        self._led_at: Instant = 0
        self._watching = False
        self._suspected: dict[StreamId, None] = {}

    def new_view(self) -> None:
        """Votes are given anew in every view."""
        self.frozen = False
        self._promised = None
        self._accepted = None
        self._leading = None

    def restore(self, saved: Saved) -> None:
        """The vote that was given in this view before a restart."""
        view, promised, accepted, value = restore(
            saved, "vote", tuple[int, Ballot | None, Ballot | None, ViewRecord | None], (-1, None, None, None)
        )
        if view == self._views.number and promised is not None:
            self._promised = promised
            self._round = promised[0]
            self.frozen = True
            if accepted is not None and value is not None:
                self._accepted = accepted, value

    # -- suspecting --------------------------------------------------------------------------------------

    def watch(self, now: Instant, effects: list[Effect]) -> None:
        """Something is undelivered or missing, or the voters are not the sources: look again in a while."""
        if not self._watching and self._views.active and self._views.voter is not None:
            self._watching = True
            wait = self._suspect_after + int(self._node.random.random() * self._suspect_after)
            effects.append(SetTimer(WATCH, now + wait))

    def suspect(self, ids: Sequence[StreamId], now: Instant, effects: list[Effect]) -> None:
        """These are known to be gone: their node has started again and lost what it knew."""
        if ids:
            self._suspected.update(dict.fromkeys(ids))
            self.watch(now, effects)

    def _watched(self, now: Instant, effects: list[Effect]) -> None:
        """The timer: is somebody missed, was a view change left half done, have sources come or gone?"""
        self._watching = False
        node, views = self._node, self._views
        missed = self._missed(now)
        led = self.frozen and now - self._led_at < _SILENCE * self._vote_every
        untidy = views.untidy()
        if views.voter is None or not (
            missed or self.frozen or untidy or node.undelivered() or node.floods.gaps
        ):
            return
        if (missed or self.frozen or untidy) and self._leading is None and not led:
            self._lead(missed, now, effects)
        self.watch(now, effects)

    def _missed(self, now: Instant) -> tuple[StreamId, ...]:
        """Sources that keep us from delivering, or whose floods nobody brings, for too long."""
        node, views = self._node, self._views
        self._suspected = {id: None for id in self._suspected if id in node.seen.index}
        missed = dict(self._suspected)
        if node.pending.heap and now - views.progress_at >= self._suspect_after:
            missed.update(dict.fromkeys(node.seen.all_lacking(node.pending.heap[0][0])))
        for id, stream in node.floods.gaps.items():
            if id in node.seen.index and now - stream.since >= self._suspect_after:
                missed[id] = None
        return tuple(sorted(id for id in missed if id != node.mine and id not in views.ends))

    # -- leading -----------------------------------------------------------------------------------------

    def _lead(self, missed: tuple[StreamId, ...], now: Instant, effects: list[Effect]) -> None:
        assert self._views.voter is not None
        self._round += 1
        self._leading = _Leading((self._round, *self._views.voter), missed)
        self._push(now, effects)

    def _push(self, now: Instant, effects: list[Effect]) -> None:
        """Say again where the view change stands; after some times, leave it to another."""
        leading = self._leading
        if leading is None:
            return
        leading.attempts += 1
        if leading.attempts > _ATTEMPTS:
            self._leading = None
            self.watch(now, effects)
            return
        wait = self._vote_every + int(self._node.random.random() * self._vote_every)
        effects.append(SetTimer(LEAD, now + wait))
        patient = leading.attempts <= _PATIENCE and leading.missed != ()
        if leading.value is None and self._majority(leading.promises) and not patient:
            self._compose(leading, now, effects)
        elif leading.value is None:
            self._flood(Prepare(self._views.number, leading.ballot, leading.missed), now, effects)
        else:
            self._flood(Propose(self._views.number, leading.ballot, leading.value), now, effects)

    def _flood(self, body: Body, now: Instant, effects: list[Effect]) -> None:
        self._node.dummies.send_control(body, now, effects)

    def _majority(self, of: Sized) -> bool:
        return 2 * len(of) > len(self._views.voters)

    def _compose(self, leading: _Leading, now: Instant, effects: list[Effect]) -> None:
        """The value of the highest ballot that somebody accepted, else one of our own making."""
        earlier = [
            (promise.accepted, promise.value)
            for promise in leading.promises.values()
            if promise.accepted is not None and promise.value is not None
        ]
        leading.value = max(earlier, key=lambda pair: pair[0])[1] if earlier else self._next_view(leading)
        leading.attempts = 0
        self._flood(Propose(self._views.number, leading.ballot, leading.value), now, effects)

    def _next_view(self, leading: _Leading) -> ViewRecord:
        """Without the missed who did not answer; their streams end where the best of those who did has them."""
        views = self._views
        ends = dict(views.ends)
        for promise in leading.promises.values():
            for source, life, number in promise.haves:
                id = (source, life)
                if id in leading.missed and id not in leading.promises:
                    ends[id] = max(ends.get(id, 0), number)
        void_joins(ends, views.sponsors)
        listed = tuple((*id, end) for id, end in sorted(ends.items()))
        return ViewRecord(views.number + 1, views.voters_without(ends), listed)

    # -- voting ------------------------------------------------------------------------------------------

    def receive(self, body: Body, now: Instant, effects: list[Effect]) -> bool:
        """True when it was about a view change."""
        match body:
            case Prepare():
                self._prepare(body, now, effects)
            case Promise():
                self._promise(body, now, effects)
            case Propose():
                self._propose(body, now, effects)
            case Accepted():
                self._accept(body, now, effects)
            case _:
                return False
        return True

    def _prepare(self, body: Prepare, now: Instant, effects: list[Effect]) -> None:
        if body.view != self._views.number:
            return
        self._round = max(self._round, body.ballot[0])
        if not self._may_follow(body.ballot):
            return
        self._follow(body.ballot, now, effects)
        node, voter = self._node, self._views.voter
        assert voter is not None
        haves = tuple((*id, node.floods.received(id)) for id in body.missed)
        accepted, value = self._accepted if self._accepted is not None else (None, None)
        self._answer(Promise(body.view, body.ballot, voter, accepted, value, haves), now, effects)

    def _answer(self, body: Promise | Accepted, now: Instant, effects: list[Effect]) -> None:
        """To the leader; to oneself without a flood."""
        if body.ballot[1:] == self._views.voter:
            self.receive(body, now, effects)
        else:
            self._flood(body, now, effects)

    def _may_follow(self, ballot: Ballot) -> bool:
        if not self._views.active or self._views.voter is None:
            return False
        return self._promised is None or ballot >= self._promised

    def _follow(self, ballot: Ballot, now: Instant, effects: list[Effect]) -> None:
        """From here on this voter's floor stands still, and no lower ballot gets its vote."""
        if self._leading is not None and ballot > self._leading.ballot:
            self._leading = None
        self.frozen = True
        if self._promised != ballot:
            self._promised = ballot
            self._save(effects)
        self._led_at = now
        self.watch(now, effects)

    def _save(self, effects: list[Effect]) -> None:
        if self._node.durable:
            ballot, value = self._accepted if self._accepted is not None else (None, None)
            effects.append(Persist("vote", (self._views.number, self._promised, ballot, value)))

    def _promise(self, body: Promise, now: Instant, effects: list[Effect]) -> None:
        leading, views = self._leading, self._views
        if leading is None or body.view != views.number or body.ballot != leading.ballot:
            return
        if body.voter not in views.voters or leading.value is not None:
            return
        leading.promises[body.voter] = body
        if all(voter in leading.promises for voter in views.voters):
            self._compose(leading, now, effects)

    def _propose(self, body: Propose, now: Instant, effects: list[Effect]) -> None:
        if body.view != self._views.number or not self._may_follow(body.ballot):
            return
        node = self._node
        self._follow(body.ballot, now, effects)
        lacking = False
        for source, life, end in body.value.ends:
            if node.floods.received((source, life)) < end:
                node.floods.heard_of(node.floods.stream((source, life)), end, now, effects)
                lacking = True
        if lacking:
            return
        if self._accepted != (body.ballot, body.value):
            self._accepted = body.ballot, body.value
            self._save(effects)
        assert self._views.voter is not None
        self._answer(Accepted(body.view, body.ballot, self._views.voter), now, effects)

    def _accept(self, body: Accepted, now: Instant, effects: list[Effect]) -> None:
        leading, views = self._leading, self._views
        if leading is None or leading.value is None or body.voter not in views.voters:
            return
        if body.view == views.number and body.ballot == leading.ballot:
            leading.accepted[body.voter] = None
            if self._majority(leading.accepted):
                views.install(leading.value, now, effects)

    def timer(self, key: Key, now: Instant, effects: list[Effect]) -> None:
        if key == WATCH:
            self._watched(now, effects)
        elif key == LEAD:
            self._push(now, effects)


def void_joins(ends: dict[StreamId, int], sponsors: Mapping[StreamId, tuple[StreamId, int]]) -> None:
    """A join that lies behind the end of its sponsor's stream never happened, nor did those through it, nor
    anything that the newcomer said since, even that it closes."""
    found = True
    while found:
        found = False
        for newcomer, (sponsor, number) in sponsors.items():
            if ends.get(newcomer) != 0 and number > ends.get(sponsor, number):
                ends[newcomer] = 0
                found = True
