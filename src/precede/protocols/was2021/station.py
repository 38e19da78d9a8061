"""A WAS station (Wilhelm, Arantes, Sens 2021): dissemination, acknowledgement, retransmission, local discard.

Sections 4.1 and 4.5; the handoff is in `handoff.py`. Stations are reliable and stand on a tree of reliable,
first-in first-out links: messages flooded on it are received in causal order everywhere, so no order data
travels along.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from precede.core.effects import (
    RADIO,
    WIRED,
    CancelSend,
    CancelTimer,
    Effect,
    Effects,
    Key,
    Medium,
    Send,
    SetTimer,
)
from precede.core.identity import NEIGHBOURS, MessageId, NodeId
from precede.core.instants import Instant
from precede.core.messages import Message, Packet
from precede.core.node import Context
from precede.protocols.cells.frames import RoutedPacket, RoutesPacket
from precede.protocols.cells.routes import Routes
from precede.protocols.was2021.handoff import Handoff
from precede.protocols.was2021.packets import (
    AckPacket,
    AppPacket,
    ConnectPacket,
    DeletePacket,
    FirstRequestPacket,
    FirstResponsePacket,
    LeavePacket,
    NoRecordPacket,
    NotRegisteredPacket,
    PrivatePacket,
    SecondRequestPacket,
    SecondResponsePacket,
    StationAckPacket,
    UpPacket,
)
from precede.protocols.was2021.record import Record, StationBuffer
from precede.protocols.was2021.settings import WasOptions


class WasStation(Handoff):
    """One support station."""

    draining: ClassVar[tuple[str, ...]] = ("sbuffer", "private", "handoffs", "queued_routes")

    def __init__(self, context: Context[WasOptions]) -> None:
        self.node = context.node
        self.random = context.random
        self.settings = context.options
        self.buffer = StationBuffer(self.settings.retransmit)
        self.routes = Routes(context.node)
        self.records: dict[NodeId, Record] = {}
        self.newest: dict[NodeId, int] = {}
        self.numbers: dict[NodeId, MessageId] = {}
        self.given_up: dict[NodeId, int] = {}
        self.admitted: dict[NodeId, Instant] = {}
        self.heard: dict[NodeId, Instant] = {}
        self.watch: Instant | None = None
        self.to_acknowledge: dict[NodeId, None] = {}
        self.private_timer = False
        self.first_transmissions = 0
        self.repetitions = 0
        self.judged_at: Instant | None = None
        self.declared_down = 0

    # Inputs -------------------------------------------------------------------------------------------------

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        effects: list[Effect] = []
        if type(packet) is AppPacket:
            self._accept(packet.message, sender, effects)
        elif type(packet) is AckPacket:
            self._on_ack(packet, now, effects)
        elif type(packet) is UpPacket:
            self._on_up(packet, now, effects)
        elif type(packet) is ConnectPacket:
            if self._knows(packet.previous):
                self._on_connect(packet, now, effects)
        elif type(packet) is LeavePacket:
            if self._knows(packet.previous):
                self._on_leave(packet, effects)
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
            self._on_first_request(packet, now, effects)
        elif type(packet) is FirstResponsePacket:
            self._on_first_response(packet, effects)
        elif type(packet) is SecondRequestPacket:
            self._on_second_request(packet, effects)
        elif type(packet) is SecondResponsePacket:
            self._on_second_response(packet, now, effects)
        elif type(packet) is NoRecordPacket:
            self._on_no_record(packet, now, effects)
        elif type(packet) is DeletePacket:
            self._on_delete(packet.host, packet.ses, effects)

    def sent(self, key: Key, now: Instant, ok: bool) -> Effects:
        effects: list[Effect] = []
        if type(key) is int:
            self.buffer.sent(key, now, effects)
        elif type(key) is tuple and key[0] == "private":
            record = self.records.get(int(key[1]))
            if record is not None and key[2] in record.private_at:
                record.private_at[int(key[2])] = now
                self._arm_private(now, effects)
        return effects

    def timer(self, key: Key, now: Instant) -> Effects:
        effects: list[Effect] = []
        if key == "repeat":
            self._repeat(now, effects)
        elif key == "station_ack":
            self._station_ack(effects)
        elif key == "private":
            self.private_timer = False
            for record in list(self.records.values()):
                self._send_private(record, now, effects)
        elif key == "watch":
            self._watch(now, effects)
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
            "hosts_ever": len(self.newest),
            "declared_down": self.declared_down,
        }

    def acts_for(self) -> Sequence[NodeId]:
        """The hosts whose record is here."""
        return [host for host, record in self.records.items() if record.owner]

    def kept(self) -> Sequence[MessageId]:
        """SBuffer, in the order of this station's numbers."""
        return [message.id for message in self.buffer.messages.values()]

    # Dissemination (section 4.1) ----------------------------------------------------------------------------

    def _accept(self, message: Message, sender: NodeId | None, effects: list[Effect]) -> None:
        """A message new to this station: flood it on the tree, number it, send it to the cell."""
        last = self.numbers.get(message.id.source)
        if last is None or message.id > last:
            self.numbers[message.id.source] = message.id
        for peer in self.routes.neighbours:
            if peer != sender:
                effects.append(Send(AppPacket(message), peer, WIRED))
        if not self.records:
            self.buffer.pass_by()
            return
        number = self.buffer.add(message)
        self.first_transmissions += 1
        self.buffer.send(number, (), effects)

    def _on_up(self, packet: UpPacket, now: Instant, effects: list[Effect]) -> None:
        """A host's own message: taken in the order of its numbers, and only in the connection known here."""
        record = self.records.get(packet.host)
        if record is None:
            self._unknown(packet.host, packet.ses, effects)
            return
        if not self._takes_uplink(record, packet.ses):
            return
        self._hear(packet.host, now, effects)
        number = packet.message.id.number
        if number > record.accepted:
            record.early[number] = packet.message
            while record.accepted + 1 in record.early:
                record.accepted += 1
                self._accept(record.early.pop(record.accepted), None, effects)
        if not self.to_acknowledge:
            effects.append(SetTimer("station_ack", now + self.settings.station_ack_interval))
        self.to_acknowledge[packet.host] = None

    def _takes_uplink(self, record: Record, ses: int) -> bool:
        """A frame of an older connection may still be in the air when another station has taken over (E10)."""
        return record.owner and ses == record.ses

    def _unknown(self, host: NodeId, ses: int, effects: list[Effect]) -> None:
        """A host that was declared down does not know it (E16); nor does one whose handoff was given up."""
        self._to_host(NotRegisteredPacket(host, ses), host, effects)

    def _station_ack(self, effects: list[Effect]) -> None:
        accepted = [
            (host, self.records[host].accepted)
            for host in self.to_acknowledge
            if host in self.records and self.records[host].owner
        ]
        self.to_acknowledge.clear()
        if accepted:
            effects.append(Send(StationAckPacket(tuple(accepted)), NEIGHBOURS, RADIO))

    # Acknowledgement, retransmission, discard (section 4.1) --------------------------------------------------

    def _on_ack(self, packet: AckPacket, now: Instant, effects: list[Effect]) -> None:
        record = self.records.get(packet.host)
        if record is None:
            self._unknown(packet.host, packet.ses, effects)
            return
        if not record.owner or packet.ses != record.ses:
            return
        self._hear(packet.host, now, effects)
        record.acknowledge(packet.next)
        for first, last in packet.ranges:
            record.held.update(range(max(first, record.next), last + 1))
        self._collect(effects)
        if packet.ranges:
            self._fill_holes(record, packet.ranges[-1][1], now, effects)
        if record.private:
            self._send_private(record, now, effects)

    def _fill_holes(self, record: Record, top: int, now: Instant, effects: list[Effect]) -> None:
        """The ranges show what is missing: repeat it at once, unless it has just been."""
        for number in range(record.need(), top):
            if number in record.held or number not in self.buffer.sent_at:
                continue
            if now - self.buffer.sent_at[number] > self.settings.guard:
                self._send_again(number, now, effects)

    def _repeat(self, now: Instant, effects: list[Effect]) -> None:
        """Repeat what some host neither acknowledged nor has in hand, a while after its last transmission."""
        self.buffer.armed = None
        for number in self.buffer.due(now):
            if any(record.needs(number) for record in self.records.values()):
                self._send_again(number, now, effects)
        self.buffer.arm(effects)

    def _send_again(self, number: int, now: Instant, effects: list[Effect]) -> None:
        self.repetitions += 1
        self._arm_judgement(now, effects)
        self.buffer.send(number, self._marks(number), effects)

    def _marks(self, number: int) -> tuple[NodeId, ...]:
        """The paper's piggyback; hosts have been told in connectACK instead (E9)."""
        return ()

    def _collect(self, effects: list[Effect]) -> None:
        """Discard below what every host here has delivered: a prefix, never a hole (E7)."""
        low = self.buffer.last + 1
        for record in self.records.values():
            need = record.need()
            low = min(low, need)
        self.buffer.discard_below(low, effects)

    def _send_private(self, record: Record, now: Instant, effects: list[Effect]) -> None:
        if not record.owner or not record.private:
            return
        for place, (number, message) in enumerate(record.private.items()):
            if place >= self.settings.private_window:
                break
            if number in record.held:
                continue
            if number in record.private_at:
                at = record.private_at[number]
                if at is None or now - at <= self.settings.guard:
                    continue
            record.private_at[number] = None
            key = ("private", record.host, number)
            packet = PrivatePacket(record.host, record.ses, number, message)
            effects.append(Send(packet, record.host, RADIO, key))
        self._arm_private(now, effects)

    def _arm_private(self, now: Instant, effects: list[Effect]) -> None:
        if not self.private_timer:
            self.private_timer = True
            effects.append(SetTimer("private", now + self.settings.retransmit))

    # Failures (section 4.5) -----------------------------------------------------------------------------------

    def _hear(self, host: NodeId, now: Instant, effects: list[Effect]) -> None:
        if host not in self.records:
            return
        self.heard.pop(host, None)
        self.heard[host] = now
        self._arm_watch(effects)

    def _arm_watch(self, effects: list[Effect]) -> None:
        """`heard` is in the order of hearing: one timer for the host silent longest."""
        if self.watch is None and self.heard:
            self.watch = next(iter(self.heard.values())) + self.settings.down_after
            effects.append(SetTimer("watch", self.watch))

    def _watch(self, now: Instant, effects: list[Effect]) -> None:
        self.watch = None
        while self.heard:
            host, at = next(iter(self.heard.items()))
            if at + self.settings.down_after > now:
                break
            self._declare_down(host, effects)
        self._arm_watch(effects)

    def _arm_judgement(self, now: Instant, effects: list[Effect]) -> None:
        if self.judged_at is None and self.settings.collision_limit < 1:
            self.judged_at = now
            self.first_transmissions = self.repetitions = 0
            effects.append(SetTimer("collisions", now + self.settings.down_after // 4))

    def _judge_collisions(self, now: Instant, effects: list[Effect]) -> None:
        """Too many repetitions: give up the host that was silent longest, if it was silent for long.

        The paper speaks of the collision rate, which a station cannot see; what it sees of it is the share of
        repetitions among its transmissions. A host that misses two heartbeats is silent for long.
        """
        self.judged_at = None
        share = self.repetitions / max(1, self.repetitions + self.first_transmissions)
        if share > self.settings.collision_limit and self.heard:
            host, at = next(iter(self.heard.items()))
            if at + self.settings.down_after // 2 < now:
                self._declare_down(host, effects)
        if self.buffer.messages:
            self._arm_judgement(now, effects)

    def _declare_down(self, host: NodeId, effects: list[Effect]) -> None:
        record = self.records[host]
        self.declared_down += 1
        if not record.owner:
            self.given_up[host] = record.ses
        self._unregister(record, effects)

    def _dropped(self, record: Record, effects: list[Effect]) -> None:
        self.heard.pop(record.host, None)
        for number, at in record.private_at.items():
            if at is None:
                effects.append(CancelSend(("private", record.host, number)))
        if not self.heard and self.watch is not None:
            self.watch = None
            effects.append(CancelTimer("watch"))
        self._collect(effects)

    # The tree -----------------------------------------------------------------------------------------------

    def _knows(self, previous: object) -> bool:
        """May this station ask "every station"? Not before it knows them all."""
        return previous is not None or len(self.routes.by_station) + 1 >= self.settings.stations

    def _to_station(self, packet: RoutedPacket, effects: list[Effect]) -> None:
        self.routes.forward(packet, effects)

    def _to_host(self, packet: Packet, host: NodeId, effects: list[Effect]) -> None:
        effects.append(Send(packet, host, RADIO, (packet.kind, host)))

    def _every_other_station(self) -> tuple[NodeId, ...]:
        return tuple(sorted(self.routes.by_station))
