"""Which class of world a network gets."""

from precede.core.compiling import is_compiled
from precede.sim import world
from precede.sim.networks.network import Network
from precede.sim.world import World


def world_for(network: Network, nodes: int) -> type[World]:
    """Return `WheelWorld` for a network that only delays packets, if the package is compiled; else `World`."""
    if not is_compiled(world) or not network.only_delays():
        return World
    from precede.sim.wheel_world import NODES, WheelWorld

    return WheelWorld if nodes <= NODES else World
