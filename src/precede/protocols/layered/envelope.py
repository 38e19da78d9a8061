"""`Envelope`: what an ordering and a dissemination exchange, a message with its ordering's stamp."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from precede.core.identity import NodeId
from precede.core.instants import Instant
from precede.core.messages import Message, Packet, PartSize, Written
from precede.protocols.layered.parsed_envelopes import NEVER
from precede.protocols.layered.streams import Stream, stream_of

HEADER_BYTES: Final = 20


class Envelope(Struct, frozen=True, gc=False, array_like=True):
    """A message with the stamp of its ordering, which the dissemination does not read, and the stamp's size."""

    message: Message
    stamp: Any
    deadline: Instant | None
    destinations: tuple[NodeId, ...] | None
    control_bytes: PartSize
    control_entries: PartSize
    born: Instant = 0
    """When it was broadcast, by its source's clock. Decides what is sent first, not the order of delivery."""

    @property
    def name(self) -> tuple[Stream, int, Instant]:
        """Stream, number and deadline, by which barriers name the message."""
        id = self.message.id
        return stream_of(id), id.number, NEVER if self.deadline is None else self.deadline

    @property
    def size_bytes(self) -> int:
        return len(self.message.payload) + self.control_bytes

    def written(self, relayed: bool = False) -> Written:
        """Return what the source signs. With `relayed`, every node may receive the packet."""
        order = (self.stamp, self.destinations, self.born)
        to = None if relayed else self.destinations
        return Written(self.message, to, self.deadline, order, same_for_all=True)


class EnvelopePacket(Packet, frozen=True, gc=False):
    """A packet with one envelope and a header of 20 bytes."""

    envelope: Envelope

    def written(self) -> Sequence[Written]:
        return (self.envelope.written(),)

    @property
    def size_bytes(self) -> int:
        return HEADER_BYTES + self.envelope.size_bytes

    @property
    def control_bytes(self) -> int:
        return HEADER_BYTES + self.envelope.control_bytes

    @property
    def control_entries(self) -> int:
        return self.envelope.control_entries

    @property
    def messages(self) -> int:
        return 1
