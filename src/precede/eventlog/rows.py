"""Packed rows: units of 32 bytes in one buffer, which the recorder turns into Arrow block by block.

A message row is one unit. A packet row is two; the second has CONTINUED in place of the kind. Where the package
is compiled, `machine_rows` writes each field into its own column instead.
"""

from __future__ import annotations

from struct import Struct as Layout
from typing import Final, final

from mypy_extensions import i32, i64, mypyc_attr

from precede.core.frequent_effects import Arrive, Deliver, Discard, parts_of
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Instant
from precede.core.messages import Message, Packet
from precede.eventlog.schema import DELIVERED, DISCARDED, RECEIVED

UNIT: Final = 32
CONTINUED: Final = 255
BLOCK_BYTES: Final = 4 * 1024 * 1024
"""The recorder writes a block to its sink once it has this size."""

_MESSAGE: Final = Layout("<qiiIHBBq")
_PACKET: Final = Layout("<qiiIHBBqqiiI2xB9x")
_TWO_MESSAGES: Final = Layout("<qiiIHBBqqiiIHBBq")


@final
@mypyc_attr(acyclic=True)
class MeasuredPacket:
    """A packet with the code of its kind and its sizes. It is read once for all its rows in the simulator.

    `source`, `incarnation` and `number` are the id of `message`, the one that was looked up last. In a
    `WheelWorld`, `under_way` copies of the packet are on their way, and refer to it by its `place`.
    """

    __slots__ = (
        "code",
        "control_bytes",
        "control_entries",
        "incarnation",
        "message",
        "messages",
        "number",
        "packet",
        "place",
        "size_bytes",
        "source",
        "under_way",
    )

    def __init__(self, packet: Packet, code: int) -> None:
        self.packet = packet
        self.code: i64 = code
        self.size_bytes: i64 = packet.size_bytes
        self.control_bytes: i64 = packet.control_bytes
        self.control_entries: i64 = packet.control_entries
        self.messages: i64 = packet.messages
        self.message: Message | None = None
        self.source: i32 = 0
        self.incarnation: i32 = 0
        self.number: i64 = 0
        self.under_way: i64 = 0
        self.place: i64 = -1

    def look_up(self, message: Message) -> None:
        """Reads the id of a message, once for all rows about it while the packet has no other."""
        self.source, self.incarnation, self.number = parts_of(message.id)
        self.message = message


@mypyc_attr(allow_interpreted_subclasses=True)
class Rows:
    """The packed rows of one block; `take` empties it."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def message(self, kind: int, small: int, process: int, at: Instant, clock: Instant, id: MessageId) -> None:
        """Writes a row about a message; `small` is the code of its reason."""
        self._buffer += _MESSAGE.pack(at, process, id.source, id.number, id.incarnation, kind, small, clock)

    def node_event(self, kind: int, process: int, at: Instant, clock: Instant) -> None:
        self._buffer += _MESSAGE.pack(at, process, -1, 0, 0, kind, 0, clock)

    def about_message(self, kind: int, process: int, now: Instant, packet: MeasuredPacket) -> None:
        """Writes a row about the message of a packet that was looked up last.

        This and the next six methods are for nodes whose clock is the world's: `now` is both times.
        """
        self._buffer += _MESSAGE.pack(
            now, process, packet.source, packet.number, packet.incarnation, kind, 0, now
        )

    def received(self, process: int, now: Instant, arrive: Arrive) -> None:
        """Writes a `received` row for each message of an `Arrive`."""
        for message in arrive.messages:
            self.message(RECEIVED, 0, process, now, now, message.id)

    def delivered(self, process: int, now: Instant, deliver: Deliver) -> None:
        self._buffer += _MESSAGE.pack(
            now, process, deliver.source, deliver.number, deliver.incarnation, DELIVERED, 0, now
        )

    def discarded(self, process: int, now: Instant, discard: Discard, small: int) -> None:
        """Writes a `discarded` row; `small` is the code of its reason."""
        self.message(DISCARDED, small, process, now, now, discard.message.id)

    def received_and_delivered(self, process: int, now: Instant, deliver: Deliver) -> None:
        """Writes both rows of a message that is delivered as soon as it is received."""
        source, number, incarnation = deliver.source, deliver.number, deliver.incarnation
        self._buffer += _TWO_MESSAGES.pack(
            now, process, source, number, incarnation, RECEIVED, 0, now,
            now, process, source, number, incarnation, DELIVERED, 0, now,
        )  # fmt: skip

    def received_then_delivered(self, process: int, now: Instant, deliveries: list[Deliver]) -> None:
        """Writes a `received` row for each message, then a `delivered` row for each."""
        for deliver in deliveries:
            self.message(RECEIVED, 0, process, now, now, deliver.message.id)
        for deliver in deliveries:
            self.delivered(process, now, deliver)

    def all_delivered(self, process: int, now: Instant, deliveries: list[Deliver]) -> None:
        """Writes a `delivered` row for each message."""
        for deliver in deliveries:
            self.delivered(process, now, deliver)

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
        """Writes a row about a packet. Wire bytes -1: unknown."""
        self._buffer += _PACKET.pack(
            at, process, peer, packet.size_bytes, packet.code, kind, over, clock,
            packet.control_bytes, packet.messages, wire_bytes, packet.control_entries, CONTINUED,
        )  # fmt: skip

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
        """Writes a row about a packet of known sizes, at a node whose clock is the world's."""
        self._buffer += _PACKET.pack(
            now, process, peer, size, code, kind, over, now, control, messages, -1, entries, CONTINUED
        )

    def size(self) -> int:
        return len(self._buffer)

    def mark(self) -> int:
        """Return where the next row will begin, in units of 32 bytes (in rows: `MachineRows`)."""
        return len(self._buffer) // UNIT

    def take(self) -> list[bytes]:
        """Returns the packed rows for `blocks` to read, and empties the block."""
        taken = bytes(self._buffer)
        self._buffer.clear()
        return [taken]
