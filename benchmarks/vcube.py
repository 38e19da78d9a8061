"""VCube: 1,024 nodes, one message each, with aggregation and the event log on (vcube2018, section 5).

Beside it, in the same run: the bare heapq loop over the same event times; 128 nodes, for how the cost of a
packet grows; and no aggregation, for its N(N-1) packets. `python -m benchmarks.vcube --json`
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from random import Random

from benchmarks.measuring import Tape, interleaved
from precede.core.effects import Effects, Medium
from precede.core.identity import NodeId
from precede.core.instants import MILLISECOND, SECOND, Duration, Instant
from precede.core.messages import Packet
from precede.core.node import Context, Node
from precede.eventlog.recorder import Recorder
from precede.eventlog.sinks import NoSink
from precede.protocols import registry
from precede.sim.networks.network import Flight
from precede.sim.networks.switched import Switched
from precede.sim.randomness import Distribution
from precede.sim.world import World

STARTS = {"exponential": "exponential(1)", "triangular": "triangular(0, 0.6)"}


def prepare(
    nodes: int, start: str, aggregation: bool = True, wrap: Callable[[Node], Node] = lambda node: node
) -> tuple[World, list[Instant]]:
    """Prepares a world in which every node broadcasts one message of 50 bytes; also returns the instants."""
    entry = registry.find("vcube")
    options = registry.read_options(entry, {"aggregation": aggregation})
    members = tuple(range(nodes))
    build = entry.build
    assert build is not None

    def make(node: NodeId, incarnation: int, random: Random) -> Node:
        return wrap(build("node", Context(node, members, options, random, incarnation)))

    network = Switched(Distribution("normal(0.1, 0.025)"), MILLISECOND, MILLISECOND)
    network.crashes = False
    recorder = Recorder("bench", [str(node) for node in members], NoSink(), packets_received=False)
    world = World(1, nodes, make, network, recorder)
    drawn = Distribution(STARTS[start]).block(world.generators.numpy("starts"), nodes)
    births = [round(at * SECOND) for at in drawn.tolist()]
    for node, at in enumerate(births):
        world.enter(node)
        world.schedule(at, world.broadcast, node, bytes(50))
    return world, births


def broadcast_all(nodes: int, start: str, aggregation: bool = True) -> int:
    """Runs it all; returns the number of packets."""
    world, _ = prepare(nodes, start, aggregation)
    world.run()
    world.recorder.flush()
    return world.network.counters()["network_packets"]


class TapedNode(Node):
    """A node that begins a new event on the tape with every input."""

    def __init__(self, node: Node, tape: Tape) -> None:
        self.node = node
        self.tape = tape

    def broadcast(self, payload: bytes, now: Instant, to: object = None, lifetime: object = None) -> Effects:
        self.tape.counts.append(0)
        return self.node.broadcast(payload, now)

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        self.tape.counts.append(0)
        return self.node.receive(packet, sender, now, over)


class TapedFlight(Flight):
    """Records when each packet arrives."""

    def __init__(self, flight: Flight, tape: Tape) -> None:
        self.flight = flight
        self.tape = tape

    def takes(self, now: Instant) -> Duration:
        taken = self.flight.takes(now)
        self.tape.times.append(now + taken)
        self.tape.counts[-1] += 1
        return taken


def tape_of(nodes: int, start: str) -> Tape:
    """Records when each packet arrives and how many packets each event sends."""
    tape = Tape()
    world, births = prepare(nodes, start, wrap=lambda node: TapedNode(node, tape))
    tape.times.extend(births)
    tape.counts.append(nodes)
    for hosted in world.nodes:
        assert hosted.flight is not None
        hosted.flight = TapedFlight(hosted.flight, tape)
    world.run()
    return tape


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--nodes", type=int, default=1024)
    parser.add_argument("--fewer", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--start", choices=sorted(STARTS), default="exponential")
    options = parser.parse_args()
    many, few, start = options.nodes, options.fewer, options.start
    tape = tape_of(many, start)
    packets, fewer = broadcast_all(many, start), broadcast_all(few, start)
    best = interleaved(
        {
            "bare_loop": tape.bare_loop,
            "vcube": lambda: broadcast_all(many, start),
            "vcube_fewer": lambda: [broadcast_all(few, start) for _ in range(10)],
        },
        options.rounds,
    )
    each, each_of_fewer = best["vcube"] / packets, best["vcube_fewer"] / 10 / fewer
    result = {
        "nodes": many,
        "start": start,
        "packets": packets,
        "packets_without_aggregation": broadcast_all(many, start, aggregation=False),
        "packets_n_times_n_minus_1": many * (many - 1),
        "heap_depth": tape.bare_loop(),
        "bare_loop_us_per_packet": round(best["bare_loop"] / packets * 1e6, 3),
        "vcube_us_per_packet": round(each * 1e6, 3),
        f"vcube_{few}_us_per_packet": round(each_of_fewer * 1e6, 3),
        "ratio_to_bare_loop": round(best["vcube"] / best["bare_loop"], 3),
        f"ratio_packet_{few}_to_{many}": round(each / each_of_fewer, 3),
    }
    print(json.dumps(result, indent=None if options.json else 2))


if __name__ == "__main__":
    main()
