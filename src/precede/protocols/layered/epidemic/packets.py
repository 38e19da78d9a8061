"""What two nodes in contact say to each other: what they hold, and messages (guidec2021, section III).

The paper has no size model. Ours: an id is 16 bytes (source, number), a packet's header 8; a message is its
payload and its ordering's stamp. Barrier entries count as control entries; ids in a summary do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar, Final

from precede.core.identity import MessageId
from precede.core.instants import Instant
from precede.core.messages import ControlOnlyPacket, Packet, Size, Written
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.parsed_envelopes import NEVER, Batch, batch_of

HEADER_BYTES: Final = 8
ID_BYTES: Final = 16


class SummaryPacket(ControlOnlyPacket, frozen=True, gc=False):
    """Everything the sender holds, or has held and will not take again."""

    kind: ClassVar[str] = "summary"
    ids: frozenset[MessageId]

    control_entries: ClassVar[int] = 0

    @property
    def size_bytes(self) -> int:
        return HEADER_BYTES + ID_BYTES * len(self.ids)


class HavePacket(ControlOnlyPacket, frozen=True, gc=False):
    """What the sender holds since its last word."""

    kind: ClassVar[str] = "have"
    ids: tuple[MessageId, ...]

    control_entries: ClassVar[int] = 0

    @property
    def size_bytes(self) -> int:
        return HEADER_BYTES + ID_BYTES * len(self.ids)


class MessagesPacket(Packet, frozen=True, gc=True, dict=True):
    """Messages, in the order in which they were sent; made by `packed`, which counts the sizes.

    `first_end` is the first of their deadlines: a receiver that reads an earlier clock need not look at each.
    """

    kind: ClassVar[str] = "messages"
    envelopes: tuple[Envelope, ...]
    first_end: Instant | None
    size_bytes: Size
    control_bytes: Size
    control_entries: Size

    def written(self) -> Sequence[Written]:
        return [envelope.written() for envelope in self.envelopes]

    @property
    def messages(self) -> int:
        return len(self.envelopes)

    @cached_property
    def batch(self) -> Batch:
        """Read once for all that it is passed on to."""
        return batch_of(self.envelopes)

    @property
    def ids(self) -> tuple[MessageId, ...]:
        """What it brings: by this a transfer is known again elsewhere (`core.transfers`)."""
        return tuple(self.batch.ids)


def packed(envelopes: Sequence[Envelope]) -> MessagesPacket:
    """One packet of these."""
    return packet_of(batch_of(envelopes))


def packet_of(batch: Batch) -> MessagesPacket:
    """One packet of a batch."""
    control = batch.control_bytes + HEADER_BYTES + ID_BYTES * len(batch.ids)
    ends = None if batch.first_end == NEVER else batch.first_end
    size = batch.payload_bytes + control
    packet = MessagesPacket(tuple(batch.envelopes()), ends, size, control, batch.control_entries)
    packet.__dict__["batch"] = batch
    return packet
