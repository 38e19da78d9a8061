"""One node's place in the world."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

from precede.core.effects import Effects, Key
from precede.core.identity import NodeId
from precede.core.node import Node
from precede.sim.clocks import Clock
from precede.sim.network import Flight


@final
class Seat:
    """It outlives crashes. `plain`: the node keeps the world's time and nothing unusual is done to it.

    `sender` is `id` as one object for all packets.
    """

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
        "receive",
        "sender",
        "stalled",
        "store",
        "timers",
        "up",
    )

    def __init__(self, id: NodeId, clock: Clock | None) -> None:
        self.id = id
        self.sender: Any = id
        self.clock = clock
        self.node: Node = Node()
        self.receive: Callable[..., Effects] = self.node.receive
        self.flight: Flight | None = None
        self.incarnation = -1
        self.process = -1
        self.up = False
        self.plain = False
        self.gone = False
        self.stalled = False
        self.crash_after: int | None = None
        self.accepted = 0
        self.store: dict[Key, Any] = {}
        self.timers: dict[Key, object] = {}
        self.deferred: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
        self.peaks: dict[str, int] = {}
