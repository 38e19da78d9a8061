"""A WAS station: dissemination over the tree of stations, and the dispatch to its parts (was2021, section 4).

Stations are reliable, and a tree of reliable first-in first-out links connects them. A message that is flooded
on it reaches every station in causal order, so packets carry no order data.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from precede.core.effects import RADIO, WIRED, Effect, Effects, Key, Medium, Send, SetTimer
from precede.core.identity import NEIGHBOURS, MessageId, NodeId
from precede.core.instants import Instant
from precede.core.messages import Message, Packet
from precede.core.node import Context, Node
from precede.protocols.cells.frames import RoutedPacket, RoutesPacket
from precede.protocols.cells.routes import Routes
from precede.protocols.was2021.buffer import StationBuffer
from precede.protocols.was2021.new_station import NewStation
from precede.protocols.was2021.options import WasOptions
from precede.protocols.was2021.packets import (
    AckPacket,
    AppPacket,
    ConnectPacket,
    DeletePacket,
    FirstRequestPacket,
    FirstResponsePacket,
    LeavePacket,
    NoRecordPacket,
    Previous,
    SecondRequestPacket,
    SecondResponsePacket,
    StationAckPacket,
    UpPacket,
)
from precede.protocols.was2021.previous_station import PreviousStation
from precede.protocols.was2021.record import Record
from precede.protocols.was2021.registrations import Registrations
from precede.protocols.was2021.silence import Silence
from precede.protocols.was2021.transmission import Transmission


class WasStation(Node):
    """One station: serves the hosts of its cell, and floods messages along the tree of stations."""

    draining: ClassVar[tuple[str, ...]] = ("sbuffer", "private", "handoffs", "queued_routes")

    def __init__(self, context: Context[WasOptions]) -> None:
        self.node = context.node
        self.options = context.options
        self.records: dict[NodeId, Record] = {}
        self.buffer = StationBuffer(self.options.retransmit)
        self.routes = Routes(context.node)
        self.silence = Silence(self.options.down_after)
        self.transmission = Transmission(self.records, self.buffer, self.options)
        self.registrations = Registrations(
            context.node, self.records, self.routes, self.transmission, self.silence
        )
        self.previous_station = PreviousStation(self.registrations, self.buffer)
        self.new_station = NewStation(self.registrations, self.buffer, self.previous_station)
        self.to_acknowledge: dict[NodeId, None] = {}
        self.declared_down = 0

    # Inputs -------------------------------------------------------------------------------------------------

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        effects: list[Effect] = []
        if type(packet) is AppPacket:
            self._disseminate(packet.message, sender, effects)
        elif type(packet) is AckPacket:
            self._on_ack(packet, now, effects)
        elif type(packet) is UpPacket:
            self._on_up(packet, now, effects)
        elif type(packet) is ConnectPacket:
            if self._can_ask(packet.previous):
                self.new_station.on_connect(packet, now, effects)
        elif type(packet) is LeavePacket:
            if self._can_ask(packet.previous):
                self.new_station.on_leave(packet, effects)
        elif type(packet) is RoutesPacket:
            self.routes.learn(packet, sender, effects)
        elif isinstance(packet, RoutedPacket):
            if packet.to != self.node:
                self.routes.forward(packet, effects)
            else:
                self._on_routed(packet, now, effects)
        return effects

    def _on_routed(self, packet: RoutedPacket, now: Instant, effects: list[Effect]) -> None:
        if type(packet) is FirstRequestPacket:
            self.previous_station.on_first_request(packet, effects)
        elif type(packet) is FirstResponsePacket:
            self.new_station.on_first_response(packet, effects)
        elif type(packet) is SecondRequestPacket:
            self.previous_station.on_second_request(packet, effects)
        elif type(packet) is SecondResponsePacket:
            self.new_station.on_second_response(packet, now, effects)
        elif type(packet) is NoRecordPacket:
            self.new_station.on_no_record(packet, now, effects)
        elif type(packet) is DeletePacket:
            self.registrations.delete(packet.host, packet.ses, effects)

    def _can_ask(self, previous: Previous) -> bool:
        """Can the stations in `previous` be asked now? None means every station: each must have a route."""
        return previous is not None or len(self.routes.by_station) + 1 >= self.options.stations

    def sent(self, key: Key, now: Instant, ok: bool) -> Effects:
        effects: list[Effect] = []
        if type(key) is int:
            self.buffer.sent(key, now, effects)
        elif type(key) is tuple and key[0] == "private":
            self.transmission.private_sent(int(key[1]), int(key[2]), now, effects)
        return effects

    def timer(self, key: Key, now: Instant) -> Effects:
        effects: list[Effect] = []
        if key == "repeat":
            self.transmission.repeat_due(now, effects)
        elif key == "station_ack":
            self._send_station_ack(effects)
        elif key == "private":
            self.transmission.repeat_private(now, effects)
        elif key == "watch":
            self._declare_silent_hosts_down(now, effects)
        elif key == "collisions":
            self._judge_collisions(now, effects)
        return effects

    def link_up(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        effects: list[Effect] = []
        if over == WIRED:
            self.routes.add_neighbour(peer, effects)
        return effects

    def sizes(self) -> Mapping[str, int]:
        return {
            "sbuffer": len(self.buffer.messages),
            "private": sum(len(record.private) for record in self.records.values()),
            "hosts": sum(record.owner for record in self.records.values()),
            "handoffs": sum(not record.owner for record in self.records.values()),
            "queued_routes": self.routes.count_unrouted(),
            "marks": sum(len(record.marks) for record in self.records.values()),
            "hosts_ever": len(self.registrations.newest),
            "declared_down": self.declared_down,
        }

    def acts_for(self) -> Sequence[NodeId]:
        return [host for host, record in self.records.items() if record.owner]

    def kept(self) -> Sequence[MessageId]:
        """Return the ids of the messages in SBuffer, in the order of this station's numbers."""
        return [message.id for message in self.buffer.messages.values()]

    # Messages (section 4.1) ---------------------------------------------------------------------------------

    def _disseminate(self, message: Message, sender: NodeId | None, effects: list[Effect]) -> None:
        """Flood a message on the tree and send it to the cell; `sender` is the neighbour it came from."""
        self.registrations.note_message(message.id)
        self.routes.flood(AppPacket(message), sender, effects)
        self.transmission.send_new(message, effects)

    def _on_up(self, packet: UpPacket, now: Instant, effects: list[Effect]) -> None:
        """Accept a host's messages in the order of their numbers; disseminate and later acknowledge them."""
        record = self.records.get(packet.host)
        if record is None:
            self.registrations.reject(packet.host, packet.ses, effects)
            return
        if not self._accepts_uplink(record, packet.ses):
            return
        self.registrations.hear(packet.host, now, effects)
        number = packet.message.id.number
        if number > record.accepted:
            record.early[number] = packet.message
            while record.accepted + 1 in record.early:
                record.accepted += 1
                self._disseminate(record.early.pop(record.accepted), None, effects)
        if not self.to_acknowledge:
            effects.append(SetTimer("station_ack", now + self.options.station_ack_interval))
        self.to_acknowledge[packet.host] = None

    def _accepts_uplink(self, record: Record, ses: int) -> bool:
        """Does this station own the record, with this connection? A late frame may be of an older one (E10)."""
        return record.owner and ses == record.ses

    def _send_station_ack(self, effects: list[Effect]) -> None:
        """Acknowledge own messages of the hosts whose record this station owns, all in one packet."""
        accepted = [
            (host, self.records[host].accepted)
            for host in self.to_acknowledge
            if host in self.records and self.records[host].owner
        ]
        self.to_acknowledge.clear()
        if accepted:
            effects.append(Send(StationAckPacket(tuple(accepted)), NEIGHBOURS, RADIO))

    def _on_ack(self, packet: AckPacket, now: Instant, effects: list[Effect]) -> None:
        """Handle a host's acknowledgement; it counts only at the owner and in the current connection."""
        record = self.records.get(packet.host)
        if record is None:
            self.registrations.reject(packet.host, packet.ses, effects)
            return
        if not record.owner or packet.ses != record.ses:
            return
        self.registrations.hear(packet.host, now, effects)
        self.transmission.acknowledge(record, packet, now, effects)

    # Failures (section 4.5) ---------------------------------------------------------------------------------

    def _declare_silent_hosts_down(self, now: Instant, effects: list[Effect]) -> None:
        self.silence.timer_at = None
        while (host := self.silence.silent_since(now - self.options.down_after)) is not None:
            self._declare_down(host, effects)
        self.silence.arm(effects)

    def _judge_collisions(self, now: Instant, effects: list[Effect]) -> None:
        """If too many transmissions were repetitions, declare down the host that was silent for longest.

        It must have missed two heartbeats. Then begin to count again.
        """
        if self.transmission.end_judgement():
            host = self.silence.silent_since(now - self.options.down_after // 2 - 1)
            if host is not None:
                self._declare_down(host, effects)
        self.transmission.continue_judgement(now, effects)

    def _declare_down(self, host: NodeId, effects: list[Effect]) -> None:
        """Remove a host's record and count it as down. A handoff under way is given up."""
        record = self.records[host]
        self.declared_down += 1
        if not record.owner:
            self.registrations.given_up[host] = record.ses
        self.registrations.unregister(record, effects)
