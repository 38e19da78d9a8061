"""The WAS paper read literally, point by point: each point replaces one fix (papers/was2021/reading.md).

A point of `without` brings back one line of the pseudo-code, or the text's silence, with every other fix in
place. The authors' own program may do better than their paper.
"""

from __future__ import annotations

from typing import Final

from msgspec import field
from msgspec.structs import replace

from precede.core.effects import RADIO, Deliver, Effect, Effects, Key, Persist, Send
from precede.core.identity import NodeId
from precede.core.instants import DAY, Instant
from precede.core.messages import Message
from precede.core.node import Context, Node, Saved, restore
from precede.protocols.cells.frames import RoutedPacket
from precede.protocols.registry import Entry
from precede.protocols.was2021.downlink import Downlink
from precede.protocols.was2021.entry import ENTRY
from precede.protocols.was2021.host import WasHost
from precede.protocols.was2021.new_station import NewStation
from precede.protocols.was2021.options import WasOptions
from precede.protocols.was2021.packets import (
    AckPacket,
    ConnectAckPacket,
    ConnectPacket,
    DataPacket,
    DeletePacket,
    LeavePacket,
    Previous,
    PrivatePacket,
)
from precede.protocols.was2021.previous_station import PreviousStation
from precede.protocols.was2021.record import Attempt, Record
from precede.protocols.was2021.registrations import Registrations
from precede.protocols.was2021.station import WasStation
from precede.protocols.was2021.transmission import Transmission

FIXES: Final[tuple[str, ...]] = (*(f"E{number}" for number in range(1, 18)), "E18a", "E18b", "E18c")
"""The points of papers/was2021/reading.md."""


def literal_entry(without: str) -> Entry:
    """The registry's entry of WAS, with the fixes in `without` (separated by commas) taken out."""
    points = frozenset(part.strip() for part in without.split(",") if part.strip())
    assert points <= set(FIXES), f"{without}: expected some of {', '.join(FIXES)}"

    def build(role: str, context: Context[WasOptions]) -> Node:
        return LiteralHost(context, points) if role == "host" else LiteralStation(context, points)

    return replace(ENTRY, build=build) if points else ENTRY


class LiteralDownlink(Downlink):
    """E9: RBuffer survives a change of cell. E17: seq_NC and Ses_LC are saved apart from each other."""

    without: frozenset[str] = frozenset()

    def clear(self) -> None:
        if "E9" not in self.without:
            super().clear()

    def save_position(self, effects: list[Effect]) -> None:
        if "E17" not in self.without:
            super().save_position(effects)

    def restore(self, saved: Saved) -> bool:
        if "E17" not in self.without:
            return super().restore(saved)
        if "last_ses" not in saved:
            return False
        self.last_ses = restore(saved, "last_ses", int, 0)
        self.next = restore(saved, "next", int, 0)
        return True


class LiteralHost(WasHost):
    """A host with some of the paper's lines as printed."""

    def __init__(self, context: Context[WasOptions], without: frozenset[str]) -> None:
        super().__init__(context)
        self.without = without
        self.downlink = LiteralDownlink(context.node, self.durable)
        self.downlink.without = without
        self.same_ses = False
        self.recovery = (0, 0)
        if "E16" in without:
            self.acks.heartbeat = 365 * DAY

    def start(self, now: Instant, saved: Saved) -> Effects:
        effects = super().start(now, saved)
        if saved:
            # 4.5 raises Ses only "when changing cell", and lists no PS among what is restored.
            self.same_ses = "E18a" in self.without
            if "E18b" in self.without:
                self.ask_all = False
        return effects

    def leave(self, now: Instant) -> Effects:
        if "E12" not in self.without:
            return super().leave(now)
        # 4.2: leave carries PS, which has no entry for an attempt in progress, and no number of its own.
        effects: list[Effect] = []
        self._disconnect(effects)
        self.leaving = True
        self.uplink.forget(self.uplink.number, effects)
        if self.cell is not None:
            self._send_leave(now, effects)
        return effects

    def _new_attempt(self, now: Instant, effects: list[Effect]) -> None:
        if self.same_ses:
            self.same_ses = False
            self.ses -= 1
        super()._new_attempt(now, effects)

    def _on_connect_ack(
        self, packet: ConnectAckPacket, sender: NodeId, now: Instant, effects: list[Effect]
    ) -> None:
        repeated = self.connected and packet.ses == self.ses and packet.host == self.node
        if repeated and "E1" in self.without:
            # h.5: the only test is Ses == Ses_m.
            self.connected = False
        kept = dict(self.downlink.rbuffer)
        super()._on_connect_ack(packet, sender, now, effects)
        if not self.connected or packet.host != self.node or packet.ses != self.ses:
            return
        if "E9" in self.without and not repeated:
            first = self.downlink.next
            self.downlink.rbuffer.update({number: entry for number, entry in kept.items() if number >= first})
            self.downlink.drain(effects)
        if "E2" in self.without:
            # h.6: seq_h = seq_h_m. The unacknowledged messages stay in SBuffer under their numbers.
            self.uplink.number = packet.accepted
        if "E17" in self.without and self.durable:
            effects.append(Persist("last_ses", self.downlink.last_ses))

    def _on_data(self, packet: DataPacket, now: Instant, effects: list[Effect]) -> None:
        if "E9" in self.without and not self.connected and not self.leaving:
            # 4.1: RBuffer takes what is received; nothing says that a host out of connection does not.
            self.downlink.rbuffer[packet.number] = (packet.message, self.node in packet.marks)
            return
        super()._on_data(packet, now, effects)

    def _on_private(self, packet: PrivatePacket, now: Instant, effects: list[Effect]) -> None:
        if "E5" not in self.without:
            super()._on_private(packet, now, effects)
            return
        # s_n.15: recovered messages come before connectACK, identified by (id_h, Ses).
        if packet.host != self.node or packet.ses != self.ses or self.connected or self.cell is None:
            return
        ses, following = self.recovery if self.recovery[0] == self.ses else (self.ses, 0)
        if packet.number == following:
            following += 1
            self.downlink.seen.discard(packet.message.id)
            effects.append(Deliver(packet.message))
        self.recovery = (ses, following)
        effects.append(Send(AckPacket(self.node, self.ses, following, ()), self.cell, RADIO, "ack"))

    def _send_ack(self, now: Instant, effects: list[Effect]) -> None:
        if "E17" in self.without and self.durable:
            # 4.5: seq_NC is saved when an acknowledgement is sent, Ses_LC when the connection is confirmed.
            effects.append(Persist("next", self.downlink.next))
        super()._send_ack(now, effects)


class LiteralTransmission(Transmission):
    """E7: discard beyond gaps. E9: marks on frames."""

    without: frozenset[str] = frozenset()

    def collect(self, effects: list[Effect]) -> None:
        if "E7" not in self.without:
            super().collect(effects)
            return
        # 4.1: "as soon as all hosts connected to it have acknowledged the message", ranges included.
        for number in list(self.buffer.messages):
            if all(
                number < record.need() or (record.owner and number in record.held)
                for record in self.records.values()
            ):
                self.buffer.discard(number, effects)
        self.buffer.low = min(self.buffer.messages, default=self.buffer.last + 1)

    def _marks(self, number: int) -> tuple[NodeId, ...]:
        if "E9" not in self.without:
            return ()
        return tuple(host for host, record in self.records.items() if number in record.marks)


class LiteralRegistrations(Registrations):
    """E11, E14, E16, E18c: one line each. E12: Delete ends exactly the connection of the PS entry.

    `recovering` are the hosts that have not acknowledged their recovered messages yet (E5): where the cell's
    own numbers begin, and the recovered messages.
    """

    without: frozenset[str] = frozenset()
    recovering: dict[NodeId, tuple[int, tuple[Message, ...]]] = field(default_factory=dict)

    def is_outdated(self, host: NodeId, ses: int) -> bool:
        return "E11" not in self.without and super().is_outdated(host, ses)

    def deny(self, packet: RoutedPacket, effects: list[Effect]) -> None:
        if "E14" not in self.without:
            super().deny(packet, effects)

    def reject(self, host: NodeId, ses: int, effects: list[Effect]) -> None:
        if "E16" not in self.without:
            super().reject(host, ses, effects)

    def _is_leftover(self, record: Record, last_ses: int, ses: int) -> bool:
        return super()._is_leftover(record, 0 if "E18c" in self.without else last_ses, ses)

    def delete_elsewhere(self, host: NodeId, ses: int, previous: Previous, effects: list[Effect]) -> None:
        if "E12" not in self.without or previous is None:
            super().delete_elsewhere(host, ses, previous, effects)
            return
        for station, old in previous:
            if station != self.node:
                self.routes.forward(DeletePacket(self.node, station, host, old), effects)

    def delete(self, host: NodeId, ses: int, effects: list[Effect]) -> None:
        record = self.records.get(host)
        if "E12" in self.without and record is not None and record.ses != ses:
            return
        super().delete(host, ses, effects)

    def _clean_up(self, record: Record, effects: list[Effect]) -> None:
        self.recovering.pop(record.host, None)
        super()._clean_up(record, effects)


class LiteralPreviousStation(PreviousStation):
    """E3: Req2 is served for any connection."""

    without: frozenset[str] = frozenset()

    def _may_release(self, record: Record, ses: int) -> bool:
        return record.owner if "E3" in self.without else super()._may_release(record, ses)


class LiteralNewStation(NewStation):
    """E4, E6, E8, E9, E15: one line each. E12, E13, E5: see the methods."""

    without: frozenset[str] = frozenset()
    registrations: LiteralRegistrations

    def _delete_after_reconnect(self, record: Record, effects: list[Effect]) -> None:
        if "E4" not in self.without:
            super()._delete_after_reconnect(record, effects)

    def _boundary(self, attempt: Attempt) -> int:
        return self.buffer.last if "E6" in self.without else super()._boundary(attempt)

    def _forget_connection(self, record: Record, effects: list[Effect]) -> None:
        held = set(record.held)
        super()._forget_connection(record, effects)
        if "E8" in self.without:
            record.held = held

    def _skip(self, record: Record) -> tuple[int, ...]:
        return () if "E9" in self.without else super()._skip(record)

    def _rejoin_position(self, record: Record) -> tuple[int, int]:
        return (0, self.buffer.low) if "E15" in self.without else super()._rejoin_position(record)

    def on_leave(self, packet: LeavePacket, effects: list[Effect]) -> None:
        """E12: leave ends the connection of the PS entry."""
        super().on_leave(packet, effects)
        if "E12" in self.without and packet.previous is not None:
            for station, old in packet.previous:
                if station == self.registrations.node:
                    self.registrations.delete(packet.host, old, effects)

    def _request(
        self, record: Record | None, packet: ConnectPacket, now: Instant, effects: list[Effect]
    ) -> None:
        """E13: a newer connect registers again and asks again, this station included."""
        if "E13" not in self.without or record is None or packet.ses <= record.ses:
            super()._request(record, packet, now, effects)
            return
        hosts = self.registrations
        del hosts.records[packet.host]
        super()._request(None, packet, now, effects)
        fresh = hosts.records[packet.host]
        fresh.pending = record.pending
        if packet.previous is not None and any(station == hosts.node for station, _ in packet.previous):
            fresh.asked_stations = tuple(sorted({*fresh.asked_stations, hosts.node}))

    def _accepts_response(self, record: Record, ses: int) -> bool:
        return ses == record.ses if "E13" in self.without else super()._accepts_response(record, ses)

    def _become_owner(
        self,
        record: Record,
        start: int,
        recovered: tuple[Message, ...],
        now: Instant,
        effects: list[Effect],
    ) -> None:
        """E5: recovered messages are sent before connectACK."""
        if "E5" not in self.without or not recovered:
            super()._become_owner(record, start, recovered, now, effects)
            return
        self.registrations.recovering[record.host] = (start, recovered)
        self.send_recovery(record, now, effects)

    def send_recovery(self, record: Record, now: Instant, effects: list[Effect]) -> None:
        _, recovered = self.registrations.recovering[record.host]
        for number, message in enumerate(recovered):
            packet = PrivatePacket(record.host, record.ses, number, message)
            effects.append(Send(packet, record.host, RADIO))
        self.registrations.transmission.arm_private(now, effects)

    def end_recovery(self, record: Record, packet: AckPacket, now: Instant, effects: list[Effect]) -> None:
        start, recovered = self.registrations.recovering[packet.host]
        if packet.ses == record.ses and packet.next == len(recovered):
            del self.registrations.recovering[packet.host]
            super()._become_owner(record, start, (), now, effects)

    def on_connect(self, packet: ConnectPacket, now: Instant, effects: list[Effect]) -> None:
        hosts = self.registrations
        record = hosts.records.get(packet.host)
        if record is None or packet.host not in hosts.recovering:
            super().on_connect(packet, now, effects)
            return
        if packet.ses > record.ses:
            hosts.newest[packet.host] = record.ses = packet.ses
            record.previous = packet.previous
            self.send_recovery(record, now, effects)


class LiteralStation(WasStation):
    """A station with some of the paper's lines as printed."""

    new_station: LiteralNewStation

    def __init__(self, context: Context[WasOptions], without: frozenset[str]) -> None:
        super().__init__(context)
        self.without = without
        self.transmission = LiteralTransmission(self.records, self.buffer, self.options)
        self.transmission.without = without
        registrations = LiteralRegistrations(
            context.node, self.records, self.routes, self.transmission, self.silence
        )
        registrations.without, registrations.recovering = without, {}
        self.registrations = registrations
        self.previous_station = LiteralPreviousStation(registrations, self.buffer)
        self.previous_station.without = without
        self.new_station = LiteralNewStation(registrations, self.buffer, self.previous_station)
        self.new_station.without = without

    def _accepts_uplink(self, record: Record, ses: int) -> bool:
        return record.owner if "E10" in self.without else super()._accepts_uplink(record, ses)

    def _on_ack(self, packet: AckPacket, now: Instant, effects: list[Effect]) -> None:
        record = self.records.get(packet.host)
        if record is None or packet.host not in self.new_station.registrations.recovering:
            super()._on_ack(packet, now, effects)
        else:
            self.new_station.end_recovery(record, packet, now, effects)

    def timer(self, key: Key, now: Instant) -> Effects:
        effects = list(super().timer(key, now))
        if key == "private":
            for host in self.new_station.registrations.recovering:
                self.new_station.send_recovery(self.records[host], now, effects)
        return effects
