"""What messages of PRS carry: its barrier, the one row of section 8.2, or the log of the optimal pruning."""

from typing import ClassVar, TypeAlias

from precede.core.identity import Count, MessageId, NodeId
from precede.protocols.multicast.packets import INTEGER_BYTES, MulticastPacket, Stamp
from precede.protocols.multicast.process import Process, message_of, node_of
from precede.protocols.multicast.vectors import SparseVector

Row: TypeAlias = SparseVector
"""A set of tuples (source, number), at most one for each source."""

Remaining: TypeAlias = tuple[Process, ...]
Log: TypeAlias = dict[Process, dict[Count, Remaining]]
"""By source and number: the destinations that still matter. The latest entry of a source always stays."""


class PrsStamp(Stamp, frozen=True, gc=False):
    """CB_M: for each destination, the messages that must be delivered there first."""

    barrier: dict[Process, Row]


class PrsPacket(MulticastPacket, frozen=True, gc=False):
    """The paper's SEND(M, i, sent_i, destination(M), CB_i): a message with its causal barrier."""

    kind: ClassVar[str] = "prs"
    stamp: PrsStamp

    def constraints(self) -> dict[NodeId, list[MessageId]]:
        """Return CB_M in message ids: by destination, the messages that must be delivered first."""
        return {
            node_of(to): sorted([message_of(source, number) for source, number in row.items()])
            for to, row in self.stamp.barrier.items()
        }


class BroadcastStamp(Stamp, frozen=True, gc=False):
    """The one row of the causal barrier CB_M: source and number of each direct predecessor of the message."""

    row: SparseVector


class BroadcastPacket(MulticastPacket, frozen=True, gc=False):
    """A message to all nodes, with the row of its predecessors."""

    kind: ClassVar[str] = "prs_broadcast"
    stamp: BroadcastStamp

    @property
    def control_bytes(self) -> int:
        """The bytes of control data, without the destinations, because all nodes know these."""
        return super().control_bytes - INTEGER_BYTES * len(self.destinations)


class OptimalStamp(Stamp, frozen=True, gc=False):
    """The log O_M that a message carries. In `entries`, a log entry without destinations counts as one."""

    log: Log


class OptimalPacket(MulticastPacket, frozen=True, gc=False):
    """A message to one destination; each destination gets a log of its own."""

    kind: ClassVar[str] = "prs_optimal"
    stamp: OptimalStamp

    def constraints(self) -> dict[NodeId, list[MessageId]]:
        """Return O_M in message ids: by destination, the messages that must be delivered first."""
        constraints: dict[NodeId, list[MessageId]] = {}
        for source, entries in self.stamp.log.items():
            for number, remaining in entries.items():
                for to in remaining:
                    constraints.setdefault(node_of(to), []).append(message_of(source, number))
        return {to: sorted(ids) for to, ids in constraints.items()}
