"""What crossed which link when, as plain data: told by real nodes, so that a simulation can take these times.

Each end of a link tells its own side, by the clock that all ends share. A channel keeps the order of packets
while a link lasts, so the n-th packet sent in one life of a link is the n-th that came out of it.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from precede.core.identity import MessageId, NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Packet

UP, DOWN, SENT, RECEIVED = range(4)

Content: TypeAlias = tuple[str, tuple[MessageId, ...]]


class Told(Struct, frozen=True, array_like=True, gc=False):
    """One thing that one end saw: a link came up or went down, a packet left for a peer or came from it."""

    what: int
    at: Instant
    node: NodeId
    peer: NodeId
    kind: str = ""
    ids: tuple[MessageId, ...] = ()


class Transfer(Struct, gc=False):
    """One packet on a link: when its node sent it, how long until the other took it (None: it never did),
    and how long it kept its sender from sending the next message."""

    at: Instant
    time: Duration | None
    gap: Duration
    content: Content


class LinkEnd(Struct):
    """One life of a link as one of its ends saw it, and what it sent."""

    node: NodeId
    peer: NodeId
    up: Instant
    down: Instant | None
    sent: list[Transfer]


def content_of(packet: Packet) -> Content:
    """What makes two packets the same: their kind and the messages they are about, where they list them."""
    ids = getattr(packet, "ids", ())
    return packet.kind, ids if type(ids) is tuple else ()
