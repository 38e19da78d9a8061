"""Paxos among the founders of a group: they agree on its first view, the streams of those who take part.

With stores a majority of the founders decides. A founder persists each promise and acceptance before it sends
it, the leader its own promise before Prepare. A new leader proposes the record that was accepted in the highest
ballot, so one list of founders decides one record at most.

Without stores all founders decide. A founder that crashes forgets its vote and comes back with a new stream, so
a record counts only when every founder accepts it with the stream that the record names. A new ballot has a
promise of every founder that is up, none of whom has founded; so earlier records are dropped, not adopted: they
may name streams of founders that have crashed.

A repeated question is answered again, so that founding continues after any loss or crash.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from precede.core.effects import Effect, Persist
from precede.core.errors import BadInput
from precede.core.identity import NodeId
from precede.core.instants import Instant
from precede.core.node import Saved, restore
from precede.protocols.drift2006.founding.numbers import list_number
from precede.protocols.drift2006.packets import (
    Ballot,
    Body,
    FoundingAccepted,
    FoundingPrepare,
    FoundingPromise,
    FoundingProposal,
    ViewRecord,
)
from precede.protocols.floods.stream import StreamId

SendBody: TypeAlias = Callable[[Body, Instant, list[Effect]], None]
"""A function that floods a control packet with this body."""

NewStream: TypeAlias = Callable[[list[Effect]], StreamId]
"""A function that returns a stream id that this node has never used."""

Decide: TypeAlias = Callable[[ViewRecord, Instant, list[Effect]], None]
"""A function that begins the group whose first view was decided."""

_SavedVote: TypeAlias = tuple[int, Ballot | None, StreamId | None, Ballot | None, ViewRecord | None]
"""A saved vote: list number, promised ballot, own stream, and ballot and record of the last acceptance."""

SAVED: Final = "founding"
_PATIENCE: Final = 3
"""The leader asks this many times for a promise of every founder, before a quorum of promises suffices."""

_ATTEMPTS: Final = 8


class _Leading(Struct, eq=False):
    """A ballot that this founder leads: the promises and acceptances by founder, and the proposed record."""

    ballot: Ballot
    attempts: int = 0
    promises: dict[NodeId, FoundingPromise] = {}
    record: ViewRecord | None = None
    accepted: dict[NodeId, None] = {}


class Ballots:
    """The vote of one founder, and the ballot that it leads, if any.

    `number`: a hash that identifies the list of founders. `stream`: the stream with which this founder takes
    part. `promised`: the highest ballot that it has joined. `accepted`: its last acceptance.
    """

    def __init__(
        self,
        me: NodeId,
        founders: Sequence[NodeId],
        durable: bool,
        new_stream: NewStream,
        send: SendBody,
        decide: Decide,
    ) -> None:
        self.me = me
        self.founders = tuple(sorted(founders))
        self.number = list_number(founders)
        self.durable = durable
        self.stream: StreamId | None = None
        self.promised: Ballot | None = None
        self.accepted: tuple[Ballot, ViewRecord] | None = None
        self.leading: _Leading | None = None
        self._highest_round = 0
        self._new_stream = new_stream
        self._send = send
        self._decide = decide

    @property
    def quorum(self) -> int:
        """How many founders must accept a record to decide it: a majority with stores, all of them without."""
        return len(self.founders) // 2 + 1 if self.durable else len(self.founders)

    def restore(self, saved: Saved) -> None:
        """Restore the vote given before a restart. Raise BadInput if that vote is on another list."""
        nothing: _SavedVote = (self.number, None, None, None, None)
        vote = restore(saved, SAVED, _SavedVote, nothing)  # type: ignore[arg-type]
        number, promised, stream, ballot, record = vote
        if number != self.number:
            raise BadInput("members: this store has voted on a group with other founders; name the same ones")
        self.promised, self.stream = promised, stream
        if ballot is not None and record is not None:
            self.accepted = ballot, record

    def _save(self, effects: list[Effect]) -> None:
        """Persist this founder's vote if it has a store. This comes before any packet that tells the vote."""
        if self.durable:
            ballot, record = self.accepted if self.accepted is not None else (None, None)
            effects.append(Persist(SAVED, (self.number, self.promised, self.stream, ballot, record)))

    def _own_stream(self, effects: list[Effect]) -> StreamId:
        """Return the stream with which this founder takes part. Make it at the first call."""
        if self.stream is None:
            self.stream = self._new_stream(effects)
        return self.stream

    # -- leading -----------------------------------------------------------------------------------------

    def lead(self, now: Instant, effects: list[Effect]) -> None:
        """Begin a ballot above every known one. This founder's own promise is persisted and counted first."""
        own = self._own_stream(effects)
        promised = 0 if self.promised is None else self.promised[0]
        ballot = (max(promised, self._highest_round) + 1, *own)
        self._join(ballot, effects)
        self.leading = _Leading(ballot)
        self._count_promise(self._promise(ballot), now, effects)
        self.repeat(now, effects)

    def repeat(self, now: Instant, effects: list[Effect]) -> None:
        """Send the current step of the own ballot again, or propose when a quorum has promised.

        After some attempts this founder gives its ballot up, and another founder may lead one.
        """
        leading = self.leading
        if leading is None:
            return
        leading.attempts += 1
        if leading.attempts > _ATTEMPTS:
            self.leading = None
        elif leading.record is not None:
            self._send(FoundingProposal(self.number, leading.ballot, leading.record), now, effects)
        elif leading.attempts > _PATIENCE and len(leading.promises) >= self.quorum:
            self._propose(leading, now, effects)
        else:
            self._send(FoundingPrepare(self.number, leading.ballot), now, effects)

    def _propose(self, leading: _Leading, now: Instant, effects: list[Effect]) -> None:
        """Propose a first view, accept it at this founder, and count that acceptance.

        With stores it is the record that was accepted in the highest ballot, if any. Otherwise it is a view of
        those who have promised.
        """
        promises = leading.promises.values()
        earlier = [(p.accepted, p.record) for p in promises if p.accepted is not None and p.record is not None]
        if self.durable and earlier:
            record = max(earlier, key=lambda pair: pair[0])[1]
        else:
            record = ViewRecord(0, tuple(sorted(promise.voter for promise in promises)), ())
        leading.record, leading.attempts = record, 0
        self._accept(leading.ballot, record, effects)
        self._send(FoundingProposal(self.number, leading.ballot, record), now, effects)
        self._count_acceptance(leading, self.me, now, effects)

    def _count_promise(self, body: FoundingPromise, now: Instant, effects: list[Effect]) -> None:
        """Count a promise for the ballot this founder leads; propose when all founders have promised."""
        leading = self.leading
        self._highest_round = max(self._highest_round, body.ballot[0])
        if leading is None or body.ballot != leading.ballot or leading.record is not None:
            return
        leading.promises[body.voter[0]] = body
        if len(leading.promises) == len(self.founders):
            self._propose(leading, now, effects)

    def _count_acceptance(
        self, leading: _Leading, founder: NodeId, now: Instant, effects: list[Effect]
    ) -> None:
        """Count an acceptance of the proposed record. A quorum decides the record, and the group begins."""
        leading.accepted[founder] = None
        if len(leading.accepted) >= self.quorum and leading.record is not None:
            self.leading = None
            self._decide(leading.record, now, effects)

    # -- voting ------------------------------------------------------------------------------------------

    def receive(self, body: Body, now: Instant, effects: list[Effect]) -> bool:
        """Process a packet of the founding. True if this founder joined or accepted a ballot of another one."""
        match body:
            case FoundingPrepare(founders=number, ballot=ballot) if self._is_from_another(number, ballot):
                joined = self._join(ballot, effects)
                assert self.promised is not None
                # A refusal repeats the promise for the higher ballot: the leader learns that ballot from it.
                self._send(self._promise(self.promised), now, effects)
                return joined
            case FoundingProposal(founders=number, ballot=ballot, record=record):
                if self._is_from_another(number, ballot) and self._may_accept(record):
                    return self._vote_for(ballot, record, now, effects)
            case FoundingPromise(founders=number, voter=voter):
                if number == self.number and voter[0] in self.founders:
                    self._count_promise(body, now, effects)
            case FoundingAccepted(founders=number, ballot=ballot, voter=voter):
                leading = self.leading
                if number == self.number and leading is not None and ballot == leading.ballot:
                    self._receive_acceptance(leading, voter, now, effects)
        return False

    def _is_from_another(self, number: int, ballot: Ballot) -> bool:
        """Does another founder of this list lead this ballot? Own ballots are handled when they are sent."""
        return number == self.number and ballot[1] in self.founders and ballot[1] != self.me

    def _join(self, ballot: Ballot, effects: list[Effect]) -> bool:
        """Promise to refuse ballots below this one, and persist that. False if a higher one has the promise."""
        self._own_stream(effects)
        if self.promised is not None and ballot < self.promised:
            return False
        if self.leading is not None and ballot > self.leading.ballot:
            self.leading = None
        if ballot != self.promised:
            self.promised = ballot
            self._save(effects)
        return True

    def _promise(self, ballot: Ballot) -> FoundingPromise:
        assert self.stream is not None
        accepted, record = self.accepted if self.accepted is not None else (None, None)
        return FoundingPromise(self.number, ballot, self.stream, accepted, record)

    def _may_accept(self, record: ViewRecord) -> bool:
        """May this founder accept a record? Without stores, only if the record names its stream."""
        return self.durable or self.stream in record.voters

    def _vote_for(self, ballot: Ballot, record: ViewRecord, now: Instant, effects: list[Effect]) -> bool:
        """Accept a proposal and answer it. False if a higher ballot has this founder's promise."""
        own = self._own_stream(effects)
        if self.promised is not None and ballot < self.promised:
            return False
        self._accept(ballot, record, effects)
        self._send(FoundingAccepted(self.number, ballot, own), now, effects)
        return True

    def _accept(self, ballot: Ballot, record: ViewRecord, effects: list[Effect]) -> None:
        """Accept a record and promise its ballot. One write persists both."""
        if self.leading is not None and ballot > self.leading.ballot:
            self.leading = None
        if self.accepted != (ballot, record) or self.promised != ballot:
            self.promised, self.accepted = ballot, (ballot, record)
            self._save(effects)

    def _receive_acceptance(
        self, leading: _Leading, voter: StreamId, now: Instant, effects: list[Effect]
    ) -> None:
        """Count the acceptance of another founder, if its stream may vote for the record."""
        record = leading.record
        if record is not None and voter[0] in self.founders and (self.durable or voter in record.voters):
            self._count_acceptance(leading, voter[0], now, effects)

    def believes(self, record: ViewRecord, by: StreamId | None) -> bool:
        """May this founder follow the stream `by`, which says that the group of this record is founded?

        With stores it may, because only one record is ever decided. Without stores, a packet of a founder that
        has crashed since may name a record that the others have dropped. So a founder that has accepted another
        record follows only a stream that this other record names. That stream has founded the group of `record`
        and will not found the other one, so the other record can no longer be decided.
        """
        if self.durable or self.accepted is None or self.accepted[1] == record:
            return True
        return by is not None and by in self.accepted[1].voters
