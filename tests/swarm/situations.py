"""What really happened in a world of the swarm, read from its plan and its log: the situations it is drawn for.

python -m tests.swarm.situations --worlds 300 --seed 1000000 --protocol drift
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from precede.core.instants import parse_duration
from precede.eventlog.sinks import TableSink
from precede.experiments.swarm.events import events_of
from precede.experiments.swarm.plan import DRAWERS, Plan, draw_plan, find_drawer
from precede.experiments.swarm.swarm import run_plan

ROWS = ("started", "crashed", "left", "discarded")


def planned(plan: Plan) -> set[str]:
    """Return the names of the situations that a plan brings about, whatever the nodes do."""
    run = plan.run
    world, workload, faults, options = run.world, run.workload, run.faults, run.options
    size, kind, partitions = workload.get("size"), world["kind"], world.get("partitions", ())
    stalls, script = faults.get("stalls", ()), workload.get("script", ())
    crashes, stays = faults.get("crashes", ()), world.get("stays", ())
    suspect_after = parse_duration(options.get("suspect_after", "0s")) or int(options.get("test_timeout", 0))
    loses_store = any(crash.get("keep") is False for crash in crashes)
    expires = any("lifetime" in birth for birth in script)
    return {
        name
        for name, is_so in {
            "payload of no bytes": size == 0,
            "payload of 64 kB": size == 64 * 1024,
            "16 nodes or more": world.get("nodes", 0) >= 16,
            "64 nodes": world.get("nodes", 0) == 64,
            "several partitions": len(partitions) > 1,
            "one-way link": any(cut.get("one_way") for cut in partitions),
            "stall": bool(stalls),
            "stalled station": any(stall["node"].startswith("s") for stall in stalls),
            "false suspicion": any(0 < suspect_after < parse_duration(stall["duration"]) for stall in stalls),
            "partition": bool(partitions),
            "cut wire": bool(world.get("wire_cuts")),
            "cut wire during a handoff": _cut_in_handoff(world),
            "loss": bool(world.get("loss")),
            "duplication": bool(world.get("duplication")),
            "bandwidth": "bandwidth" in world,
            "wrong clocks": "skew" in faults,
            "clocks beyond the promise": "skew" in faults and options.get("skew") == "1s",
            "clock jump": bool(faults.get("jumps")),
            "lost state": loses_store,
            f"lost state, kind {kind}": loses_store,
            "lossy contacts": kind == "contacts" and bool(world.get("loss")),
            "planned late join": any("enter" in stay for stay in stays),
            "planned leave": any("leave" in stay for stay in stays),
            "crash of a station": any(crash["node"].startswith("s") for crash in crashes),
            "ids around 2^31": plan.ids_from == (1 << 31) - 2,
            "highest ids": plan.ids_from == (1 << 48) - 64,
            "processes near 2^63": plan.ids_from > 1 << 47 and plan.incarnations_from > 1 << 14,
            "numbers around 2^31": plan.numbers_from == (1 << 31) - 3,
            "highest numbers": plan.numbers_from > 1 << 39,
            "groups that meet": bool(partitions) and "members" in world and not world["members"],
            "refresh": "refresh" in options,
            "refresh where nothing is lost": "refresh" in options and not world.get("loss"),
            "lazy expiry": bool(options.get("lazy_expiry")),
            "monotone deadlines": bool(options.get("monotone")),
            "unpruned barriers": options.get("prune") is False,
            "full cache": bool(options.get("cache")),
            "lifetimes of messages": expires,
            f"lifetimes of messages, kind {kind}": expires,
            "planned crash in recovery": any("again" in crash for crash in crashes),
            "silence of hours": plan.settle > 3600 * 1_000_000,
            "diagnosis": bool(options.get("diagnosis")),
            "agreed founding": options.get("founding") == "agreed",
            f"kind {kind}": True,
        }.items()
        if is_so
    }


def _cut_in_handoff(world: Mapping[str, Any]) -> bool:
    """Does a host enter a cell while a wire is cut?"""
    moves = [parse_duration(move["at"]) for move in world.get("moves", ()) if move["cell"]]
    cuts = [(parse_duration(cut["start"]), parse_duration(cut["end"])) for cut in world.get("wire_cuts", ())]
    return any(start <= at < end for at in moves for start, end in cuts)


def happened(rows: Iterable[dict[str, Any]]) -> set[str]:
    """Return the names of what a log shows."""
    found: set[str] = set()
    lives: dict[str, list[tuple[str, int, int]]] = {}
    for row in rows:
        if row["kind"] in ("started", "crashed"):
            lives.setdefault(row["node"], []).append((row["kind"], row["at_us"], row["incarnation"]))
        else:
            found.add("leave" if row["kind"] == "left" else f"discarded: {row['reason']}")
    for events in lives.values():
        if events[0][1] > 0:
            found.add("late start")
        for (kind, at, incarnation), (then, later, other) in pairwise(events):
            if (kind, then) == ("crashed", "started"):
                found.add("restart with its store" if incarnation == other else "restart without its store")
            elif then == "crashed":
                found.add("crash in recovery" if at and later == at else "crash")
    return found


def count_planned(protocol: str, seeds: Iterable[int]) -> Counter[str]:
    """Draw worlds without running them, and count in how many of them each situation is planned."""
    drawer = find_drawer(protocol)
    return Counter(name for seed in seeds for name in planned(draw_plan(protocol, seed, drawer)))


def count(protocol: str, seeds: Iterable[int]) -> Counter[str]:
    """Run worlds and count in how many of them each situation happened."""
    counts: Counter[str] = Counter()
    drawer = find_drawer(protocol)
    for seed in seeds:
        plan, sink = draw_plan(protocol, seed, drawer), TableSink()
        result = run_plan(plan, drawer, log=sink)
        assert not result.failed, (protocol, seed, result.remarks)
        counts.update(planned(plan) | happened(events_of(sink.events(), *ROWS)))
    return counts


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1_000_000)
    parser.add_argument("--protocol", action="append")
    given = parser.parse_args()
    for name in given.protocol or DRAWERS:
        found = count(name, range(given.seed, given.seed + given.worlds))
        print(f"{name}: " + ", ".join(f"{what} {number}" for what, number in sorted(found.items())), flush=True)
