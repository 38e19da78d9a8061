"""The packets of state transfer (docs/reference/wire.md). They are no packets of a protocol.

Their second byte is 0xf0 or above, where no protocol has a kind. They count only from a session, never in a
frame for everybody.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import Meta, Struct

from precede.core.identity import Count, Incarnation, NodeId
from precede.runtime.codec import LARGEST, VERSION

FIRST_KIND: Final = 0xF0
MOST_TOPS: Final = 4_096
MOST_PART_PACKETS: Final = 64
MOST_CHUNK_BYTES: Final = 1 << 13
MOST_CUT_BYTES: Final = 1 << 18
MOST_SNAPSHOT_BYTES: Final = 1 << 26

SnapshotNumber: TypeAlias = Annotated[int, Meta(ge=1, le=(1 << 63) - 1)]
Offset: TypeAlias = Annotated[int, Meta(ge=0, le=MOST_SNAPSHOT_BYTES)]


class HistoryAsk(Struct, frozen=True, array_like=True):
    """Requests the receiver's history behind a place, without messages that the sender has delivered."""

    after: Count
    tops: Annotated[tuple[tuple[NodeId, Incarnation, Count], ...], Meta(max_length=MOST_TOPS)]


class HistoryPart(Struct, frozen=True, array_like=True):
    """Messages of a history between two places, as packets of the protocol. `more`: another part follows."""

    after: Count
    last: Count
    more: bool
    ends: bool
    packets: Annotated[
        tuple[Annotated[bytes, Meta(max_length=LARGEST)], ...], Meta(max_length=MOST_PART_PACKETS)
    ]


class SnapshotAsk(Struct, frozen=True, array_like=True):
    """Requests a snapshot: the one with this number if the receiver still has it, else any."""

    number: Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]


class SnapshotOffer(Struct, frozen=True, array_like=True):
    """A snapshot that its maker offers, and its maker's signature (`snapshot.signed_bytes`)."""

    number: SnapshotNumber
    size: Offset
    digest: Annotated[bytes, Meta(min_length=32, max_length=32)]
    cut: Annotated[bytes, Meta(max_length=MOST_CUT_BYTES)]
    signature: Annotated[bytes, Meta(max_length=64)]


class SnapshotFetch(Struct, frozen=True, array_like=True):
    """Requests the next chunks of a snapshot."""

    number: SnapshotNumber
    offset: Offset


class SnapshotChunk(Struct, frozen=True, array_like=True):
    """Bytes of a snapshot. `more`: another chunk follows without a request."""

    number: SnapshotNumber
    offset: Offset
    more: bool
    data: Annotated[bytes, Meta(max_length=MOST_CHUNK_BYTES)]


TransferPacket: TypeAlias = (
    HistoryAsk | HistoryPart | SnapshotAsk | SnapshotOffer | SnapshotFetch | SnapshotChunk
)
KINDS: Final[tuple[type[Any], ...]] = (
    HistoryAsk,
    HistoryPart,
    SnapshotAsk,
    SnapshotOffer,
    SnapshotFetch,
    SnapshotChunk,
)
_DECODERS: Final = [msgspec.msgpack.Decoder(kind, strict=True) for kind in KINDS]
_encode: Final = msgspec.msgpack.Encoder().encode


def is_transfer(data: bytes) -> bool:
    """Are these bytes a packet of state transfer, rather than of the protocol?"""
    return len(data) > 2 and data[0] == VERSION and data[1] >= FIRST_KIND


def encode(packet: TransferPacket) -> bytes:
    return bytes((VERSION, FIRST_KIND + KINDS.index(type(packet)))) + _encode(packet)


def decode(data: bytes) -> TransferPacket | None:
    """Decode untrusted bytes. None if they are no packet of state transfer with every value in its range."""
    if len(data) > LARGEST or data[0] != VERSION or data[1] - FIRST_KIND >= len(KINDS):
        return None
    try:
        packet: TransferPacket = _DECODERS[data[1] - FIRST_KIND].decode(data[2:])
    except (msgspec.MsgspecError, RecursionError, OverflowError, ValueError):
        return None
    return packet
