"""What a lane needs from outside: the node of its order, and how packets of it are told from others."""

from collections.abc import Callable
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from precede.core.identity import NodeId
from precede.core.node import AfterCopy, Node
from precede.runtime.codec import Codec

TopicOrder: TypeAlias = Literal["none", "fifo", "causal", "delta", "total"]
"""The orders that a topic can have."""
LANES: Final[dict[str, int]] = {"none": 0, "fifo": 1, "causal": 2, "delta": 3, "total": 5}
"""The orders of topics, each with the number of its lane on the wire."""
FIRST_LANE: Final = b"\x80"
"""The first byte of a lane's packet is this plus its number; a packet of the group itself begins with 1."""


class NodePlan(Struct, frozen=True):
    """How the node of a protocol is made, encoded and stored. `protocol` is the title a store is bound to."""

    make_node: Callable[[NodeId, int], Node]
    codec: Codec
    protocol: str
    renewable: bool
    after_copy: AfterCopy


PlanLane = Callable[[str], NodePlan]
"""Returns the plan of an order's lane. Raises BadInput if this member cannot take part in that order."""
