"""Worlds of the swarm with high ids and numbers: nodes use them, the log does not show them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from precede.eventlog.sinks import TableSink
from precede.experiments.run import prepare
from precede.experiments.swarm.events import events_of
from precede.experiments.swarm.large_numbers import AGED, builder
from precede.experiments.swarm.plan import Plan, draw_plan, find_drawer
from precede.experiments.swarm.swarm import run_plan

HIGHEST = (1 << 48) - 64


def calm(protocol: str) -> Plan:
    """Return a plan without faults over the point-to-point network."""
    drawer = find_drawer(protocol)
    plan = next(
        plan
        for seed in range(100)
        if (plan := draw_plan(protocol, seed, drawer)).run.world["kind"] == "point_to_point"
    )
    return replace(plan, run=replace(plan.run, faults={}))


@pytest.mark.parametrize("protocol", [*AGED, "hash_dag", "delta_causal", "prs", "rst", "ses"])
def test_a_world_with_high_ids_has_the_log_of_the_one_with_low_ids(protocol: str) -> None:
    low = calm(protocol)
    logs = []
    for plan in (low, replace(low, ids_from=HIGHEST)):
        log = TableSink()
        result = run_plan(plan, find_drawer(protocol), log=log)
        assert not result.failed, result.remarks
        logs.append(events_of(log.events(), "broadcast", "received", "delivered"))
    assert logs[0]
    assert logs[0] == logs[1]


@pytest.mark.parametrize("protocol", AGED)
def test_nodes_count_from_where_the_plan_says(protocol: str) -> None:
    plan = replace(calm(protocol), ids_from=HIGHEST, numbers_from=(1 << 31) - 3)
    log = TableSink()
    prepared = prepare(plan.run, log, build_node=builder(plan))
    prepared.world.run(plan.end)
    prepared.recorder.flush()
    births = [row for row in events_of(log.events(), "broadcast") if row["node"] == "0"]
    store = prepared.world.nodes[0].store
    assert store["own_delivered"] == plan.numbers_from + len(births)
    keys: list[Any] = [key for key in store if key != "own_delivered"]
    assert keys
    assert all(key[1] >= HIGHEST for key in keys)
