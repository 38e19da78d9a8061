"""CPU per event and memory at sizes a decade apart, for each kind of world.

Each size runs in a process of its own, with the event log on. `peak_mb` is the peak memory of the process,
`kb_per_node` what it grew by while the world was built and run. A bare heapq event (pop and push, 4,000 deep)
is timed in the same process, because the speed of a machine varies: `ratio` is the time of an event over that.
Starting the nodes, at instant 0, is part of `build_ms`, not of the time of the events.
Larger worlds have fewer messages, so that the number of deliveries is similar.

python -m benchmarks.scaling --json
python -m benchmarks.scaling --picture benchmarks/scaling.svg
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.measuring import built, show, steady_tape, timed
from precede.eventlog.sinks import NoSink
from precede.experiments.run import Run, prepare

EVENTS = 200_000
"""The deliveries of a run, about."""
BURST = 48
"""So many messages of VCube are under way at once at every size: the more they are, the more share a packet."""
BURST_EVERY_US = 5_000_000
"""A burst has ended before the next one begins."""
LARGEST_CUBE = 16_384
CONTACTS_LAST_S = 600
BARE_EVENTS = 200_000
BARE_DEPTH = 4_000


def script(nodes: int, messages: int, every_us: int, first_us: int = 1, name: str = "{}") -> dict[str, Any]:
    """A workload of so many messages, from nodes spread evenly over all of them."""
    step = max(1, nodes // messages)
    births = [
        {"src": name.format(number * step % nodes), "at": f"{first_us + number * every_us}us"}
        for number in range(messages)
    ]
    return {"script": births, "size": 50}


def point_to_point(nodes: int) -> Run:
    """First in, first out: each message to all others by direct links, with acknowledgements."""
    return Run(
        world={"kind": "point_to_point", "nodes": nodes, "delay": "uniform(0.001, 0.1)"},
        workload=script(nodes, max(1, EVENTS // nodes), 1_000),
        protocol="fifo",
        seed=1,
        gauges="none",
        log="messages",
    )


def switched(nodes: int) -> Run:
    """VCube with aggregation: bursts of messages along the trees of their sources."""
    workload = script(nodes, BURST * LARGEST_CUBE // nodes, 1_000)
    for number, birth in enumerate(workload["script"]):
        burst, place = divmod(number, BURST)
        birth["at"] = f"{1 + burst * BURST_EVERY_US + place * 1_000}us"
    return Run(
        world={"kind": "switched", "nodes": nodes, "propagation": "normal(0.1, 0.025)"},
        workload=workload,
        protocol="vcube",
        seed=1,
        gauges="none",
        log="messages",
    )


def flood(nodes: int) -> Run:
    """DRIFT among radios with a dozen neighbours each."""
    side = round(400 * (nodes / 100) ** 0.5)
    return Run(
        world={
            "kind": "flood",
            "nodes": nodes,
            "field": [side, side],
            "reach": 88,
            "delay": "uniform(0.001, 0.005)",
            "connected": True,
        },
        workload=script(nodes, max(1, EVENTS // (10 * nodes)), 1_000_000),
        protocol="drift",
        options={"beacon": "0s"},
        seed=1,
        end="1000s",
        gauges="none",
        log="messages",
    )


def contacts(nodes: int) -> Run:
    """Δ-causal order while nodes meet at random: each meets another every ten seconds, for fifteen seconds."""
    random = Random(1)
    meetings = []
    for _ in range(nodes * CONTACTS_LAST_S // 20):
        a, b = random.sample(range(nodes), 2)
        start = random.randrange(CONTACTS_LAST_S)
        meetings.append([str(a), str(b), f"{start}s", f"{start + 15}s"])
    messages = max(1, EVENTS // nodes)
    return Run(
        world={"kind": "contacts", "meetings": meetings, "nodes": nodes},
        workload=script(nodes, messages, CONTACTS_LAST_S * 1_000_000 // messages),
        protocol="delta_causal",
        options={"lifetime": "2min"},
        seed=1,
        gauges="none",
        log="messages",
    )


def cellular(nodes: int) -> Run:
    """WAS: a station for every ten hosts, which walk between the cells."""
    stations = max(2, nodes // 10)
    messages = max(1, EVENTS // (10 * nodes))
    return Run(
        world={"kind": "cellular", "stations": stations, "hosts": nodes, "duration": "20s"},
        workload=script(nodes, messages, 10_000_000 // messages, 2_000_000, "h{}"),
        protocol="was",
        options={"stations": stations},
        seed=1,
        end="20s",
        gauges="none",
        log="messages",
    )


KINDS: dict[str, tuple[Callable[[int], Run], tuple[int, ...]]] = {
    "point_to_point": (point_to_point, (10, 100, 1_000)),
    "switched": (switched, (128, 1_024, 4_096, 16_384)),
    "flood": (flood, (10, 100, 1_000)),
    "contacts": (contacts, (21, 209, 2_090)),
    "cellular": (cellular, (100, 1_000, 10_000)),
}


def measure(kind: str, nodes: int) -> dict[str, Any]:
    """Run one world in this process."""
    gc.collect()
    gc.disable()  # as `precede simulate` does
    before = _peak_kb()
    building = time.process_time()
    prepared = prepare(KINDS[kind][0](nodes), NoSink())
    prepared.world.run(0)
    began = time.process_time()
    prepared.world.run(prepared.end)
    prepared.recorder.flush()
    took = time.process_time() - began
    after = _peak_kb()
    events = prepared.world.handled
    tape = steady_tape(BARE_EVENTS, BARE_DEPTH)
    bare = min(timed(tape.bare_loop) for _ in range(3)) / BARE_EVENTS
    return {
        "world": kind,
        "nodes": nodes,
        "build_ms": round((began - building) * 1e3),
        "events": events,
        "us_per_event": round(took / events * 1e6, 2),
        "ratio": round(took / events / bare, 2),
        "peak_mb": after // 1024,
        "kb_per_node": round((after - before) / nodes, 1),
    }


def _peak_kb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _in_a_process(kind: str, nodes: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.scaling", "--world", kind, "--nodes", str(nodes), "--json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


def picture(rows: Sequence[dict[str, Any]]) -> str:
    """Draw the cost of an event over the number of nodes, a curve for each kind of world, as SVG."""
    from precede.report.figures import Curve, Figure, Point, svg

    kinds = dict.fromkeys(row["world"] for row in rows)
    curves = [
        Curve(kind, [Point(row["nodes"], row["ratio"]) for row in rows if row["world"] == kind])
        for kind in kinds
    ]
    title = "CPU per event, in bare heapq events"
    return str(svg(Figure(title, "nodes", "bare events", curves, log_x=True, log_y=True)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one object on one line")
    parser.add_argument("--world", choices=sorted(KINDS), help="only this kind of world")
    parser.add_argument("--nodes", type=int, help="only this size, in this process")
    parser.add_argument("--picture", type=Path, help="also draw the figures to this SVG file")
    options = parser.parse_args()
    if options.world and options.nodes:
        print(json.dumps(measure(options.world, options.nodes)))
        return
    kinds = [options.world] if options.world else list(KINDS)
    rows = [_in_a_process(kind, nodes) for kind in kinds for nodes in KINDS[kind][1]]
    if options.picture:
        options.picture.write_text(picture(rows), encoding="utf-8")
    names = list(rows[0])
    lines = [f"| {' | '.join(names)} |", f"| --- |{' ---: |' * (len(names) - 1)}"]
    lines += [f"| {' | '.join(str(row[name]) for name in names)} |" for row in rows]
    growth = {
        f"ratio_growth_{kind}": max(ratios) / ratios[0]
        for kind in kinds
        for ratios in [[row["ratio"] for row in rows if row["world"] == kind]]
    }
    result = {"built": built(), **{name: round(value, 2) for name, value in growth.items()}}
    show(lines, result, options.json)


if __name__ == "__main__":
    main()
