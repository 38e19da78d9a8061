"""Timed transfers over contacts: `TimedWorld` gives the rows, gauges and counters of the shared path."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from precede.core.node import Context
from precede.eventlog.sinks import TableSink
from precede.experiments.run import prepare
from precede.experiments.scenario import read_scenario
from precede.experiments.timed_contacts import choosing
from precede.experiments.timed_contacts.carrier import Carrier
from precede.experiments.timed_contacts.links import Link
from precede.experiments.timed_contacts.marks import Marks
from precede.experiments.timed_contacts.world import TimedWorld
from precede.protocols import registry
from precede.protocols.layered.epidemic.options import EpidemicOptions
from precede.protocols.layered.node import LayeredNode
from precede.sim.world import World

TIMED = {"overhead": "100ms", "lifetime": "90s", "end": "8min"}
RUNS = {
    "as in the paper": (
        "delta_causal",
        {**TIMED, "order": "random", "lazy_expiry": "true", "prune": "false"},
    ),
    "bandwidth": ("delta_causal", {**TIMED, "overhead": "0s", "bandwidth": "1e6", "sweep": "0s"}),
    "jitter": ("delta_causal", {**TIMED, "overhead": "0s", "jitter": "exponential(0.1)", "order": "random"}),
    "long transfers": ("delta_causal", {**TIMED, "overhead": "2s", "order": "newest"}),
    "oldest first": ("delta_causal", {**TIMED, "order": "oldest", "log": "messages"}),
    "by source": ("delta_causal", {**TIMED, "order": "per_source", "gauges": "none"}),
    "no lifetime": ("causal_barrier", {"overhead": "100ms", "end": "6min", "order": "random"}),
    "another rule": ("hash_dag", {"overhead": "100ms", "end": "6min"}),
    "mixed lifetimes": ("delta_causal", {**TIMED, "workload.lifetime": "uniform(10, 200)", "order": "random"}),
}


def results(run: Any, make_world: type[World] | None) -> tuple[type[World], pa.Table, pa.Table, Any]:
    sink = TableSink()
    prepared = prepare(run, sink, make_world=make_world)
    prepared.world.run(prepared.end)
    if prepared.world.gauged:
        prepared.world.sample_gauges()
    prepared.recorder.flush()
    counts = prepared.world.handled, dict(prepared.built.network.counters())
    return type(prepared.world), sink.events(), sink.gauges(), counts


@pytest.fixture(autouse=True)
def also_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "is_compiled", lambda module: True)


@pytest.mark.parametrize("name", RUNS)
def test_the_rows_are_those_of_the_shared_path(name: str) -> None:
    protocol, settings = RUNS[name]
    run = read_scenario("pedestrians", protocol, 5, settings)
    shared, timed = results(run, World), results(run, None)
    assert (shared[0], timed[0]) == (World, TimedWorld)
    assert shared[1].num_rows > 5_000
    assert timed[1].equals(shared[1])
    assert timed[2].equals(shared[2])
    assert timed[3] == shared[3]


def test_nodes_that_come_back_and_links_that_end_during_a_transfer(tmp_path: Path) -> None:
    random = Random(3)
    stays, contacts = ["node,enter,leave"], ["a,b,start,end"]
    for node in range(12):
        begin = 0
        for _ in range(3):
            enter = begin + random.randrange(20)
            begin = enter + 30 + random.randrange(80)
            stays.append(f"n{node},{enter},{begin}")
    for _ in range(300):
        a, b = random.sample(range(12), 2)
        start = random.randrange(280)
        contacts.append(f"n{a},n{b},{start},{start + random.randrange(1, 15) / 4}")
    (tmp_path / "nodes.csv").write_text("\n".join(stays) + "\n")
    (tmp_path / "contacts.csv").write_text("\n".join(contacts) + "\n")
    (tmp_path / "world.toml").write_text(
        """
        world = { kind = "contacts", contacts = "contacts.csv", nodes = "nodes.csv", overhead = "300ms" }
        workload = { every = "4s", first = "1s", size = 50 }
        run = { protocol = "delta_causal", options = { lifetime = "40s", order = "random" } }
        """
    )
    run = read_scenario(str(tmp_path / "world.toml"), None, 2, {})
    shared, timed = results(run, World), results(run, None)
    assert timed[0] is TimedWorld
    assert timed[3][1]["transfers_cut"] > 100
    assert timed[1].equals(shared[1])
    assert timed[2].equals(shared[2])
    assert timed[3] == shared[3]


@pytest.mark.parametrize(
    "settings",
    [
        {"overhead": "0s", "order": "random"},
        {"jitter": "uniform(0, 0.0000009)"},
        {"overhead": "100ms", "cache": "60"},
        {"overhead": "100ms", "refresh": "30s"},
        {"overhead": "100ms", "durable": "true"},
        {"overhead": "100ms", "share": "node"},
        {"overhead": "100ms", "summaries": "timed"},
        {"overhead": "100ms", "loss": "0.1"},
        {"overhead": "100ms", "dissemination": "spray_and_wait"},
        {"overhead": "100ms", "faults.skew": "1s"},
    ],
    ids=str,
)
def test_other_runs_take_the_shared_path(settings: dict[str, str]) -> None:
    run = read_scenario("pedestrians", "delta_causal", 1, settings)
    assert type(prepare(run, TableSink()).world) is World


def test_plain_python_takes_the_shared_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "is_compiled", lambda module: False)
    run = read_scenario("pedestrians", "delta_causal", 1, {"overhead": "100ms"})
    assert type(prepare(run, TableSink()).world) is World


def test_a_queue_gives_smaller_ranks_first_and_equal_ones_in_order() -> None:
    random = Random(1)
    node = registry.make("unordered", "node", Context(0, (0, 1), {}, random))
    assert isinstance(node, LayeredNode)
    carrier = Carrier(EpidemicOptions(), random, node.ordering)
    link = Link(carrier, carrier)
    queued: list[tuple[int, int, int]] = []
    for step in range(2_000):
        if random.random() < 0.6:
            rank, serial = random.randrange(-20, 20), random.randrange(1 << 31)
            queued.append((rank, step, serial))
            link.enqueue(rank, serial)
        elif queued:
            first = min(queued)
            queued.remove(first)
            assert link.take() == first[2]
    for _, _, serial in sorted(queued):
        assert link.take() == serial
    assert link.take() == -1


def test_marks_forget_what_is_too_low_when_they_need_room() -> None:
    marks = Marks(0, 0)
    for serial in range(0, 3_000, 3):
        marks.add(serial, max(0, serial - 100))
    assert [serial for serial in range(2_900, 3_000) if marks.has(serial)] == list(range(2_901, 3_000, 3))
    marks.remove(2_997)
    marks.remove(5_000)
    assert not marks.has(2_997)
    assert not marks.has(5_000)
    assert not marks.has(-1)
