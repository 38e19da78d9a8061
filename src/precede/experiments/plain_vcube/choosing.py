"""Which runs `VCubeWorld` can carry out, and how their nodes are built."""

from __future__ import annotations

from typing import Any

from precede.core.compiling import is_compiled
from precede.core.node import Context, Node
from precede.experiments.worlds.kinds import BuiltWorld
from precede.protocols.registry import Entry, find
from precede.protocols.vcube2018.options import VCubeOptions
from precede.protocols.vcube2018.topology import MOST_POSITIONS
from precede.sim import world
from precede.sim.networks.switched import Switched
from precede.sim.workload import Workload
from precede.sim.world import World


def is_plain_vcube(entry: Entry[Any], built: BuiltWorld, workload: Workload, options: Any) -> bool:
    """True if a run without faults can be carried out by `VCubeWorld`.

    Its nodes are those of `vcube` without diagnosis, not those of somebody's own protocol. All of them are
    there from the beginning to the end. Every message goes to all nodes.
    """
    return (
        entry.build is find("vcube").build
        and type(options) is VCubeOptions
        and not options.diagnosis
        and type(built.network) is Switched
        and workload.is_for_all
        and len(built.names) <= MOST_POSITIONS
        and all(stay.enter == 0 and stay.leave is None for stay in built.presence)
        and _is_compiled()
    )


def _is_compiled() -> bool:
    """True if the simulator and this package are. Plain modules of it could not extend compiled ones."""
    if not is_compiled(world):
        return False
    from precede.experiments.plain_vcube import index

    return is_compiled(index)


def build_vertex(entry: Entry[Any], role: str, context: Context[Any]) -> Node:
    from precede.experiments.plain_vcube.vertex import Vertex

    return Vertex(context)


def vcube_world() -> type[World]:
    """Import and return `VCubeWorld`, which needs the words of the compiler's runtime library."""
    from precede.experiments.plain_vcube.world import VCubeWorld

    return VCubeWorld
