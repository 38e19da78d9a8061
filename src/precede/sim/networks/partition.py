"""A partition: a time in which groups of nodes cannot reach each other."""

from msgspec import Struct

from precede.core.identity import NodeId
from precede.core.instants import Instant


class Partition(Struct, frozen=True):
    """From `start` to `end` nodes of different groups are separated; nodes in no group form one more.

    With `one_way`, packets of a group's nodes reach no other group, and those of nodes in no group reach all.
    """

    start: Instant
    end: Instant
    groups: tuple[tuple[NodeId, ...], ...]
    one_way: bool = False

    def cuts(self, sender: NodeId, to: NodeId) -> bool:
        """Tell whether packets from one node to another are lost while the partition lasts."""
        group = self.group_of(sender)
        return self.group_of(to) != group and not (self.one_way and group < 0)

    def group_of(self, node: NodeId) -> int:
        """Return the number of a node's group; -1 for nodes in no group."""
        for number, members in enumerate(self.groups):
            if node in members:
                return number
        return -1
