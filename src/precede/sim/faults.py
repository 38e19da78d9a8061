"""Planned faults: crashes (at an instant, or in the middle of a list of effects), restarts and stalls."""

from collections.abc import Sequence
from typing import TypeAlias

from msgspec import Struct

from precede.core.identity import NodeId
from precede.core.instants import Duration, Instant
from precede.sim.world import World


class Crash(Struct, frozen=True, tag=True):
    """A node crashes at `at`, or `after` atomic steps later, and restarts at `restart` (None: never).

    `keep`: it restarts with its saved state. `again`: it crashes once more, so many atomic steps after the
    restart, which may cut its recovery short.
    """

    node: NodeId
    at: Instant
    after: int | None = None
    restart: Instant | None = None
    keep: bool = True
    again: int | None = None


class Stall(Struct, frozen=True, tag=True):
    """A node does nothing for a while; its inputs wait."""

    node: NodeId
    at: Instant
    duration: Duration


Fault: TypeAlias = Crash | Stall


def plan_faults(world: World, faults: Sequence[Fault]) -> None:
    for fault in faults:
        if isinstance(fault, Crash):
            world.schedule(fault.at, world.crash, fault.node, fault.after)
            if fault.restart is not None:
                world.schedule(fault.restart, _restart, world, fault)
        else:
            world.schedule(fault.at, world.stall, fault.node, fault.duration)


def _restart(world: World, crash: Crash) -> None:
    """Restarts a node. If its planned crash has not happened yet (too few steps), it crashes first."""
    world.crash(crash.node)
    world.restart(crash.node, crash.keep, crash.again)
