"""What a node is told, and what it tells about what waits in it (DESIGN section 4)."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from msgspec import Struct

from precede.core.identity import MessageId, NodeId
from precede.core.instants import Instant


class Context(Struct, frozen=True):
    """What a node is told when it is built.

    `members` is whoever is known at the beginning (it may be empty), in ascending order, this node included.
    `incarnation` is 0, or one more than before when an earlier life lost its saved state. `random` is this
    node's own named stream.
    """

    node: NodeId
    members: tuple[NodeId, ...]
    options: Mapping[str, Any]
    random: Random
    incarnation: int = 0


class Waiting(Struct, frozen=True):
    """One message in hand that cannot be delivered yet: for which it waits, since when, until when at most."""

    message: MessageId
    waits_for: tuple[MessageId, ...]
    since: Instant
    until: Instant | None = None
