"""The packet with which a node acknowledges messages (`outbox`)."""

from typing import ClassVar, Final

from precede.core.identity import MessageId
from precede.core.messages import ControlOnlyPacket

ACK_BYTES: Final = 8


class AckPacket(ControlOnlyPacket, frozen=True, gc=False):
    """Acknowledges messages: the sender has received and, if durable, persisted them. Eight bytes each."""

    kind: ClassVar[str] = "ack"
    ids: tuple[MessageId, ...]

    @property
    def size_bytes(self) -> int:
        return ACK_BYTES * len(self.ids)

    @property
    def control_entries(self) -> int:
        return len(self.ids)
