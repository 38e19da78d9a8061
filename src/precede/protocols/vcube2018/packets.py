"""What VCube sends: messages with compressed vector clocks, one or several to a packet (vcube2018, section 5).

Sizes are the paper's: 20 bytes of header, 4 bytes for each vector entry that changed since the source's
previous broadcast (Birman's compression, the source's own entry included), and the payload.

A vector entry (source, number) stands in the row of its number: one bit mask of sources for each number. All
entries of a message are then tested by one `and` for each row, which is what makes 1,024 nodes affordable.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

from msgspec import Struct

from precede.core.messages import Message, Packet, Size, Written
from precede.protocols.vcube2018.prepared import Prepared, Row
from precede.protocols.vcube2018.topology import MOST_POSITIONS


class StampedMessage(Struct, frozen=True, array_like=True, dict=True):
    """A message and the entries of its vector clock that changed since its source's previous message.

    `changed` holds the rows with their masks as little-endian bytes (a wire has no whole numbers of 1,024
    bits); `entries` is what the vector counts for by the paper's size model; `past` is the sum of the whole
    vector, a place in an order that agrees with causality.
    """

    message: Message
    changed: tuple[tuple[int, bytes], ...]
    entries: Size
    past: int

    def written(self) -> Written:
        return Written(self.message, None, None, (self.changed, self.entries, self.past))

    @cached_property
    def prepared(self) -> Prepared:
        """Worked out once for each copy that was decoded: in a simulation once for all nodes.

        A message that no VCube node can have written has a source nobody knows.
        """
        id = self.message.id
        if not (0 <= id.source < MOST_POSITIONS and id.incarnation == 0 and id.number > 0):
            return Prepared(MOST_POSITIONS, 0, self.message, [], self.entries)
        rows = {number: int.from_bytes(mask, "little") for number, mask in self.changed}
        if id.number > 1:
            rows[id.number - 1] = rows.get(id.number - 1, 0) | 1 << id.source
        entries = [Row(number, mask) for number, mask in sorted(rows.items())]
        return Prepared(id.source, id.number, self.message, entries, self.entries)


class VCubePacket(Packet, frozen=True, gc=False):
    """One or several messages for one child, in the order in which its parent received them."""

    kind: ClassVar[str] = "vcube"
    aggregates: ClassVar[bool] = True
    content: tuple[StampedMessage, ...]
    size_bytes: Size
    control_bytes: Size
    control_entries: Size
    messages: Size

    def written(self) -> Sequence[Written]:
        return [stamped.written() for stamped in self.content]
