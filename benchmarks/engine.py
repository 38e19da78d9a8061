"""The engine: one packet from each of 1,024 nodes to all others along binomial trees, with the event log on.

Measured in the same run: the bare heapq loop over the same event times, and SimPy with one callback per
packet writing the same rows. `python -m benchmarks.engine --json`
"""

from __future__ import annotations

import argparse
import heapq
import json
from random import Random
from typing import ClassVar

import simpy

from benchmarks.measuring import Tape, built, interleaved
from precede.core.effects import Accept, Arrive, Deliver, Effects, Medium, Send
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Instant
from precede.core.messages import Message, Packet
from precede.core.node import Node
from precede.eventlog.recorder import Recorder
from precede.eventlog.schema import DELIVERED, SENT
from precede.eventlog.sinks import NoSink
from precede.sim.networks.point_to_point import PointToPoint
from precede.sim.randomness import Distribution, Generators
from precede.sim.world import World

DELAY = "uniform(0.001, 0.1)"


class TreePacket(Packet, frozen=True, gc=False):
    """A message on its way down the tree of its source."""

    kind: ClassVar[str] = "tree"
    size_bytes: int
    control_bytes: int
    control_entries: int
    messages: int
    message: Message


class TreeNode(Node):
    """Forwards along the binomial tree of the source: a node v has position v xor source in it."""

    def __init__(self, node: NodeId, bits: int) -> None:
        self.node = node
        self.bits = bits

    def broadcast(self, payload: bytes, now: Instant, to: object = None, lifetime: object = None) -> Effects:
        message = Message(MessageId(self.node, 0, 1), payload)
        packet = TreePacket(120, 20, 1, 1, message)
        return [
            Accept(message),
            Deliver(message),
            *[Send(packet, self.node ^ (1 << bit)) for bit in range(self.bits)],
        ]

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        message = packet.message  # type: ignore[attr-defined]
        place = self.node ^ message.id.source
        effects: list[object] = [Arrive((message,)), Deliver(message)]
        bit = 1
        while not place & bit:
            effects.append(Send(packet, self.node ^ bit))
            bit <<= 1
        return effects  # type: ignore[return-value]


def flood(nodes: int) -> Recorder:
    """Runs the whole flood with our engine."""
    bits = nodes.bit_length() - 1
    recorder = Recorder("bench", [str(node) for node in range(nodes)], NoSink(), packets_received=False)

    def make(node: NodeId, incarnation: int, random: Random) -> Node:
        return TreeNode(node, bits)

    world = World(1, nodes, make, PointToPoint(Distribution(DELAY)), recorder)
    for node in range(nodes):
        world.enter(node)
        world.schedule(node * 1000, world.broadcast, node, b"x" * 100)
    world.run()
    recorder.flush()
    return recorder


def tape_of(nodes: int) -> Tape:
    """The event times of the flood, from the same generators: broadcasts first, then what each event sends."""
    bits = nodes.bit_length() - 1
    generators = Generators(1)
    delay = [Distribution(DELAY).drawing(generators, "delay", node) for node in range(nodes)]
    tape = Tape()
    heap = [(node * 1000, node, node, node, bits) for node in range(nodes)]
    tape.times.extend(at for at, *_ in heap)
    tape.counts.append(nodes)
    rank = nodes
    while heap:
        at, _, node, source, below = heapq.heappop(heap)
        for bit in range(below):
            to = node ^ (1 << bit)
            arrives = at + delay[node]()
            tape.times.append(arrives)
            heapq.heappush(heap, (arrives, rank, to, source, bit))
            rank += 1
        tape.counts.append(below)
    return tape


def flood_simpy(nodes: int) -> int:
    """Runs the same flood in SimPy: one timeout and one callback per packet, the same rows."""
    bits = nodes.bit_length() - 1
    recorder = Recorder("bench", [str(node) for node in range(nodes)], NoSink(), packets_received=False)
    rows = recorder.units
    process = [recorder.process_of(node, 0) for node in range(nodes)]
    env = simpy.Environment()
    generators = Generators(1)
    draw = [Distribution(DELAY).drawing(generators, "delay", node) for node in range(nodes)]

    def send(node: int, to: int, packet: TreePacket) -> None:
        recorder.packet(SENT, process[node], env.now, env.now, packet, to, 0)
        timeout = env.timeout(draw[node](), (to, packet))
        timeout.callbacks.append(arrive)

    def arrive(event: simpy.Event) -> None:
        node, packet = event.value
        id = packet.message.id
        now = env.now
        rows.received_and_delivered(process[node], now, Deliver(packet.message))
        place, bit = node ^ id.source, 1
        while not place & bit:
            send(node, node ^ bit, packet)
            bit <<= 1
        recorder.flush_if_full()

    def birth(event: simpy.Event) -> None:
        node = event.value
        message = Message(MessageId(node, 0, 1), b"x" * 100)
        recorder.broadcast(process[node], env.now, env.now, message.id, None, None)
        rows.message(DELIVERED, 0, process[node], env.now, env.now, message.id)
        packet = TreePacket(120, 20, 1, 1, message)
        for bit in range(bits):
            send(node, node ^ (1 << bit), packet)

    for node in range(nodes):
        env.timeout(node * 1000, node).callbacks.append(birth)
    env.run()
    recorder.flush()
    return recorder.rows


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--nodes", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    tape = tape_of(options.nodes)
    best = interleaved(
        {
            "bare_loop": tape.bare_loop,
            "precede": lambda: flood(options.nodes),
            "simpy": lambda: flood_simpy(options.nodes),
        },
        options.rounds,
    )
    packets = options.nodes * (options.nodes - 1)
    result = {
        "built": built(),
        "packets": packets,
        "heap_depth": tape.bare_loop(),
        **{f"{name}_us_per_packet": round(took / packets * 1e6, 3) for name, took in best.items()},
        "ratio_to_bare_loop": round(best["precede"] / best["bare_loop"], 3),
        "ratio_to_simpy": round(best["precede"] / best["simpy"], 3),
    }
    print(json.dumps(result, indent=None if options.json else 2))


if __name__ == "__main__":
    main()
