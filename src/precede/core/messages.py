"""Messages (what an application broadcasts) and packets (what crosses a link)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, TypeAlias

from msgspec import Meta, Struct

from precede.core.identity import MessageId, NodeId
from precede.core.instants import Instant

Size: TypeAlias = Annotated[int, Meta(ge=0, le=1 << 28)]
"""A size by a paper's model, sent as a field. Only tables of results use it, so its bounds are wide."""
PartSize: TypeAlias = Annotated[int, Meta(ge=0, le=1 << 20)]
"""A size of one message's control data: those of `MOST_MESSAGES` messages together are a valid `Size`."""
MOST_MESSAGES: Final = 128
"""How many messages a packet may have that can be divided: a receiver checks every signature at once."""


class Message(Struct, frozen=True, gc=False, array_like=True):
    """A message of an application: its id and its payload. Ordering data is in packets, not here.

    `signature` is the source's signature over `Written`, with what the runtime needs to check it; the runtime
    adds and checks it, protocols only carry it.
    """

    id: MessageId
    payload: bytes
    signature: bytes = b""

    @property
    def source(self) -> NodeId:
        return self.id.source


class Written(Struct, frozen=True, gc=False, array_like=True):
    """A message with everything its source wrote about it: the content that its signature covers.

    `destinations` are the only nodes that may receive this packet; None if every node may, as with relays.
    `order` is the rest: a barrier, a vector, the destinations of a relayed message.
    """

    message: Message
    destinations: tuple[NodeId, ...] | None = None
    deadline: Instant | None = None
    order: Any = None
    author: NodeId | None = None
    """The source that the packet itself names, as a flood does. It must be the source in the message's id."""
    holder: Any = None
    """The object that carries the signature if there is no message: a flood without one, with number 0."""
    same_for_all: bool = False
    """Every copy of the message has these data: no destination gets others, and the source keeps them."""


class Packet(Struct, frozen=True, gc=False, array_like=True, tag=True):
    """One packet on a link, with its sizes by the size model of its paper.

    A subclass names its `kind` and gives the four sizes, each as a field (read in the hot path) or a property.
    Its fields are plain decodable values (numbers, bytes, tuples, dicts, frozen structs), because the runtime
    decodes untrusted bytes into exactly these types.
    """

    kind: ClassVar[str]
    to_all: ClassVar[bool] = False
    """True if nodes send it to all neighbours at once. Over sockets any member can then forge its sender, so a
    packet in which the sender counts must not be such a one."""

    def written(self) -> Sequence[Written]:
        """Return the packet's messages with what their sources wrote, without data that relays added."""
        message = getattr(self, "message", None)
        return () if message is None else (Written(message),)

    def joined(self, later: Packet) -> Packet | None:
        """Return one packet that stands for this one and a later one to the same receivers; None if both stay.

        Only the runtime joins packets, those that a node sends in one turn.
        """
        return None

    def divided(self, most: int) -> Sequence[Packet]:
        """Return packets with at most `most` messages each that stand for this one, if it can be divided.

        Only the runtime divides packets: receivers refuse more messages at once (`MOST_MESSAGES`).
        """
        return (self,)

    if TYPE_CHECKING:

        @property
        def size_bytes(self) -> int:
            """The size of the whole packet: header, payloads and control data."""

        @property
        def control_bytes(self) -> int:
            """The part of `size_bytes` that exists for order or dissemination."""

        @property
        def control_entries(self) -> int:
            """The number of entries of vectors, barriers, matrices or tuples: the papers' unit of cost."""

        @property
        def messages(self) -> int:
            """The number of application messages it carries."""


class ControlOnlyPacket(Packet, frozen=True, gc=False):
    """A packet without application messages: every byte, the header included, counts as control data."""

    messages: ClassVar[int] = 0

    @property
    def control_bytes(self) -> int:
        return self.size_bytes


class EntrySizedPacket(Packet, frozen=True, gc=False):
    """A packet whose size is a header, a fixed number of bytes for each control entry, and the payload.

    A subclass gives `header_bytes` and `control_entries`; one with a field `message` sets `messages` to 1.
    `uncounted_bytes` are control fields that the paper does not count as entries.
    """

    header_bytes: ClassVar[int]
    entry_bytes: ClassVar[int] = 4
    uncounted_bytes: ClassVar[int] = 0
    messages: ClassVar[int] = 0

    @property
    def control_bytes(self) -> int:
        return self.entry_bytes * self.control_entries + self.uncounted_bytes

    @property
    def size_bytes(self) -> int:
        message = getattr(self, "message", None)
        payload_bytes = 0 if message is None else len(message.payload)
        return self.header_bytes + self.control_bytes + payload_bytes
