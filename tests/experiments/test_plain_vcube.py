"""Plain VCube runs: `VCubeWorld` gives the rows, gauges, counters and numbers of events of the shared path."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from msgspec.structs import replace

from precede.core.effects import Effects, Medium
from precede.core.identity import NodeId
from precede.core.instants import Instant
from precede.core.messages import Packet
from precede.eventlog.sinks import TableSink
from precede.experiments.plain_vcube import choosing
from precede.experiments.plain_vcube.vertex import Vertex
from precede.experiments.plain_vcube.world import VCubeWorld
from precede.experiments.run import Prepared, Run, prepare
from precede.protocols.vcube2018.entry import ENTRY
from precede.protocols.vcube2018.node import VCubeNode
from precede.protocols.vcube2018.topology import MOST_POSITIONS
from precede.sim.wheel_world import WheelWorld
from precede.sim.world import World

STARTS = ("exponential(1)", "triangular(0, 0.6)", "uniform(0, 0.05)")
LONG_LINES = {"propagation": "exponential(0.4)", "transmission": "7ms"}
RUNS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "as in the paper": ({}, {}, {}),
    "no aggregation": ({}, {}, {"aggregation": False}),
    "causal unpacking": ({}, {}, {"unpack": "causal"}),
    "one tree": ({}, {}, {"tree": "single"}),
    "one tree without aggregation": ({}, {}, {"tree": "single", "aggregation": False}),
    "a constant for each link": ({"drawn": "link"}, {}, {}),
    "wide spread": ({"propagation": "normal(0.1, 0.07)"}, {}, {}),
    "later than the wheel": (LONG_LINES, {}, {}),
    "longest": ({**LONG_LINES, "longest": "300ms"}, {}, {}),
    "no time at all": ({"propagation": 0, "transmission": "0s", "processing": "0s"}, {}, {}),
    "less than a millisecond": ({"propagation": "uniform(0, 0.0005)", "transmission": "3us"}, {}, {}),
    "small messages": ({}, {"size": 5}, {}),
    "large messages": ({}, {"size": 2000}, {}),
    "small packets": ({}, {}, {"mtu": 200}),
    "no compression": ({}, {}, {"compression": False}),
    "an incomplete cube": ({"nodes": 27}, {}, {}),
    "two nodes": ({"nodes": 2}, {"count": 20}, {}),
    "one node": ({"nodes": 1}, {"count": 3}, {}),
    "several messages": ({"nodes": 16}, {"every": "exponential(0.05)", "count": 12}, {}),
    "several messages, wide": (
        {"nodes": 16, "propagation": "normal(0.1, 0.07)"},
        {"every": "uniform(0, 0.03)", "count": 90},
        {},
    ),
    "several messages of one tree": (
        {"nodes": 16},
        {"every": "uniform(0, 0.1)", "count": 9},
        {"tree": "single"},
    ),
    "few sources": ({"nodes": 20}, {"sources": 3, "every": "uniform(0, 0.05)", "count": 30}, {}),
    "answers": ({"nodes": 12}, {"replies": 0.05, "reply_after": "uniform(0, 0.1)", "count": 2}, {}),
    "answers at once": ({"nodes": 12}, {"replies": 0.05, "count": 2}, {}),
    "lifetimes": ({"nodes": 12}, {"lifetime": "uniform(1, 2)"}, {}),
}


def run_of(name: str, seed: int, start: str = STARTS[0], **given: Any) -> Run:
    world, workload, options = RUNS[name]
    return Run(
        world={"kind": "switched", "nodes": 48, **world},
        workload={"first": start, "every": start, "count": 1, "size": 50, **workload},
        protocol="vcube",
        options=options,
        seed=seed,
        **given,
    )


def results(run: Run, make_world: type[World] | None) -> tuple[type[World], pa.Table, pa.Table, Any]:
    sink = TableSink()
    prepared = prepare(run, sink, make_world=make_world)
    prepared.world.run(prepared.end)
    if prepared.world.gauged:
        prepared.world.sample_gauges()
    prepared.recorder.flush()
    world = prepared.world
    counts = world.handled, world.now, world.busy(), dict(prepared.built.network.counters())
    return type(world), sink.events(), sink.gauges(), counts


def assert_same(run: Run) -> pa.Table:
    """Carry out a run on both paths, and return its rows."""
    shared, plain = results(run, World), results(run, None)
    assert (shared[0], plain[0]) == (World, VCubeWorld)
    assert plain[1].equals(shared[1])
    assert plain[2].equals(shared[2])
    assert plain[3] == shared[3]
    return plain[1]


def takes_shared_path(prepared: Prepared) -> bool:
    """True if the world is one of any protocol, with nodes of the protocol."""
    nodes_are_own = not any(isinstance(hosted.node, Vertex) for hosted in prepared.world.nodes)
    return type(prepared.world) in (World, WheelWorld) and nodes_are_own


@pytest.fixture(autouse=True)
def also_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "is_compiled", lambda module: True)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("name", RUNS)
def test_the_rows_are_those_of_the_shared_path(name: str, start: str) -> None:
    rows = assert_same(run_of(name, 1, start, gauges="none", log="messages"))
    assert rows["kind"].to_pylist().count("delivered") > 0


@pytest.mark.parametrize("name", RUNS)
def test_gauges_and_received_packets_are_the_same(name: str) -> None:
    rows = assert_same(run_of(name, 2, gauges="37ms"))
    if name != "one node":
        assert rows["kind"].to_pylist().count("packet_received") > 0


@pytest.mark.parametrize("seed", range(10, 22))
@pytest.mark.parametrize("name", ["as in the paper", "several messages, wide", "one tree"])
def test_many_seeds(name: str, seed: int) -> None:
    assert_same(run_of(name, seed, STARTS[seed % 3], gauges="none", log="messages"))


def test_messages_wait_and_share_packets() -> None:
    """The runs above compare what they are meant to compare only if both happens in them."""
    rows = assert_same(run_of("wide spread", 3, STARTS[1]))
    assert max(filter(None, rows["messages_in_packet"].to_pylist())) > 4


def test_a_run_that_ends_early_has_the_same_rows() -> None:
    assert_same(run_of("as in the paper", 4, end="700ms"))


def test_a_run_may_go_on_after_a_pause() -> None:
    sinks = []
    for make_world in (World, None):
        sinks.append(TableSink())
        prepared = prepare(run_of("as in the paper", 5), sinks[-1], make_world=make_world)
        for until in (0, 1, 250_000, 250_001, 1_000_000):
            prepared.world.run(until)
            assert prepared.world.now == until
        prepared.world.run()
        prepared.world.broadcast(3, b"late")
        prepared.world.run()
        prepared.recorder.flush()
    assert sinks[0].events().equals(sinks[1].events())


def test_the_largest_cube_has_a_world_of_its_own() -> None:
    run = Run(
        world={"kind": "switched", "nodes": MOST_POSITIONS},
        workload={"every": "1s", "count": 1, "sources": 1},
        protocol="vcube",
    )
    assert type(prepare(run, TableSink()).world) is VCubeWorld


@pytest.mark.parametrize(
    "given",
    [
        {"options": {"diagnosis": True}},
        {"faults": {"crashes": [{"node": "3", "at": "1s"}]}},
        {"faults": {"skew": "1s"}},
        {"world": {"kind": "switched", "nodes": 8, "stays": [{"node": "3", "leave": "2s"}]}},
        {"world": {"kind": "point_to_point", "nodes": 8}},
        {"workload": {"every": "1s", "count": 1, "to": 2}},
    ],
    ids=str,
)
def test_other_runs_take_the_shared_path(given: dict[str, Any]) -> None:
    plain = {
        "world": {"kind": "switched", "nodes": 8},
        "workload": {"every": "1s", "count": 1},
        "protocol": "vcube",
    }
    assert type(prepare(Run(**plain), TableSink()).world) is VCubeWorld
    assert takes_shared_path(prepare(Run(**{**plain, **given}), TableSink()))


def test_plain_python_takes_the_shared_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "is_compiled", lambda module: False)
    assert takes_shared_path(prepare(run_of("as in the paper", 1), TableSink()))


def test_a_node_of_ones_own_takes_the_shared_path() -> None:
    class DeafNode(VCubeNode):
        def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
            return ()

    deaf = replace(ENTRY, name="deaf", build=lambda role, context: DeafNode(context))
    assert takes_shared_path(prepare(run_of("as in the paper", 1), TableSink(), deaf))
