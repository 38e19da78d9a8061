"""`flooding`: the dissemination of ad hoc radio networks (drift2006, sections 1 and 4.4), reliable and FIFO.

Every node transmits every message once to whoever hears it; what was lost on the air is recovered from the
neighbours (`floods`). Any ordering runs on it. Messages are handed up in the order of their source's numbers.

Floods of others are kept in memory only. What nobody has any more (its source lost its memory before another
node had it, or is gone for good when those who had it restart) is asked for until somebody says that it is
gone; what its source sent after it waits as long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from precede.core.effects import NOTHING, RADIO, Arrive, Effect, Effects, Key, Medium, Persist, Send
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Instant
from precede.core.messages import ControlOnlyPacket, Packet, Written
from precede.core.node import Context, Saved
from precede.protocols.floods.options import FloodOptions
from precede.protocols.floods.reliable_floods import (
    Floods,
    Have,
    Stream,
    StreamId,
    Want,
)
from precede.protocols.layered.dissemination import Dissemination
from precede.protocols.layered.envelope import HEADER_BYTES, Envelope, EnvelopePacket
from precede.protocols.layered.ordering import Ordering
from precede.protocols.registry import DisseminationEntry

WANT_BYTES: Final = 12
HAVE_BYTES: Final = 8


class FloodPacket(EnvelopePacket, frozen=True, gc=False):
    """One message with its ordering's stamp, relayed by every node."""

    kind: ClassVar[str] = "flood"

    def written(self) -> Sequence[Written]:
        return (self.envelope.written(relayed=True),)


class FloodWantPacket(ControlOnlyPacket, frozen=True, gc=False):
    """The sender lacks these messages: source, incarnation, first and last number."""

    kind: ClassVar[str] = "flood_want"
    wants: tuple[Want, ...]

    @property
    def size_bytes(self) -> int:
        return HEADER_BYTES + WANT_BYTES * len(self.wants)

    @property
    def control_entries(self) -> int:
        return len(self.wants)


class FloodDigestPacket(ControlOnlyPacket, frozen=True, gc=False):
    """The sender has everything of these sources' lives up to these numbers."""

    kind: ClassVar[str] = "flood_digest"
    haves: tuple[Have, ...]

    @property
    def size_bytes(self) -> int:
        return HEADER_BYTES + HAVE_BYTES * len(self.haves)

    @property
    def control_entries(self) -> int:
        return len(self.haves)


class FloodGonePacket(ControlOnlyPacket, frozen=True, gc=False):
    """The sender had the messages of a stream up to a number and does not keep them any more."""

    kind: ClassVar[str] = "flood_gone"
    source: NodeId
    incarnation: int
    number: int

    @property
    def size_bytes(self) -> int:
        return HEADER_BYTES + HAVE_BYTES

    @property
    def control_entries(self) -> int:
        return 1


class Flooding(Dissemination):
    """Streams are sources' incarnations, numbers those of the messages."""

    draining: ClassVar[tuple[str, ...]] = ("early", "gaps", "answers", "relays")

    def __init__(self, context: Context[FloodOptions], ordering: Ordering) -> None:
        super().__init__(ordering)
        self._me = context.node
        self._durable: bool = context.options.durable
        self._dropped: list[Effect] = []
        self._gone: dict[StreamId, int] = {}
        self.floods: Floods[Envelope] = Floods(context.options, context.random, self)

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
            self.floods.compare(packet.haves, now, effects)
            self._skip_known(now, effects)
        elif type(packet) is FloodGonePacket:
            gone = self._gone.get((packet.source, packet.incarnation), 0)
            self._gone[packet.source, packet.incarnation] = max(gone, packet.number)
        self._flush(effects)
        return effects or NOTHING

    def _receive_flood(self, envelope: Envelope, now: Instant, effects: list[Effect]) -> None:
        id = envelope.message.id
        stream = self.floods.stream((id.source, id.incarnation))
        self.floods.answers.pop((stream.id, id.number), None)
        if id.number <= stream.received or id.number in stream.early:
            return
        if not self.ordering.knows(id) and self._is_for_me(envelope):
            effects.append(Arrive((envelope.message,)))
        ready = self.floods.first_copy(stream, id.number, envelope, now, effects)
        if envelope.deadline is None or envelope.deadline > now:
            self.floods.relay(stream.id, id.number, envelope, now, effects)
        self._hand_up(ready, now, effects)

    def _hand_up(self, ready: Sequence[Envelope], now: Instant, effects: list[Effect]) -> None:
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
        """After a restart the ordering knows more than the floods do: nobody need send that again.

        What came meanwhile may be in order behind it.
        """
        for stream in list(self.floods.gaps.values()):
            number = stream.received
            while number < stream.exists and self.ordering.knows(MessageId(*stream.id, number + 1)):
                number += 1
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
        if self._dropped:
            effects += self._dropped
            self._dropped = []

    # -- what the floods ask (floods.FloodUser) ----------------------------------------------------------------

    def flood_packet(self, flood: Envelope) -> Packet:
        return FloodPacket(flood)

    def want_packet(self, wants: tuple[Want, ...]) -> Packet:
        return FloodWantPacket(wants)

    def digest_packet(self, haves: tuple[Have, ...]) -> Packet:
        return FloodDigestPacket(haves)

    def can_drop(self, stream: Stream[Envelope], number: int, flood: Envelope) -> bool:
        if self._durable and flood.message.source == self._me:
            self._dropped.append(Persist(("own", number), None))
        return True

    def requested_dropped(self, stream: Stream[Envelope], peer: NodeId, effects: list[Effect]) -> None:
        """Say from where on this node can help; perhaps another one still has it."""
        first = min([number for number in stream.kept if number <= stream.received], default=None)
        gone = stream.received if first is None else first - 1
        effects.append(Send(FloodGonePacket(*stream.id, gone), peer, RADIO))

    def nobody_has(self, stream: Stream[Envelope], now: Instant, effects: list[Effect]) -> None:
        """Do without what neighbours say is gone."""
        self._hand_up(self.floods.skip_to(stream, self._gone.get(stream.id, 0)), now, effects)

    def sizes(self) -> Mapping[str, int]:
        return self.floods.sizes()


DISSEMINATION: Final = DisseminationEntry(
    name="flooding",
    title="every node transmits every message once; what is lost is recovered from neighbours",
    worlds=("flood",),
    options=FloodOptions,
    build=Flooding,
    packets=(FloodPacket, FloodWantPacket, FloodDigestPacket, FloodGonePacket),
)
