"""Instant transfers over contacts: `InstantWorld` gives the rows, gauges and counters of the shared path."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from precede.eventlog.sinks import TableSink
from precede.experiments.instant_contacts import choosing
from precede.experiments.instant_contacts.world import InstantWorld
from precede.experiments.run import prepare
from precede.experiments.scenario import read_scenario
from precede.sim.world import World

SHORT = {"lifetime": "90s", "end": "7min"}
RUNS = {
    "one lifetime": ("delta_causal", SHORT),
    "as in the paper": ("delta_causal", {**SHORT, "lazy_expiry": "true", "prune": "false", "sweep": "0s"}),
    "mixed lifetimes": ("delta_causal", {**SHORT, "workload.lifetime": "uniform(10, 200)"}),
    "lifetimes of predecessors": ("delta_causal", {**SHORT, "monotone": "true", "log": "messages"}),
    "answers": ("delta_causal", {**SHORT, "replies": "0.02", "reply_after": "uniform(0, 5)"}),
    "no gauges": ("delta_causal", {**SHORT, "gauges": "none"}),
    "no lifetime": ("causal_barrier", {"end": "6min"}),
    "another rule": ("hash_dag", {"end": "6min"}),
    "no order": ("unordered", {"end": "6min"}),
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


def assert_same(run: Any) -> pa.Table:
    """Carry out a run on both paths, and return its rows."""
    shared, instant = results(run, World), results(run, None)
    assert (shared[0], instant[0]) == (World, InstantWorld)
    assert instant[1].equals(shared[1])
    assert instant[2].equals(shared[2])
    assert instant[3] == shared[3]
    return instant[1]


@pytest.fixture(autouse=True)
def also_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "is_compiled", lambda module: True)


@pytest.mark.parametrize("name", RUNS)
def test_the_rows_are_those_of_the_shared_path(name: str) -> None:
    protocol, settings = RUNS[name]
    settings = {"every": "10s", "first": "2s", **settings}
    assert assert_same(read_scenario("pedestrians", protocol, 5, settings)).num_rows > 5_000


@pytest.mark.parametrize("lifetime", ["2s", "40s"])
def test_first_messages_that_cross(tmp_path: Path, lifetime: str) -> None:
    links = ("a,b", "b,c", "c,d", "a,d", "d,e", "b,e", "e,f")
    lines = [f"{link},{start},{start + 7}" for start in range(1, 40, 9) for link in links]
    (tmp_path / "contacts.csv").write_text("\n".join(["a,b,start,end", *lines]) + "\n")
    births = [f"{time}{node},{node},{time}" for time in (0.5, 2, 2.5, 12, 20) for node in "acef"]
    (tmp_path / "messages.csv").write_text("\n".join(["id,src,time", *births]) + "\n")
    (tmp_path / "world.toml").write_text(
        """
        world = { kind = "contacts", contacts = "contacts.csv" }
        workload = { messages = "messages.csv" }
        run = { protocol = "delta_causal" }
        """
    )
    rows = assert_same(read_scenario(str(tmp_path / "world.toml"), None, 1, {"lifetime": lifetime}))
    assert rows["packet_kind"].to_pylist().count("have") > 5


@pytest.mark.parametrize("seed", range(2))
def test_nodes_that_come_back(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    stays, contacts = ["node,enter,leave"], ["a,b,start,end"]
    for node in range(12):
        begin = 0
        for _ in range(6):
            enter = begin + random.randrange(20)
            begin = enter + 10 + random.randrange(80)
            stays.append(f"n{node},{enter},{begin}")
    for _ in range(300):
        a, b = random.sample(range(12), 2)
        start = random.randrange(500)
        contacts.append(f"n{a},n{b},{start},{start + random.randrange(1, 40)}")
    (tmp_path / "nodes.csv").write_text("\n".join(stays) + "\n")
    (tmp_path / "contacts.csv").write_text("\n".join(contacts) + "\n")
    (tmp_path / "world.toml").write_text(
        """
        world = { kind = "contacts", contacts = "contacts.csv", nodes = "nodes.csv" }
        workload = { every = "uniform(0, 4)", first = "1s", size = 50, replies = 0.05 }
        run = { protocol = "delta_causal", options = { lifetime = "40s", sweep = "3s" } }
        """
    )
    rows = assert_same(read_scenario(str(tmp_path / "world.toml"), None, seed, {}))
    assert rows["kind"].to_pylist().count("broadcast") > 1_100  # the base of serial numbers has risen


@pytest.mark.parametrize(
    "settings",
    [
        {"overhead": "100ms"},
        {"order": "random"},
        {"cache": "60"},
        {"cache_bytes": "60000"},
        {"refresh": "30s"},
        {"durable": "true"},
        {"loss": "0.1"},
        {"share": "air"},
        {"dissemination": "spray_and_wait"},
        {"faults.skew": "1s"},
    ],
    ids=str,
)
def test_other_runs_take_another_path(settings: dict[str, str]) -> None:
    run = read_scenario("pedestrians", "delta_causal", 1, settings)
    assert type(prepare(run, TableSink()).world) is not InstantWorld


def test_plain_python_takes_the_shared_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "is_compiled", lambda module: False)
    assert type(prepare(read_scenario("pedestrians", "delta_causal", 1, {}), TableSink()).world) is World
