"""The engine: one packet from each of 1,024 nodes to all others along binomial trees, with the event log on.

Measured in the same run: the bare heapq loop over the same event times, and SimPy with one callback per
packet writing the same rows. `python -m benchmarks.engine --json`

`ratio_to_bare_loop` is with the node compiled, because the built-in protocols are. Its text is compiled with
the engine in `build/tree` (or in `--folder`), which takes one to two minutes whenever the text of the package
has changed. The same text interpreted, as a protocol that somebody writes in plain Python, is beside it under
names with `interpreted`, and the same node returning lists of effects under names with `listing`. With
`--interpreted`, or if the engine is not compiled, only the interpreted text is measured.
"""

from __future__ import annotations

import argparse
import heapq
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from types import ModuleType

import simpy

import benchmarks.tree.node
from benchmarks.measuring import Tape, built, interleaved
from benchmarks.tree.compiling import ROOT, compile_with_node
from benchmarks.tree.packet import TreePacket
from precede.core.compiling import is_compiled
from precede.core.effects import Deliver
from precede.core.identity import MessageId, NodeId
from precede.core.messages import Message
from precede.core.node import Node
from precede.eventlog.recorder import Recorder
from precede.eventlog.schema import DELIVERED, SENT
from precede.eventlog.sinks import NoSink
from precede.sim.choosing import world_for
from precede.sim.networks.point_to_point import PointToPoint
from precede.sim.randomness import Distribution, Generators

DELAY = "uniform(0.001, 0.1)"


def interpreted() -> ModuleType:
    """The module `benchmarks.tree.node` from its text, also where it is compiled."""
    text = Path(benchmarks.tree.node.__file__).with_name("node.py")
    spec = importlib.util.spec_from_file_location("interpreted_tree_node", text)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def flood(nodes: int, make_node: Callable[[NodeId, int], Node]) -> Recorder:
    """Runs the whole flood with our engine."""
    bits = nodes.bit_length() - 1
    recorder = Recorder("bench", [str(node) for node in range(nodes)], NoSink(), packets_received=False)

    def make(node: NodeId, incarnation: int, random: Random) -> Node:
        return make_node(node, bits)

    network = PointToPoint(Distribution(DELAY))
    world = world_for(network, nodes)(1, nodes, make, network, recorder)
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--nodes", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--interpreted", action="store_true", help="measure the interpreted node only")
    parser.add_argument(
        "--folder", type=Path, default=ROOT / "build" / "tree", help="where the node is compiled"
    )
    options = parser.parse_args()
    if built() == "compiled" and not options.interpreted and not is_compiled(benchmarks.tree.node):
        run_compiled(options)
        return
    tape = tape_of(options.nodes)
    contenders: dict[str, Callable[[], object]] = {
        "bare_loop": tape.bare_loop,
        "simpy": lambda: flood_simpy(options.nodes),
    }
    plain = interpreted()
    nodes = {"_interpreted_node": plain.TreeNode, "_interpreted_listing_node": plain.ListingTreeNode}
    if is_compiled(benchmarks.tree.node):
        nodes |= {"": benchmarks.tree.node.TreeNode, "_listing_node": benchmarks.tree.node.ListingTreeNode}
    contenders |= {f"precede{ending}": partial(flood, options.nodes, node) for ending, node in nodes.items()}
    best = interleaved(contenders, options.rounds)
    packets = options.nodes * (options.nodes - 1)
    result = {
        "built": built(),
        "packets": packets,
        "heap_depth": tape.bare_loop(),
        **{f"{name}_us_per_packet": round(took / packets * 1e6, 3) for name, took in best.items()},
    }
    for other in ("bare_loop", "simpy"):
        for ending in nodes:
            result[f"ratio_to_{other}{ending}"] = round(best[f"precede{ending}"] / best[other], 3)
    print(json.dumps(result, indent=None if options.json else 2))


def run_compiled(options: argparse.Namespace) -> None:
    """Build the engine with the node, and measure in a process that imports this build."""
    folder = options.folder.resolve()
    modules = compile_with_node(folder)
    command = [sys.executable, "-m", "benchmarks.engine", f"--nodes={options.nodes}"]
    command += [f"--rounds={options.rounds}", *(["--json"] if options.json else [])]
    subprocess.run(command, cwd=folder, env={**os.environ, "PYTHONPATH": str(modules)}, check=True)


if __name__ == "__main__":
    main()
