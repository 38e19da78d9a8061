"""The number of real nodes that one machine runs in real time: more and more, until the lag exceeds a second.

Nodes come one after the other and stay; each hears four others on average, for ten seconds at a time, and says
something once a minute to all (Δ-causal order, epidemic). Every node has its socket and writes its log; two
processes share them. The lag is the larger of two that the emulation measures, both in the machine's time: the
most that a message was said, or a link opened or closed, later than planned; and what 99 of 100 packets took at
most from one node to the next. `python -m benchmarks.emulate --json [--speed S] [--least N] [--most N]`
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

from precede.cli.field.emulate import run_plan
from precede.experiments.emulation.compare import read_segments
from precede.experiments.emulation.plan import plan_of
from precede.experiments.emulation.replay import put_together
from precede.experiments.scenario import read_scenario
from precede.runtime.emulation.transfers import read_transfers

PAPER_NODES = 200
"""guidec2021 ran "some 200" on a workstation, in real time."""
LONGEST_LAG_MS = 1000
SECONDS = 40.0
COMING = 15.0
CONTACT = 10.0
NEIGHBOURS = 4
SCENARIO = """
[world]
kind = "contacts"
contacts = "contacts.csv"
nodes = "nodes.csv"
[workload]
poisson = "{every}s"
size = 200
[run]
protocol = "delta_causal"
options = {{ lifetime = "{lifetime}s" }}
end = "{end}s"
gauges = "none"
"""


def main() -> None:
    """Doubles the number of nodes until the lag is too large, then bisects."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--speed", type=float, default=1.0)
    parser.add_argument("--least", type=int, default=100)
    parser.add_argument("--most", type=int, default=1600)
    parser.add_argument("--gap", type=float, default=0.15, help="how exact: share of the nodes")
    given = parser.parse_args()
    tried: dict[int, dict[str, Any]] = {}
    held, broken, nodes = 0, 0, given.least
    while nodes <= given.most:
        tried[nodes] = found = lived(nodes, given.speed)
        print(f"{nodes} nodes: {found}", file=sys.stderr, flush=True)
        if found["lag_ms"] <= LONGEST_LAG_MS:
            held = nodes
        else:
            broken = nodes
        if not broken:
            nodes *= 2
        elif broken - held <= max(10, given.gap * broken):
            break
        else:
            nodes = (held + broken) // 2
    best = tried.get(held, {})
    result = {
        "nodes_held": held,
        "nodes_too_many": broken or None,
        "speed": given.speed,
        "lag_ms": best.get("lag_ms"),
        "deliveries_per_s": best.get("deliveries_per_s"),
        "events_per_s": best.get("events_per_s"),
        "packets_per_s": best.get("packets_per_s"),
        "ratio_cpu_to_wall": best.get("ratio_cpu_to_wall"),
        "ratio_nodes_to_paper": held / PAPER_NODES,
        "tried": {str(count): found for count, found in sorted(tried.items())},
    }
    print(json.dumps(result, indent=2))


def lived(nodes: int, speed: float) -> dict[str, Any]:
    """Runs an emulation with so many nodes once."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_scenario(folder, nodes, speed)
        run = read_scenario(str(folder / "scenario.toml"), None, 1, {}, folder)
        plan, _ = plan_of(run)
        out = folder / "out"
        summary = run_plan(plan, out, speed, 2, max(5.0, nodes / 10))
        events = read_segments(out / "log")
        kinds = events["kind"].cast("string").to_pylist()
        measured = put_together(read_transfers(out / "transfers"))
        times = measured.times()
    return {
        "lag_ms": max(summary["lag_ms"], round(times[len(times) * 99 // 100] / 1000 / speed)),
        "late_ms": summary["lag_ms"],
        "transfer_ms_median": round(times[len(times) // 2] / 1000 / speed, 1),
        "deliveries_per_s": round(kinds.count("delivered") / SECONDS),
        "events_per_s": round(len(kinds) / SECONDS),
        "packets_per_s": round(measured.packets / SECONDS),
        "cpu_s": summary["cpu_s"],
        "ratio_cpu_to_wall": round(summary["cpu_s"] / summary["wall_s"], 2),
    }


def write_scenario(folder: Path, nodes: int, speed: float) -> None:
    """Writes the scenario with its contacts; all times are the machine's, multiplied by the speed."""
    draw = random.Random(nodes)
    enters = [COMING * place / nodes for place in range(nodes)]
    stays = [f"n{place},{enter * speed},{2 * SECONDS * speed}" for place, enter in enumerate(enters)]
    (folder / "nodes.csv").write_text("\n".join(["node,enter,leave", *stays]) + "\n")
    contacts = ["a,b,start,end"]
    for _ in range(round(nodes * NEIGHBOURS / 2 * SECONDS / CONTACT)):
        a, b = draw.sample(range(nodes), 2)
        start = draw.uniform(0, SECONDS)
        contacts.append(f"n{a},n{b},{start * speed},{(start + CONTACT) * speed}")
    (folder / "contacts.csv").write_text("\n".join(contacts) + "\n")
    times = {"every": 60 * speed, "lifetime": SECONDS * speed, "end": SECONDS * speed}
    (folder / "scenario.toml").write_text(SCENARIO.format(**times))


if __name__ == "__main__":
    main()
