"""How a DRIFT node becomes a source and stops being one (drift2006, section 7).

Join. A node asks one source, its sponsor, which TO-multicasts the admission. The admission takes effect when it
is *received*: a node that delivers anything later than the admission needs a clock value that the sponsor sent
after it, and hence has the admission itself. The newcomer's timestamps begin above that of the admission. If
the sponsor does not answer, the newcomer asks another one for a new stream, so that a stream has one admission
at most. Should the first admission still come, the newcomer closes that stream at once.

Leave. A source TO-multicasts that nothing follows. Nodes that have received this wait for its clock no more.
"""

from typing import Final

from msgspec import Struct

from precede.core.effects import CancelTimer, Effect, Key, Persist, SetTimer
from precede.core.instants import SECOND, Instant
from precede.core.messages import Message
from precede.protocols.drift2006.dummies import Dummies
from precede.protocols.drift2006.multicast import Multicast
from precede.protocols.drift2006.packets import (
    ATTEMPT_BITS,
    Application,
    Body,
    Carried,
    Flood,
    node_incarnation,
)
from precede.protocols.drift2006.state import NO_GROUP, DriftState
from precede.protocols.drift2006.votes import Votes
from precede.protocols.floods.reliable_floods import Floods
from precede.protocols.floods.stream import StreamId

APPLY: Final[Key] = ("join", "apply")
_APPLY_EVERY: Final = SECOND
_ATTEMPTS: Final = 4


class Joining(Struct, eq=False):
    """Applies for this node to be a source, and admits other nodes as their sponsor.

    `should_be_source`: this node is a source, or is to become one.
    `resend`: its messages that a view cut off with its earlier stream; it multicasts them again in the next.
    `attempts`: how many streams it has applied for in this incarnation.
    """

    _state: DriftState
    _floods: Floods[Carried]
    _dummies: Dummies
    _votes: Votes
    _multicast: Multicast
    should_be_source: bool
    resend: list[Message] = []
    attempts: int = 0
    _applied: StreamId | None = None
    _sponsor: StreamId | None = None
    _requests: int = 0

    # -- applying ----------------------------------------------------------------------------------------

    def new_stream(self, effects: list[Effect]) -> StreamId:
        """Return a stream id that this node has never used, and persist that it is used."""
        self.attempts += 1
        if self._state.durable:
            effects.append(Persist("lives", self.attempts))
        return (self._state.me, self._state.incarnation << ATTEMPT_BITS | self.attempts)

    def apply_if_needed(self, now: Instant, effects: list[Effect]) -> None:
        if self.should_be_source and self._state.own_stream is None:
            self._apply_soon(now, effects)

    def _apply_soon(self, now: Instant, effects: list[Effect]) -> None:
        effects.append(SetTimer(APPLY, now + int(self._state.generator.random() * _APPLY_EVERY)))

    def apply(self, now: Instant, effects: list[Effect]) -> bool:
        """Ask a sponsor to admit this node, if it should be a source, and set the timer to ask again.

        After some requests ask another sponsor, for a new stream. False when the group has no source left.
        """
        state = self._state
        if not self.should_be_source or state.own_stream is not None or state.group == NO_GROUP:
            return True
        sponsors = [id for id in state.seen.columns if id[0] != state.me and id not in state.view.ends]
        if not sponsors:
            if not state.seen.columns and not state.has_undelivered():
                return False
            self._apply_soon(now, effects)
            return True
        if self._applied is None or self._sponsor not in sponsors or self._requests >= _ATTEMPTS:
            self._applied = self.new_stream(effects)
            self._sponsor = sponsors[int(state.generator.random() * len(sponsors))]
            self._requests = 0
        assert self._sponsor is not None
        self._requests += 1
        self._dummies.send_control(Application(self._applied, self._sponsor), now, effects)
        wait = 2 * _APPLY_EVERY + int(state.generator.random() * _APPLY_EVERY)
        effects.append(SetTimer(APPLY, now + wait))
        return True

    def abandon(self, effects: list[Effect]) -> None:
        """Withdraw the request to be a source and drop messages to send again, before leaving the group."""
        self.resend = []
        self._applied = None
        effects.append(CancelTimer(APPLY))

    # -- admissions --------------------------------------------------------------------------------------

    def receive(self, body: Body, now: Instant, effects: list[Effect]) -> None:
        """Process a request to be a source: the sponsor TO-multicasts the admission. Ignore other packets.

        Streams of the applicant's earlier incarnations are suspected, so that the next view removes them.
        """
        if not isinstance(body, Application):
            return
        state = self._state
        source = body.stream[0]
        incarnation = node_incarnation(body.stream)
        over = [id for id in state.seen.columns if id[0] == source and node_incarnation(id) < incarnation]
        self._votes.suspect(over, now, effects)
        view = state.view
        if (
            body.sponsor == state.own_stream
            and body.stream not in view.sponsors
            and body.stream not in view.ends
        ):
            self._multicast.send(now, effects, admits=body.stream)

    def admitted(self, newcomer: StreamId, timestamp: int, now: Instant, effects: list[Effect]) -> None:
        """Handle the admission of a stream of this node: begin it, or close it if it was given up."""
        state = self._state
        if newcomer == self._applied and self.should_be_source:
            self._applied = None
            effects.append(CancelTimer(APPLY))
            state.clock = max(state.clock, timestamp) + 1
            state.become_source(newcomer, 0, effects)
            self.send_again(now, effects)
        elif newcomer[0] == state.me and node_incarnation(newcomer) == state.incarnation:
            state.clock = max(state.clock, timestamp) + 1
            state.persist_clock(effects)
            self._multicast.flood_own(Flood(*newcomer, 1, state.clock, closes=True), now, effects)

    def take_up_unused(self, now: Instant, effects: list[Effect]) -> None:
        """Use or close streams of this node whose admission it did not see. Other nodes wait for their clocks.

        A checkpoint may have skipped the admission, or a crash may have followed it. If we have no stream, one
        of these becomes ours; the rest are closed.
        """
        state = self._state
        for id in state.seen.columns:
            unused = self._floods.stream(id).exists == 0 and id not in state.view.ends
            own = id[0] == state.me and node_incarnation(id) == state.incarnation and id != state.own_stream
            if own and unused:
                if state.own_stream is None and self.should_be_source:
                    self._applied = id
                self.admitted(id, state.admitted.get(id, 0), now, effects)

    # -- messages that were cut off ------------------------------------------------------------------------

    def cut_off(self, messages: list[Message], now: Instant, effects: list[Effect]) -> None:
        """Keep the messages that a view cut off with this node's stream, and apply to be a source again."""
        self.resend += messages
        if messages and self._state.durable:
            effects.append(Persist("restamp", tuple(self.resend)))
        if self.should_be_source:
            self._apply_soon(now, effects)

    def send_again(self, now: Instant, effects: list[Effect]) -> None:
        """Multicast in the new stream the messages cut off when a view ended the old one, undelivered."""
        messages, self.resend = self.resend, []
        for message in messages:
            self._multicast.send(now, effects, message=message)
        if messages and self._state.durable:
            effects.append(Persist("restamp", None))

    def leave(self, now: Instant, effects: list[Effect]) -> None:
        """Close this node's stream; a stream whose admission is on its way is closed when that arrives."""
        self.should_be_source = False
        if self._state.own_stream is not None:
            self._multicast.send(now, effects, closes=True)
