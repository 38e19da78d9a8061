"""One node's place in the world."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

from precede.core.effects import Key
from precede.core.identity import NodeId
from precede.core.node import Node
from precede.sim.clocks import Clock
from precede.sim.networks.network import Flight


@final
class HostedNode:
    """It outlives crashes. `plain`: the node keeps the world's time and nothing unusual is done to it."""

    __slots__ = (
        "accepted",
        "clock",
        "crash_after",
        "deferred",
        "flight",
        "gone",
        "id",
        "incarnation",
        "node",
        "peaks",
        "plain",
        "process",
        "stalled",
        "standing",
        "standing_at",
        "store",
        "timers",
        "up",
    )

    def __init__(self, id: NodeId, clock: Clock | None) -> None:
        self.plain = False  # what every packet touches stands together
        self.up = False
        self.gone = False
        self.stalled = False
        self.id = id
        self.process = -1
        self.node: Node = Node()
        self.flight: Flight | None = None
        self.clock = clock
        self.incarnation = -1
        self.crash_after: int | None = None
        self.accepted = 0
        self.store: dict[Key, Any] = {}
        self.timers: dict[Key, object] = {}
        self.deferred: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
        self.peaks: dict[str, int] = {}
        self.standing_at = -1
        self.standing = 0
