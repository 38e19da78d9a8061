"""Handoff at the station that a host left: task s_p of the paper (was2021, section 4.3).

Departures from the paper's pseudo-code carry their number in `papers/was2021/reading.md`.
"""

from precede.core.effects import Effect
from precede.core.identity import MessageId
from precede.core.messages import Message
from precede.protocols.was2021.buffer import StationBuffer
from precede.protocols.was2021.packets import (
    FirstRequestPacket,
    FirstResponsePacket,
    SecondRequestPacket,
    SecondResponsePacket,
)
from precede.protocols.was2021.record import Record
from precede.protocols.was2021.registrations import Registrations


class PreviousStation:
    """A station that a host has left: it hands the host's record to the new station in two answers."""

    def __init__(self, registrations: Registrations, buffer: StationBuffer) -> None:
        self.registrations = registrations
        self.buffer = buffer

    def on_first_request(self, packet: FirstRequestPacket, effects: list[Effect]) -> None:
        """Handle Req1 (lines 1 to 8): the owner answers, a waiting station keeps the request, others deny it.

        If a newer connection has overtaken the request, the owner ignores it and a waiting station denies it.
        """
        hosts = self.registrations
        hosts.note_connection(packet.host, packet.ses)
        record = hosts.find_current(packet.host, packet.last_ses, packet.ses, effects)
        if record is None or (packet.ses < record.ses and not record.owner):
            # A waiting station denies an overtaken request: its own newer one went before on the same links, so
            # the two do not wait for each other.
            hosts.deny(packet, effects)
        elif packet.ses <= record.ses:
            return
        elif record.owner:
            self.serve(record, packet, effects)
        elif record.pending is None or packet.ses > record.pending.ses:
            record.pending = packet

    def serve(self, record: Record, request: FirstRequestPacket, effects: list[Effect]) -> None:
        """Send Rsp1: the messages the host has not delivered, private ones first. Its uplink ends (E10)."""
        if request.last_ses >= record.first:
            record.acknowledge(request.next)
            self.registrations.transmission.collect(effects)
        undelivered = [message.id for message in record.private.values()]
        undelivered += [
            self.buffer.messages[number].id
            for number in self.buffer.numbers_from(record.need())
            if number not in record.marks
        ]
        record.ses = request.ses
        record.boundary = self.buffer.last
        hosts = self.registrations
        response = FirstResponsePacket(
            hosts.node, request.origin, record.host, request.ses, record.accepted, tuple(undelivered)
        )
        hosts.routes.forward(response, effects)

    def on_second_request(self, packet: SecondRequestPacket, effects: list[Effect]) -> None:
        """Handle Req2 (lines 9 to 12): send the record away with Rsp2; deny if it is not owned here."""
        hosts = self.registrations
        record = hosts.records.get(packet.host)
        if record is None or not record.owner:
            hosts.deny(packet, effects)
            return
        if not self._may_release(record, packet.ses):
            return
        private = {message.id: message for message in record.private.values()}
        recovered = [self._find_message(id, private) for id in packet.missing_ids]
        received = [self.buffer.messages[number].id for number in self.buffer.numbers_from(record.boundary + 1)]
        response = SecondResponsePacket(
            hosts.node,
            packet.origin,
            packet.host,
            packet.ses,
            tuple(message for message in recovered if message is not None),
            tuple(received),
        )
        hosts.release(record, effects)
        hosts.routes.forward(response, effects)

    def _may_release(self, record: Record, ses: int) -> bool:
        """Is `ses` the connection that Rsp1 was sent to last? The record leaves only for that one (E3)."""
        return record.owner and ses == record.ses

    def _find_message(self, id: MessageId, private: dict[MessageId, Message]) -> Message | None:
        if id in private:
            return private[id]
        number = self.buffer.position.get(id)
        return None if number is None else self.buffer.messages[number]
