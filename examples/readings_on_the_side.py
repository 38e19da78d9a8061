"""Sensor readings without packets of their own: virtual flooding on other traffic (drift2006, section 8).

Twenty-five radios stand in a field. One of them broadcasts the time once a minute, and there is no other
traffic. Every radio has a thermometer, and its reading is carried by the packets that are sent anyway. After
each minute the program prints the smallest and the largest number of readings that a radio has.

    python examples/readings_on_the_side.py
"""

from random import Random

from precede.core.instants import MINUTE
from precede.core.node import Context, Node
from precede.eventlog.recorder import Recorder
from precede.eventlog.sinks import NoSink
from precede.protocols import registry
from precede.protocols.floods.carrier import Carrying
from precede.protocols.floods.virtual_flooding import VirtualFlooding
from precede.sim.networks.flood import FloodRadio
from precede.sim.networks.motion import Motion, grid
from precede.sim.world import World

SIDE = 5


def radio(node: int, incarnation: int, random: Random) -> Node:
    """A radio that floods messages in the order of their source, and carries readings."""
    options = {"dissemination": "flooding", "beacon": "0s"}
    members = tuple(range(SIDE * SIDE))
    inner = registry.make("fifo", "node", Context(node, members, options, random, incarnation))
    return Carrying(inner, VirtualFlooding(random))


def main() -> None:
    names = [str(node) for node in range(SIDE * SIDE)]
    network = FloodRadio(Motion(grid(SIDE, SIDE, spacing=70.0)), reach=88.0)
    world = World(1, len(names), radio, network, Recorder("readings", names, NoSink()))
    for node in range(len(names)):
        world.enter(node)
    radios = [hosted.node for hosted in world.nodes]
    for node, carrying in enumerate(radios):
        assert isinstance(carrying, Carrying)
        carrying.virtual.put(key=node, version=1, value=20 + node % 7)

    for minute in range(1, 2 * SIDE):
        world.schedule(minute * MINUTE, world.broadcast, 0, b"the time is now")
        world.run(minute * MINUTE + MINUTE // 2)
        known = [len(carrying.virtual) for carrying in radios if isinstance(carrying, Carrying)]
        packets = network.counters()["network_transmissions"]
        print(f"minute {minute}: {packets:4} packets, readings known: {min(known):2} to {max(known)}")


if __name__ == "__main__":
    main()
