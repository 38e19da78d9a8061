"""A partition: a time in which groups of nodes cannot reach each other."""

from msgspec import Struct

from precede.core.identity import NodeId
from precede.core.instants import Instant


class Partition(Struct, frozen=True):
    """From `start` to `end` nodes of different groups are separated; nodes in no group form one more."""

    start: Instant
    end: Instant
    groups: tuple[tuple[NodeId, ...], ...]

    def group_of(self, node: NodeId) -> int:
        """Return the number of a node's group; -1 for nodes in no group."""
        for number, members in enumerate(self.groups):
            if node in members:
                return number
        return -1
