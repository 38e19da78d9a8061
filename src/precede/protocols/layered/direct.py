"""`direct`: the sender sends its message to each addressee itself, and again until it is acknowledged.

What was acknowledged is not sent again: a node that lost its saved state lacks it for good, and an order
without lifetimes waits for it for ever. Over contacts and floods such a node is brought what others keep.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Final

from precede.core.effects import NOTHING, RADIO, Arrive, Effect, Effects, Key, Medium, Persist, Send
from precede.core.identity import MessageId, NodeId
from precede.core.instants import MILLISECOND, Duration, Instant
from precede.core.messages import Packet, Written
from precede.core.node import Context, Saved
from precede.protocols.layered.dissemination import Dissemination
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.ordering import Ordering
from precede.protocols.options import Durable, duration
from precede.protocols.outbox import AckPacket, Outbox, is_retransmission
from precede.protocols.registry import DisseminationEntry

HEADER_BYTES: Final = 20


class DirectPacket(Packet, frozen=True, gc=False):
    """One message with its ordering's stamp."""

    kind: ClassVar[str] = "direct"
    envelope: Envelope

    def written(self) -> Sequence[Written]:
        return (self.envelope.written(),)

    @property
    def size_bytes(self) -> int:
        return HEADER_BYTES + self.envelope.size_bytes

    @property
    def control_bytes(self) -> int:
        return HEADER_BYTES + self.envelope.control_bytes

    @property
    def control_entries(self) -> int:
        return self.envelope.control_entries

    @property
    def messages(self) -> int:
        return 1


class DirectOptions(Durable, frozen=True, kw_only=True):
    """The options of `direct`."""

    rto: Annotated[
        Duration, duration("retransmit after this time; 0s: links are reliable, no acknowledgements")
    ] = 200 * MILLISECOND


class Direct(Dissemination):
    """Knows the members from the beginning; a message's destinations, or else all of them, get a copy each."""

    draining: ClassVar[tuple[str, ...]] = ("unacknowledged",)

    def __init__(self, context: Context[DirectOptions], ordering: Ordering) -> None:
        super().__init__(ordering)
        self._me = context.node
        self._others = tuple(member for member in context.members if member != context.node)
        self._acknowledge: bool = context.options.rto > 0
        self._durable: bool = context.options.durable
        self._outbox = Outbox(context.options.rto)

    def start(self, now: Instant, saved: Saved) -> Effects:
        return NOTHING

    def spread(self, envelope: Envelope, now: Instant, effects: list[Effect]) -> None:
        id = envelope.message.id
        addressees = envelope.destinations if envelope.destinations is not None else self._others
        peers = [peer for peer in addressees if peer != self._me]
        self._outbox.send_alike(id, DirectPacket(envelope), peers, now, effects)
        if self._durable and (not peers or not self._acknowledge):
            effects.append(Persist(own_key(id), None))

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        if type(packet) is DirectPacket:
            return self._receive_message(packet.envelope, sender, now)
        if type(packet) is AckPacket:
            return self._receive_ack(packet.ids, sender)
        return NOTHING

    def _receive_message(self, envelope: Envelope, sender: NodeId, now: Instant) -> Effects:
        effects: list[Effect] = []
        message = envelope.message
        if not self.ordering.knows(message.id):
            effects.append(Arrive((message,)))
            self.ordering.arrive((envelope,), now, effects)
        if self._acknowledge:
            effects.append(Send(AckPacket((message.id,)), sender, RADIO))
        return effects

    def _receive_ack(self, ids: Sequence[MessageId], sender: NodeId) -> Effects:
        effects: list[Effect] = []
        for id in ids:
            if self._outbox.acknowledged(id, sender, effects) and self._durable:
                effects.append(Persist(own_key(id), None))
        return effects

    def timer(self, key: Key, now: Instant) -> Effects:
        effects: list[Effect] = []
        if is_retransmission(key):
            self._outbox.timer(key, now, effects)
        return effects

    def sizes(self) -> Mapping[str, int]:
        return {"unacknowledged": len(self._outbox)}


def own_key(id: MessageId) -> Key:
    """Where an ordering persists an own message until it is acknowledged by all."""
    return ("own", id.number)


DISSEMINATION: Final = DisseminationEntry(
    name="direct",
    title="the sender to each addressee, with acknowledgements",
    worlds=("point_to_point",),
    options=DirectOptions,
    build=Direct,
    packets=(DirectPacket, AckPacket),
)
