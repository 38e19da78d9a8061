"""Inspection: checks every decoded packet before the node receives it.

A packet is dropped whole, and counted under a reason, if it has numbers that no honest member writes
(`far_future`, `deadline`, `huge_barrier`; the codec has checked their ranges), if it is addressed to others
and no relay carries such packets (`misaddressed`), if a signature is wrong (`forged`, `unsigned`,
`unknown_author`), or if too many bytes wait already (`waiting_full`). An honest relay forwards only packets
that pass the same checks, so no honest message is lost with it. The state is two numbers for each recent
stream, and the sizes of the waiting messages.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import msgspec

from precede.core.effects import Effects
from precede.core.identity import MessageId, NodeId
from precede.core.instants import DAY, Duration, Instant
from precede.core.messages import Message, Packet, Written
from precede.runtime.links.authorship import Authors
from precede.runtime.links.waiting_bound import WaitingBound

MOST_AHEAD: Final = 1 << 20
"""How far a message's number may be ahead of the last one delivered in its stream, or of the first accepted."""
MOST_LIFETIME: Final[Duration] = 3660 * DAY
MOST_ORDER_BYTES: Final = 1 << 18
_MOST_STREAMS: Final = 1 << 16


class Inspection:
    """Checks the packets that one node receives. `authors` is None where members trust each other."""

    def __init__(self, me: NodeId, incarnation: int, authors: Authors | None = None) -> None:
        self._me = me
        self._incarnation = incarnation
        self._authors = authors
        self._encode = msgspec.msgpack.Encoder().encode
        self._last_delivered: OrderedDict[tuple[NodeId, int], int] = OrderedDict()
        self._first_accepted: OrderedDict[tuple[NodeId, int], int] = OrderedDict()
        self._waiting = WaitingBound()
        self.on_rollback: Callable[[], None] = lambda: None

    def accepting(self, effects: Effects) -> None:
        """Add the previous message's hash to own messages that a node accepts, before any is persisted."""
        if self._authors is not None:
            self._authors.accept(effects)

    def outgoing(self, packet: Packet) -> None:
        if self._authors is not None:
            self._authors.sign(packet)

    def delivered(self, id: MessageId) -> None:
        """Record a delivered message: higher numbers of its stream are accepted from now on."""
        stream = (id.source, id.incarnation)
        if self._last_delivered.get(stream, 0) < id.number:
            _remember(self._last_delivered, stream, id.number)
        self._waiting.done(id)

    def arrived(self, message: Message) -> None:
        """Count a message that arrived as waiting, unless it is this node's own."""
        if message.id.source != self._me:
            self._waiting.arrived(message)

    def discarded(self, id: MessageId) -> None:
        self._waiting.done(id)

    def incoming(self, packet: Packet, size: int, now: Instant, accepted: int) -> str | None:
        """Return why a packet of `size` bytes is dropped, or None; `accepted` is this node's last number."""
        items = list(packet.written())
        for item in items:
            reason = self._implausible(item, size, now, accepted)
            if reason is not None:
                return reason
        if self._authors is not None:
            if packet.messages > len(items):
                return "unsigned"
            reason = self._authors.check(items)
            if reason is not None:
                return reason
        for item in items:
            id = item.message.id
            if id.number and (id.source, id.incarnation) not in self._first_accepted:
                _remember(self._first_accepted, (id.source, id.incarnation), id.number)
        return None

    def _own_future(self, item: Written) -> str:
        """Return why a message of this node that it has not written yet is dropped.

        If this node's key signed it, its store was rolled back: it wrote the message and does not know it.
        """
        if self._authors is None or self._authors.check([item]) is not None:
            return "forged"
        self.on_rollback()
        return "rolled_back"

    def _implausible(self, item: Written, size: int, now: Instant, accepted: int) -> str | None:
        id = item.message.id
        if item.author is not None and item.author != id.source:
            return "forged"
        stream = (id.source, id.incarnation)
        last = self._last_delivered.get(stream, 0)
        if id.number > (last or self._first_accepted.get(stream, id.number)) + MOST_AHEAD:
            return "far_future"
        if id.source == self._me and id.incarnation == self._incarnation and id.number > accepted:
            return self._own_future(item)
        if item.deadline is not None and item.deadline > now + MOST_LIFETIME:
            return "deadline"
        if item.destinations is not None and self._me not in item.destinations:
            return "misaddressed"
        if size > MOST_ORDER_BYTES and len(self._encode(item.order)) > MOST_ORDER_BYTES:
            return "huge_barrier"
        if id.number and self._waiting.is_full_for(item.message, last):
            return "waiting_full"
        return None


def _remember(numbers: OrderedDict[tuple[NodeId, int], int], stream: tuple[NodeId, int], number: int) -> None:
    numbers[stream] = number
    if len(numbers) > _MOST_STREAMS:
        numbers.popitem(last=False)
