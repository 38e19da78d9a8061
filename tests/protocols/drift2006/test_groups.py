"""Groups (drift2006, section 7): founding one, two that meet, joins, leaves, crashes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from precede.eventlog.sinks import TableSink
from precede.experiments.run import Run, prepare
from precede.witness.verify import verify

WORLD: dict[str, Any] = {"kind": "flood", "nodes": 6, "field": [150, 150], "delay": "uniform(0.001, 0.01)"}
OPTIONS: dict[str, Any] = {"quiet": "1s", "beacon": "500ms", "beacon_longest": "4s", "bootstrap_after": "3s"}


def run(
    world: dict[str, Any], script: list[tuple[str, int]], seed: int, until: int, **more: Any
) -> tuple[Any, pa.Table]:
    """Run a script of (source, second); returns the world and its log, which keeps total and causal order."""
    sink = TableSink()
    described = Run(
        world={**WORLD, **world},
        workload={"script": [{"src": source, "at": f"{at}s"} for source, at in script]},
        protocol="drift",
        options={**OPTIONS, **more.pop("options", {})},
        seed=seed,
        end=f"{until}s",
        gauges="none",
        **more,
    )
    prepared = prepare(described, sink)
    prepared.world.run(prepared.end)
    prepared.recorder.flush()
    log = sink.events()
    for order in ("total", "causal"):
        assert verify(log, order).verdict == "holds"
    return prepared.world, log


def delivered(log: pa.Table, node: str, since_s: int = 0) -> list[str]:
    """The messages that a node delivered, of those broadcast from a second on."""
    rows = log.select(["kind", "at_us", "node", "message_source", "message_number"]).to_pylist()
    born = {
        (row["message_source"], row["message_number"])
        for row in rows
        if row["kind"] == "broadcast" and row["at_us"] >= since_s * 1_000_000
    }
    return [
        f"{row['message_source']}:{row['message_number']}"
        for row in rows
        if row["kind"] == "delivered"
        and row["node"] == node
        and (row["message_source"], row["message_number"]) in born
    ]


@pytest.mark.parametrize("seed", range(8))
def test_nodes_without_configured_members_found_one_group(seed: int) -> None:
    world, log = run({"members": []}, [(str(node), 20 + node) for node in range(6)], seed, 60)
    assert world.refused == 0
    assert len({hosted.node.state.group for hosted in world.nodes}) == 1
    assert all(len(delivered(log, str(node))) == 6 for node in range(6))


@pytest.mark.parametrize("seed", range(8))
def test_when_two_groups_meet_all_nodes_end_in_one(seed: int) -> None:
    """Two halves are cut off from each other for 30 seconds, found a group each, and become one group."""
    halves = [{"start": "0s", "end": "30s", "groups": [["0", "1", "2"], ["3", "4", "5"]]}]
    apart = [(str(node), 20 + node) for node in range(6)]
    together = [(str(node), 60 + node) for node in range(6)]
    world, log = run({"members": [], "partitions": halves, "field": [50, 50]}, apart + together, seed, 120)
    assert len({hosted.node.state.group for hosted in world.nodes}) == 1
    assert delivered(log, "0", since_s=20)[:3] != delivered(log, "3", since_s=20)[:3]
    later = [delivered(log, str(node), since_s=60) for node in range(6)]
    assert len(later[0]) == 6
    assert all(sequence == later[0] for sequence in later)


def test_a_single_node_founds_a_group() -> None:
    world, log = run({"nodes": 1, "members": []}, [("0", 10)], 1, 20)
    assert delivered(log, "0") == ["0:1"]
    assert world.nodes[0].node.sizes()["sources"] == 1


@pytest.mark.parametrize("seed", range(4))
def test_a_newcomer_becomes_a_source_and_a_source_leaves(seed: int) -> None:
    """Node 5 enters at 10 s as a source. Node 0 announces its leave at 20 s, and no node waits for it."""
    presence = [{"node": "5", "enter": "10s"}, {"node": "0", "leave": "20s"}]
    script = [("0", 5), ("5", 18), ("1", 30), ("5", 31)]
    world, log = run({"presence": presence, "linger": "2s", "field": [80, 80]}, script, seed, 60)
    assert [delivered(log, node) for node in "1234"] == [["0:1", "5:1", "1:1", "5:2"]] * 4
    assert delivered(log, "5") == ["5:1", "1:1", "5:2"]
    assert world.nodes[1].node.sizes()["sources"] == 5


@pytest.mark.parametrize(("suspect_after", "count"), [("2s", 4), ("0s", 1)])
def test_only_a_view_change_lets_nodes_deliver_after_a_source_crashed(suspect_after: str, count: int) -> None:
    crashes = {"crashes": [{"node": "0", "at": "8s"}]}
    _, log = run(
        {"field": [80, 80]},
        [("0", 5), ("1", 10), ("2", 11), ("3", 12)],
        1,
        60,
        faults=crashes,
        options={"suspect_after": suspect_after, "durable": True},
    )
    assert [len(delivered(log, node)) for node in "12345"] == [count] * 5


def test_a_minority_delivers_nothing_while_it_is_cut_off() -> None:
    """A partition separates two of five nodes: the two deliver nothing, and all agree afterwards."""
    cut = [{"start": "5s", "end": "40s", "groups": [["0", "1"], ["2", "3", "4"]]}]
    world = {"nodes": 5, "field": [60, 60], "partitions": cut}
    script = [("0", 10), ("2", 12), ("3", 20)]
    options = {"suspect_after": "2s", "durable": True}
    _, log = run(world, script, 3, 120, options=options)
    early = [row for row in log.select(["kind", "node", "at_us"]).to_pylist() if row["kind"] == "delivered"]
    during = [row for row in early if row["at_us"] < 40_000_000]
    assert {row["node"] for row in during} == {"2", "3", "4"}
    assert all(delivered(log, node) == delivered(log, "2") for node in "0134")
    assert len(delivered(log, "2")) == 3
