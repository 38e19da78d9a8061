"""Measured transfers: which packet crossed which link when, recorded by real nodes for a simulation to replay.

Each end of a link records its own side, by a clock that all ends share. A channel keeps packets in order while
its link is up, so the n-th packet sent after a link came up is the n-th that is received from it.
"""

from typing import TypeAlias

from msgspec import Struct

from precede.core.identity import MessageId, NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Packet

UP, DOWN, SENT, RECEIVED = range(4)

Content: TypeAlias = tuple[str, tuple[MessageId, ...]]


class LinkRecord(Struct, frozen=True, array_like=True, gc=False):
    """One record of one end of a link: the link came up or went down, a packet was sent or received."""

    what: int
    at: Instant
    node: NodeId
    peer: NodeId
    kind: str = ""
    ids: tuple[MessageId, ...] = ()


class Transfer(Struct, gc=False):
    """One packet on a link: when sent, how long until received (None: never), and the `gap` to the next."""

    at: Instant
    time: Duration | None
    gap: Duration
    content: Content


class LinkEnd(Struct):
    """One period in which a link was up, as one of its ends saw it, and what that end sent."""

    node: NodeId
    peer: NodeId
    up: Instant
    down: Instant | None
    sent: list[Transfer]


def content_of(packet: Packet) -> Content:
    """Return the kind of a packet and its message ids, by which a replay finds the same packet again."""
    ids = getattr(packet, "ids", ())
    return packet.kind, ids if type(ids) is tuple else ()
