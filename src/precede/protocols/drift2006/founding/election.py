"""Who leads the founding of a group, and when; the founding of a group alone.

Founders flood that they are up. When all are up, the one with the lowest id leads at once; with stores, after
`listen` a majority suffices. A founder that sees no progress for some seconds leads too: the one with the
lowest id may be hard to reach. A node that founds a group alone listens first, to find an existing one.
"""

from typing import Final

from precede.core.effects import CancelTimer, Effect, Key, SetTimer
from precede.core.identity import NodeId
from precede.core.instants import MILLISECOND, SECOND, Duration, Instant
from precede.core.node import Saved
from precede.protocols.drift2006.dummies import Dummies
from precede.protocols.drift2006.founding.ballots import Ballots, Decide
from precede.protocols.drift2006.founding.numbers import group_number
from precede.protocols.drift2006.join import Joining
from precede.protocols.drift2006.options import DriftOptions
from precede.protocols.drift2006.packets import (
    Body,
    CheckpointPacket,
    Founder,
    FoundingAccepted,
    FoundingPrepare,
    FoundingPromise,
    FoundingProposal,
    Origin,
    ViewRecord,
)
from precede.protocols.drift2006.state import NO_GROUP, DriftState

FOUND: Final[Key] = ("join", "found")
_ROUND: Final = 500 * MILLISECOND
"""A founder that is in no group sends at random intervals of one to two times this."""

_RECENT: Final = 5 * SECOND
_LED: Final = 3 * SECOND
_NO_PROGRESS: Final = 6 * SECOND
_PATIENCE: Final = 10 * SECOND
"""How long a founder looks for a member that keeps every flood, before it enters behind the first floods."""


class Election:
    """Carries the founding forward while this node is in no group.

    `may_vote`: this node is a founder, and has not lost an earlier vote. `foreign`: this node has heard of
    another group that founders agreed on; members of neither group move to the other.
    """

    def __init__(
        self,
        state: DriftState,
        dummies: Dummies,
        joining: Joining,
        options: DriftOptions,
        founders: tuple[NodeId, ...],
        found: Decide,
    ) -> None:
        self.mode = options.founding
        self.listen: Duration = options.bootstrap_after
        self.foreign = False
        self._state = state
        self._dummies = dummies
        self._joining = joining
        self._found = found
        lost = options.returning or (state.durable and state.incarnation > 0)
        self.may_vote = self.mode == "agreed" and state.me in founders and not lost
        self.ballots = Ballots(
            state.me, founders, state.durable, joining.new_stream, dummies.send_control, found
        )
        self._heard: dict[NodeId, Instant] = {}
        self._since: Instant = 0
        self._moved_at: Instant = 0
        self._led_at: Instant = -_LED
        self._looking_since: Instant | None = None
        self._founded = False

    def restore(self, saved: Saved) -> None:
        if self.may_vote:
            self.ballots.restore(saved)

    def begin(self, now: Instant, effects: list[Effect]) -> None:
        """Begin to found a group. A listed founder that has been in a group before takes no part again."""
        self._since = self._moved_at = now
        self._heard = {}
        self._founded = self._founded or self._state.origin is not None
        if self.mode == "alone" or (self.may_vote and not self._founded):
            self.timer(now, effects)

    def timer(self, now: Instant, effects: list[Effect]) -> None:
        """Flood that this founder is up, repeat its ballot or begin one, and set the timer again.

        A node that founds alone begins its group after it has listened for `listen`.
        """
        state, ballots = self._state, self.ballots
        if state.group != NO_GROUP:
            return
        effects.append(SetTimer(FOUND, now + _ROUND + int(state.generator.random() * _ROUND)))
        if self.mode == "alone":
            if self.listen and now - self._since >= self.listen:
                stream = self._joining.new_stream(effects)
                self._found(ViewRecord(0, (stream,), ()), now, effects)
            return
        self._dummies.send_control(Founder(ballots.number, state.me), now, effects)
        if ballots.leading is not None:
            ballots.repeat(now, effects)
        elif self._should_lead(now):
            self._lead(now, effects)

    def _lead(self, now: Instant, effects: list[Effect]) -> None:
        self._moved_at = now
        self.ballots.lead(now, effects)

    def recent(self, now: Instant) -> list[NodeId]:
        """List the founders that are up as far as this node knows, itself included, in ascending order."""
        me = self._state.me
        founders = self.ballots.founders
        return [id for id in founders if id == me or now - self._heard.get(id, now - 2 * _RECENT) <= _RECENT]

    def _should_lead(self, now: Instant) -> bool:
        """Should this founder begin a ballot now? Enough must be up; it is the first or sees no progress."""
        up, founders = self.recent(now), self.ballots.founders
        if len(up) < self.ballots.quorum or now - self._led_at < _LED:
            return False
        if len(up) < len(founders) and (not self.listen or now - self._since < self.listen):
            return False
        stuck = _NO_PROGRESS + int(self._state.generator.random() * _NO_PROGRESS)
        return up[0] == self._state.me or now - self._moved_at >= stuck

    def receive(self, body: Body, now: Instant, effects: list[Effect]) -> bool:
        """Process a packet of the founding; False for another packet."""
        if not isinstance(
            body, (Founder, FoundingPrepare, FoundingPromise, FoundingProposal, FoundingAccepted)
        ):
            return False
        if not self.may_vote or self._founded or body.founders != self.ballots.number:
            return True
        if not isinstance(body, Founder):
            if self.ballots.receive(body, now, effects):
                self._led_at = self._moved_at = now
        elif body.founder in self.ballots.founders and body.founder != self._state.me:
            self._heard[body.founder] = now
            everybody = len(self.recent(now)) == len(self.ballots.founders)
            if everybody and self.ballots.leading is None and self._should_lead(now):
                self._lead(now, effects)
        return True

    # -- groups that exist -------------------------------------------------------------------------------

    def origin(self, record: ViewRecord) -> Origin:
        return Origin(self.ballots.number, record)

    def entered(self, effects: list[Effect]) -> None:
        self._founded = True
        effects.append(CancelTimer(FOUND))

    def is_own(self, origin: Origin | None, group: int) -> bool:
        """Has this node's list of founders agreed on this group? False if this node may not vote."""
        if origin is None or not self.may_vote or origin.founders != self.ballots.number:
            return False
        return group == group_number(origin.founders, origin.record, agreed=True)

    def begins(self, origin: Origin | None, group: int) -> bool:
        """May this node begin at the start of a group's order, as one of its founders?

        Not if the first view names its stream of an earlier incarnation, which may have delivered messages.
        """
        if origin is None or not self.is_own(origin, group):
            return False
        own = [id for id in origin.record.voters if id[0] == self._state.me]
        return not own or own == [self.ballots.stream]

    def may_enter(self, checkpoint: CheckpointPacket, now: Instant) -> bool:
        """May this node enter the group of a checkpoint now? A founder waits for the group that it voted on.

        If the neighbour has dropped the first messages, a founder waits some seconds for another checkpoint.
        """
        origin, group = checkpoint.origin, checkpoint.extra.group
        if self.mode == "given" or not self.may_vote:
            return True
        if not self.is_own(origin, group):
            return self.ballots.promised is None or self._founded
        assert origin is not None
        if not self.ballots.believes(origin.record, origin.by):
            return False
        if origin.whole or not self.begins(origin, group):
            return True
        if self._looking_since is None:
            self._looking_since = now
        return now - self._looking_since >= _PATIENCE

    def reason(self, now: Instant) -> str:
        """Return a text that says why this node cannot broadcast yet."""
        if self.mode != "agreed" or self._state.group != NO_GROUP:
            return "not a source (yet): only sources broadcast"
        if not self.may_vote:
            return "not in the group yet: no member of it was heard"
        ballots = self.ballots
        up, all_ = len(self.recent(now)), len(ballots.founders)
        needed = "all of them" if ballots.quorum == all_ else str(ballots.quorum)
        return f"the group is not founded yet: {up} of {all_} founders are up, and {needed} must agree"

    def sizes(self) -> dict[str, int]:
        """Return the figures of the founding for `status()`; none if the configuration names the group."""
        if self.mode == "given":
            return {}
        return {"founders_heard": 1 + len(self._heard), "foreign_groups": int(self.foreign)}
