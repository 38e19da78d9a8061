"""DRIFT: 100 radios, all of them sources, 15 messages each; the whole table of clocks on every packet, log on.

Every one of the 1,500 floods is transmitted by all 100 nodes and heard by about a dozen neighbours each time,
about two million receptions, each with a hundred entries to merge. Beside it, in the same run: the bare heapq
loop over the same event times, one event per reception. `python -m benchmarks.drift --json`
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from random import Random
from typing import Any

from benchmarks.measuring import Tape, interleaved
from precede.core.identity import NodeId
from precede.core.instants import SECOND
from precede.core.node import Context, Node
from precede.eventlog.recorder import Recorder
from precede.eventlog.sinks import NoSink
from precede.protocols import registry
from precede.sim.networks.flood import FloodRadio
from precede.sim.networks.motion import Motion, scattered_connected
from precede.sim.randomness import Distribution, Generators
from precede.sim.workload import Workload
from precede.sim.world import World

REACH = 88.0
FIELD = 400.0
DELAY = "uniform(0.001, 0.005)"
EVERY = "constant(100)"
FIRST = "uniform(0, 100)"


class TapedRadio(FloodRadio):
    """A radio that records, for every reception, what was transmitted since the one before."""

    def __init__(self, tape: Tape, **settings: Any) -> None:
        super().__init__(**settings)
        self.tape = tape
        tape.counts.append(0)

    def attach(self, world: Any, nodes: int) -> None:
        super().attach(world, nodes)
        self.world = TapedWorld(world, self)

    def _land(self, air: Any, receivers: Sequence[NodeId]) -> None:
        for node in receivers:
            self.tape.counts.append(0)
            self.world.receive_all([node], air.packet, air.sender, 0)


class TapedWorld:
    """The simulator as the recording radio sees it: records when receptions are scheduled."""

    def __init__(self, world: Any, radio: TapedRadio) -> None:
        self._world = world
        self._radio = radio

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world, name)

    def schedule(self, at: int, function: Any, *arguments: Any) -> None:
        if function == self._radio._land:
            self._radio.tape.times.extend([at] * len(arguments[1]))
            self._radio.tape.counts[-1] += len(arguments[1])
        self._world.schedule(at, function, *arguments)


def run(nodes: int, messages: int, packet_rows: bool = False, tape: Tape | None = None) -> World:
    """Runs the whole scenario with our engine."""
    generators = Generators(1)
    side = FIELD * (nodes / 100) ** 0.5
    places = scattered_connected(nodes, side, side, REACH, generators)
    settings: dict[str, Any] = {"motion": Motion(places), "reach": REACH, "delay": Distribution(DELAY)}
    network = FloodRadio(**settings) if tape is None else TapedRadio(tape, **settings)
    options = {"beacon": "0s"}
    members = tuple(range(nodes))

    def make(node: NodeId, incarnation: int, random: Random) -> Node:
        return registry.make("drift", "node", Context(node, members, options, random, incarnation))

    names = [str(node) for node in range(nodes)]
    recorder = Recorder("bench", names, NoSink(), packets_received=packet_rows)
    world = World(1, nodes, make, network, recorder)
    workload = Workload(
        gap=Distribution(EVERY), first=Distribution(FIRST), count=messages, size=128, sources=range(nodes)
    )
    workload.begin(world)
    for node in range(nodes):
        world.enter(node)
        workload.node_entered(node)
    world.run(10_000 * SECOND)
    recorder.flush()
    return world


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one object on the last line")
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--messages", type=int, default=15)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    nodes, messages = arguments.nodes, arguments.messages
    tape = Tape()
    run(nodes, messages, tape=tape)
    best = interleaved(
        {
            "drift": lambda: run(nodes, messages),
            "rows": lambda: run(nodes, messages, packet_rows=True),
            "bare": tape.bare_loop,
        },
        rounds=arguments.rounds,
    )
    receptions = len(tape.times)
    result = {
        "receptions": receptions,
        "heap_depth": tape.bare_loop(),
        "drift_us_per_reception": round(best["drift"] / receptions * 1e6, 2),
        "bare_us_per_reception": round(best["bare"] / receptions * 1e6, 2),
        "ratio_drift_to_bare_loop": round(best["drift"] / best["bare"], 2),
        "ratio_with_a_row_per_reception": round(best["rows"] / best["bare"], 2),
    }
    lines = [f"{name}: {value}" for name, value in result.items()]
    print(json.dumps(result) if arguments.json else "\n".join(lines))


if __name__ == "__main__":
    main()
