"""`flooding`: the dissemination for ad hoc radio networks (drift2006, sections 1 and 4.4), reliable and FIFO.

Every node transmits every message once to all neighbours; with `backbone`, only the nodes of a connected
dominating set relay. Lost messages are requested from neighbours (`reliable_floods`). Any ordering runs on it.
It receives each source's messages in the order of their numbers.

A node keeps the floods of others in memory only. So a message can be lost for good: its source forgot it before
another node had it, or the source is gone when the nodes that had it restart. Such a message is requested until
a neighbour reports that it is gone; later messages of its source wait until then.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Final, TypeAlias

from precede.core.effects import NOTHING, RADIO, Arrive, Effect, Effects, Key, Medium, Persist, Send
from precede.core.identity import Count, MessageId, NodeId
from precede.core.instants import Instant
from precede.core.messages import ControlOnlyPacket, Packet, Written
from precede.core.node import Context, Saved
from precede.protocols.floods.options import FloodOptions, parse_node_ids
from precede.protocols.floods.reliable_floods import MOST_REQUESTED, Floods
from precede.protocols.floods.stream import Have, Serial, Stream, StreamId, Want
from precede.protocols.layered.dissemination import Dissemination
from precede.protocols.layered.envelope import HEADER_BYTES, Envelope, EnvelopePacket
from precede.protocols.layered.ordering import Ordering
from precede.protocols.layered.own_messages import own_key
from precede.protocols.registry import DisseminationEntry

WANT_BYTES: Final = 12
HAVE_BYTES: Final = 8


class FloodPacket(EnvelopePacket, frozen=True, gc=False):
    """One message with its ordering's stamp, relayed by every node."""

    kind: ClassVar[str] = "flood"
    to_all: ClassVar[bool] = True

    def written(self) -> Sequence[Written]:
        return (self.envelope.written(relayed=True),)


class FloodWantPacket(ControlOnlyPacket, frozen=True, gc=False):
    """Requests the messages that the sender lacks: source, incarnation, first and last number."""

    kind: ClassVar[str] = "flood_want"
    to_all: ClassVar[bool] = True
    wants: tuple[Want, ...]

    @property
    def size_bytes(self) -> int:
        return HEADER_BYTES + WANT_BYTES * len(self.wants)

    @property
    def control_entries(self) -> int:
        return len(self.wants)


class FloodDigestPacket(ControlOnlyPacket, frozen=True, gc=False):
    """Tells up to which number the sender has the messages of each source and incarnation."""

    kind: ClassVar[str] = "flood_digest"
    to_all: ClassVar[bool] = True
    haves: tuple[Have, ...]

    @property
    def size_bytes(self) -> int:
        return HEADER_BYTES + HAVE_BYTES * len(self.haves)

    @property
    def control_entries(self) -> int:
        return len(self.haves)


class FloodGonePacket(ControlOnlyPacket, frozen=True, gc=False):
    """Reports that the sender no longer keeps the messages of a stream up to a number."""

    kind: ClassVar[str] = "flood_gone"
    source: NodeId
    incarnation: Serial
    number: Count

    @property
    def size_bytes(self) -> int:
        return HEADER_BYTES + HAVE_BYTES

    @property
    def control_entries(self) -> int:
        return 1


NobodyHas: TypeAlias = Callable[[Stream[Envelope], Instant, list[Effect]], None]
"""A function that handles a stream of which a message has been missing for longer than any node keeps it."""


class _EnvelopePackets:
    """Builds the packets of floods that carry envelopes, and decides what happens to old ones (`FloodUser`).

    `dropped`: effects that remove messages of this node from its store, because they are kept no longer.
    """

    def __init__(self, me: NodeId, durable: bool, nobody_has: NobodyHas) -> None:
        self.dropped: list[Effect] = []
        self._me = me
        self._durable = durable
        self._nobody_has = nobody_has

    def flood_packet(self, flood: Envelope) -> Packet:
        return FloodPacket(flood)

    def want_packet(self, wants: tuple[Want, ...]) -> Packet:
        return FloodWantPacket(wants)

    def digest_packet(self, haves: tuple[Have, ...]) -> Packet:
        return FloodDigestPacket(haves)

    def payload_bytes(self, flood: Envelope) -> int:
        return len(flood.message.payload)

    def can_drop(self, stream: Stream[Envelope], number: int, flood: Envelope) -> bool:
        if self._durable and flood.message.source == self._me:
            self.dropped.append(Persist(own_key(flood.message.id), None))
        return True

    def requested_dropped(self, stream: Stream[Envelope], peer: NodeId, effects: list[Effect]) -> None:
        """Tell the peer up to which number this node has dropped messages. Other neighbours may have them."""
        first = min([number for number in stream.kept if number <= stream.received], default=None)
        gone = stream.received if first is None else first - 1
        effects.append(Send(FloodGonePacket(*stream.id, gone), peer, RADIO))

    def nobody_has(self, stream: Stream[Envelope], now: Instant, effects: list[Effect]) -> None:
        self._nobody_has(stream, now, effects)


class Flooding(Dissemination):
    """Spreads envelopes by flooding. A stream is one incarnation of a source, numbered like its messages."""

    draining: ClassVar[tuple[str, ...]] = ("early", "gaps", "answers", "relays")

    def __init__(self, context: Context[FloodOptions], ordering: Ordering) -> None:
        super().__init__(ordering)
        self._me = context.node
        self._gone: dict[StreamId, int] = {}
        self._skipped: dict[StreamId, int] = {}
        self._packets = _EnvelopePackets(context.node, context.options.durable, self._skip_gone)
        backbone = parse_node_ids(context.options.backbone)
        self._relays = backbone is None or context.node in backbone
        self.floods: Floods[Envelope] = Floods(context.options, context.random, self._packets)

    def start(self, now: Instant, saved: Saved) -> Effects:
        effects: list[Effect] = []
        self.floods.trickle.start(now, effects)
        return effects

    def spread(self, envelope: Envelope, now: Instant, effects: list[Effect]) -> None:
        id = envelope.message.id
        stream = self.floods.stream((id.source, id.incarnation), id.number - 1)
        if id.number > stream.received:
            self.floods.skip_to(stream, id.number - 1)
            self.floods.first_copy(stream, id.number, envelope, now, effects)
            self.floods.relay(stream.id, id.number, envelope, now, effects)
        self._flush(effects)

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        effects: list[Effect] = []
        if type(packet) is FloodPacket:
            self._receive_flood(packet.envelope, now, effects)
        elif type(packet) is FloodWantPacket:
            self.floods.requested(packet.wants, sender, now, effects)
        elif type(packet) is FloodDigestPacket:
            self.floods.compare(packet.haves, sender, now, effects)
            self._skip_known(now, effects)
        elif type(packet) is FloodGonePacket:
            id = (packet.source, packet.incarnation)
            if id in self.floods.gaps:
                self._gone[id] = max(self._gone.get(id, 0), packet.number)
        self._flush(effects)
        return effects or NOTHING

    def _receive_flood(self, envelope: Envelope, now: Instant, effects: list[Effect]) -> None:
        """Relay a first copy, and pass the messages now in order to the ordering; ignore a duplicate."""
        id = envelope.message.id
        stream = self.floods.stream((id.source, id.incarnation))
        self.floods.answers.pop((stream.id, id.number), None)
        if id.number <= stream.received or id.number in stream.early:
            if id.number <= self._skipped.get(stream.id, 0) and id.number not in stream.kept:
                self._receive_skipped(envelope, stream, now, effects)
            return
        if not self.ordering.knows(id) and self._is_for_me(envelope):
            effects.append(Arrive((envelope.message,)))
        ready = self.floods.first_copy(stream, id.number, envelope, now, effects)
        if self._relays and (envelope.deadline is None or envelope.deadline > now):
            self.floods.relay(stream.id, id.number, envelope, now, effects)
        self._hand_up(ready, now, effects)

    def _receive_skipped(
        self, envelope: Envelope, stream: Stream[Envelope], now: Instant, effects: list[Effect]
    ) -> None:
        """Relay and pass on a message that was skipped because a neighbour wrongly reported it as gone."""
        if self._is_for_me(envelope) and not self.ordering.knows(envelope.message.id):
            effects.append(Arrive((envelope.message,)))
            self.floods.relay(stream.id, envelope.message.id.number, envelope, now, effects)
            self._hand_up((envelope,), now, effects)

    def _hand_up(self, ready: Sequence[Envelope], now: Instant, effects: list[Effect]) -> None:
        """Pass to the ordering the messages that have this node as a destination and are new to it."""
        fresh = [
            envelope
            for envelope in ready
            if self._is_for_me(envelope) and not self.ordering.knows(envelope.message.id)
        ]
        if fresh:
            self.ordering.arrive(fresh, now, effects)

    def _is_for_me(self, envelope: Envelope) -> bool:
        return envelope.destinations is None or self._me in envelope.destinations

    def _skip_known(self, now: Instant, effects: list[Effect]) -> None:
        """Skip missing messages that the ordering remembers over a restart, and hand up those behind them."""
        most = MOST_REQUESTED
        for stream in list(self.floods.gaps.values()):
            number = stream.received
            while most and number < stream.exists and self.ordering.knows(MessageId(*stream.id, number + 1)):
                number += 1
                most -= 1
            self._hand_up(self.floods.skip_to(stream, number), now, effects)

    def sent(self, key: Key, now: Instant, ok: bool) -> Effects:
        self.floods.queued.pop(key, None)
        return NOTHING

    def timer(self, key: Key, now: Instant) -> Effects:
        effects: list[Effect] = []
        self.floods.timer(key, now, effects)
        self._flush(effects)
        return effects

    def _flush(self, effects: list[Effect]) -> None:
        if self._packets.dropped:
            effects += self._packets.dropped
            self._packets.dropped = []

    def _skip_gone(self, stream: Stream[Envelope], now: Instant, effects: list[Effect]) -> None:
        """Skip the messages that neighbours report as gone; pass the early ones behind them to the ordering."""
        gone = self._gone.get(stream.id, 0)
        if gone > stream.received:
            self._skipped[stream.id] = gone
            self._hand_up(self.floods.skip_to(stream, gone), now, effects)

    def sizes(self) -> Mapping[str, int]:
        return self.floods.sizes()


DISSEMINATION: Final = DisseminationEntry(
    name="flooding",
    title="every node transmits every message once; lost ones are requested from neighbours",
    worlds=("flood",),
    options=FloodOptions,
    build=Flooding,
    packets=(FloodPacket, FloodWantPacket, FloodDigestPacket, FloodGonePacket),
)
