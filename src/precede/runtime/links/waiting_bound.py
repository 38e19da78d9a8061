"""Bounds the bytes of messages that have arrived and were not delivered or discarded yet.

A malicious source can leave gaps in its stream, or name predecessors that do not exist, so that its messages
wait. Above the bounds a message is dropped, and its neighbours send it again later. The next message of a
stream is always accepted: in every order the first undelivered messages are next in their streams, so the
waiting messages of honest sources are delivered in the end. Under a multicast order the next message need not
be addressed to this node; so up to twice the bound a number below all that wait in its stream is accepted too.
"""

from __future__ import annotations

from typing import Final

from precede.core.identity import MessageId, NodeId
from precede.core.messages import Message

MOST_WAITING_BYTES: Final = 256 << 20
MOST_WAITING_BYTES_PER_SOURCE: Final = 16 << 20
MESSAGE_OVERHEAD_BYTES: Final = 512
"""Added to the payload of each message: its id, its order data and its places in tables."""


class WaitingBound:
    """Counts the bytes of the waiting messages of one node."""

    def __init__(self) -> None:
        self.total = 0
        self._per_source: dict[NodeId, int] = {}
        self._streams: dict[tuple[NodeId, int], dict[int, int]] = {}

    def arrived(self, message: Message) -> None:
        """Count a message that arrived. It waits until it is delivered or discarded."""
        id = message.id
        numbers = self._streams.setdefault((id.source, id.incarnation), {})
        if id.number not in numbers:
            numbers[id.number] = size = len(message.payload) + MESSAGE_OVERHEAD_BYTES
            self.total += size
            self._per_source[id.source] = self._per_source.get(id.source, 0) + size

    def done(self, id: MessageId) -> None:
        """Stop counting a message that was delivered or discarded."""
        stream = (id.source, id.incarnation)
        numbers = self._streams.get(stream)
        if numbers is not None and (size := numbers.pop(id.number, 0)):
            self.total -= size
            self._per_source[id.source] -= size
            if not self._per_source[id.source]:
                del self._per_source[id.source]
            if not numbers:
                del self._streams[stream]

    def is_full_for(self, message: Message, last_delivered: int) -> bool:
        """Must a message be dropped because too many bytes wait? Never the next one after `last_delivered`."""
        size = len(message.payload) + MESSAGE_OVERHEAD_BYTES
        if self.total + size <= MOST_WAITING_BYTES_PER_SOURCE:
            return False
        id = message.id
        source_bytes = self._per_source.get(id.source, 0) + size
        if self.total + size <= MOST_WAITING_BYTES and source_bytes <= MOST_WAITING_BYTES_PER_SOURCE:
            return False
        if id.number == last_delivered + 1:
            return False
        lowest = min(self._streams.get((id.source, id.incarnation), (0,)))
        return not (id.number < lowest and source_bytes <= 2 * MOST_WAITING_BYTES_PER_SOURCE)
