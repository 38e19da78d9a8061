"""Rows as units of 32 bytes, one behind the other: what the recorder turns into Arrow, block by block.

A message row is one unit; a packet row is two, the second marked by CONTINUED where the kind stands. Where the
package was compiled, `machine_rows` writes each field into a column of its own instead.
"""

from __future__ import annotations

from struct import Struct as Layout
from typing import Final

from mypy_extensions import mypyc_attr

from precede.core.frequent_effects import Arrive, Deliver
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Instant
from precede.core.messages import Packet
from precede.eventlog.schema import DELIVERED, RECEIVED

UNIT: Final = 32
CONTINUED: Final = 255
BLOCK_BYTES: Final = 2 * 1024 * 1024
"""A block that has grown so large is closed."""

_MESSAGE: Final = Layout("<qiiIHBBq")
_PACKET: Final = Layout("<qiiIHBBqqiiI2xB9x")
_TWO_MESSAGES: Final = Layout("<qiiIHBBqqiiIHBBq")


@mypyc_attr(allow_interpreted_subclasses=True)
class Rows:
    """The units of one block; `take` empties it."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def message(self, kind: int, small: int, process: int, at: Instant, clock: Instant, id: MessageId) -> None:
        """Something that happened to a message."""
        self._buffer += _MESSAGE.pack(at, process, id.source, id.number, id.incarnation, kind, small, clock)

    def node_event(self, kind: int, process: int, at: Instant, clock: Instant) -> None:
        """Something that happened to a node."""
        self._buffer += _MESSAGE.pack(at, process, -1, 0, 0, kind, 0, clock)

    def received(self, process: int, now: Instant, arrive: Arrive) -> None:
        """First copies come to a node that keeps the world's time."""
        for message in arrive.messages:
            self.message(RECEIVED, 0, process, now, now, message.id)

    def delivered(self, process: int, now: Instant, deliver: Deliver) -> None:
        """A message is delivered, likewise."""
        self._buffer += _MESSAGE.pack(
            now, process, deliver.source, deliver.number, deliver.incarnation, DELIVERED, 0, now
        )

    def received_and_delivered(self, process: int, now: Instant, deliver: Deliver) -> None:
        """Both rows of a message that is delivered as it arrives, likewise."""
        source, number, incarnation = deliver.source, deliver.number, deliver.incarnation
        self._buffer += _TWO_MESSAGES.pack(
            now, process, source, number, incarnation, RECEIVED, 0, now,
            now, process, source, number, incarnation, DELIVERED, 0, now,
        )  # fmt: skip

    def received_then_delivered(self, process: int, now: Instant, deliveries: list[Deliver]) -> None:
        """All of them received, then all delivered, likewise."""
        for deliver in deliveries:
            self.message(RECEIVED, 0, process, now, now, deliver.message.id)
        for deliver in deliveries:
            self.delivered(process, now, deliver)

    def packet(
        self,
        kind: int,
        code: int,
        process: int,
        at: Instant,
        clock: Instant,
        packet: Packet,
        peer: NodeId,
        over: int,
        wire_bytes: int = -1,
    ) -> None:
        """A packet that left or came; `code` stands for its kind. Negative wire bytes are unknown."""
        self._buffer += _PACKET.pack(
            at, process, peer, packet.size_bytes, code, kind, over, clock,
            packet.control_bytes, packet.messages, wire_bytes, packet.control_entries, CONTINUED,
        )  # fmt: skip

    def size(self) -> int:
        """How many bytes these rows are as units."""
        return len(self._buffer)

    def mark(self) -> int:
        """Where the next row will begin."""
        return len(self._buffer) // UNIT

    def take(self) -> list[bytes]:
        """All there is, for `blocks` to read; then there is nothing."""
        taken = bytes(self._buffer)
        self._buffer.clear()
        return [taken]
