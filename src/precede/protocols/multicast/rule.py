"""What PRS and its rivals share: processes, stamps, packets, and the `Rule` in which they differ (prs1997).

A message goes to a set of destinations chosen per message. The algorithms differ in what it carries and when it
may be delivered; `multicast_node` is the node around a rule.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeAlias

from msgspec import Struct

from precede.core.identity import MessageId, NodeId
from precede.core.messages import Message, Packet, Written
from precede.protocols.multicast.address_book import AddressBook

INTEGER_BYTES: Final = 4
HEADER_BYTES: Final = 20

Process: TypeAlias = int
"""One life of a node. One that forgot everything is a new process: what was sent to the old is not for it."""

LIFE_SHIFT: Final = 48
NODE_MASK: Final = (1 << LIFE_SHIFT) - 1


def process_of(node: NodeId, incarnation: int) -> Process:
    """The process a node is in one incarnation; in the first one its number is the node's."""
    return node | incarnation << LIFE_SHIFT


def node_of(process: Process) -> NodeId:
    """Which node a process is a life of."""
    return process & NODE_MASK


def message_of(process: Process, number: int) -> MessageId:
    """The id of a process's message."""
    return MessageId(process & NODE_MASK, process >> LIFE_SHIFT, number)


class Stamp(Struct, frozen=True, gc=False, array_like=True):
    """What a message carries for its order, counted where it is made.

    `integers` is the papers' measure; `entries` the tuples, matrix elements or vector elements among them;
    `order_bytes` what the encoding takes with 32-bit integers.
    """

    integers: int
    entries: int
    order_bytes: int


class MulticastPacket(Packet, frozen=True, gc=False):
    """A message to one of its destinations. A subclass gives `stamp` its rule's type."""

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
    """I am in this incarnation, having forgotten everything before; or (`gone`) I leave for good."""

    kind: ClassVar[str] = "life"
    size_bytes: ClassVar[int] = HEADER_BYTES
    control_bytes: ClassVar[int] = HEADER_BYTES
    control_entries: ClassVar[int] = 0
    messages: ClassVar[int] = 0
    incarnation: int
    gone: bool = False


class Rule(ABC):
    """What PRS, RST and SES differ in. `reached` only grows; a stamp's needs are thresholds on it."""

    me: Process
    reached: dict[Process, int]
    packet: type[MulticastPacket]
    names_messages: bool = False
    """Are the thresholds in `needs` numbers of messages?"""

    def check(self, to: Sequence[NodeId], book: AddressBook) -> None:
        """Raise Refused when this rule cannot send to these."""

    @abstractmethod
    def stamp(self, number: int, destinations: tuple[Process, ...], population: int) -> Sequence[Stamp]:
        """Message send: one stamp for each destination, or one for all. Moves the state past the sending."""

    @abstractmethod
    def needs(self, stamp: Any) -> Mapping[Process, int]:
        """Message reception, the condition: deliver when `reached` is at least this."""

    @abstractmethod
    def deliver(
        self, source: Process, number: int, destinations: tuple[Process, ...], stamp: Any
    ) -> Iterable[Process]:
        """Message reception, after the wait: update the state; which elements of `reached` have grown?"""

    @abstractmethod
    def forget(self, node: NodeId, life: int) -> None:
        """Nobody will send to this node's lives before `life` any more."""

    @abstractmethod
    def save(self) -> Any:
        """The state as plain data that later inputs do not change."""

    @abstractmethod
    def load(self, state: Any) -> None:
        """The state as it was saved."""

    @abstractmethod
    def sizes(self) -> Mapping[str, int]:
        """The rule's registries by name."""
