"""The copies that nodes carry, the nodes they are in contact with, and the packets between them.

An id is 16 bytes, a header 8, and a likelihood 12: a node and a number.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, ClassVar, Final, TypeAlias

from msgspec import Meta, Struct
from msgspec.structs import replace

from precede.core.identity import MessageId, NodeId
from precede.core.messages import ControlOnlyPacket, Written
from precede.protocols.layered.envelope import Envelope, EnvelopePacket

HEADER_BYTES: Final = 8
ID_BYTES: Final = 16
MOST_HOPS: Final = 1 << 15
MOST_ACKNOWLEDGED: Final = 1 << 14
"""How many delivered messages a node tells of; above that, the oldest is forgotten."""
MOST_CONTROL_BYTES: Final = 1 << 16
MOST_IDS_OF_A_PEER: Final = 1 << 17
"""How many ids a node remembers that a node in contact has; above that, the oldest is forgotten."""

Hops: TypeAlias = Annotated[int, Meta(ge=0, le=MOST_HOPS)]
Copies: TypeAlias = Annotated[int, Meta(ge=1, le=1 << 20)]
Likelihood: TypeAlias = Annotated[float, Meta(ge=0, le=1 << 40)]
"""A likelihood, at most 1, or a number of encounters."""


class HelloPacket(ControlOnlyPacket, frozen=True, gc=False):
    """Sent on meeting a node: ids this node needs no copy of, likelihoods by node, delivered messages."""

    kind: ClassVar[str] = "hello"
    ids: frozenset[MessageId]
    likelihoods: dict[NodeId, dict[NodeId, Likelihood]]
    delivered: Annotated[frozenset[MessageId], Meta(max_length=MOST_ACKNOWLEDGED)]

    @property
    def control_entries(self) -> int:
        return sum(map(len, self.likelihoods.values()))

    @property
    def size_bytes(self) -> int:
        return HEADER_BYTES + ID_BYTES * (len(self.ids) + len(self.delivered)) + 12 * self.control_entries


class GotPacket(ControlOnlyPacket, frozen=True, gc=False):
    """Tells that the sender has a message. `taken`: it has just stored the copy that was sent to it."""

    kind: ClassVar[str] = "got"
    id: MessageId
    taken: bool

    control_entries: ClassVar[int] = 0
    size_bytes: ClassVar[int] = HEADER_BYTES + ID_BYTES


class RoutedPacket(EnvelopePacket, frozen=True, gc=False):
    """A message on its way, the number of copies that the receiver may make, and its hops so far."""

    kind: ClassVar[str] = "routed"
    copies: Copies
    hops: Hops

    def written(self) -> Sequence[Written]:
        return (self.envelope.written(relayed=True),)


PACKETS: Final = (HelloPacket, GotPacket, RoutedPacket)


class Copy:
    """A message that a node carries. `copies`: how many copies it stands for; `hops`: its hops so far."""

    __slots__ = ("copies", "envelope", "hops", "id")

    def __init__(self, envelope: Envelope, copies: int, hops: int) -> None:
        self.envelope = envelope
        self.id = envelope.message.id
        self.copies = copies
        self.hops = hops

    @property
    def size_bytes(self) -> int:
        """The bytes that it takes in a buffer. What a source claims about its order data counts little."""
        return len(self.envelope.message.payload) + min(self.envelope.control_bytes, MOST_CONTROL_BYTES)

    def is_for(self, node: NodeId) -> bool:
        return self.envelope.destinations is None or node in self.envelope.destinations


class Contact(Struct, eq=False):
    """A node in contact: the ids that it `has`, the copies that it `lacks`, and the one on its way to it."""

    number: int
    has: dict[MessageId, None] | None = None
    lacks: dict[MessageId, Copy] = {}
    in_flight: Copy | None = None

    def learn(self, ids: Iterable[MessageId], held: Mapping[MessageId, Copy]) -> None:
        """The node has told in its hello which messages it has; `held` are those carried here."""
        self.has = has = dict.fromkeys(ids)
        self.lacks = {id: copy for id, copy in held.items() if id not in has}

    def note(self, id: MessageId) -> None:
        """The node has this message, too."""
        has = self.has
        if has is not None:
            has[id] = None
            self.lacks.pop(id, None)
            if len(has) > MOST_IDS_OF_A_PEER:
                del has[next(iter(has))]

    def offer(self, copy: Copy) -> None:
        """From now on this copy is carried here."""
        if self.has is not None and copy.id not in self.has:
            self.lacks[copy.id] = copy


def without_payload(envelope: Envelope) -> Envelope:
    """Return what is left to remember of a message that is not carried."""
    return replace(envelope, message=replace(envelope.message, payload=b""))
