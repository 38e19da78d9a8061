"""Groups of DRIFT: how a node enters one, founds one, and moves to an older one (drift2006, section 7).

Entering. A newcomer learns a position in the total order from a neighbour (a checkpoint) and receives from
there on. Then it may become a source (`join`).

Founding. Nodes that want to be sources and find none flood their candidacy. After a while the candidate with
the lowest id among those it has received founds a group, and the others join it. This replaces the bootstrap of
Cavin et al. (reference [9] of the paper), which like this one needs to know all candidates. When two groups
meet, the members of the one that was founded later move to the other, one by one. Listed founders can agree on
their group instead (`founding`): then all of them begin at the start of its order, and nobody moves from it.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import msgspec

from precede.core.effects import CancelTimer, Effect, Key, Persist, Send, SetTimer
from precede.core.identity import NodeId
from precede.core.instants import MILLISECOND, SECOND, Duration, Instant
from precede.core.messages import Packet
from precede.core.node import Saved
from precede.protocols.drift2006.delivery import leave_group, skip_to
from precede.protocols.drift2006.dummies import Dummies
from precede.protocols.drift2006.founding.election import FOUND, Election
from precede.protocols.drift2006.founding.numbers import gives_way, group_number, is_agreed
from precede.protocols.drift2006.join import APPLY, Joining
from precede.protocols.drift2006.options import DriftOptions
from precede.protocols.drift2006.packet_builder import PacketBuilder
from precede.protocols.drift2006.packets import (
    Candidacy,
    Carried,
    CheckpointPacket,
    ControlPacket,
    Founded,
    KnockPacket,
    Origin,
    Piggyback,
    ViewRecord,
)
from precede.protocols.drift2006.saved import group_keys
from precede.protocols.drift2006.state import CONFIGURED_GROUP, NO_GROUP, DriftState, set_sources
from precede.protocols.drift2006.views import Views
from precede.protocols.floods.reliable_floods import Floods
from precede.protocols.floods.stream import StreamId

KNOCK: Final[Key] = ("join", "knock")
_KNOCK_EVERY: Final = SECOND
_ANSWER_WITHIN: Final = 100 * MILLISECOND


class Groups:
    """Brings this node into a group, and answers nodes that want to enter it.

    `election`: the founding of a group that the listed founders agree on, or that one founds alone.
    """

    def __init__(
        self,
        state: DriftState,
        floods: Floods[Carried],
        builder: PacketBuilder,
        dummies: Dummies,
        joining: Joining,
        views: Views,
        options: DriftOptions,
        founders: tuple[NodeId, ...],
    ) -> None:
        self.election = Election(state, dummies, joining, options, founders, self._found)
        self._state = state
        self._floods = floods
        self._builder = builder
        self._dummies = dummies
        self._joining = joining
        self._views = views
        self._bootstrap_after: Duration = options.bootstrap_after if options.founding == "given" else 0
        self._answering: dict[NodeId, None] = {}
        self._candidates: dict[NodeId, Instant] = {}
        self._last_group = NO_GROUP
        self._outside_since: Instant = 0
        self._next_request_at: Instant = -(1 << 62)
        self.awaits_state = False
        """The driver brings the state of the application: do not enter, or skip, without it."""
        self.lacks_state = False
        """A neighbour answered with a position behind messages that this node lacks."""

    # -- beginning ---------------------------------------------------------------------------------------

    def start_configured(self, sources: Sequence[NodeId], now: Instant, effects: list[Effect]) -> None:
        """Begin in the group that the configuration names, with these nodes as sources."""
        me = self._state.me
        streams = _first_streams(tuple(sources))
        self._joining.should_be_source = (me, 0) in streams
        self._begin(CONFIGURED_GROUP, ViewRecord(0, streams, ()), streams, now, effects)
        if self._joining.should_be_source:
            self._state.become_source((me, 0), 0, effects)

    def start_outside(self, saved: Saved, now: Instant, effects: list[Effect]) -> None:
        """Begin outside any group, or finish the move to another group that a crash interrupted."""
        self.election.restore(saved)
        effects += [Persist(key, None) for key in group_keys(saved)]
        if "next" in saved:
            self._enter(msgspec.convert(saved["next"], CheckpointPacket), now, effects)
            effects.append(Persist("next", None))
        else:
            self._go_out(now, effects)

    def _begin(
        self,
        group: int,
        record: ViewRecord,
        sources: tuple[StreamId, ...],
        now: Instant,
        effects: list[Effect],
    ) -> None:
        """Begin in a group with this view and these sources. One write persists all of it."""
        state = self._state
        state.group = group
        self.lacks_state = False
        if state.durable:
            effects.append(Persist("group", (group, record, sources)))
        self._views.begin(record, now)
        set_sources(state, self._floods, sources, {})
        state.piggyback = None
        effects.append(CancelTimer(KNOCK))

    def _enter(self, checkpoint: CheckpointPacket, now: Instant, effects: list[Effect]) -> None:
        """Begin in the group of a checkpoint: at its position, or as a founder at the start of the order.

        The latter needs a checkpoint of a member that keeps every flood since the beginning.
        """
        origin, group = checkpoint.origin, checkpoint.extra.group
        if origin is not None and origin.whole and self.election.begins(origin, group):
            self._begin_as_founder(group, origin, now, effects)
        else:
            self.enter_at(checkpoint, now, effects)

    def enter_at(self, checkpoint: CheckpointPacket, now: Instant, effects: list[Effect]) -> None:
        """Begin in the group of a checkpoint, at its position."""
        self._set_origin(checkpoint.origin, effects)
        if checkpoint.extra.group != self._last_group:
            self._state.reset_position()
        skip_to(self._state, self._floods, checkpoint, effects)
        self._begin(checkpoint.extra.group, checkpoint.view, checkpoint.sources, now, effects)
        self._state.raise_floor(self._state.position)

    def _set_origin(self, origin: Origin | None, effects: list[Effect]) -> None:
        """Record and persist how the group was founded, so that this node can tell founders that come late."""
        self._state.origin = origin
        self.election.entered(effects)
        if origin is not None and self._state.durable:
            effects.append(Persist("origin", origin))

    def _begin_as_founder(self, group: int, origin: Origin, now: Instant, effects: list[Effect]) -> None:
        """Begin at the start of a group's order: as a source, if the first view names this node."""
        state, streams = self._state, origin.record.voters
        state.reset_position()
        self._set_origin(Origin(origin.founders, origin.record), effects)
        self._begin(group, origin.record, streams, now, effects)
        own = [id for id in streams if id[0] == state.me]
        if own:
            state.become_source(own[0], 0, effects)
            self._joining.send_again(now, effects)
        else:
            self._joining.apply_if_needed(now, effects)

    def _found(self, record: ViewRecord, now: Instant, effects: list[Effect]) -> None:
        """Begin the group that this node founds, alone or as the leader of a ballot, and tell the others."""
        agreed = self.election.mode == "agreed"
        origin = self.election.origin(record)
        group = group_number(origin.founders, record, agreed)
        if not agreed:
            self._begin_alone(group, record, now, effects)
        elif self.election.begins(origin, group):
            self._begin_as_founder(group, origin, now, effects)
            told = Origin(origin.founders, record, self._state.own_stream, whole=True)
            self._dummies.send_control(Founded(told), now, effects)

    def _begin_alone(self, group: int, record: ViewRecord, now: Instant, effects: list[Effect]) -> None:
        self.election.entered(effects)
        self._begin(group, record, record.voters, now, effects)
        self._state.become_source(record.voters[0], 0, effects)
        self._joining.send_again(now, effects)

    def _own_origin(self) -> Origin | None:
        """Return how founders agreed on this node's group, and this node's stream; None if they did not."""
        state = self._state
        origin = state.origin
        if origin is None:
            return None
        streams = [self._floods.streams[id] for id in state.admitted if id in self._floods.streams]
        whole = all(1 in stream.kept for stream in streams if stream.received > 0)
        return Origin(origin.founders, origin.record, state.view.voter or state.own_stream, whole)

    # -- outside any group ---------------------------------------------------------------------------------

    def _go_out(self, now: Instant, effects: list[Effect]) -> None:
        """Mark this node as outside any group, and begin to look for one."""
        state = self._state
        self._last_group = state.group
        state.group = NO_GROUP
        state.seen.label(NO_GROUP, state.view.number)
        self._outside_since = now
        self._candidates = {}
        state.piggyback = None
        self._knock(now, effects)
        if self.election.mode != "given":
            self.election.begin(now, effects)

    def _knock(self, now: Instant, effects: list[Effect]) -> None:
        """Request a checkpoint from the neighbours, and set the timer to do so again.

        A node that should be a source floods its candidacy too. It founds a group when no source answered for
        `bootstrap_after` and it heard of no candidate with a lower id.
        """
        state = self._state
        effects.append(self._builder.knock())
        wait = _KNOCK_EVERY // 2 + int(state.generator.random() * _KNOCK_EVERY)
        effects.append(SetTimer(KNOCK, now + wait))
        patience = self._bootstrap_after
        if not self._joining.should_be_source or not patience:
            return
        self._dummies.send_control(Candidacy(self._outside_since), now, effects)
        recent = [id for id, heard_at in self._candidates.items() if now - heard_at <= patience]
        if now - self._outside_since >= patience and all(id > state.me for id in recent):
            self.found_group(now, effects)

    def found_group(self, now: Instant, effects: list[Effect]) -> None:
        state = self._state
        id = self._joining.new_stream(effects)
        # Microseconds since 1970 have 51 bits, and an integer on the wire has 63.
        group = (max(now, 0) + 1) << 11 | (state.me & 0x7FF)
        self._begin(group, ViewRecord(0, (id,), ()), (id,), now, effects)
        state.become_source(id, 0, effects)
        self._joining.send_again(now, effects)

    # -- packets of other groups ---------------------------------------------------------------------------

    def is_same_group(
        self, packet: Packet, extra: Piggyback, sender: NodeId, now: Instant, effects: list[Effect]
    ) -> bool:
        """Return True for a packet of this node's group. Process any other packet, and return False."""
        own = self._state.group
        if extra.group == own and own != NO_GROUP:
            return True
        if own == NO_GROUP:
            if isinstance(packet, CheckpointPacket):
                self.receive_checkpoint(packet, now, effects)
            elif isinstance(packet, ControlPacket):
                self._receive_control(packet, extra.group, now, effects)
        elif extra.group == NO_GROUP or (gives_way(extra.group, own) and isinstance(packet, KnockPacket)):
            self.receive_knock(sender, now, effects)
        elif gives_way(own, extra.group):
            self._meet_older(packet, sender, now, effects)
        elif is_agreed(own) and is_agreed(extra.group):
            self.election.foreign = True
        return False

    def _receive_control(self, packet: ControlPacket, group: int, now: Instant, effects: list[Effect]) -> None:
        """Process a control packet while this node is in no group."""
        body = packet.body
        if isinstance(body, Founded):
            origin = body.origin
            is_founder = packet.origin in self.election.ballots.founders
            if self._dummies.relay(packet, now, effects) and is_founder and self._may_follow(origin, group):
                self._begin_as_founder(group, origin, now, effects)
        elif group == NO_GROUP and self._dummies.relay(packet, now, effects):
            self._candidates[packet.origin] = now
            self.election.receive(body, now, effects)

    def _may_follow(self, origin: Origin, group: int) -> bool:
        """May this node, a listed founder, begin in the group that a node reports as founded by its list?"""
        election = self.election
        return election.begins(origin, group) and election.ballots.believes(origin.record, origin.by)

    def _meet_older(self, packet: Packet, sender: NodeId, now: Instant, effects: list[Effect]) -> None:
        """Move to an older group if the packet is a checkpoint of it; otherwise request one from the sender.

        The node stays in its group until the checkpoint comes. Outside any group it could enter the group that
        it has left again, and would no longer know its position there.
        """
        if isinstance(packet, CheckpointPacket):
            self._move(packet, now, effects)
        elif now >= self._next_request_at:
            self._next_request_at = now + _KNOCK_EVERY // 4
            effects.append(self._builder.knock(sender))

    def _move(self, checkpoint: CheckpointPacket, now: Instant, effects: list[Effect]) -> None:
        """Leave this group for that of a checkpoint; a restart finishes a move that a crash interrupts.

        Messages that this node has not delivered are discarded, not sent again in the new group: other members
        of the old group may have delivered them.
        """
        state = self._state
        if state.durable:
            effects.append(Persist("next", checkpoint))
        leave_group(state, self._floods, effects)
        self._joining.abandon(effects)
        self._enter(checkpoint, now, effects)
        if state.durable:
            effects.append(Persist("next", None))
        self._joining.apply_if_needed(now, effects)

    # -- checkpoints -------------------------------------------------------------------------------------

    def receive_knock(self, peer: NodeId, now: Instant, effects: list[Effect]) -> None:
        """Set a timer to answer a node that requests a checkpoint, after a short random time."""
        if peer not in self._answering:
            self._answering[peer] = None
            wait = int(self._state.generator.random() * _ANSWER_WITHIN)
            effects.append(SetTimer(("join", "answer", peer), now + wait))

    def _answer(self, peer: NodeId, effects: list[Effect]) -> None:
        """Send a checkpoint to a node that requested one, unless this node is in no group any more."""
        self._answering.pop(peer, None)
        if self._state.group != NO_GROUP:
            effects.append(self.checkpoint(peer))

    def checkpoint(self, peer: NodeId) -> Send:
        """Return the effect that sends this node's position to a node."""
        state = self._state
        ends = state.view.ends
        unfinished = [id for id in state.admitted if id in ends and state.delivered_number(id) < ends[id]]
        sources = tuple(id for id in sorted({*state.seen.columns, *unfinished}) if self._is_past(id))
        return self._builder.checkpoint(sources, self._own_origin(), peer)

    def _is_past(self, id: StreamId) -> bool:
        """Is a stream's admission before this node's position? If so, a checkpoint must name the stream."""
        sponsor, number = self._state.view.sponsors.get(id, ((0, 0), 0))
        return number <= self._state.delivered_number(sponsor)

    def receive_checkpoint(self, checkpoint: CheckpointPacket, now: Instant, effects: list[Effect]) -> None:
        """Enter the group of a checkpoint, if this node is in none and may enter.

        In a group, use the checkpoint only if floods are missing that nobody keeps any more: skip them.
        Afterwards apply to be a source, if this node should be one.
        """
        state, floods = self._state, self._floods
        if state.group == NO_GROUP:
            if not self.election.may_enter(checkpoint, now):
                return
            origin = checkpoint.origin
            begins = origin is not None and self.election.begins(origin, checkpoint.extra.group)
            if self.awaits_state and not (begins and origin is not None and origin.whole):
                self.lacks_state = True
                return
            self._enter(checkpoint, now, effects)
        elif any(
            floods.is_hopeless(floods.stream((source, serial)), now) for source, serial, _ in checkpoint.done
        ):
            if self.awaits_state:
                return  # `DriftNode.lacks_state` sees the gap
            self.skip(checkpoint, now, effects)
        self._joining.take_up_unused(now, effects)
        self._joining.apply_if_needed(now, effects)

    def skip(self, checkpoint: CheckpointPacket, now: Instant, effects: list[Effect]) -> None:
        """Move this node's position in its group to that of a checkpoint."""
        state, floods = self._state, self._floods
        self._views.install(checkpoint.view, now, effects)
        if state.durable:
            new = [id for id in checkpoint.sources if id not in state.admitted]
            effects += [Persist(("admitted", *id), 0) for id in new]
        skip_to(state, floods, checkpoint, effects)
        ends = state.view.ends
        lasting = [
            id
            for id in {**dict.fromkeys(state.seen.columns), **dict.fromkeys(checkpoint.sources)}
            if id not in ends or floods.stream(id).received < ends[id]
        ]
        set_sources(state, floods, lasting, {})

    def timer(self, key: Key, now: Instant, effects: list[Effect]) -> None:
        """Handle the timers KNOCK, APPLY and FOUND, and those of the answers to newcomers."""
        if key == KNOCK:
            if self._state.group == NO_GROUP:
                self._knock(now, effects)
        elif key == APPLY:
            if not self._joining.apply(now, effects):
                self._go_out(now, effects)
        elif key == FOUND:
            self.election.timer(now, effects)
        else:
            assert isinstance(key, tuple)
            self._answer(int(key[2]), effects)


@lru_cache(maxsize=8)
def _first_streams(sources: tuple[NodeId, ...]) -> tuple[StreamId, ...]:
    """Return the first stream of each source. The nodes of a world share it: 1,000 would need 100 MB."""
    return tuple((source, 0) for source in sources)
