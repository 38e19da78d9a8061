"""Packets that two nodes in contact exchange: summaries, notices and messages (guidec2021, section III).

The paper has no size model. Ours: an id is 16 bytes (source, number), a packet's header 8; a message is its
payload and its ordering's stamp. Barrier entries count as control entries; ids in a summary do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

from msgspec import Meta

from precede.core.identity import MessageId
from precede.core.instants import Instant
from precede.core.lazy import lazy
from precede.core.messages import MOST_MESSAGES, ControlOnlyPacket, Packet, Size, Written
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.parsed_envelopes import NEVER, Batch, batch_of

HEADER_BYTES: Final = 8
ID_BYTES: Final = 16


class SummaryPacket(ControlOnlyPacket, frozen=True, gc=False):
    """The ids of all messages that the sender holds or has evicted. A receiver does not send it these."""

    kind: ClassVar[str] = "summary"
    ids: frozenset[MessageId]

    control_entries: ClassVar[int] = 0

    @property
    def size_bytes(self) -> int:
        return HEADER_BYTES + ID_BYTES * len(self.ids)


class HavePacket(ControlOnlyPacket, frozen=True, gc=False):
    """The ids of messages that have just entered the sender's cache, after it sent its summary."""

    kind: ClassVar[str] = "have"
    ids: tuple[MessageId, ...]

    control_entries: ClassVar[int] = 0

    @property
    def size_bytes(self) -> int:
        return HEADER_BYTES + ID_BYTES * len(self.ids)


class BatchPacket(Packet, frozen=True, gc=True, dict=True):
    """A packet with messages in the order of their transfer."""

    envelopes: Annotated[tuple[Envelope, ...], Meta(max_length=MOST_MESSAGES)]

    def written(self) -> Sequence[Written]:
        return [envelope.written(relayed=True) for envelope in self.envelopes]

    def divided(self, most: int) -> Sequence[Packet]:
        contents = self.batch.contents
        return [self.with_batch(Batch(contents[n : n + most])) for n in range(0, len(contents), most)]

    if TYPE_CHECKING:

        def with_batch(self, batch: Batch) -> Packet:
            """Return a packet like this one with the messages of a batch."""

    @lazy
    def messages(self) -> int:
        return len(self.envelopes)

    @lazy
    def batch(self) -> Batch:
        """The envelopes, parsed once for all nodes to which this packet is passed on."""
        return batch_of(self.envelopes)

    @property
    def ids(self) -> tuple[MessageId, ...]:
        """The ids of its messages: `core.transfers` recognises a transfer by them."""
        return tuple(self.batch.ids)


class MessagesPacket(BatchPacket, frozen=True, gc=True, dict=True):
    """Messages of a transfer. Built by `packed` or `packet_of`, which compute the sizes.

    `first_deadline` is the earliest of their deadlines; None if no message has one.
    """

    kind: ClassVar[str] = "messages"
    first_deadline: Instant | None
    size_bytes: Size
    control_bytes: Size
    control_entries: Size

    def with_batch(self, batch: Batch) -> Packet:
        return packet_of(batch)


def packed(envelopes: Sequence[Envelope]) -> MessagesPacket:
    return packet_of(batch_of(envelopes))


def packet_of(batch: Batch) -> MessagesPacket:
    """Return one packet with the envelopes of a batch."""
    control = batch.control_bytes + HEADER_BYTES + ID_BYTES * len(batch.ids)
    first_deadline = None if batch.first_deadline == NEVER else batch.first_deadline
    size = batch.payload_bytes + control
    packet = MessagesPacket(tuple(batch.envelopes()), first_deadline, size, control, batch.control_entries)
    packet.__dict__["batch"] = batch
    return packet
