"""What the vertices of a world write and send: rows of the event log, and packets in the wheel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from librt.vecs import append, vec
from mypy_extensions import i64

from precede.core.effects import WIRED
from precede.core.identity import NodeId
from precede.core.messages import Message
from precede.eventlog.rows import Rows
from precede.eventlog.schema import PACKET_RECEIVED, SENT
from precede.protocols.vcube2018.packets import StampedMessage
from precede.protocols.vcube2018.prepared import ENTRY_BYTES, HEADER_BYTES, Prepared
from precede.sim.flight import Flight
from precede.sim.networks.switched import Switched
from precede.sim.wheel import Wheel
from precede.sim.wheel_world import NODE_BITS

SERIAL_BITS: Final = 30
AGGREGATES: Final = 1 << SERIAL_BITS
"""A content below this is the serial number of a message; from here on it is the place of an aggregate."""
LOWEST_SERIAL: Final = AGGREGATES - 1
"""The mask of the bits that hold a serial number."""
CHILD_BITS: Final = 5
_MOST_CHILDREN: Final = 16


@final
class Aggregate:
    """A packet with several messages, in the order in which the sender received them."""

    __slots__ = ("entries", "messages", "size_bytes")

    def __init__(self, messages: list[Prepared]) -> None:
        self.messages = messages
        self.entries = 0
        self.size_bytes = HEADER_BYTES
        for message in messages:
            self.entries += message.entries
            self.size_bytes += message.size_bytes


@final
class Stack:
    """Words of which the last one is taken first."""

    def __init__(self) -> None:
        self.count: i64 = 0
        self._words = vec[i64]()

    def push(self, word: i64) -> None:
        if self.count == len(self._words):
            self._words = append(self._words, word)
        else:
            self._words[self.count] = word
        self.count += 1

    def pop(self) -> i64:
        self.count -= 1
        return self._words[self.count]


@final
class Released:
    """The messages that one reception releases, for each child in the order of release."""

    def __init__(self) -> None:
        self.children: list[int] = []
        self._contents: list[list[int]] = [[] for _ in range(_MOST_CHILDREN)]

    def add(self, child: int, content: int) -> None:
        contents = self._contents[child]
        if not contents:
            self.children.append(child)
        contents.append(content)

    def has(self, child: int) -> bool:
        return len(self._contents[child]) > 0

    def take(self, child: int) -> list[int]:
        contents = self._contents[child]
        self._contents[child] = []
        self.children.remove(child)
        return contents


@final
class Output:
    """Writes the rows and sends the packets of all vertices, at the instant `now`.

    The number of a node is also that of its process: nodes enter in order, and once. `messages` are the
    messages of the world by serial number. `arrived` and `released` serve the vertex that has an input now.
    """

    def __init__(self, rows: Rows, code: int, network: Switched, wheel: Wheel) -> None:
        self.now = 0
        self.wheel = wheel
        self.messages: list[Prepared] = []
        self.arrived = Stack()
        self.released = Released()
        self.on_deliver: Callable[[NodeId, Message], None] | None = None
        self._rows = rows
        self._code = code
        self._network = network
        self._aggregates: list[Aggregate | None] = []
        self._unused: list[int] = []

    def number(self, stamped: StampedMessage) -> Prepared:
        """Give a new message its serial number."""
        message: Prepared = stamped.prepared
        message.serial = len(self.messages)
        self.messages.append(message)
        return message

    # -- rows ----------------------------------------------------------------------------------------------

    def received(self, node: NodeId, message: Prepared) -> None:
        self._rows.received(node, self.now, message.arrive)

    def delivered(self, node: NodeId, message: Prepared) -> None:
        self._rows.delivered(node, self.now, message.deliver)
        if self.on_deliver is not None:
            self.on_deliver(node, message.deliver.message)

    def received_and_delivered(self, node: NodeId, message: Prepared) -> None:
        self._rows.received_and_delivered(node, self.now, message.deliver)
        if self.on_deliver is not None:
            self.on_deliver(node, message.deliver.message)

    def packet_received(self, node: NodeId, content: i64, sender: NodeId) -> None:
        if content < AGGREGATES:
            self._single_row(PACKET_RECEIVED, node, self.messages[content], sender)
        else:
            aggregate = self._aggregates[content - AGGREGATES]
            assert aggregate is not None
            self._aggregate_row(PACKET_RECEIVED, node, aggregate, sender)

    def _single_row(self, kind: int, node: NodeId, message: Prepared, peer: NodeId) -> None:
        entries = message.entries
        size = HEADER_BYTES + message.size_bytes
        control = ENTRY_BYTES * entries
        self._rows.sized_packet(kind, self._code, node, self.now, peer, WIRED, size, control, entries, 1)

    def _aggregate_row(self, kind: int, node: NodeId, aggregate: Aggregate, peer: NodeId) -> None:
        entries, size, count = aggregate.entries, aggregate.size_bytes, len(aggregate.messages)
        control = ENTRY_BYTES * entries
        self._rows.sized_packet(kind, self._code, node, self.now, peer, WIRED, size, control, entries, count)

    # -- packets -------------------------------------------------------------------------------------------

    def send(self, node: NodeId, flight: Flight | None, message: Prepared, to: NodeId) -> None:
        """Send a packet with one message. `flight` is that of the sender, if the network has it."""
        self._single_row(SENT, node, message, to)
        self._fly(message.serial, node, flight, to)

    def send_aggregate(self, node: NodeId, flight: Flight | None, messages: list[Prepared], to: NodeId) -> None:
        """Send a packet with several messages."""
        if len(messages) == 1:
            self.send(node, flight, messages[0], to)
            return
        aggregate = Aggregate(messages)
        self._aggregate_row(SENT, node, aggregate, to)
        if self._unused:
            place = self._unused.pop()
            self._aggregates[place] = aggregate
        else:
            place = len(self._aggregates)
            self._aggregates.append(aggregate)
        self._fly(AGGREGATES + place, node, flight, to)

    def take_aggregate(self, content: i64) -> list[Prepared]:
        """Return the messages of an aggregate that has arrived, and forget it."""
        place = content - AGGREGATES
        aggregate = self._aggregates[place]
        assert aggregate is not None
        self._aggregates[place] = None
        self._unused.append(place)
        return aggregate.messages

    def _fly(self, content: i64, node: i64, flight: Flight | None, to: i64) -> None:
        now = self.now
        at = self._network.lands_at(node, to, now) if flight is None else now + flight.takes(now)
        self.wheel.add(at, (content << NODE_BITS | to) << NODE_BITS | node)
