"""VCube: 1,024 nodes, one message each, with aggregation and the event log on (vcube2018, section 5).

The runs are those of the paper's reproduction, carried out as `precede simulate` does. Beside them,
in the same run: the bare heapq loop over the same event times; the shared path of the simulator; 128 nodes, for
how the cost of a packet grows; and no aggregation, for its N(N-1) packets. `python -m benchmarks.vcube --json`
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

from benchmarks.measuring import Tape, interleaved
from precede.core.effects import Medium
from precede.core.identity import NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Packet
from precede.eventlog.rows import MeasuredPacket
from precede.eventlog.sinks import NoSink
from precede.experiments.run import Prepared, Run, prepare
from precede.reproduction.vcube2018.points import Point
from precede.sim.networks.network import MESSAGES_BORN
from precede.sim.plain_writer import PacketsUnderWay
from precede.sim.world import World

STARTS = {"exponential": "exponential(1)", "triangular": "triangular(0, 0.6)"}


def run_of(nodes: int, start: str, aggregation: bool = True) -> Run:
    """A run of the paper in which every node broadcasts one message of 50 bytes."""
    return Point("main", start, STARTS[start], nodes, aggregation).run(1)


def carry_out(run: Run, make_world: type[World] | None = None) -> Prepared:
    """Runs it all, by default on the path that users get."""
    prepared = prepare(run, NoSink(), make_world=make_world)
    prepared.world.run(prepared.end)
    prepared.recorder.flush()
    return prepared


def packets_of(run: Run) -> int:
    return carry_out(run).built.network.counters()["network_packets"]


class TapedWorld(World):
    """Records on a tape when messages are born, and each event that sends packets."""

    tape: Tape

    def schedule_phase(self, phase: int, at: Instant, function: Callable[..., None], *arguments: Any) -> None:
        if phase == MESSAGES_BORN:
            self.tape.times.append(at)
        super().schedule_phase(phase, at, function, *arguments)

    def broadcast(
        self,
        node: NodeId,
        payload: bytes,
        to: tuple[NodeId, ...] | None = None,
        lifetime: Duration | None = None,
    ) -> None:
        self.tape.counts.append(0)
        super().broadcast(node, payload, to, lifetime)

    def receive(self, to: NodeId, packet: Packet, sender: NodeId, over: Medium) -> None:
        self.tape.counts.append(0)
        super().receive(to, packet, sender, over)


class TapedPackets(PacketsUnderWay):
    """Records when each packet arrives, for the event that sends it."""

    def __init__(self, packets: PacketsUnderWay, tape: Tape) -> None:
        self._packets = packets
        self._tape = tape

    def launch(self, at: Instant, to: NodeId, packet: MeasuredPacket, sender: NodeId, over: Medium) -> None:
        self._tape.times.append(at)
        self._tape.counts[-1] += 1
        self._packets.launch(at, to, packet, sender, over)


def tape_of(run: Run) -> Tape:
    prepared = prepare(run, NoSink(), make_world=TapedWorld)
    world = prepared.world
    assert isinstance(world, TapedWorld)
    world.tape = tape = Tape()
    world.writer.under_way = TapedPackets(world.writer.under_way, tape)
    tape.counts.append(int(run.world["nodes"]))  # the births: all nodes enter at instant 0 and schedule theirs
    world.run(prepared.end)
    assert len(tape.times) == sum(tape.counts)
    assert len(tape.times) == int(run.world["nodes"]) + prepared.built.network.counters()["network_packets"]
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
    many, few = run_of(options.nodes, options.start), run_of(options.fewer, options.start)
    tape = tape_of(many)
    packets, fewer = packets_of(many), packets_of(few)
    best = interleaved(
        {
            "bare_loop": tape.bare_loop,
            "vcube": lambda: carry_out(many),
            "shared_path": lambda: carry_out(many, World),
            "vcube_fewer": lambda: [carry_out(few) for _ in range(10)],
        },
        options.rounds,
    )
    each, each_of_fewer = best["vcube"] / packets, best["vcube_fewer"] / 10 / fewer
    result = {
        "nodes": options.nodes,
        "start": options.start,
        "world": type(prepare(few, NoSink()).world).__name__,
        "packets": packets,
        "packets_without_aggregation": packets_of(run_of(options.nodes, options.start, aggregation=False)),
        "packets_n_times_n_minus_1": options.nodes * (options.nodes - 1),
        "heap_depth": tape.bare_loop(),
        "bare_loop_us_per_packet": round(best["bare_loop"] / packets * 1e6, 3),
        "vcube_us_per_packet": round(each * 1e6, 3),
        "shared_path_us_per_packet": round(best["shared_path"] / packets * 1e6, 3),
        f"vcube_{options.fewer}_us_per_packet": round(each_of_fewer * 1e6, 3),
        "ratio_to_bare_loop": round(best["vcube"] / best["bare_loop"], 3),
        "ratio_to_shared_path": round(best["vcube"] / best["shared_path"], 3),
        f"ratio_packet_{options.fewer}_to_{options.nodes}": round(each / each_of_fewer, 3),
    }
    print(json.dumps(result, indent=None if options.json else 2))


if __name__ == "__main__":
    main()
