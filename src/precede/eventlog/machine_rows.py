"""Packed rows with a column of machine words per field; used only where the package is compiled."""

from __future__ import annotations

from typing import final

from librt.strings import BytesWriter, write_i32_le, write_i64_le
from mypy_extensions import i32, i64

from precede.core.frequent_effects import Arrive, Deliver, Discard
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Instant
from precede.eventlog.rows import MeasuredPacket, Rows
from precede.eventlog.schema import DELIVERED, DISCARDED, RECEIVED


@final
class MachineRows(Rows):
    """`Rows` for a compiled package: keeps each field in its own column, in the order of `blocks.Block`."""

    def __init__(self) -> None:
        super().__init__()
        self._at = BytesWriter()
        self._clock = BytesWriter()
        self._numbers = BytesWriter()
        self._process = BytesWriter()
        self._source = BytesWriter()
        self._incarnations = BytesWriter()
        self._kind = BytesWriter()
        self._small = BytesWriter()
        self._control = BytesWriter()
        self._entries = BytesWriter()
        self._wire = BytesWriter()
        self._messages = BytesWriter()

    def _row(
        self,
        at: i64,
        clock: i64,
        number: i64,
        process: i32,
        source: i32,
        incarnation: i32,
        kind: i32,
        small: i32,
    ) -> None:
        check(number, incarnation)
        write_i64_le(self._at, at)
        write_i64_le(self._clock, clock)
        write_i64_le(self._numbers, number)
        write_i32_le(self._process, process)
        write_i32_le(self._source, source)
        write_i32_le(self._incarnations, incarnation)
        write_i32_le(self._kind, kind)
        write_i32_le(self._small, small)

    def message(self, kind: int, small: int, process: int, at: Instant, clock: Instant, id: MessageId) -> None:
        self._row(at, clock, id.number, process, id.source, id.incarnation, kind, small)

    def node_event(self, kind: int, process: int, at: Instant, clock: Instant) -> None:
        self._row(at, clock, 0, process, -1, 0, kind, 0)

    def about_message(self, kind: int, process: int, now: Instant, packet: MeasuredPacket) -> None:
        at: i64 = now
        self._row(at, at, packet.number, process, packet.source, packet.incarnation, kind, 0)

    def received(self, process: int, now: Instant, arrive: Arrive) -> None:
        at: i64 = now
        if arrive.only is None:
            if arrive.deliveries is not None:
                self._all(RECEIVED, process, at, arrive.deliveries)
            else:
                super().received(process, now, arrive)
            return
        if arrive.number == 0:
            arrive.look_up()
        self._row(at, at, arrive.number, process, arrive.source, arrive.incarnation, RECEIVED, 0)

    def delivered(self, process: int, now: Instant, deliver: Deliver) -> None:
        at: i64 = now
        self._row(at, at, deliver.number, process, deliver.source, deliver.incarnation, DELIVERED, 0)

    def discarded(self, process: int, now: Instant, discard: Discard, small: int) -> None:
        at: i64 = now
        source, number = discard.source, discard.number
        self._row(at, at, number, process, source, discard.incarnation, DISCARDED, small)

    def received_and_delivered(self, process: int, now: Instant, deliver: Deliver) -> None:
        at: i64 = now
        which: i32 = process
        source: i32 = deliver.source
        number: i64 = deliver.number
        incarnation: i32 = deliver.incarnation
        self._row(at, at, number, which, source, incarnation, RECEIVED, 0)
        self._row(at, at, number, which, source, incarnation, DELIVERED, 0)

    def received_then_delivered(self, process: int, now: Instant, deliveries: list[Deliver]) -> None:
        self._all(RECEIVED, process, now, deliveries)
        self._all(DELIVERED, process, now, deliveries)

    def all_delivered(self, process: int, now: Instant, deliveries: list[Deliver]) -> None:
        self._all(DELIVERED, process, now, deliveries)

    def _all(self, kind: i32, which: i32, at: i64, deliveries: list[Deliver]) -> None:
        """Writes a row of this kind for each message; the fields that all share are written as runs."""
        numbers, sources, incarnations = self._numbers, self._source, self._incarnations
        for deliver in deliveries:
            number: i64 = deliver.number
            incarnation: i32 = deliver.incarnation
            check(number, incarnation)
            write_i64_le(numbers, number)
            write_i32_le(sources, deliver.source)
            write_i32_le(incarnations, incarnation)
        rows = len(deliveries)
        instants = _word(at) * rows
        self._at.write(instants)
        self._clock.write(instants)
        self._process.write(_half_word(which) * rows)
        self._kind.write(_half_word(kind) * rows)
        self._small.write(_half_word(0) * rows)

    def packet(
        self,
        kind: int,
        process: int,
        at: Instant,
        clock: Instant,
        packet: MeasuredPacket,
        peer: NodeId,
        over: int,
        wire_bytes: int = -1,
    ) -> None:
        self._row(at, clock, packet.size_bytes, process, peer, i32(packet.code), kind, over)
        write_i64_le(self._control, packet.control_bytes)
        write_i64_le(self._entries, packet.control_entries)
        write_i64_le(self._wire, wire_bytes)
        write_i32_le(self._messages, i32(packet.messages))

    def sized_packet(
        self,
        kind: i32,
        code: i32,
        process: i32,
        now: i64,
        peer: i32,
        over: i32,
        size: i64,
        control: i64,
        entries: i64,
        messages: i32,
    ) -> None:
        self._row(now, now, size, process, peer, code, kind, over)
        write_i64_le(self._control, control)
        write_i64_le(self._entries, entries)
        write_i64_le(self._wire, -1)
        write_i32_le(self._messages, messages)

    def size(self) -> int:
        return 4 * (len(self._at) + len(self._control))

    def mark(self) -> int:
        return len(self._at) // 8

    def take(self) -> list[bytes]:
        shared = [self._at, self._clock, self._numbers, self._process, self._source, self._incarnations]
        columns = [*shared, self._kind, self._small, self._control, self._entries, self._wire, self._messages]
        taken = [column.getvalue() for column in columns]
        for column in columns:
            column.truncate(0)
        return taken


def _word(value: i64) -> bytes:
    writer = BytesWriter()
    write_i64_le(writer, value)
    return writer.getvalue()


def _half_word(value: i32) -> bytes:
    writer = BytesWriter()
    write_i32_le(writer, value)
    return writer.getvalue()


def check(number: i64, incarnation: i32) -> None:
    """Raises OverflowError if a message number or an incarnation does not fit its column."""
    if number >> 32 != 0 or incarnation < 0:
        raise OverflowError(
            "a message number or an incarnation of a row is negative or too large for its column"
        )
