"""Which hosts are registered at a WAS station, and how a registration ends (was2021, sections 4.2 and 4.5)."""

from msgspec import Struct

from precede.core.effects import Effect
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Instant
from precede.protocols.cells.frames import RoutedPacket
from precede.protocols.cells.routes import Routes
from precede.protocols.was2021.options import INCARNATION_STEP
from precede.protocols.was2021.packets import DeletePacket, NoRecordPacket, NotRegisteredPacket, Previous
from precede.protocols.was2021.record import Record
from precede.protocols.was2021.silence import Silence
from precede.protocols.was2021.transmission import Transmission


class Registrations(Struct, eq=False):
    """The records of one station, and facts about hosts that outlive their records.

    `newest` is the largest connection number known of each host (E11), `numbers` the id of the last own message
    of each host seen here (E15). `given_up` is the connection whose handoff ended in a down decision: it is not
    begun again, because answers to its first run may still arrive. `admitted` is when a host was last taken in
    without a record from another station: it misses no message broadcast after that.
    """

    node: NodeId
    records: dict[NodeId, Record]
    routes: Routes
    transmission: Transmission
    silence: Silence
    newest: dict[NodeId, int] = {}
    numbers: dict[NodeId, MessageId] = {}
    given_up: dict[NodeId, int] = {}
    admitted: dict[NodeId, Instant] = {}

    def is_outdated(self, host: NodeId, ses: int) -> bool:
        """Has a newer connection of the host overtaken this one? Then it must not be registered (E11)."""
        return ses < self.newest.get(host, 0)

    def note_connection(self, host: NodeId, ses: int) -> None:
        self.newest[host] = max(self.newest.get(host, 0), ses)

    def find_current(self, host: NodeId, last_ses: int, ses: int, effects: list[Effect]) -> Record | None:
        """Return the host's record here, owned or waiting, or None. An obsolete record is removed first."""
        record = self.records.get(host)
        if record is not None and self._is_leftover(record, last_ses, ses):
            self.unregister(record, effects)
            return None
        return record

    def _is_leftover(self, record: Record, last_ses: int, ses: int) -> bool:
        """Is the record obsolete: the host was confirmed elsewhere since, or began a new incarnation (E18c)?"""
        superseded = record.owner and last_ses > record.ses
        return superseded or record.ses // INCARNATION_STEP < ses // INCARNATION_STEP

    def note_message(self, id: MessageId) -> None:
        last = self.numbers.get(id.source)
        if last is None or id > last:
            self.numbers[id.source] = id

    def last_number(self, host: NodeId, ses: int) -> int:
        """Return the number of the host's last own message seen here; 0 if it is of another incarnation."""
        last = self.numbers.get(host)
        return last.number if last is not None and last.incarnation == ses // INCARNATION_STEP else 0

    def hear(self, host: NodeId, now: Instant, effects: list[Effect]) -> None:
        """Record that a packet of a host arrived, so that a host with a record here is not declared down."""
        if host in self.records:
            self.silence.hear(host, now, effects)

    def reject(self, host: NodeId, ses: int, effects: list[Effect]) -> None:
        """Tell a host that it is not registered: it was declared down, or its handoff was given up (E16)."""
        self.transmission.answer(NotRegisteredPacket(host, ses), host, effects)

    def deny(self, packet: RoutedPacket, effects: list[Effect]) -> None:
        """Tell a station that asks for a record that there is none here, so that it stops waiting (E14)."""
        self.routes.forward(NoRecordPacket(self.node, packet.origin, packet.host, packet.ses), effects)

    def unregister(self, record: Record, effects: list[Effect]) -> None:
        """Remove a record for good, clean up, and deny the request that waited for the record (E14)."""
        del self.records[record.host]
        if record.pending is not None:
            self.deny(record.pending, effects)
        self._clean_up(record, effects)

    def release(self, record: Record, effects: list[Effect]) -> None:
        del self.records[record.host]
        self._clean_up(record, effects)

    def _clean_up(self, record: Record, effects: list[Effect]) -> None:
        """Cancel packets queued for the host, stop watching it, and discard messages that only it needed."""
        self.transmission.cancel_private(record, effects)
        self.silence.forget(record.host, effects)
        self.transmission.collect(effects)

    def other_stations(self, previous: Previous) -> tuple[NodeId, ...]:
        """Return the other stations in `previous`, ascending; all known stations if it is None."""
        if previous is None:
            return tuple(sorted(self.routes.by_station))
        return tuple(sorted({station for station, _ in previous} - {self.node}))

    def delete_elsewhere(self, host: NodeId, ses: int, previous: Previous, effects: list[Effect]) -> None:
        for station in self.other_stations(previous):
            self.routes.forward(DeletePacket(self.node, station, host, ses), effects)

    def delete(self, host: NodeId, ses: int, effects: list[Effect]) -> None:
        """Remove the host's record here, if it is of this connection or an earlier one (E12)."""
        self.note_connection(host, ses)
        record = self.records.get(host)
        if record is not None and record.ses <= ses:
            self.unregister(record, effects)
