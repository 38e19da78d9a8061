"""A station that acts for its hosts (prs1997, section 9, and CK, its descendant).

Every message goes to every station. A station keeps it until the message's initial station says Delete. A host
is sent the next message of each initial station when the ordering rule allows. Its acknowledgement advances
h_RECD, the record of what it has delivered, and goes on to the initial station.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from mypy_extensions import mypyc_attr

from precede.core.effects import RADIO, WIRED, Effect, Effects, Key, Medium, Send
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Instant
from precede.core.messages import Packet
from precede.core.node import Context, Node
from precede.protocols.cells.central_discard import CentralDiscard
from precede.protocols.cells.frames import RoutedPacket, RoutesPacket
from precede.protocols.cells.offers import Offers
from precede.protocols.cells.options import ProxyOptions
from precede.protocols.cells.packets import (
    ProxyAckPacket,
    ProxyAcksPacket,
    ProxyAppPacket,
    ProxyConnectPacket,
    ProxyDeletePacket,
    ProxyGetPacket,
    ProxyGivePacket,
    ProxyOvertakenPacket,
    ProxyStationAckPacket,
    ProxyUpPacket,
    Vector,
)
from precede.protocols.cells.record import ProxyRecord
from precede.protocols.cells.record_moves import RecordMoves
from precede.protocols.cells.routes import Routes
from precede.protocols.cells.rule import ProxyRule

_MOST_AHEAD: Final = 1 << 12


@mypyc_attr(allow_interpreted_subclasses=True)
class ProxyStation(Node):
    """One station that stamps, keeps and forwards messages for its hosts, by an ordering rule."""

    draining: ClassVar[tuple[str, ...]] = ("sbuffer",)

    def __init__(self, context: Context[ProxyOptions], rule: ProxyRule) -> None:
        self.node = context.node
        self.rule = rule
        self.routes = Routes(context.node)
        self.hosts: dict[NodeId, ProxyRecord] = {}
        self.offers = Offers(self.hosts, rule, context.options)
        self.discard = CentralDiscard(
            context.node, self.hosts, rule, self.routes, self.offers.stored, context.options.batch
        )
        self.moves = RecordMoves(context.node, self.hosts, rule, self.routes, self.offers, self.discard)

    # Inputs -------------------------------------------------------------------------------------------------

    def link_up(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        effects: list[Effect] = []
        if over == WIRED:
            self.routes.add_neighbour(peer, effects)
        return effects

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        effects: list[Effect] = []
        if type(packet) is ProxyAckPacket:
            self._on_ack(packet.host, packet.delivered, now, effects)
        elif isinstance(packet, ProxyAppPacket):
            self._disseminate(packet, sender, now, effects)
        elif isinstance(packet, ProxyUpPacket):
            self._on_up(packet, now, effects)
        elif type(packet) is ProxyDeletePacket:
            self.routes.flood(packet, sender, effects)
            self.discard.delete(packet.delete)
        elif type(packet) is ProxyConnectPacket:
            self.moves.on_connect(packet, now, effects)
        elif type(packet) is RoutesPacket:
            self.routes.learn(packet, sender, effects)
        elif isinstance(packet, RoutedPacket):
            if packet.to != self.node:
                self.routes.forward(packet, effects)
            else:
                self._on_routed(packet, now, effects)
        if self.discard.postponed:
            self.discard.delete_postponed()
        return effects

    def _on_routed(self, packet: RoutedPacket, now: Instant, effects: list[Effect]) -> None:
        if type(packet) is ProxyAcksPacket:
            for host, number in packet.acks:
                self.discard.acknowledge(host, number, now, effects)
        elif type(packet) is ProxyGetPacket:
            self.moves.on_get(packet, now, effects)
        elif type(packet) is ProxyOvertakenPacket:
            self.moves.on_overtaken(packet, effects)
        elif isinstance(packet, ProxyGivePacket):
            self.moves.on_give(packet, now, effects)

    def timer(self, key: Key, now: Instant) -> Effects:
        effects: list[Effect] = []
        if key == "batch":
            self.discard.send_batch(effects)
        else:
            self.offers.repeat(now, effects)
        return effects

    def sent(self, key: Key, now: Instant, ok: bool) -> Effects:
        effects: list[Effect] = []
        self.offers.sent(key, now, effects)
        return effects

    def sizes(self) -> Mapping[str, int]:
        return {"sbuffer": len(self.offers.stored), "hosts": len(self.hosts)}

    def acts_for(self) -> Sequence[NodeId]:
        return [host for host, record in self.hosts.items() if record.owner]

    def kept(self) -> Sequence[MessageId]:
        """Return the ids of the messages that are not deleted yet, in the order in which they came."""
        return [app.message.id for app in self.offers.stored.values()]

    # Messages -----------------------------------------------------------------------------------------------

    def _on_up(self, packet: ProxyUpPacket, now: Instant, effects: list[Effect]) -> None:
        """Accept a host's own message if it is the next one, and acknowledge the last accepted one."""
        record = self.hosts.get(packet.host)
        if record is None or not record.owner:
            return
        if packet.message.id.number == record.accepted + 1:
            record.accepted += 1
            app = self.rule.stamp(packet, self.offers.received.get(self.node, 0) + 1, record)
            self._disseminate(app, None, now, effects)
        answer = ProxyStationAckPacket(packet.host, record.accepted)
        effects.append(Send(answer, packet.host, RADIO, ("up", packet.host)))

    def _disseminate(
        self, app: ProxyAppPacket, sender: NodeId | None, now: Instant, effects: list[Effect]
    ) -> None:
        """Flood a message to the other stations, keep it, and offer it to the hosts; drop one too far ahead."""
        if app.number > self.offers.received.get(app.origin, 0) + _MOST_AHEAD:
            return  # wires lose nothing, so no honest station is this far ahead, and `Offers` counts up to it
        self.routes.flood(app, sender, effects)
        self.offers.store(app, now, effects)

    def _on_ack(self, host: NodeId, delivered: Vector, now: Instant, effects: list[Effect]) -> None:
        """Record what a host has delivered, and send it the messages that become deliverable."""
        record = self.hosts.get(host)
        if record is None or not record.owner:
            return
        self.discard.advance(host, record, delivered, now, effects)
        self.offers.offer(host, record, now, effects)
        if record.sent_at:
            self.offers.arm(now, effects)
