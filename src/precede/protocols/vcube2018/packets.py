"""The packets of VCube: messages with compressed vector clocks, and those of its diagnosis (vcube2018).

Sizes are those of section 5: 20 bytes of header, 4 bytes for each vector entry that changed since the source's
previous broadcast (Birman's compression, the source's own entry included), and the payload.

Vector entries are grouped by number: one row for each number, with a bit mask of sources. One `and` per row
then tests all entries of a message; this makes 1,024 nodes affordable (decision 0012).
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, ClassVar, Final, TypeAlias

from msgspec import Meta, Struct

from precede.core.identity import Count, NodeId
from precede.core.messages import (
    MOST_MESSAGES,
    EntrySizedPacket,
    Message,
    Packet,
    PartSize,
    Size,
    Written,
)
from precede.protocols.vcube2018.prepared import ENTRY_BYTES, HEADER_BYTES, Prepared, Slot, new_row
from precede.protocols.vcube2018.topology import MOST_POSITIONS

Events: TypeAlias = tuple[tuple[NodeId, Count], ...]
"""A view: each node with the number of times it crashed, left or joined, ascending by node."""

Vector: TypeAlias = tuple[Count, ...]
"""A number for each source."""

Past: TypeAlias = Annotated[int, Meta(ge=0, le=1 << 56)]
"""The sum of the numbers in a vector."""


class StampedMessage(Struct, frozen=True, array_like=True, dict=True):
    """A message and the entries of its vector clock that changed since its source's previous message.

    `changed` holds the rows, with their masks as little-endian bytes (msgpack has no integers of 1,024 bits).
    `entries` is the number of vector entries by the paper's size model. `past` is the sum of the whole vector:
    sorting messages by it gives a causal order.
    """

    message: Message
    changed: tuple[tuple[Count, bytes], ...]
    entries: PartSize
    past: Past

    def written(self) -> Written:
        """Return what the source wrote: the content that its signature covers."""
        return Written(self.message, order=(self.changed, self.entries, self.past), same_for_all=True)

    @cached_property
    def prepared(self) -> Prepared:
        """The derived values, computed once for each decoded copy: in a simulation once for all nodes.

        A message that no VCube node can have written gets a source outside the hypercube, so it is dropped.
        """
        id = self.message.id
        if not (0 <= id.source < MOST_POSITIONS and id.incarnation == 0 and id.number > 0):
            return Prepared(MOST_POSITIONS, 0, self.message, [], self.entries)
        rows = {number: int.from_bytes(mask, "little") for number, mask in self.changed}
        if id.number > 1:
            rows[id.number - 1] = rows.get(id.number - 1, 0) | 1 << id.source
        entries = [new_row(number, mask) for number, mask in sorted(rows.items())]
        return Prepared(id.source, id.number, self.message, entries, self.entries, self.past)


class VCubePacket(Packet, frozen=True, gc=False):
    """One or several messages for one child, in the order in which its parent received them."""

    kind: ClassVar[str] = "vcube"
    aggregates: ClassVar[bool] = True
    content: Annotated[tuple[StampedMessage, ...], Meta(max_length=MOST_MESSAGES)]
    size_bytes: Size
    control_bytes: Size
    control_entries: Size
    messages: Size

    def divided(self, most: int) -> Sequence[Packet]:
        parts = [self.content[n : n + most] for n in range(0, len(self.content), most)]
        return [packet_with(part) for part in parts]

    def written(self) -> Sequence[Written]:
        return [stamped.written() for stamped in self.content]


def packet_with(content: tuple[StampedMessage, ...]) -> VCubePacket:
    """Return one packet with these messages."""
    size = HEADER_BYTES + sum([stamped.prepared.size_bytes for stamped in content])
    entries = sum([stamped.prepared.entries for stamped in content])
    return VCubePacket(content, size, ENTRY_BYTES * entries, entries, len(content))


class Report(Struct, frozen=True, array_like=True):
    """What a group of nodes has received: a node and the clusters below it, all with the view `events`.

    `low` is the number of messages of each source that all of them have received without a gap, `high` the
    number that at least one of them has received without a gap, `early` the messages that any of them has
    beyond a gap. `settled` says that each of them has held this view for longer than a packet is in flight.
    """

    events: Events
    settled: bool
    low: Vector
    high: Vector
    early: tuple[Slot, ...]


class _DiagnosisPacket(EntrySizedPacket, frozen=True, gc=False):
    """The size model for the packets of the diagnosis."""

    header_bytes: ClassVar[int] = HEADER_BYTES
    entry_bytes: ClassVar[int] = ENTRY_BYTES


class VCubeTestPacket(_DiagnosisPacket, frozen=True, gc=False):
    """A test or its answer, with the sender's view.

    `have` is the number of messages received without a gap of each source; None before the sender has joined.
    """

    kind: ClassVar[str] = "vcube_test"
    number: Count
    answer: bool
    events: Events
    have: Vector | None
    report: Report | None

    @property
    def control_entries(self) -> int:
        report = self.report
        reported = 0 if report is None else len(report.low) + len(report.high) + len(report.early)
        return len(self.events) + len(self.have or ()) + reported


class VCubeJoinPacket(_DiagnosisPacket, frozen=True, gc=False):
    """A newcomer that is in everybody's view asks where to begin."""

    kind: ClassVar[str] = "vcube_join"
    control_entries: ClassVar[int] = 0


class VCubeStatePacket(_DiagnosisPacket, frozen=True, gc=False):
    """Where a newcomer begins: what its sponsor has delivered of each source, and the messages it keeps."""

    kind: ClassVar[str] = "vcube_state"
    delivered: Vector
    content: Annotated[tuple[StampedMessage, ...], Meta(max_length=MOST_MESSAGES)]

    def divided(self, most: int) -> Sequence[Packet]:
        """Send most messages first, as messages: a newcomer keeps those that come before its state."""
        *first, last = [self.content[n : n + most] for n in range(0, len(self.content), most)]
        return [*map(packet_with, first), VCubeStatePacket(self.delivered, last)]

    def written(self) -> Sequence[Written]:
        return [stamped.written() for stamped in self.content]

    @property
    def size_bytes(self) -> int:
        payload_bytes = sum(len(stamped.message.payload) for stamped in self.content)
        return self.header_bytes + self.control_bytes + payload_bytes

    @property
    def control_entries(self) -> int:
        return len(self.delivered) + sum(stamped.entries for stamped in self.content)

    @property
    def messages(self) -> int:  # type: ignore[override]
        return len(self.content)


PACKETS: Final = (VCubePacket, VCubeTestPacket, VCubeJoinPacket, VCubeStatePacket)
