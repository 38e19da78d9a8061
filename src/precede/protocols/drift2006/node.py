"""`drift` and `tof`: total order by flooding, with and without virtual flooding (drift2006, Figure 3).

A source stamps a message with its logical clock and floods it. A message may be delivered when no source can
send an earlier one any more. A node learns the sources' clocks from their messages (TOF, Lamport's rule) and
from entries that all other traffic carries (DRIFT). The node processes its own message at once.
Virtual-flooding data is attached when a packet leaves: a packet that waits at the radio is renewed whenever the
node learns something.

Departures from Figure 3, each with a scenario in the tests:

D1  The paper counts any first copy as received; we count floods in the order of their numbers only.
D2  The paper keeps only entries that were virtually flooded; we keep a message's own timestamp in Seen as well.
D3  The paper calls a copy a duplicate if its number is the last one received; we, also if it is lower.
D4  The paper assumes that floods reach all nodes; we request missing ones from neighbours (`reliable_floods`).
D5  The paper removes crashed sources in the total order; we agree on the sources outside of it (`views`).

A node can be a source, a destination, both (`node`), or only relay floods (`forwarder`, section 2.1). All of
them keep the order, so that any neighbour can give a newcomer its position; only destinations deliver. With
`backbone`, only a connected dominating set relays the messages of others (section 8).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from mypy_extensions import mypyc_attr

from precede.core.effects import NOTHING, Arrive, Effect, Effects, Key, Medium, Persist
from precede.core.errors import NotYet, Refused
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Message, Packet
from precede.core.node import Context, Saved, Waiting
from precede.protocols.drift2006.delivery import Delivery
from precede.protocols.drift2006.dummies import QUIET, Dummies
from precede.protocols.drift2006.fast.prepared import LAST_OPENED, OpenedPacket
from precede.protocols.drift2006.fast.reception import FastReception
from precede.protocols.drift2006.groups import Groups
from precede.protocols.drift2006.join import Joining
from precede.protocols.drift2006.multicast import Multicast
from precede.protocols.drift2006.options import DriftOptions
from precede.protocols.drift2006.packet_builder import PacketBuilder
from precede.protocols.drift2006.packets import (
    Body,
    Carried,
    CheckpointPacket,
    ControlPacket,
    DigestPacket,
    DriftPacket,
    DummyPacket,
    Flood,
    KnockPacket,
    Piggyback,
    ViewPacket,
    ViewRecord,
    WantPacket,
)
from precede.protocols.drift2006.restart import Restart
from precede.protocols.drift2006.state import NO_GROUP, DriftState
from precede.protocols.drift2006.transfer import TransferableNode
from precede.protocols.drift2006.views import TELL, Views
from precede.protocols.drift2006.votes import Votes
from precede.protocols.floods.options import parse_node_ids
from precede.protocols.floods.reliable_floods import Floods
from precede.protocols.floods.stream import Stream, StreamId

_PACKET: Final[Any] = DriftPacket
_NOTHING: Final = NOTHING  # compiled code finds constants of its own module faster
_FEWEST_FOR_A_COPY: Final = 3
"""With so many founders the others are a majority, and can vote the stream of a copied store out."""


@mypyc_attr(allow_interpreted_subclasses=True)
class DriftNode(TransferableNode):
    """One node of DRIFT, or of TOF when `virtual` is false: builds the parts, and passes each input to them."""

    draining: ClassVar[tuple[str, ...]] = (
        "pending",
        "cleared",
        "early",
        "gaps",
        "answers",
        "relays",
        "restamped",
    )

    def __init__(self, role: str, context: Context[DriftOptions], virtual: bool = True) -> None:
        options = context.options
        state = DriftState(role, context, virtual)
        builder = PacketBuilder(state)
        floods: Floods[Carried] = Floods(options, state.generator, builder)
        suspect_after, vote_every = options.suspect_after, options.vote_every
        dummies = Dummies(state, floods, builder, options.quiet, self._control)
        votes = Votes(state, floods, dummies, suspect_after, vote_every, self._install_view)
        multicast = Multicast(state, floods, dummies, votes, self._admitted, self._complete)
        sources = parse_node_ids(options.sources)
        is_member = state.me in context.members
        if len(context.members) >= _FEWEST_FOR_A_COPY and state.view.crash_tolerant:
            self.after_copy = "state"
        should_be_source = role in ("node", "source") and (
            not is_member or sources is None or state.me in sources
        )
        joining = Joining(state, floods, dummies, votes, multicast, should_be_source)
        views = Views(state, floods, builder, votes, joining)
        self.state = state
        self.floods = floods
        self.joining = joining
        members = tuple(context.members)
        listed = members if sources is None else tuple([node for node in members if node in sources])
        self.groups = Groups(state, floods, builder, dummies, joining, views, options, listed)
        self._restart = Restart(state, floods, votes, multicast, joining, views)
        self._delivery = Delivery(state)
        self._builder = builder
        self._dummies = dummies
        self._votes = votes
        self._multicast = multicast
        self._views = views
        self._first_sources: tuple[NodeId, ...] | None = None
        if is_member and context.incarnation == 0 and options.founding == "given":
            self._first_sources = listed
        backbone = parse_node_ids(options.backbone)
        self._relays = backbone is None or state.me in backbone
        waits: Duration = options.relay_wait
        self._fast = FastReception(state, floods, dummies, self._delivery, self._relays, waits > 0)
        # Every reception reads these: direct references are faster.
        self._seen = state.seen
        self._view = state.view
        self._latest: Flood | None = None
        self._queued = floods.queued
        self._answers = floods.answers
        self._streams = floods.streams
        self._gaps = floods.gaps

    # -- inputs ------------------------------------------------------------------------------------------

    def start(self, now: Instant, saved: Saved) -> Effects:
        """Continue in the saved group, begin with the configured members, or look for a group."""
        effects: list[Effect] = []
        self.state.last_heard_at = now
        self._restart.restore_counters(saved)
        if "next" not in saved and "group" in saved:
            self._restart.restore_group(saved, now, effects)
        elif "next" not in saved and self._first_sources is not None:
            self.groups.start_configured(self._first_sources, now, effects)
        else:
            self.groups.start_outside(saved, now, effects)
        if self.state.group != NO_GROUP:
            self.joining.apply_if_needed(now, effects)
        self.floods.trickle.start(now, effects)
        self._progress(now, effects)
        return effects

    def broadcast(
        self,
        payload: bytes,
        now: Instant,
        to: Sequence[NodeId] | None = None,
        lifetime: Duration | None = None,
    ) -> Effects:
        state = self.state
        if to is not None:
            raise Refused("drift delivers to all; for destination sets take a multicast order (prs)")
        if state.own_stream is None:
            raise NotYet(self.groups.election.reason(now))
        state.message_number += 1
        effects: list[Effect] = [Persist("number", state.message_number)] if state.durable else []
        message = Message(MessageId(state.me, state.incarnation, state.message_number), payload)
        self._multicast.send(now, effects, message, accept=True)
        self._progress(now, effects)
        return effects

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        """Process a packet. Most are duplicates of floods, which bring virtual-flooding data only."""
        opened = LAST_OPENED.opened
        if opened is None or opened.packet is not packet:
            if type(packet) is not _PACKET:
                return self._receive_other(packet, sender, now)
            opened = LAST_OPENED.opened = OpenedPacket(packet)
        flood: Flood = opened.flood
        seen = self._seen
        if opened.layout == seen.plain_layout:
            if flood is self._latest:
                self.state.last_heard_at = now
                if not seen.keep(opened.table) and not self._queued and not self._answers:
                    return _NOTHING
                seen.ripe = True
                return self._receive_duplicate(flood, now)
            usual = self._fast.usual_stream(flood.prepared)
            if usual is not None:
                self._latest = flood
                effects = self._fast.receive(flood, flood.prepared, usual, opened.table, now)
                if seen.ahead or self.state.shadow is not None or len(self._queued) > 1:
                    self._progress(now, effects)
                return effects
        return self._receive_flood(packet, sender, now)

    def _receive_flood(self, packet: Any, sender: NodeId, now: Instant) -> Effects:
        """Process a flood without the fast path."""
        flood, extra = packet.flood, packet.extra
        group = self.state.group
        if extra.group != group or extra.group < 0:
            return self._receive_other(packet, sender, now)
        self.state.last_heard_at = now
        stream = self._streams.get((flood.source, flood.serial))
        if stream is not None and flood.number <= stream.received:
            self.state.merge_piggyback(extra)
            return self._receive_duplicate(flood, now, extra.view)
        effects: list[Effect] = []
        self._receive_first(flood, extra, stream, now, effects)
        if extra.view != self._view.number:
            self._views.compare(extra.view, now, effects)
        self._progress(now, effects)
        return effects

    def sent(self, key: Key, now: Instant, ok: bool) -> Effects:
        if not self._queued:
            return NOTHING
        effects: list[Effect] = []
        self.floods.sent(key, effects)
        return effects

    def timer(self, key: Key, now: Instant) -> Effects:
        effects: list[Effect] = []
        if type(key) is tuple and key[0] == "net":
            self.floods.timer(key, now, effects)
        elif key == QUIET:
            self._dummies.timer(now, effects)
        elif key == TELL:
            self._views.timer(effects)
        elif type(key) is tuple and key[0] == "view":
            self._votes.timer(key, now, effects)
        elif type(key) is tuple and key[0] == "join":
            self.groups.timer(key, now, effects)
        self._progress(now, effects)
        return effects

    def leave(self, now: Instant) -> Effects:
        effects: list[Effect] = []
        self.joining.leave(now, effects)
        self._progress(now, effects)
        return effects

    # -- receive -----------------------------------------------------------------------------------------

    def _receive_duplicate(self, flood: Flood, now: Instant, view: int | None = None) -> Effects:
        """Handle a duplicate: drop this node's own planned answer with that flood. Deliver safe floods."""
        effects: list[Effect] = []
        if self._answers:
            self._answers.pop(((flood.source, flood.serial), flood.number), None)
        if view is not None and view != self._view.number:
            self._views.compare(view, now, effects)
        self._progress(now, effects)
        return effects

    def _receive_first(
        self,
        flood: Flood,
        extra: Piggyback,
        stream: Stream[Carried] | None,
        now: Instant,
        effects: list[Effect],
    ) -> None:
        """Process and relay a flood's first copy, then floods that waited for it. Drop an implausible one."""
        state = self.state
        id, number = (flood.source, flood.serial), flood.number
        if self._answers:
            self._answers.pop((id, number), None)
        is_early_copy = stream is not None and number in stream.early
        if self._view.is_cut(id, number) or id == state.own_stream or is_early_copy:
            state.merge_piggyback(extra)
            return
        if not state.is_plausible(flood.timestamp, now):
            return
        if stream is None:
            stream = self.floods.stream(id)
        if flood.message is not None and state.destination and state.is_new(flood.message.id):
            effects.append(Arrive((flood.message,)))
        state.keep(flood, effects)
        self._latest = flood
        for ready in self.floods.first_copy(stream, number, flood, now, effects):
            assert isinstance(ready, Flood)
            self._multicast.process(ready, now, effects)
        state.merge_piggyback(extra)
        if self._relays:
            self.floods.relay(id, number, flood, now, effects)

    def _receive_other(self, packet: Packet, sender: NodeId, now: Instant) -> Effects:
        """Process a packet that is no flood, or comes from another group."""
        effects: list[Effect] = []
        extra: Piggyback | None = getattr(packet, "extra", None)
        if extra is None or not self.groups.is_same_group(packet, extra, sender, now, effects):
            return effects
        match packet:
            case DummyPacket() | ControlPacket():
                self._dummies.receive(packet, now, effects)
            case DigestPacket(haves=haves):
                self.floods.compare(self._builder.without_cut(haves), sender, now, effects)
            case WantPacket(wants=wants):
                self.floods.requested(wants, sender, now, effects)
                self._views.requested(wants, now, effects)
            case ViewPacket(view=view):
                self._views.install(view, now, effects)
            case CheckpointPacket():
                self.groups.receive_checkpoint(packet, now, effects)
            case KnockPacket():
                self.groups.receive_knock(sender, now, effects)
        self.state.merge_piggyback(extra)
        self._views.compare(extra.view, now, effects)
        self._progress(now, effects)
        return effects

    # -- connections between the parts -------------------------------------------------------------------

    def _control(self, body: Body, now: Instant, effects: list[Effect]) -> None:
        if not self._votes.receive(body, now, effects) and not self.groups.election.receive(body, now, effects):
            self.joining.receive(body, now, effects)

    def _install_view(self, record: ViewRecord, now: Instant, effects: list[Effect]) -> None:
        self._views.install(record, now, effects)

    def _admitted(self, newcomer: StreamId, timestamp: int, now: Instant, effects: list[Effect]) -> None:
        self.joining.admitted(newcomer, timestamp, now, effects)

    def _complete(self, id: StreamId, now: Instant, effects: list[Effect]) -> None:
        self._views.complete(id, now, effects)

    def _progress(self, now: Instant, effects: list[Effect]) -> None:
        """Deliver safe floods, detect missing ones, and build the packet that waits at the radio anew."""
        self._delivery.deliver_safe(now, effects)
        if self._seen.ahead:
            for stream, number in self._seen.missing():
                if number > stream.exists and not self._view.is_cut(stream.id, number):
                    self.floods.heard_of(stream, number, now, effects)
                    self._votes.watch(now, effects)
        if self.state.shadow is not None:
            self._delivery.observe_tof(effects)
        if self._queued and self._builder.is_stale:
            self.floods.refresh(effects)
        if self._builder.dropped:
            self._builder.take_dropped(effects)

    # -- inspection --------------------------------------------------------------------------------------

    def waiting(self) -> Sequence[Waiting]:
        return self._delivery.waiting()

    def sizes(self) -> Mapping[str, int]:
        state = self.state
        return {
            "pending": len(state.pending),
            "cleared": len(state.cleared),
            "seen": state.seen.entries(),
            "sources": len(state.seen.columns),
            "dummies": self._dummies.flooded,
            "view": state.view.number,
            "restamped": len(self.joining.resend),
            "shadow": 0 if state.shadow is None else len(state.shadow),
            **self.groups.election.sizes(),
            **self.floods.sizes(),
        }
