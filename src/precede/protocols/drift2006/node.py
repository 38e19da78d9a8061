"""`drift` and `tof`: total order by flooding, with and without virtual flooding (drift2006, Figure 3).

A source stamps a message with its logical clock and floods it. A message may be delivered when no source can
send an earlier one any more; sources' clocks are learned from their messages (TOF, Lamport's rule) and from
entries that travel on all other traffic (DRIFT). Departures from Figure 3, each with its scenario in the tests:
messages count as received only in the order of their numbers (D1); a message's own timestamp is an entry of
Seen (D2); a copy is a duplicate when its number is not above the last one received, not only when equal (D3);
gaps are noticed and filled from neighbours (D4, `floods`); crashed sources are removed by agreement (D5,
`drift_views`). A message of one's own is processed at once. Virtual-flooding data is attached when a packet
leaves: a packet that still waits at the radio is renewed whenever this node learns something.

A node can be a source, a destination, both (`node`), or a mere forwarder (section 2.1). All of them keep the
order, so that any neighbour can tell a newcomer where to begin; only destinations deliver.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from heapq import heappush
from typing import Any, ClassVar

from mypy_extensions import mypyc_attr

from precede.core.effects import (
    NOTHING,
    Accept,
    Arrive,
    Deliver,
    Effect,
    Effects,
    Key,
    Medium,
    Observe,
    Persist,
)
from precede.core.errors import NotYet, Refused
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Message, Packet
from precede.core.node import Context, Node, Saved, Waiting
from precede.protocols.drift2006.dummies import QUIET, Dummies
from precede.protocols.drift2006.join import Entrance, named
from precede.protocols.drift2006.options import DriftOptions
from precede.protocols.drift2006.order import Pending, Placed, Shadow
from precede.protocols.drift2006.packets import (
    Body,
    CheckpointPacket,
    ControlPacket,
    DigestPacket,
    DriftPacket,
    DummyPacket,
    Flood,
    KnockPacket,
    Piggyback,
    ViewPacket,
    WantPacket,
)
from precede.protocols.drift2006.seen import Seen
from precede.protocols.drift2006.views import Views
from precede.protocols.drift2006.voice import Carried, DriftVoice
from precede.protocols.floods.reliable_floods import RELAY, Floods, Stream, StreamId


@mypyc_attr(allow_interpreted_subclasses=True)
class DriftNode(Node):
    """One node. `virtual` false makes it TOF."""

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
        self.me = context.node
        self.incarnation = context.incarnation
        self.random = context.random
        self.options = options
        self.virtual = virtual
        self.durable: bool = options.durable
        listed = named(options.destinations)
        self.destination = role in ("node", "destination") and (listed is None or self.me in listed)
        self.seen = Seen(context.random, options.limit, options.policy, options.two_entries)
        self.voice = DriftVoice(self)
        self.floods: Floods[Carried] = Floods(options, context.random, self.voice)
        self.pending = Pending(self.seen)
        self.cleared: deque[Placed] = deque()
        self.shadow = Shadow() if options.shadow else None
        self.done: dict[StreamId, tuple[int, int]] = {}
        self.admitted: dict[StreamId, int] = {}
        self.strangers: dict[StreamId, list[Flood]] = {}
        self.position = 0
        self.mine: StreamId | None = None
        self.own: StreamId | None = None
        self.clock = 0
        self.promised_clock = 0
        self.sent_floods = 0
        self.number = 0
        self.views = Views(self, options.suspect_after, options.vote_every)
        self.entrance = Entrance(self, role, context)
        self.dummies = Dummies(self, options.quiet)
        self.heard_at: Instant = 0
        self._column = -1
        self._latest: Flood | None = None
        self._queued = self.floods.queued
        self._answers = self.floods.answers
        self._streams = self.floods.streams
        self._gaps = self.floods.gaps
        self._relay_wait: Duration = options.relay_wait
        self.seen.plain = virtual and options.limit is None and not self.views.active

    # -- inputs ------------------------------------------------------------------------------------------

    def start(self, now: Instant, saved: Saved) -> Effects:
        effects: list[Effect] = []
        self.heard_at = now
        self.entrance.start(now, saved, effects)
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
        if to is not None:
            raise Refused("drift delivers to all; for destination sets take a multicast order (prs)")
        if self.mine is None:
            raise NotYet("not a source (yet): only sources broadcast")
        self.number += 1
        effects: list[Effect] = [Persist("number", self.number)] if self.durable else []
        message = Message(MessageId(self.me, self.incarnation, self.number), payload)
        self.multicast(now, effects, message=message, accept=True)
        self._progress(now, effects)
        return effects

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        """Most packets are further copies: of those only the virtual-flooding part is of use."""
        if type(packet) is not DriftPacket:
            return self._receive_other(packet, sender, now)
        flood, extra, seen = packet.flood, packet.extra, self.seen
        if extra.layout == seen.plain_layout:
            if flood is self._latest:
                self.heard_at = now
                table: Any = extra.table
                seen.heard.append(table)
                if table[seen.place] < seen.need and not self._queued and not self._answers:
                    return NOTHING
                seen.ripe = True
                return self._another_copy(flood, now)
            if self._is_usual(flood):
                return self._usual_copy(flood, extra.table, now)
        if extra.group != self.entrance.group or extra.group < 0:
            return self._receive_other(packet, sender, now)
        self.heard_at = now
        stream = self.floods.streams.get((flood.source, flood.life))
        if stream is not None and flood.number <= stream.received:
            self._merge(extra)
            return self._another_copy(flood, now, extra.view)
        effects: list[Effect] = []
        self._first_copy(flood, extra, stream, now, effects)
        if extra.view != self.views.number:
            self.views.compare(extra.view, now, effects)
        self._progress(now, effects)
        return effects

    def _is_usual(self, flood: Flood) -> bool:
        """A message, the next one of its source, while nothing is missing, has ended or must be persisted."""
        stream = self._streams.get((flood.source, flood.life))
        return (
            stream is not None
            and flood.number == stream.received + 1
            and flood.message is not None
            and flood.admits is None
            and not flood.closes
            and flood.source != self.me
            and not self.durable
            and not self._gaps
            and not self._answers
            and not self.seen.ahead
            and not self.views.ends
            and stream.id in self.seen.index
        )

    def _usual_copy(self, flood: Flood, table: bytes, now: Instant) -> Effects:
        """What `_first_copy`, `process` and `_progress` come to then (most of the time of a large run)."""
        self.heard_at = now
        self._latest = flood
        message, timestamp = flood.message, flood.timestamp
        assert message is not None
        effects: list[Effect] = [Arrive((message,))] if self.destination else []
        stream = self._streams[flood.source, flood.life]
        self.floods.first_copy(stream, flood.number, flood, now, effects)
        seen, column = self.seen, self.seen.index[stream.id]
        self.clock = clock = (self.clock if self.clock > timestamp else timestamp) + 1
        if self.mine is None:
            seen.advance(column, flood.number, timestamp)
        else:
            seen.advance_two(column, flood.number, timestamp, self._column, self.sent_floods, clock)
        heappush(self.pending.heap, (timestamp, flood.source, flood.life, flood.number, flood, now))
        if self.shadow is not None:
            self.shadow.push(flood)
            if self.mine is not None:
                self.shadow.clock(self.mine, clock)
        if not self.dummies.waiting:
            self.dummies.watch(now, effects)
        seen.heard.append(table)
        if self._relay_wait:
            self.floods.relay(stream.id, flood.number, flood, now, effects)
        else:
            self.floods.transmit(("net", RELAY, *stream.id, flood.number), flood, effects)
        self._deliver_safe(now, effects)
        if seen.ahead or self.shadow is not None or len(self._queued) > 1:
            self._progress(now, effects)
        return effects

    def _another_copy(self, flood: Flood, now: Instant, view: int | None = None) -> Effects:
        effects: list[Effect] = []
        if self.floods.answers:
            self.floods.answers.pop(((flood.source, flood.life), flood.number), None)
        if view is not None and view != self.views.number:
            self.views.compare(view, now, effects)
        self._progress(now, effects)
        return effects

    def sent(self, key: Key, now: Instant, ok: bool) -> Effects:
        if not self.floods.queued:
            return NOTHING
        effects: list[Effect] = []
        self.floods.sent(key, effects)
        return effects

    def timer(self, key: Key, now: Instant) -> Effects:
        effects: list[Effect] = []
        if type(key) is tuple and key[0] == "net":
            self.floods.timer(key, now, effects)
        elif key == QUIET:
            self.dummies.timer(now, effects)
        elif type(key) is tuple and key[0] == "view":
            self.views.timer(key, now, effects)
        elif type(key) is tuple and key[0] == "join":
            self.entrance.timer(key, now, effects)
        self._progress(now, effects)
        return effects

    def leave(self, now: Instant) -> Effects:
        effects: list[Effect] = []
        self.entrance.leave(now, effects)
        self._progress(now, effects)
        return effects

    # -- sending -----------------------------------------------------------------------------------------

    def multicast(
        self,
        now: Instant,
        effects: list[Effect],
        message: Message | None = None,
        admits: StreamId | None = None,
        closes: bool = False,
        accept: bool = False,
    ) -> None:
        """TO-multicast of Figure 3: stamp, remember, flood."""
        assert self.mine is not None
        self.clock += 1
        self.promise_clock(effects)
        self.sent_floods += 1
        flood = Flood(*self.mine, self.sent_floods, self.clock, message, admits, closes)
        self.flood_own(flood, now, effects, accept)

    def flood_own(self, flood: Flood, now: Instant, effects: list[Effect], accept: bool = False) -> None:
        """Keep, accept, process and transmit a flood of one's own."""
        id = (flood.source, flood.life)
        self.keep(flood, effects)
        if accept and flood.message is not None:
            effects.append(Accept(flood.message))
        self.floods.first_copy(self.floods.stream(id), flood.number, flood, now, effects)
        self.process(flood, now, effects)
        self.floods.relay(id, flood.number, flood, now, effects)

    def keep(self, flood: Flood, effects: list[Effect]) -> None:
        """A flood in hand survives a crash."""
        if self.durable:
            effects.append(Persist(("held", flood.source, flood.life, flood.number), flood))

    def forget(self, flood: Flood, effects: list[Effect]) -> None:
        """A flood need not survive any more."""
        if self.durable:
            effects.append(Persist(("held", flood.source, flood.life, flood.number), None))

    def promise_clock(self, effects: list[Effect]) -> None:
        """Never show a clock that a restart would forget: persist it some way ahead."""
        if self.durable and self.clock >= self.promised_clock:
            self.promised_clock = self.clock + 256
            effects.append(Persist("clock", self.promised_clock))

    # -- receiving ---------------------------------------------------------------------------------------

    def _receive_other(self, packet: Packet, sender: NodeId, now: Instant) -> Effects:
        effects: list[Effect] = []
        extra: Piggyback | None = getattr(packet, "extra", None)
        if extra is None or not self.entrance.same_group(packet, extra, sender, now, effects):
            return effects
        match packet:
            case DummyPacket() | ControlPacket():
                self.dummies.receive(packet, now, effects)
            case DigestPacket(haves=haves):
                self.floods.compare(self.voice.without_cut(haves), now, effects)
            case WantPacket(wants=wants):
                self.floods.asked(wants, sender, now, effects)
                self.views.asked(wants, now, effects)
            case ViewPacket(view=view):
                self.views.install(view, now, effects)
            case CheckpointPacket():
                self.entrance.checkpoint(packet, now, effects)
            case KnockPacket():
                self.entrance.knocked(sender, now, effects)
        self._merge(extra)
        self.views.compare(extra.view, now, effects)
        self._progress(now, effects)
        return effects

    def _first_copy(
        self,
        flood: Flood,
        extra: Piggyback,
        stream: Stream[Carried] | None,
        now: Instant,
        effects: list[Effect],
    ) -> None:
        id, number = (flood.source, flood.life), flood.number
        if self._answers:
            self._answers.pop((id, number), None)
        if self.views.is_cut(id, number) or id == self.mine or (stream is not None and number in stream.early):
            self._merge(extra)
            return
        if stream is None:
            stream = self.floods.stream(id)
        if flood.message is not None and self.destination:
            effects.append(Arrive((flood.message,)))
        if self.durable:
            self.keep(flood, effects)
        self._latest = flood
        for ready in self.floods.first_copy(stream, number, flood, now, effects):
            assert isinstance(ready, Flood)
            self.process(ready, now, effects)
        self._merge(extra)
        self.floods.relay(id, number, flood, now, effects)

    def process(self, flood: Flood, now: Instant, effects: list[Effect]) -> None:
        """Receipt processing of Figure 3, once all earlier floods of the source are in hand."""
        id = (flood.source, flood.life)
        column = self.seen.index.get(id)
        if column is None:
            self.strangers.setdefault(id, []).append(flood)
            return
        timestamp = flood.timestamp
        self.seen.advance(column, flood.number, timestamp)
        if id != self.mine:
            self.clock = (self.clock if self.clock > timestamp else timestamp) + 1
            if self.mine is not None:
                if self.durable:
                    self.promise_clock(effects)
                self.seen.advance(self._column, self.sent_floods, self.clock)
        self.pending.push(flood, now)
        if self.shadow is not None:
            self.shadow.push(flood)
            if self.mine is not None:
                self.shadow.clock(self.mine, self.clock)
        if flood.admits is not None:
            self._admit(flood.admits, flood, now, effects)
        if flood.closes or self.views.ends.get(id) == flood.number:
            self.views.completed(id, now, effects)
        if not self.dummies.waiting:
            self.dummies.watch(now, effects)
        if self.views.active:
            self.views.watch(now, effects)

    def _admit(self, newcomer: StreamId, flood: Flood, now: Instant, effects: list[Effect]) -> None:
        """A source joins: from the timestamp of its admission on, its clock counts.

        Not once more when a restart reads the admission again: it may have closed since.
        """
        sponsor = (flood.source, flood.life)
        if not self.views.may_join(newcomer, sponsor, flood.number) or newcomer in self.admitted:
            return
        if self.durable:
            effects.append(Persist(("admitted", *newcomer), flood.timestamp))
        self.admitted[newcomer] = flood.timestamp
        self.set_sources([*self.seen.columns, newcomer], {newcomer: flood.timestamp})
        self.entrance.admitted(newcomer, flood.timestamp, now, effects)
        for early in self.strangers.pop(newcomer, ()):
            self.process(early, now, effects)

    def set_sources(self, sources: Sequence[StreamId], clocks: Mapping[StreamId, int]) -> None:
        """Whose clocks count from now on, and where those of the new ones begin."""
        ordered = tuple(sorted(sources))
        if ordered == self.seen.columns:
            return
        streams = [self.floods.stream(id) for id in ordered]
        self.seen.set_columns(streams, [(stream.received, clocks.get(stream.id, 0)) for stream in streams])
        self._column = -1 if self.mine is None else self.seen.index.get(self.mine, -1)
        if self.shadow is not None:
            self.shadow.set_sources(ordered, lambda id: self.seen.clock_of(id)[1])
        for id in ordered:
            self.admitted.setdefault(id, 0)
        self.voice.changed()

    def become_source(self, id: StreamId, sent: int, effects: list[Effect]) -> None:
        """This node's stream is among the sources now."""
        self.mine = self.own = id
        if self.durable:
            effects.append(Persist("own", id))
        self.sent_floods = sent
        self._column = self.seen.index[id]
        self.promise_clock(effects)
        self.seen.advance(self._column, sent, self.clock)
        self.voice.changed()

    def control(self, body: Body, now: Instant, effects: list[Effect]) -> None:
        """Something about membership has been flooded."""
        if not self.views.votes.receive(body, now, effects):
            self.entrance.receive(body, now, effects)

    def _merge(self, extra: Piggyback) -> None:
        """The vf update of Figure 3."""
        if not self.virtual:
            return
        news = False
        if extra.table:
            news = self.seen.hear(extra.table, extra.layout)
        if extra.chosen:
            news = self.seen.merge_chosen(extra.chosen) or news
        if extra.floors and extra.view == self.views.number:
            news = self.views.merge_floors(extra.floors) or news
        if news:
            self.voice.changed()

    # -- delivery ----------------------------------------------------------------------------------------

    def _progress(self, now: Instant, effects: list[Effect]) -> None:
        """Deliver what is safe, notice what is missing, renew what waits at the radio."""
        self._deliver_safe(now, effects)
        if self.seen.ahead:
            for stream, number in self.seen.rumours():
                if number > stream.exists and not self.views.is_cut(stream.id, number):
                    self.floods.heard_of(stream, number, now, effects)
                    self.views.watch(now, effects)
        if self.shadow is not None:
            while (flood := self.shadow.pop_safe()) is not None:
                if flood.message is not None and self.destination:
                    effects.append(Observe("tof", flood.message))
        if self.floods.queued and self.voice.is_stale:
            self.floods.refresh(effects)
        if self.voice.dropped:
            self.voice.forget_dropped(effects)

    def _deliver_safe(self, now: Instant, effects: list[Effect]) -> None:
        views = self.views
        while (placed := self.pending.pop_safe()) is not None:
            if views.active or self.cleared:
                self.cleared.append(placed)
                views.clear(placed[0])
            else:
                self._deliver(placed[4], now, effects)
        while self.cleared and views.holds(self.cleared[0][0]):
            self._deliver(self.cleared.popleft()[4], now, effects)

    def _deliver(self, flood: Flood, now: Instant, effects: list[Effect]) -> None:
        id = (flood.source, flood.life)
        self.done[id] = (flood.number, flood.timestamp)
        self.position = flood.timestamp
        self.views.progressed(now)
        if self.durable:
            effects.append(Persist(("done", *id), self.done[id]))
        if flood.message is not None and self.destination:
            effects.append(Deliver(flood.message))

    def undelivered(self) -> bool:
        return bool(self.pending.heap or self.cleared)

    # -- reading -----------------------------------------------------------------------------------------

    def waiting(self) -> Sequence[Waiting]:
        """Each waits for the one before it; the first for a sign of the clocks it lacks (number 0 of them)."""
        placed = sorted(self.pending.heap)
        lacking = self.seen.all_lacking(placed[0][0]) if placed and not self.cleared else []
        before = tuple(MessageId(source, 0, 0) for source, _ in lacking)
        found = []
        for _, _, _, _, flood, since in [*self.cleared, *placed]:
            if flood.message is not None:
                found.append(Waiting(flood.message.id, before, since))
                before = (flood.message.id,)
        return found

    def sizes(self) -> Mapping[str, int]:
        return {
            "pending": len(self.pending),
            "cleared": len(self.cleared),
            "seen": self.seen.entries(),
            "sources": len(self.seen.columns),
            "dummies": self.dummies.flooded,
            "view": self.views.number,
            "restamped": len(self.entrance.restamp),
            "shadow": 0 if self.shadow is None else len(self.shadow),
            **self.floods.sizes(),
        }
