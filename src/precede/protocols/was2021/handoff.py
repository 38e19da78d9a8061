"""The station's side of join, leave, recovery and the three-phase handoff (sections 4.2, 4.3 and 4.5).

The invariant that makes it work is a token: each host has exactly one of an owner record at one station, an
Rsp2 in flight, or nothing (it left, or was declared down). Only an owner serves Req1, and only for a newer
connection; it gives the token away only in Rsp2, only for the connection it answered last; only an owner sends
connectACK. Every station the token can reach is among the newest connection's previous stations, gets its
Req1, and serves it (owner), keeps it (waiting) or denies (no record). Hence the newest connection gets the
token.

Departures from the paper's pseudo-code carry their number in `papers/was2021/reading.md`.
"""

from __future__ import annotations

from abc import abstractmethod

from precede.core.effects import CancelSend, Effect
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Instant
from precede.core.messages import Message, Packet
from precede.core.node import Node
from precede.protocols.cells.frames import RoutedPacket
from precede.protocols.was2021.packets import (
    ConnectAckPacket,
    ConnectPacket,
    DeletePacket,
    FirstRequestPacket,
    FirstResponsePacket,
    LeaveAckPacket,
    LeavePacket,
    NoRecordPacket,
    Previous,
    SecondRequestPacket,
    SecondResponsePacket,
)
from precede.protocols.was2021.record import Attempt, Record, StationBuffer
from precede.protocols.was2021.settings import LIFE


class Handoff(Node):
    """Who is registered here, and how a record moves. `WasStation` adds dissemination and retransmission."""

    node: NodeId
    buffer: StationBuffer
    records: dict[NodeId, Record]
    newest: dict[NodeId, int]
    """The largest connection number heard of each host (E11)."""
    numbers: dict[NodeId, MessageId]
    """The last message seen of each host (E15)."""
    given_up: dict[NodeId, int]
    """The connection whose handoff ended in a down decision: it is not begun again, its answers are of old."""
    admitted: dict[NodeId, Instant]
    """When a host was last taken in without a record from elsewhere: from then on it misses nothing."""

    @abstractmethod
    def _to_station(self, packet: RoutedPacket, effects: list[Effect]) -> None:
        """Send along the tree."""

    @abstractmethod
    def _to_host(self, packet: Packet, host: NodeId, effects: list[Effect]) -> None:
        """Send over the radio."""

    @abstractmethod
    def _every_other_station(self) -> tuple[NodeId, ...]:
        """All stations but this one, ascending."""

    @abstractmethod
    def _collect(self, effects: list[Effect]) -> None:
        """Discard what no record needs."""

    @abstractmethod
    def _send_private(self, record: Record, now: Instant, effects: list[Effect]) -> None:
        """Send recovered messages that are in the window."""

    @abstractmethod
    def _unknown(self, host: NodeId, ses: int, effects: list[Effect]) -> None:
        """Tell the host that it is not registered in this connection."""

    @abstractmethod
    def _hear(self, host: NodeId, now: Instant, effects: list[Effect]) -> None:
        """The host is alive."""

    # A host connects (tasks s_n, lines 1 to 10) -------------------------------------------------------------

    def _on_connect(self, packet: ConnectPacket, now: Instant, effects: list[Effect]) -> None:
        host = packet.host
        if self._outdated(host, packet.ses):
            return
        if self.given_up.get(host) == packet.ses:
            self._unknown(host, packet.ses, effects)
            return
        self.newest[host] = max(self.newest.get(host, 0), packet.ses)
        record = self.records.get(host)
        if record is not None and self._leftover(record, packet.last_ses, packet.ses):
            self._unregister(record, effects)
            record = None
        if record is not None and record.owner:
            self._reconnect(record, packet, now, effects)
        elif packet.reason == "join":
            self._join(packet, now, effects)
        else:
            self._ask(record, packet, now, effects)
        self._hear(host, now, effects)

    def _outdated(self, host: NodeId, ses: int) -> bool:
        """A connect or join that was overtaken by a newer connection must not register the host (E11)."""
        return ses < self.newest.get(host, 0)

    def _leftover(self, record: Record, last_ses: int, ses: int) -> bool:
        """An owner record the host left behind: of a join that another overtook, or of an earlier life
        (E18c).
        """
        return (record.owner and last_ses > record.ses) or record.ses // LIFE < ses // LIFE

    def _reconnect(self, record: Record, packet: ConnectPacket, now: Instant, effects: list[Effect]) -> None:
        """This station is the owner: answer at once; for a new connection, end all others (E4)."""
        if packet.ses < record.ses:
            return
        if packet.last_ses >= record.first:
            record.acknowledge(packet.next)
        if packet.ses > record.ses:
            record.ses, record.previous = packet.ses, packet.previous
            self._forget_connection(record, effects)
            self._delete_after_reconnect(record, effects)
        self._connect_ack(record, now, effects)
        self._collect(effects)

    def _forget_connection(self, record: Record, effects: list[Effect]) -> None:
        """Numbers the host held are forgotten with the connection (E8)."""
        effects.extend(
            CancelSend(("private", record.host, number))
            for number, at in record.private_at.items()
            if at is None
        )
        record.forget_connection()

    def _delete_after_reconnect(self, record: Record, effects: list[Effect]) -> None:
        self._delete(record.host, record.ses, record.previous, effects)

    def _join(self, packet: ConnectPacket, now: Instant, effects: list[Effect]) -> None:
        """A new host gets everything the station still has."""
        record = Record(packet.host, packet.ses, self.buffer.low, packet.previous)
        record.owner, record.first = True, packet.ses
        record.accepted = self._last_number(packet.host, packet.ses)
        self.records[packet.host] = record
        self.admitted[packet.host] = now
        self._connect_ack(record, now, effects)
        self._delete(packet.host, packet.ses, packet.previous, effects)

    def _ask(self, record: Record | None, packet: ConnectPacket, now: Instant, effects: list[Effect]) -> None:
        """Phase 1: Req1 to every station that may have the record.

        A newer connect at a station already in a handoff for the host asks again and keeps the older attempts
        (E13); a repeated one changes nothing.
        """
        if record is None:
            record = Record(packet.host, packet.ses, self.buffer.low, packet.previous)
            self.records[packet.host] = record
        elif packet.ses <= record.ses:
            return
        record.ses, record.previous = packet.ses, packet.previous
        record.asked, record.denied = self._others(packet.previous), set()
        # The host was connected in last_ses: whatever was asked before that will not be answered any more.
        record.began = max(record.began, packet.last_ses + 1)
        record.attempts = {ses: attempt for ses, attempt in record.attempts.items() if ses >= record.began}
        for station in record.asked:
            request = FirstRequestPacket(
                self.node, station, packet.host, packet.ses, packet.next, packet.last_ses
            )
            self._to_station(request, effects)
        self._rejoin_if_all_denied(record, now, effects)

    # Phase 1 at the previous station (task s_p, lines 1 to 8) -------------------------------------------------

    def _on_first_request(self, packet: FirstRequestPacket, now: Instant, effects: list[Effect]) -> None:
        self.newest[packet.host] = max(self.newest.get(packet.host, 0), packet.ses)
        record = self.records.get(packet.host)
        if record is not None and self._leftover(record, packet.last_ses, packet.ses):
            self._unregister(record, effects)
            record = None
        if record is None or (packet.ses < record.ses and not record.owner):
            # A waiting station denies an overtaken request: its own newer one went before on the same links, so
            # the two do not wait for each other.
            self._deny(packet, effects)
        elif packet.ses <= record.ses:
            return
        elif record.owner:
            self._serve(record, packet, effects)
        elif record.pending is None or packet.ses > record.pending.ses:
            record.pending = packet

    def _serve(self, record: Record, request: FirstRequestPacket, effects: list[Effect]) -> None:
        """Rsp1: what the host has not delivered, private ones first. From here its uplink is frozen (E10)."""
        if request.last_ses >= record.first:
            record.acknowledge(request.next)
            self._collect(effects)
        undelivered = [message.id for message in record.private.values()]
        undelivered += [
            self.buffer.messages[number].id
            for number in range(record.need(), self.buffer.last + 1)
            if number not in record.marks and number in self.buffer.messages
        ]
        record.ses = request.ses
        record.boundary = self.buffer.last
        response = FirstResponsePacket(
            self.node, request.origin, record.host, request.ses, record.accepted, tuple(undelivered)
        )
        self._to_station(response, effects)

    def _deny(self, packet: RoutedPacket, effects: list[Effect]) -> None:
        """The negative answer, without which a handoff waits for ever after a down decision (E14)."""
        self._to_station(NoRecordPacket(self.node, packet.origin, packet.host, packet.ses), effects)

    # Phase 2 (s_n lines 11 to 13, s_p lines 9 to 12) --------------------------------------------------------

    def _on_first_response(self, packet: FirstResponsePacket, effects: list[Effect]) -> None:
        record = self.records.get(packet.host)
        if record is None or record.owner or not self._own_attempt(record, packet.ses):
            return
        record.attempts[packet.ses] = Attempt(
            self.buffer.last, packet.undelivered, packet.accepted, packet.origin
        )
        wanted = tuple(id for id in packet.undelivered if id not in self.buffer.position)
        request = SecondRequestPacket(self.node, packet.origin, packet.host, packet.ses, wanted)
        self._to_station(request, effects)

    def _own_attempt(self, record: Record, ses: int) -> bool:
        """An answer to a request made since the record began to pin messages; an earlier one knows too
        little.
        """
        return ses >= record.began

    def _on_second_request(self, packet: SecondRequestPacket, effects: list[Effect]) -> None:
        record = self.records.get(packet.host)
        if record is None or not record.owner:
            self._deny(packet, effects)
            return
        if not self._may_hand_over(record, packet.ses):
            return
        private = {message.id: message for message in record.private.values()}
        recovered = [self._message(id, private) for id in packet.wanted]
        received = [
            self.buffer.messages[number].id
            for number in range(record.boundary + 1, self.buffer.last + 1)
            if number in self.buffer.messages
        ]
        response = SecondResponsePacket(
            self.node,
            packet.origin,
            packet.host,
            packet.ses,
            tuple(message for message in recovered if message is not None),
            tuple(received),
        )
        del self.records[packet.host]
        self._dropped(record, effects)
        self._to_station(response, effects)

    def _may_hand_over(self, record: Record, ses: int) -> bool:
        """The token leaves only for the connection answered last (E3)."""
        return record.owner and ses == record.ses

    def _message(self, id: MessageId, private: dict[MessageId, Message]) -> Message | None:
        if id in private:
            return private[id]
        number = self.buffer.position.get(id)
        return None if number is None else self.buffer.messages[number]

    # Phase 3 (s_n lines 14 to 20) ----------------------------------------------------------------------------

    def _on_second_response(self, packet: SecondResponsePacket, now: Instant, effects: list[Effect]) -> None:
        record = self.records.get(packet.host)
        if record is None or record.owner or packet.ses not in record.attempts:
            return
        attempt = record.attempts[packet.ses]
        boundary = self._boundary(attempt)
        undelivered = {*attempt.undelivered, *packet.received}
        cached = [
            number for number in range(record.pin, self.buffer.last + 1) if number in self.buffer.messages
        ]
        fresh = [
            number for number in cached if number > boundary or self.buffer.messages[number].id in undelivered
        ]
        start = fresh[0] if fresh else self.buffer.last + 1
        kept = set(fresh)
        record.marks = {number: None for number in cached if start < number <= boundary and number not in kept}
        record.accepted = attempt.accepted
        self._own(record, start, packet.recovered, now, effects)

    def _boundary(self, attempt: Attempt) -> int:
        """Only what was received before Rsp1 can have been delivered elsewhere (E6)."""
        return attempt.boundary

    def _own(
        self,
        record: Record,
        start: int,
        recovered: tuple[Message, ...],
        now: Instant,
        effects: list[Effect],
    ) -> None:
        """The token is here, the handoff over. Recovered messages get the numbers just below `start` (E5)."""
        record.owner = True
        record.first = record.ses
        record.base = start
        record.next = start - len(recovered)
        record.private = {record.next + place: message for place, message in enumerate(recovered)}
        record.attempts, record.denied, record.asked = {}, set(), ()
        record.forget_connection()
        pending, record.pending = record.pending, None
        if pending is not None and pending.ses > record.ses:
            self._serve(record, pending, effects)
        else:
            self._connect_ack(record, now, effects)
            self._delete(record.host, record.ses, record.previous, effects)
        self._collect(effects)

    def _connect_ack(self, record: Record, now: Instant, effects: list[Effect]) -> None:
        start = record.need()
        packet = ConnectAckPacket(
            record.host, record.accepted, start, start - record.next, self._skip(record), record.ses
        )
        self._to_host(packet, record.host, effects)
        self._send_private(record, now, effects)

    def _skip(self, record: Record) -> tuple[int, ...]:
        """What the host delivered elsewhere, told once instead of with every frame (E9)."""
        return tuple(record.marks)

    # Nobody has a record (section 4.5), the end of a record ---------------------------------------------------

    def _on_no_record(self, packet: NoRecordPacket, now: Instant, effects: list[Effect]) -> None:
        record = self.records.get(packet.host)
        if record is None or record.owner:
            return
        if packet.ses == record.ses:
            record.denied.add(packet.origin)
        # A denial of an older request ends that attempt; one of the newest request ends all with that station.
        record.attempts = {
            ses: attempt
            for ses, attempt in record.attempts.items()
            if attempt.station != packet.origin or ses > packet.ses
        }
        self._rejoin_if_all_denied(record, now, effects)

    def _rejoin_if_all_denied(self, record: Record, now: Instant, effects: list[Effect]) -> None:
        if record.attempts or not all(station in record.denied for station in record.asked):
            return
        if record.pending is not None and record.pending.ses > record.ses:
            # Denied because a newer connection took the token, or because there is none: both are for the
            # newer one to find out. Its request came before the denial, as the links are first-in first-out.
            self._unregister(record, effects)
            return
        record.accepted, start = self._rejoin_position(record)
        record.marks = {}
        self.admitted[record.host] = now
        self._own(record, start, (), now, effects)

    def _rejoin_position(self, record: Record) -> tuple[int, int]:
        """The denials have flushed all channels: begin after what is here, number after what was seen (E15)."""
        return self._last_number(record.host, record.ses), self.buffer.last + 1

    def _last_number(self, host: NodeId, ses: int) -> int:
        """The host's last message this station has seen, of the life this connection belongs to."""
        last = self.numbers.get(host)
        return last.number if last is not None and last.incarnation == ses // LIFE else 0

    def _delete(self, host: NodeId, ses: int, previous: Previous, effects: list[Effect]) -> None:
        """End the host's other registrations."""
        for station in self._others(previous):
            self._to_station(DeletePacket(self.node, station, host, ses), effects)

    def _others(self, previous: Previous) -> tuple[NodeId, ...]:
        if previous is None:
            return self._every_other_station()
        return tuple(sorted({station for station, _ in previous} - {self.node}))

    def _on_delete(self, host: NodeId, ses: int, effects: list[Effect]) -> None:
        """Only an owner or a leave deletes, so an older record is finished whatever its number (E12)."""
        self.newest[host] = max(self.newest.get(host, 0), ses)
        record = self.records.get(host)
        if record is not None and record.ses <= ses:
            self._unregister(record, effects)

    def _on_leave(self, packet: LeavePacket, effects: list[Effect]) -> None:
        if packet.previous is None or any(station == self.node for station, _ in packet.previous):
            self._on_delete(packet.host, packet.ses, effects)
        self._delete(packet.host, packet.ses, packet.previous, effects)
        self._to_host(LeaveAckPacket(packet.host, packet.ses), packet.host, effects)

    def _unregister(self, record: Record, effects: list[Effect]) -> None:
        """Forget a host; a request that waited for its record is denied (E14)."""
        del self.records[record.host]
        if record.pending is not None:
            self._deny(record.pending, effects)
        self._dropped(record, effects)

    @abstractmethod
    def _dropped(self, record: Record, effects: list[Effect]) -> None:
        """A record is gone: take back what was queued for the host, discard what it alone needed."""
