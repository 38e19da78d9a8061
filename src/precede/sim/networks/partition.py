"""A time in which groups of nodes do not hear each other."""

from __future__ import annotations

from msgspec import Struct

from precede.core.identity import NodeId
from precede.core.instants import Instant


class Partition(Struct, frozen=True):
    """From `start` to `end` nodes of different groups do not hear each other; the unnamed are one group."""

    start: Instant
    end: Instant
    groups: tuple[tuple[NodeId, ...], ...]

    def group_of(self, node: NodeId) -> int:
        for number, members in enumerate(self.groups):
            if node in members:
                return number
        return -1
