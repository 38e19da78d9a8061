"""How hosts move between the cells of a cellular network, and which of its wires are cut."""

from msgspec import Struct

from precede.core.identity import NodeId
from precede.core.instants import Instant
from precede.traces.cells import Positions, Whole


class Move(Struct, frozen=True):
    """A host moves to another cell (None: out of coverage)."""

    at: Instant
    host: NodeId
    cell: NodeId | None


class Journey(Struct, frozen=True):
    """The positions of all hosts at each step, and the cells they are in; hosts in the order of their ids."""

    positions: Positions
    cells: Whole


class WireCut(Struct, frozen=True):
    """A link of the tree is cut from `start` to `end`: what is sent over it in that time waits for its end."""

    link: tuple[NodeId, NodeId]
    start: Instant
    end: Instant
