"""The packets of causal multicast, and the stamp that a rule puts on a message (prs1997)."""

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from msgspec import Struct

from precede.core.identity import Incarnation
from precede.core.messages import Message, Packet, Size, Written
from precede.protocols.multicast.process import Process, node_of

INTEGER_BYTES: Final = 4
HEADER_BYTES: Final = 20


class Stamp(Struct, frozen=True, gc=False, array_like=True):
    """The ordering data of a message and its size, counted when the stamp is made.

    `integers` is the papers' measure. `entries` counts tuples, matrix elements or vector elements.
    `order_bytes` is the size of the encoding with 32-bit integers.
    """

    integers: Size
    entries: Size
    order_bytes: Size


class MulticastPacket(Packet, frozen=True, gc=False):
    """A message to one of its destinations. A subclass gives `stamp` the type of its rule."""

    message: Message
    destinations: tuple[Process, ...]
    stamp: Any

    def written(self) -> Sequence[Written]:
        to = tuple(map(node_of, self.destinations))
        return (Written(self.message, to, None, (self.destinations, self.stamp)),)

    @property
    def size_bytes(self) -> int:
        return self.control_bytes + len(self.message.payload)

    @property
    def control_bytes(self) -> int:
        order_bytes: int = self.stamp.order_bytes
        return HEADER_BYTES + INTEGER_BYTES * len(self.destinations) + order_bytes

    @property
    def control_entries(self) -> int:
        entries: int = self.stamp.entries
        return entries

    @property
    def messages(self) -> int:
        return 1


class LifePacket(Packet, frozen=True, gc=False):
    """Announces that the sender has lost its state and is in a new incarnation, or (`gone`) that it leaves."""

    kind: ClassVar[str] = "life"
    size_bytes: ClassVar[int] = HEADER_BYTES
    control_bytes: ClassVar[int] = HEADER_BYTES
    control_entries: ClassVar[int] = 0
    messages: ClassVar[int] = 0
    incarnation: Incarnation
    gone: bool = False
