"""What goes wrong, as a plan: crashes (at an instant, or in the middle of an effect list), restarts, stalls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from msgspec import Struct

from precede.core.identity import NodeId
from precede.core.instants import Duration, Instant
from precede.sim.world import World


class Crash(Struct, frozen=True, tag=True):
    """Down at `at`, or `after` so many atomic steps more; up again at `restart`, with its saved state or not.

    `again`: it is down again so many atomic steps after that, so that a recovery can be cut short too.
    """

    node: NodeId
    at: Instant
    after: int | None = None
    restart: Instant | None = None
    keep: bool = True
    again: int | None = None


class Stall(Struct, frozen=True, tag=True):
    """Does nothing for a while."""

    node: NodeId
    at: Instant
    duration: Duration


Fault: TypeAlias = Crash | Stall


def plan_faults(world: World, faults: Sequence[Fault]) -> None:
    """Schedule them all."""
    for fault in faults:
        if isinstance(fault, Crash):
            world.schedule(fault.at, world.crash, fault.node, fault.after)
            if fault.restart is not None:
                world.schedule(fault.restart, _come_back, world, fault)
        else:
            world.schedule(fault.at, world.stall, fault.node, fault.duration)


def _come_back(world: World, crash: Crash) -> None:
    """A crash that was to fall into an effect list and found none falls now."""
    world.crash(crash.node)
    world.restart(crash.node, crash.keep, crash.again)
