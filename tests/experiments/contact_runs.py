"""Runs over contacts on both paths: the engine of their own must give what the shared path gives."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from precede.eventlog.sinks import TableSink
from precede.experiments.run import Run, prepare
from precede.experiments.scenario import read_scenario
from precede.sim.world import World

SMALL_CACHES = {"cache": "60", "cache_bytes": "60000"}
SHARED_PATH_TOO = {
    **SMALL_CACHES,
    "refresh": "30s",
    "durable": "true",
    "loss": "0.1",
    "share": "air",
    "dissemination": "spray_and_wait",
    "faults.skew": "1s",
}
"""Settings of a run over contacts with which it has no engine of its own; with small caches it may have one."""


def results(run: Run, make_world: type[World] | None) -> tuple[type[World], pa.Table, pa.Table, Any]:
    sink = TableSink()
    prepared = prepare(run, sink, make_world=make_world)
    prepared.world.run(prepared.end)
    if prepared.world.gauged:
        prepared.world.sample_gauges()
    prepared.recorder.flush()
    counts = prepared.world.handled, dict(prepared.built.network.counters())
    return type(prepared.world), sink.events(), sink.gauges(), counts


def assert_same(run: Run, engine: type[World]) -> tuple[pa.Table, dict[str, int]]:
    """Carry out a run on both paths; return its rows and the counters of its network."""
    shared, own = results(run, World), results(run, None)
    assert (shared[0], own[0]) == (World, engine)
    assert own[1].equals(shared[1])
    assert own[2].equals(shared[2])
    assert own[3] == shared[3]
    return own[1], own[3][1]


def world_of(settings: dict[str, str], protocol: str = "delta_causal") -> type[World]:
    """The world that a run of pedestrians with these settings gets."""
    return type(prepare(read_scenario("pedestrians", protocol, 1, settings), TableSink()).world)


def write_comings_and_goings(folder: Path, seed: int, nodes: int = 12) -> Path:
    """Write a scenario in which every node comes and goes several times, with many contacts that overlap."""
    random = Random(seed)
    stays, contacts = ["node,enter,leave"], ["a,b,start,end"]
    for node in range(nodes):
        begin = 0
        for _ in range(6):
            enter = begin + random.randrange(20)
            begin = enter + 10 + random.randrange(80)
            stays.append(f"n{node},{enter},{begin}")
    for _ in range(25 * nodes):
        a, b = random.sample(range(nodes), 2)
        start = random.randrange(500)
        contacts.append(f"n{a},n{b},{start},{start + random.choice((1, 8, 40)) * random.randrange(1, 8) / 8}")
    (folder / "nodes.csv").write_text("\n".join(stays) + "\n")
    (folder / "contacts.csv").write_text("\n".join(contacts) + "\n")
    (folder / "world.toml").write_text(
        """
        world = { kind = "contacts", contacts = "contacts.csv", nodes = "nodes.csv" }
        workload = { every = "uniform(0, 4)", first = "1s", size = 50, replies = 0.05 }
        run = { protocol = "delta_causal", options = { lifetime = "40s", sweep = "3s" } }
        """
    )
    return folder / "world.toml"
