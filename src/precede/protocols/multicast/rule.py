"""The interface of a multicast rule, with its processes, stamps and packets (prs1997).

A message goes to a set of destinations chosen for it. PRS, RST and SES differ in what a message carries and in
when it may be delivered: that is a `Rule`. `MulticastNode` (`node.py`) does the rest.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final, TypeAlias

from msgspec import Meta, Struct

from precede.core.identity import Incarnation, MessageId, NodeId
from precede.core.messages import Message, Packet, Size, Written
from precede.protocols.multicast.address_book import AddressBook

INTEGER_BYTES: Final = 4
HEADER_BYTES: Final = 20

Process: TypeAlias = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
"""A node in one incarnation. A node that lost its state is a new process, and gets no earlier messages."""

INCARNATION_SHIFT: Final = 48
NODE_MASK: Final = (1 << INCARNATION_SHIFT) - 1


def process_of(node: NodeId, incarnation: int) -> Process:
    """Return the process of a node in one incarnation. In the first one it equals the node's number."""
    return node | incarnation << INCARNATION_SHIFT


def node_of(process: Process) -> NodeId:
    return process & NODE_MASK


def incarnation_of(process: Process) -> int:
    return process >> INCARNATION_SHIFT


def message_of(process: Process, number: int) -> MessageId:
    return MessageId(process & NODE_MASK, process >> INCARNATION_SHIFT, number)


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


class Rule(ABC):
    """An algorithm of causal multicast: its state, what a message carries, when it may be delivered.

    `me` is this process. `reached` maps a process to a number that only grows; a stamp is deliverable when
    `reached` has passed the thresholds in `needs`.
    """

    me: Process
    reached: dict[Process, int]
    packet: type[MulticastPacket]
    names_messages: bool = False
    """Are the thresholds in `needs` message numbers?"""

    def check(self, to: Sequence[NodeId], book: AddressBook) -> None:
        """Raise Refused if this rule cannot send to these nodes."""

    @abstractmethod
    def stamp(self, number: int, destinations: tuple[Process, ...], population: int) -> Sequence[Stamp]:
        """Return one stamp for each destination, or one for all, and record that the message is sent."""

    @abstractmethod
    def needs(self, stamp: Any) -> Mapping[Process, int]:
        """Return thresholds: the message is deliverable when `reached` is at least this for each process."""

    @abstractmethod
    def deliver(
        self, source: Process, number: int, destinations: tuple[Process, ...], stamp: Any
    ) -> Iterable[Process]:
        """Update the state after a message was delivered. Returns the processes whose `reached` grew."""

    @abstractmethod
    def forget(self, node: NodeId, incarnation: int) -> None:
        """Remove the data about messages to this node's incarnations before `incarnation`; none are sent."""

    @abstractmethod
    def save(self) -> Any:
        """Return the state as plain data that later inputs do not change."""

    @abstractmethod
    def load(self, state: Any) -> None:
        """Replace the state by one that `save` returned."""

    @abstractmethod
    def sizes(self) -> Mapping[str, int]:
        """Return the number of entries of the rule's registries, by name."""


def is_before(process: Process, node: NodeId, incarnation: int) -> bool:
    return process & NODE_MASK == node and process >> INCARNATION_SHIFT < incarnation
