"""Parity: one scenario by the simulator and by real sockets. Every protocol delivers the same messages at each
node, and the witness accepts both logs."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from precede.api import open_member
from precede.core.errors import BadInput
from precede.core.instants import SECOND
from precede.core.plan import Plan
from precede.experiments.emulation.plan import plan_of
from precede.experiments.run import Run
from precede.protocols import registry
from precede.runtime.emulation.members import Clock, Emulated
from precede.runtime.emulation.stage import Stage
from precede.witness.verify import verify
from tests.patience import patient

PATIENCE = 180 * SECOND
TALK = {"poisson": "400ms", "until": "4s", "size": 200, "replies": 0.1, "reply_after": "exponential(0.02)"}
MESH: dict[str, Any] = {
    "world": {"kind": "point_to_point", "nodes": 5, "delay": "exponential(0.01)"},
    "workload": TALK,
    "end": "8s",
}
MULTICAST = {**MESH, "workload": {**TALK, "to": [1, 3]}}
CELLS: dict[str, Any] = {
    "world": {
        "kind": "cellular",
        "stations": 3,
        "hosts": 6,
        "links": [["s0", "s1"], ["s1", "s2"]],
        "movement": "moves",
        "radio": "lossy",
        "moves": [
            *({"host": f"h{host}", "at": "0s", "cell": f"s{host % 3}"} for host in range(6)),
            {"host": "h1", "at": "2s", "cell": "s2"},
            {"host": "h4", "at": "3s", "cell": ""},
            {"host": "h4", "at": "3500ms", "cell": "s0"},
            {"host": "h0", "at": "3700ms", "cell": "s1"},
        ],
    },
    "workload": {"poisson": "500ms", "first": "1s", "until": "5s", "size": 200},
    "end": "10s",
}
RADIO = {
    "world": {"kind": "flood", "grid": [3, 2], "spacing": 70.0, "reach": 88.0},
    "workload": {"poisson": "500ms", "until": "5s", "size": 200},
    "end": "25s",
}
SCENARIOS: dict[str, dict[str, Any]] = {
    "unordered": MESH,
    "fifo": MESH,
    "vector_clock": MESH,
    "causal_barrier": MESH,
    "delta_causal": {**MESH, "options": {"lifetime": "1min"}},
    "hash_dag": MESH,
    "arrival": MESH,
    "timestamp": MESH,
    "lamport": MESH,
    "sds": MESH,
    "prs": MULTICAST,
    "rst": MULTICAST,
    "ses": MULTICAST,
    "vcube": MESH,
    "drift": RADIO,
    "tof": RADIO,
    "was": CELLS,
    "ck": CELLS,
    "prs_mobile": {**CELLS, "workload": {**CELLS["workload"], "to": [1, 3]}},
}
"""The scenario of each protocol; OTHERS has further worlds and options."""

MORE: list[tuple[str, dict[str, Any]]] = [
    ("causal_barrier", {**RADIO, "end": "12s"}),
    ("vcube", {**MESH, "options": {"diagnosis": True}}),
]


async def live(emulated: Emulated, plan: Plan, clock: Clock, expected: int) -> None:
    """Wait to the end of the plan, and on a busy machine until as much is delivered as in the simulation."""
    running = asyncio.ensure_future(emulated.run(plan.end + PATIENCE))
    while not running.done():
        await asyncio.wait([running], timeout=0.3)
        if clock.now() >= plan.end and emulated.tally.delivered >= expected:
            await asyncio.wait([running], timeout=0.3)  # whatever comes beside that has time to show
            running.cancel()
    with suppress(asyncio.CancelledError):
        await running


def emulate(plan: Plan, folder: Path, speed: float, expected: int) -> pa.Table:
    """Run all nodes of a plan in this process, over sockets; returns their event log.

    A busy machine plays more slowly: a host that registers after a message in real time does not receive it.
    """
    clock = Clock(time.time_ns() // 1000 + 200_000, speed / patient(1))
    stage = Stage(plan, folder, open_member, clock, beacon=0.2, log_packets=True)
    emulated = Emulated(plan, range(len(plan.names)), stage.open_group, stage.places, clock)
    try:
        asyncio.run(live(emulated, plan, clock, expected))
    finally:
        stage.close()
    for node in range(len(plan.names)):
        stage.write_log(node)
    assert emulated.tally.broadcasts == len(plan.broadcasts)
    return pa.concat_tables([pq.read_table(path) for path in sorted(stage.log.rglob("*.parquet"))])


def delivered(events: pa.Table) -> dict[str, list[tuple[str, int]]]:
    messages: dict[str, list[tuple[str, int]]] = {}
    for row in events.select(["node", "kind", "message_source", "message_number"]).to_pylist():
        if row["kind"] == "delivered":
            messages.setdefault(row["node"], []).append((row["message_source"], row["message_number"]))
    return {node: sorted(each) for node, each in sorted(messages.items())}


def held_alike(run: Run, folder: Path, speed: float = 3.0) -> None:
    plan, simulated = plan_of(run)
    expected = sum(map(len, delivered(simulated).values()))
    assert expected, "a scenario without deliveries shows nothing"
    real = emulate(plan, folder, speed, expected)
    assert delivered(real) == delivered(simulated)
    if plan.order == "none":
        return
    for events in (simulated, real):
        verdict = verify(events, plan.order)
        assert verdict.holds, verdict.first
        assert verdict.deliveries_checked == expected


def test_every_protocol_has_its_scenario() -> None:
    foreign = registry._foreign()  # other tests of this process may have put one on the path
    assert sorted(SCENARIOS) == sorted(name for name in registry.names() if name not in foreign)


@pytest.mark.parametrize("protocol", SCENARIOS)
def test_sockets_deliver_what_the_simulator_delivers(protocol: str, tmp_path: Path) -> None:
    scenario = SCENARIOS[protocol]
    held_alike(Run(protocol=protocol, **scenario), tmp_path, speed=6.0 if scenario is RADIO else 3.0)


@pytest.mark.parametrize(("protocol", "scenario"), MORE)
def test_sockets_deliver_the_same_with_other_options(
    protocol: str, scenario: dict[str, Any], tmp_path: Path
) -> None:
    held_alike(Run(protocol=protocol, **scenario), tmp_path)


def test_sockets_deliver_the_same_over_contacts_that_come_and_go(tmp_path: Path) -> None:
    """B carries A's messages to C: the nodes never all meet, one comes late, one leaves early."""
    (tmp_path / "contacts.csv").write_text(
        "a,b,start,end\nana,ben,0,3\nben,cem,4,7\ncem,dov,8,10\nana,ben,9,11\n"
    )
    (tmp_path / "nodes.csv").write_text("node,enter,leave\nana,0,20\nben,0,12\ncem,2,20\ndov,0,20\n")
    messages = "id,src,time\n1,ana,1\n2,ben,2\n3,ben,5\n4,cem,6\n5,dov,9\n6,ana,9.5\n"
    (tmp_path / "messages.csv").write_text(messages)
    run = Run(
        world={"kind": "contacts", "contacts": "contacts.csv", "nodes": "nodes.csv"},
        workload={"messages": "messages.csv"},
        protocol="causal_barrier",
        end="20s",
        base=str(tmp_path),
    )
    held_alike(run, tmp_path / "run", speed=6.0)


def test_a_world_without_contacts_has_no_links() -> None:
    world = {"kind": "contacts", "nodes": 3, "meetings": [["0", "1", "50s", "60s"]]}
    talk = {"script": [{"src": "0", "at": "1s"}]}
    plan, _ = plan_of(Run(world=world, workload=talk, protocol="causal_barrier", end="20s"))
    assert plan.links == ()
    assert len(plan.broadcasts) == 1


def test_a_world_that_does_not_report_link_changes_is_refused() -> None:
    world = {"kind": "flood", "nodes": 4, "width": 100, "height": 100, "speed": 2.0}
    with pytest.raises(BadInput, match="change without a report"):
        plan_of(Run(world=world, workload={"every": "1s", "until": "2s"}, protocol="drift", end="5s"))
