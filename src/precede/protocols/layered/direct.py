"""`direct`: a dissemination that sends each message to each addressee and retransmits until it is acknowledged.

An acknowledged message is never sent again. A node that lost its saved state therefore lacks it for good, and
an ordering without lifetimes waits for it for ever. Over contacts and floods other nodes still have a copy.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from mypy_extensions import mypyc_attr

from precede.core.effects import NOTHING, Arrive, Effect, Effects, Key, Medium, Persist
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Instant
from precede.core.messages import Packet
from precede.core.node import Context, Saved
from precede.protocols.acknowledgement import AckPacket
from precede.protocols.layered.direct_packet import DirectOptions, DirectPacket
from precede.protocols.layered.dissemination import Dissemination
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.ordering import Ordering
from precede.protocols.layered.own_messages import own_key
from precede.protocols.outbox import Outbox
from precede.protocols.registry import DisseminationEntry


@mypyc_attr(allow_interpreted_subclasses=True)
class Direct(Dissemination):
    """Sends a copy to each destination of a message, or to every other member if it names none."""

    draining: ClassVar[tuple[str, ...]] = ("unacknowledged",)

    def __init__(self, context: Context[DirectOptions], ordering: Ordering) -> None:
        super().__init__(ordering)
        self._me = context.node
        self._others = tuple(member for member in context.members if member != context.node)
        self._durable: bool = context.options.durable
        self._outbox = Outbox(context.options.rto)

    def start(self, now: Instant, saved: Saved) -> Effects:
        return NOTHING

    def spread(self, envelope: Envelope, now: Instant, effects: list[Effect]) -> None:
        id = envelope.message.id
        addressees = envelope.destinations if envelope.destinations is not None else self._others
        peers = [peer for peer in addressees if peer != self._me]
        self._outbox.send(id, dict.fromkeys(peers, DirectPacket(envelope)), now, effects)
        if self._durable and (not peers or not self._outbox.retransmits):
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
        self._outbox.acknowledge(message.id, sender, effects)
        return effects

    def _receive_ack(self, ids: Sequence[MessageId], sender: NodeId) -> Effects:
        effects: list[Effect] = []
        for id in ids:
            if self._outbox.acknowledged(id, sender, effects) and self._durable:
                effects.append(Persist(own_key(id), None))
        return effects

    def link_up(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        effects: list[Effect] = []
        self._outbox.link_up(peer, now, effects)
        return effects

    def timer(self, key: Key, now: Instant) -> Effects:
        return self._outbox.timer(key, now)

    def sizes(self) -> Mapping[str, int]:
        return {"unacknowledged": len(self._outbox)}


DISSEMINATION: Final = DisseminationEntry(
    name="direct",
    title="from the sender to each addressee, with acknowledgements",
    worlds=("point_to_point",),
    options=DirectOptions,
    build=Direct,
    packets=(DirectPacket, AckPacket),
)
