"""Packets of `gossip`: data, digests, wants on the air; summaries on links.

Sizes as in `epidemic`: 8 bytes for a header and 16 for an id. A stream, a range or a hash is 8, a node 4.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, ClassVar, Final, TypeAlias

from msgspec import Meta

from precede.core.identity import Count, Incarnation, MessageId, NodeId
from precede.core.instants import Instant
from precede.core.messages import ControlOnlyPacket, Packet, Size
from precede.protocols.layered.epidemic.packets import HEADER_BYTES, ID_BYTES, BatchPacket
from precede.protocols.layered.gossip.holdings import MOST_RANGES
from precede.protocols.layered.gossip.ranges import (
    FlatRanges,
    StreamRanges,
    are_ranges,
    compact,
    expanded,
    flat_ranges,
    pairs,
)
from precede.protocols.layered.parsed_envelopes import NEVER, Batch

NODE_BYTES: Final = 4
STREAM_BYTES: Final = 8
NUMBER_BYTES: Final = 4
RANGE_BYTES: Final = 2 * NUMBER_BYTES
HASH_BYTES: Final = 8

FRAME_BYTES: Final = 1_000
"""Most bytes of a packet with several messages, so that it fits into a frame."""
JOINED_BYTES: Final = 1_100
"""Most bytes of packets that are joined to one."""

Hash: TypeAlias = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]

Want: TypeAlias = tuple[NodeId, NodeId, Incarnation, FlatRanges]
"""Who shall answer; a stream (source and incarnation); ranges of its numbers."""


class DataPacket(BatchPacket, frozen=True, gc=True, dict=True):
    """Messages. `list_version` names the transmitter's list of neighbours, which all hear this packet;
    `neighbours` is that list, if others may not have it yet. Version 0: only the receiver hears it.
    """

    kind: ClassVar[str] = "gossip"
    to_all: ClassVar[bool] = True
    list_version: Count
    neighbours: tuple[NodeId, ...] | None
    first_deadline: Instant | None
    size_bytes: Size
    control_bytes: Size
    control_entries: Size

    def joined(self, later: Packet) -> Packet | None:
        if type(later) is not DataPacket or later.list_version != self.list_version:
            return None
        if self.size_bytes + later.size_bytes > JOINED_BYTES:
            return None
        neighbours = self.neighbours if later.neighbours is None else later.neighbours
        return data_packet(Batch(self.batch.contents + later.batch.contents), self.list_version, neighbours)

    def with_batch(self, batch: Batch) -> Packet:
        return data_packet(batch, self.list_version, self.neighbours)


class DigestPacket(ControlOnlyPacket, frozen=True, gc=True, dict=True):
    """What the sender holds: a hash of all ids, and ranges of some streams (of all streams if `full`).

    All neighbours of a simulated sender share one packet, so what is computed from it is cached.
    """

    kind: ClassVar[str] = "gossip_digest"
    to_all: ClassVar[bool] = True
    hash: Hash
    full: bool
    streams: Annotated[tuple[StreamRanges, ...], Meta(max_length=MOST_RANGES)]
    list_version: Count
    neighbours: tuple[NodeId, ...] | None

    control_entries: ClassVar[int] = 0

    @cached_property
    def size_bytes(self) -> int:
        return HEADER_BYTES + HASH_BYTES + _list_bytes(self.neighbours) + _stream_bytes(self.streams)

    @cached_property
    def is_well_formed(self) -> bool:
        """Are the ranges valid? A packet of a malicious node can hold any numbers."""
        return all(are_ranges(ranges) for _, _, ranges in self.streams)


class WantPacket(ControlOnlyPacket, frozen=True, gc=False):
    """What the sender lacks, and which neighbour it asks for it."""

    kind: ClassVar[str] = "gossip_want"
    to_all: ClassVar[bool] = True
    wants: tuple[Want, ...]

    control_entries: ClassVar[int] = 0

    @property
    def size_bytes(self) -> int:
        ranges = sum(len(want[3]) // 2 for want in self.wants)
        return HEADER_BYTES + (NODE_BYTES + STREAM_BYTES) * len(self.wants) + RANGE_BYTES * ranges


class RangesPacket(ControlOnlyPacket, frozen=True, gc=True, dict=True):
    """The summary of `epidemic` as ranges: what the sender holds or has evicted. Do not send it these.

    On links that meet rarely most ranges are single numbers, so these take one entry (`ranges.compact`).
    """

    kind: ClassVar[str] = "gossip_summary"
    streams: tuple[StreamRanges, ...]

    control_entries: ClassVar[int] = 0

    @cached_property
    def size_bytes(self) -> int:
        return HEADER_BYTES + sum(STREAM_BYTES + NUMBER_BYTES * len(ranges) for _, _, ranges in self.streams)

    @cached_property
    def count(self) -> int:
        """Return how many ids the packet lists; 0 if its ranges are malformed."""
        listed = [expanded(ranges) for _, _, ranges in self.streams]
        if not all(are_ranges(ranges) for ranges in listed):
            return 0
        return sum(last - first + 1 for ranges in listed for first, last in pairs(ranges))

    @cached_property
    def listed_ids(self) -> frozenset[MessageId]:
        """Return every id that the packet lists. Check `count` first: a few bytes can list very many."""
        return frozenset(
            MessageId(source, incarnation, number)
            for source, incarnation, ranges in self.streams
            for first, last in pairs(expanded(ranges))
            for number in range(first, last + 1)
        )


def _list_bytes(neighbours: tuple[NodeId, ...] | None) -> int:
    return NODE_BYTES * (1 if neighbours is None else 1 + len(neighbours))


def _stream_bytes(streams: Sequence[StreamRanges]) -> int:
    return sum(STREAM_BYTES + RANGE_BYTES * (len(ranges) // 2) for _, _, ranges in streams)


def data_packet(batch: Batch, version: int, neighbours: tuple[NodeId, ...] | None) -> DataPacket:
    control = batch.control_bytes + HEADER_BYTES + ID_BYTES * len(batch.ids) + _list_bytes(neighbours)
    first_deadline = None if batch.first_deadline == NEVER else batch.first_deadline
    size = batch.payload_bytes + control
    envelopes = tuple(batch.envelopes())
    packet = DataPacket(envelopes, version, neighbours, first_deadline, size, control, batch.control_entries)
    packet.__dict__["batch"] = batch
    return packet


def ranges_packet(ids: frozenset[MessageId]) -> RangesPacket:
    """Return a packet that lists exactly these ids, as ranges of numbers of each source."""
    numbers: dict[tuple[NodeId, int], list[int]] = {}
    for id in sorted(ids):
        numbers.setdefault((id.source, id.incarnation), []).append(id.number)
    packet = RangesPacket(tuple((*stream, compact(flat_ranges(listed))) for stream, listed in numbers.items()))
    packet.__dict__["listed_ids"] = ids
    return packet
