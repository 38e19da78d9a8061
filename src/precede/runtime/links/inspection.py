"""Inspection: checks every decoded packet before the node receives it.

A packet is dropped whole, and counted under a reason, if it has numbers that no honest member writes (`absurd`,
`far_future`, `deadline`, `huge_barrier`), if it is addressed to others (`misaddressed`), or if a signature is
wrong (`forged`, `unsigned`, `unknown_author`). An honest relay forwards only packets that pass the same checks,
so no honest message is lost with it. The state is one number for each recent stream.
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
MOST_INCARNATION: Final = 1 << 15
MOST_AHEAD: Final = 1 << 20
"""How far a message's number may be ahead of the last one delivered in its stream."""
MOST_LIFETIME: Final[Duration] = 3660 * DAY
MOST_ORDER_BYTES: Final = 1 << 18
_MOST_STREAMS: Final = 1 << 16


class Inspection:
    """The inspection of one node. `authors` is None where members trust each other."""

    def __init__(self, me: NodeId, incarnation: int, authors: Authors | None = None) -> None:
        self._me = me
        self._incarnation = incarnation
        self._authors = authors
        self._encode = msgspec.msgpack.Encoder().encode
        self._last_delivered: OrderedDict[tuple[NodeId, int], int] = OrderedDict()

    def outgoing(self, packet: Packet) -> None:
        """Sign the messages of a packet that is about to be encoded."""
        if self._authors is not None:
            self._authors.sign(packet)

    def delivered(self, id: MessageId) -> None:
        """Record a delivered message: the window of accepted numbers of its stream moves with it."""
        stream = (id.source, id.incarnation)
        if self._last_delivered.get(stream, 0) < id.number:
            self._last_delivered[stream] = id.number
            if len(self._last_delivered) > _MOST_STREAMS:
                self._last_delivered.popitem(last=False)

    def incoming(self, packet: Packet, size: int, now: Instant, accepted: int) -> str | None:
        """The reason to drop a packet of `size` bytes, or None. `accepted` is the number of this node's last
        message."""
        items = list(packet.written())
        for item in items:
            reason = self._implausible(item, size, now, accepted)
            if reason is not None:
                return reason
        if self._authors is not None:
            if packet.messages != len(items):
                return "unsigned"
            return self._authors.check(items)
        return None

    def _implausible(self, item: Written, size: int, now: Instant, accepted: int) -> str | None:
        id = item.message.id
        if not (
            0 <= id.source < MOST_NODE
            and 0 <= id.incarnation < MOST_INCARNATION
            and 0 < id.number <= MOST_NUMBER
        ):
            return "absurd"
        last = self._last_delivered.get((id.source, id.incarnation))
        if last is not None and id.number > last + MOST_AHEAD:
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
