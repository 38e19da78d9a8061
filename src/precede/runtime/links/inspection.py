"""What is let in: between the codec and the node, every packet is looked at once.

A packet whose numbers no honest member could have written, that is meant for somebody else, or that its author
did not sign is dropped whole and counted under a reason: `absurd`, `far_future`, `deadline`, `huge_barrier`,
`misaddressed`, `forged`, `unsigned`, `unknown_author`. An honest relay passes on only what it would itself let
in, so nothing honest is lost with it. Memory: one number for each of the streams heard of lately.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

import msgspec

from precede.core.identity import MessageId, NodeId
from precede.core.instants import DAY, Duration, Instant
from precede.core.messages import Packet, Written
from precede.runtime.links.authorship import Authors

MOST_NUMBER: Final = 1 << 40
MOST_NODE: Final = 1 << 48
MOST_LIFE: Final = 1 << 15
MOST_AHEAD: Final = 1 << 20
"""How far a message's number may be ahead of the last one delivered of its source's life."""
MOST_LIFETIME: Final[Duration] = 3660 * DAY
MOST_ORDER_BYTES: Final = 1 << 18
_MOST_STREAMS: Final = 1 << 16


class Inspection:
    """One node's. `authors` is None where members trust each other."""

    def __init__(self, me: NodeId, incarnation: int, authors: Authors | None = None) -> None:
        self._me = me
        self._incarnation = incarnation
        self._authors = authors
        self._encode = msgspec.msgpack.Encoder().encode
        self._tops: OrderedDict[tuple[NodeId, int], int] = OrderedDict()

    def outgoing(self, packet: Packet) -> None:
        """Just before it is encoded."""
        if self._authors is not None:
            self._authors.sign(packet)

    def delivered(self, id: MessageId) -> None:
        """Its place is final: what follows it may have numbers a window further."""
        stream = (id.source, id.incarnation)
        if self._tops.get(stream, 0) < id.number:
            self._tops[stream] = id.number
            if len(self._tops) > _MOST_STREAMS:
                self._tops.popitem(last=False)

    def incoming(self, packet: Packet, size: int, now: Instant, accepted: int) -> str | None:
        """Why this packet of `size` bytes is not let in; None if it is. `accepted`: the last own number."""
        items = list(packet.written())
        for item in items:
            reason = self._strange(item, size, now, accepted)
            if reason is not None:
                return reason
        if self._authors is not None:
            if packet.messages != len(items):
                return "unsigned"
            return self._authors.check(items)
        return None

    def _strange(self, item: Written, size: int, now: Instant, accepted: int) -> str | None:
        id = item.message.id
        if not (
            0 <= id.source < MOST_NODE and 0 <= id.incarnation < MOST_LIFE and 0 < id.number <= MOST_NUMBER
        ):
            return "absurd"
        top = self._tops.get((id.source, id.incarnation))
        if top is not None and id.number > top + MOST_AHEAD:
            return "far_future"
        if id.source == self._me and id.incarnation == self._incarnation and id.number > accepted:
            return "forged"
        if item.deadline is not None and item.deadline > now + MOST_LIFETIME:
            return "deadline"
        if item.destinations is not None and self._me not in item.destinations:
            return "misaddressed"
        if size > MOST_ORDER_BYTES and len(self._encode(item.order)) > MOST_ORDER_BYTES:
            return "huge_barrier"
        return None
