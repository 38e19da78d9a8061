"""What the simulator keeps about one node: the node itself, its clock, its disk, its timers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

from precede.core.effects import Key
from precede.core.identity import NodeId
from precede.core.instants import Instant
from precede.core.node import Node
from precede.core.peaks import Peaks
from precede.core.writing_node import WritingNode
from precede.sim.clocks import Clock
from precede.sim.flight import Flight


@final
class HostedNode:
    """The state of one node in the simulator. It outlives crashes and restarts; `node` is replaced by them.

    `up`: the node runs. `gone`: its application has left. `stalled`: inputs wait in `deferred`.
    `plain`: the fast path may be used: the node is up, not stalled, reads the world's time, and no crash
    is planned. `writing`: the node, if it writes its effects itself, has no `receive` of its own, and no packet
    of it can reach another node at once. `process` is the recorder's number for this node and incarnation.
    """

    __slots__ = (
        "accepted",
        "clock",
        "crash_after",
        "deferred",
        "flight",
        "gone",
        "id",
        "immediate_at",
        "immediate_timers",
        "incarnation",
        "node",
        "peaks",
        "plain",
        "process",
        "stalled",
        "store",
        "timers",
        "up",
        "writing",
    )

    def __init__(self, id: NodeId, clock: Clock | None) -> None:
        self.plain = False  # the fields that every packet touches come first: they share a cache line
        self.up = False
        self.gone = False
        self.stalled = False
        self.id = id
        self.process = -1
        self.node: Node = Node()
        self.flight: Flight | None = None
        self.writing: WritingNode | None = None
        self.clock = clock
        self.incarnation = -1
        self.crash_after: int | None = None
        self.accepted = 0
        self.store: dict[Key, Any] = {}
        self.timers: dict[Key, object] = {}
        self.deferred: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
        self.peaks = Peaks()
        self.immediate_at = -1
        self.immediate_timers = 0

    def clock_at(self, now: Instant) -> Instant:
        """Return what the node's own clock reads at an instant of the world."""
        return now if self.clock is None else self.clock.read(now)

    def world_time(self, reading: Instant) -> Instant:
        """Return the first instant of the world at which the node's own clock reads this value or more."""
        return reading if self.clock is None else self.clock.world_time(reading)

    def update_plain(self) -> None:
        """Compute `plain` and `writing` again; call it after any of their conditions has changed."""
        self.plain = self.up and self.clock is None and self.crash_after is None and not self.stalled
        node = self.node
        self.writing = None
        if isinstance(node, WritingNode) and self.flight is not None and not _has_own_receive(node):
            self.writing = node


def _has_own_receive(node: WritingNode) -> bool:
    """True if the class of the node overrides `receive`, or if the node itself was given another one."""
    return type(node).receive is not WritingNode.receive or "receive" in getattr(node, "__dict__", ())
