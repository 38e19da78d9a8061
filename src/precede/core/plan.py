"""A plan: when nodes are present, which links are up, and what applications broadcast, as plain data.

A simulation writes a plan; an emulation puts real nodes through it. Instants are world time and start at 0.
"""

from typing import Any

from msgspec import Struct

from precede.core.effects import Medium
from precede.core.identity import NodeId
from precede.core.instants import Duration, Instant


class PlannedBroadcast(Struct, frozen=True, array_like=True):
    """An application broadcasts a message of this size, and its node accepts it."""

    at: Instant
    node: NodeId
    size: int
    to: tuple[NodeId, ...] | None = None
    lifetime: Duration | None = None


class LinkChange(Struct, frozen=True, array_like=True):
    """A link between two nodes comes up or goes down."""

    at: Instant
    a: NodeId
    b: NodeId
    up: bool
    over: Medium = 0


class Stay(Struct, frozen=True, array_like=True):
    """A node is present from `start` to `end` (None: the end of the run), then leaves or crashes (`ends`)."""

    node: NodeId
    start: Instant
    end: Instant | None = None
    ends: str = "left"


class Plan(Struct, frozen=True, kw_only=True):
    """Everything that happens to the nodes of one run from outside. Node ids are positions in `names`."""

    run_id: str
    protocol: str
    order: str
    options: dict[str, Any]
    names: tuple[str, ...]
    roles: tuple[str, ...]
    members: tuple[NodeId, ...]
    stays: tuple[Stay, ...]
    links: tuple[LinkChange, ...]
    broadcasts: tuple[PlannedBroadcast, ...]
    end: Instant
    linger: Duration = 0
