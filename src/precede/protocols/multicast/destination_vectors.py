"""What the rules of RST and SES share: a vector for each destination.

Both algorithms keep, for each destination, how far it must have come before a message may be delivered to it.
"""

from typing import Any

import msgspec
from mypy_extensions import mypyc_attr

from precede.core.identity import NodeId
from precede.core.node import Context, Node
from precede.protocols.acknowledgement import AckPacket
from precede.protocols.multicast.node import MulticastNode
from precede.protocols.multicast.options import MulticastOptions
from precede.protocols.multicast.packets import LifePacket
from precede.protocols.multicast.process import Process, is_before, process_of
from precede.protocols.multicast.rule import Rule
from precede.protocols.multicast.vectors import EMPTY, SparseVector, union_max
from precede.protocols.registry import Entry


@mypyc_attr(allow_interpreted_subclasses=True)
class DestinationVectorRule(Rule):
    """A rule with a vector for each destination, in `vectors`."""

    def __init__(self, me: Process) -> None:
        self.me = me
        self.reached = {}
        self.vectors: dict[Process, SparseVector] = {}

    def raise_to(self, destination: Process, vector: SparseVector) -> None:
        self.vectors[destination] = union_max(self.vectors.get(destination, EMPTY), vector)

    def forget(self, node: NodeId, incarnation: int) -> None:
        for process in [process for process in self.vectors if is_before(process, node, incarnation)]:
            del self.vectors[process]

    def save(self) -> Any:
        return [dict(self.vectors), dict(self.reached)]

    def load(self, state: Any) -> None:
        self.vectors, self.reached = msgspec.convert(state, tuple[dict[Process, SparseVector], SparseVector])


def rival_entry(name: str, title: str, rule: type[DestinationVectorRule]) -> Entry[MulticastOptions]:
    """Return the registry entry of a rival of PRS, whose nodes use this rule."""

    def build(role: str, context: Context[MulticastOptions]) -> Node:
        return MulticastNode(context, rule(process_of(context.node, context.incarnation)))

    return Entry(
        name=name,
        title=title,
        paper="prs1997",
        order="multicast",
        worlds=("point_to_point",),
        options=MulticastOptions,
        build=build,
        packets=(rule.packet, LifePacket, AckPacket),
    )
