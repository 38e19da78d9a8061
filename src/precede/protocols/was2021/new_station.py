"""Join, leave and handoff at the station that a host comes to: task s_n (was2021, sections 4.2, 4.3, 4.5).

The invariant: for each host there is at most one token, the right to serve the host. The token is the record at
the station that owns it, or Rsp2 in flight, the packet that moves the record. There is no token after the host
has left or was declared down. Only an owner answers Req1, the first request of a handoff, and only for a newer
connection. It gives the token away only in Rsp2, for the connection it answered last. Only it sends connectACK.

PS is the list of stations that may have a record of the host. PS of the newest connection has every station
that the token can reach, so each of them gets Req1. The owner answers it. A station that waits for the record
keeps the request until it owns the record. A station without a record denies the request. Hence the newest
connection gets the token.

Departures from the paper's pseudo-code carry their number in `papers/was2021/reading.md`.
"""

from msgspec.structs import replace

from precede.core.effects import Effect
from precede.core.instants import Instant
from precede.core.messages import Message
from precede.protocols.was2021.buffer import StationBuffer
from precede.protocols.was2021.packets import (
    ConnectAckPacket,
    ConnectPacket,
    FirstRequestPacket,
    FirstResponsePacket,
    LeaveAckPacket,
    LeavePacket,
    NoRecordPacket,
    SecondRequestPacket,
    SecondResponsePacket,
)
from precede.protocols.was2021.previous_station import PreviousStation
from precede.protocols.was2021.record import Attempt, Record
from precede.protocols.was2021.registrations import Registrations


class NewStation:
    """Registers hosts that come to this station, and fetches their records from previous stations."""

    def __init__(self, registrations: Registrations, buffer: StationBuffer, previous: PreviousStation) -> None:
        self.registrations = registrations
        self.buffer = buffer
        self.previous = previous

    # Connect (lines 1 to 10) --------------------------------------------------------------------------------

    def on_connect(self, packet: ConnectPacket, now: Instant, effects: list[Effect]) -> None:
        """Handle a host that joins, connects or recovers. Ignore a connection older than a known one."""
        hosts, host = self.registrations, packet.host
        if hosts.is_outdated(host, packet.ses):
            return
        if hosts.given_up.get(host) == packet.ses:
            hosts.reject(host, packet.ses, effects)
            return
        hosts.note_connection(host, packet.ses)
        record = hosts.find_current(host, packet.last_ses, packet.ses, effects)
        if record is not None and record.owner:
            self._reconnect(record, packet, now, effects)
        elif packet.reason == "join":
            self._join(packet, now, effects)
        else:
            self._request(record, packet, now, effects)
        hosts.hear(host, now, effects)

    def _reconnect(self, record: Record, packet: ConnectPacket, now: Instant, effects: list[Effect]) -> None:
        """Confirm a host whose record is here. If the connection is new, end its other registrations (E4)."""
        if packet.ses < record.ses:
            return
        if packet.last_ses >= record.first:
            record.acknowledge(packet.next)
        if packet.ses > record.ses:
            record.ses, record.previous = packet.ses, packet.previous
            self._forget_connection(record, effects)
            self._delete_after_reconnect(record, effects)
        self._confirm(record, now, effects)
        self.registrations.transmission.collect(effects)

    def _forget_connection(self, record: Record, effects: list[Effect]) -> None:
        """Forget what a host acknowledged in its last connection (E8); cancel queued recovered messages."""
        self.registrations.transmission.cancel_private(record, effects)
        record.forget_connection()

    def _delete_after_reconnect(self, record: Record, effects: list[Effect]) -> None:
        self.registrations.delete_elsewhere(record.host, record.ses, record.previous, effects)

    def _join(self, packet: ConnectPacket, now: Instant, effects: list[Effect]) -> None:
        """Register and confirm a new host, with every message kept here; end its registrations elsewhere."""
        hosts = self.registrations
        record = Record.of(packet, self.buffer.low)
        record.owner, record.first = True, packet.ses
        record.accepted = hosts.last_number(packet.host, packet.ses)
        hosts.records[packet.host] = record
        hosts.admitted[packet.host] = now
        self._confirm(record, now, effects)
        hosts.delete_elsewhere(packet.host, packet.ses, packet.previous, effects)

    def _request(
        self, record: Record | None, packet: ConnectPacket, now: Instant, effects: list[Effect]
    ) -> None:
        """Phase 1: send Req1 to every station that may have the record; if there is none, the host joins again.

        A newer connect during a handoff asks again and keeps the older attempts (E13). A repeat changes
        nothing.
        """
        hosts = self.registrations
        if record is None:
            record = Record.of(packet, self.buffer.low)
            hosts.records[packet.host] = record
        elif packet.ses <= record.ses:
            return
        record.ses, record.previous = packet.ses, packet.previous
        record.asked_stations, record.denied = hosts.other_stations(packet.previous), set()
        # The host was connected in last_ses, so no older request will be answered any more.
        record.began = max(record.began, packet.last_ses + 1)
        record.attempts = {ses: attempt for ses, attempt in record.attempts.items() if ses >= record.began}
        for station in record.asked_stations:
            request = FirstRequestPacket(
                hosts.node, station, packet.host, packet.ses, packet.next, packet.last_ses
            )
            hosts.routes.forward(request, effects)
        self._rejoin_if_all_denied(record, now, effects)

    # Phase 2 (lines 11 to 13) -------------------------------------------------------------------------------

    def on_first_response(self, packet: FirstResponsePacket, effects: list[Effect]) -> None:
        """Handle Rsp1, an owner's answer: request the record, and undelivered messages that are not here."""
        hosts = self.registrations
        record = hosts.records.get(packet.host)
        if record is None or record.owner or not self._accepts_response(record, packet.ses):
            return
        record.attempts[packet.ses] = Attempt(
            self.buffer.last, packet.undelivered, packet.accepted, packet.origin
        )
        absent = tuple(id for id in packet.undelivered if id not in self.buffer.position)
        request = SecondRequestPacket(hosts.node, packet.origin, packet.host, packet.ses, absent)
        hosts.routes.forward(request, effects)

    def _accepts_response(self, record: Record, ses: int) -> bool:
        """Does an answer belong to the connection (number `ses`) in which this handoff began, or later?"""
        return ses >= record.began

    # Phase 3 (lines 14 to 20) -------------------------------------------------------------------------------

    def on_second_response(self, packet: SecondResponsePacket, now: Instant, effects: list[Effect]) -> None:
        """Handle Rsp2, which brings the record: own it, and compute the number at which the host continues."""
        record = self.registrations.records.get(packet.host)
        if record is None or record.owner or packet.ses not in record.attempts:
            return
        attempt = record.attempts[packet.ses]
        if packet.more:
            if len(attempt.recovered) < len(attempt.undelivered):  # else a liar's: nobody requested so many
                recovered = attempt.recovered + packet.recovered
                record.attempts[packet.ses] = replace(attempt, recovered=recovered)
            return
        boundary = self._boundary(attempt)
        undelivered = {*attempt.undelivered, *packet.received}
        cached = self.buffer.numbers_from(record.pin)
        fresh = [
            number for number in cached if number > boundary or self.buffer.messages[number].id in undelivered
        ]
        start = fresh[0] if fresh else self.buffer.last + 1
        kept = set(fresh)
        record.marks = {number: None for number in cached if start < number <= boundary and number not in kept}
        record.accepted = attempt.accepted
        self._become_owner(record, start, attempt.recovered + packet.recovered, now, effects)

    def _boundary(self, attempt: Attempt) -> int:
        """Return the last number given to a message before Rsp1: the host may have delivered it elsewhere."""
        return attempt.boundary

    def _become_owner(
        self,
        record: Record,
        start: int,
        recovered: tuple[Message, ...],
        now: Instant,
        effects: list[Effect],
    ) -> None:
        """Finish a handoff: own the record, and confirm the host or answer a newer request for the record.

        Recovered messages get the numbers just below `start` (E5).
        """
        record.owner = True
        record.first = record.ses
        record.base = start
        record.next = start - len(recovered)
        record.private = {record.next + place: message for place, message in enumerate(recovered)}
        record.attempts, record.denied, record.asked_stations = {}, set(), ()
        record.forget_connection()
        pending, record.pending = record.pending, None
        hosts = self.registrations
        if pending is not None and pending.ses > record.ses:
            self.previous.serve(record, pending, effects)
        else:
            self._confirm(record, now, effects)
            hosts.delete_elsewhere(record.host, record.ses, record.previous, effects)
        hosts.transmission.collect(effects)

    def _confirm(self, record: Record, now: Instant, effects: list[Effect]) -> None:
        start = record.need()
        packet = ConnectAckPacket(
            record.host, record.accepted, start, start - record.next, self._skip(record), record.ses
        )
        transmission = self.registrations.transmission
        transmission.answer(packet, record.host, effects)
        transmission.send_private(record, now, effects)

    def _skip(self, record: Record) -> tuple[int, ...]:
        """Return the numbers here of the messages that the host delivered at another station (E9)."""
        return tuple(record.marks)

    # No station has a record (section 4.5) ------------------------------------------------------------------

    def on_no_record(self, packet: NoRecordPacket, now: Instant, effects: list[Effect]) -> None:
        """Handle a station's denial of a request: end the attempts with that station up to that connection.

        If every station asked has denied, the host joins again.
        """
        record = self.registrations.records.get(packet.host)
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
        """Own the record anew once every station asked has denied the request and no attempt is under way.

        If a request of a newer connection waits, deny it and remove the record instead.
        """
        if record.attempts or not all(station in record.denied for station in record.asked_stations):
            return
        if record.pending is not None and record.pending.ses > record.ses:
            # A newer connection took the token, or there is none; the newer connection finds out which. Its
            # request came before the denial, because the links are first-in first-out.
            self.registrations.unregister(record, effects)
            return
        record.accepted, start = self._rejoin_position(record)
        record.marks = {}
        self.registrations.admitted[record.host] = now
        self._become_owner(record, start, (), now, effects)

    def _rejoin_position(self, record: Record) -> tuple[int, int]:
        """Return the number of the host's last own message, and where it begins: after all received here (E15).

        Links are first-in first-out: a station's denial came after all messages that it had sent before.
        """
        return self.registrations.last_number(record.host, record.ses), self.buffer.last + 1

    # Leave (section 4.2) ------------------------------------------------------------------------------------

    def on_leave(self, packet: LeavePacket, effects: list[Effect]) -> None:
        """Handle a host that leaves: end its registrations wherever it may have one, and confirm."""
        hosts = self.registrations
        if packet.previous is None or any(station == hosts.node for station, _ in packet.previous):
            hosts.delete(packet.host, packet.ses, effects)
        hosts.delete_elsewhere(packet.host, packet.ses, packet.previous, effects)
        hosts.transmission.answer(LeaveAckPacket(packet.host, packet.ses), packet.host, effects)
