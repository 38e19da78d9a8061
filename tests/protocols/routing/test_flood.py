"""Disseminations that flood receive exactly what an independent flood over the contacts of a bus day does."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

import pytest

from precede.eventlog.sinks import TableSink
from precede.experiments.run import Run, build_world, carry_out
from precede.experiments.scenario import read_scenario

LIFETIME = 2 * 3600 * 1_000_000


def earliest(contacts: Any, source: int, at: int, deadline: int) -> dict[int, int]:
    """When a message of a node is at each other node, if every contact passes it on without delay."""
    arrived: dict[int, int] = {}
    queue = [(at, source)]
    while queue:
        now, node = heappop(queue)
        if node in arrived:
            continue
        arrived[node] = now
        for peer, start, end in contacts.get(node, ()):
            then = max(now, start)
            if peer not in arrived and then < min(end, deadline):
                heappush(queue, (then, peer))
    del arrived[source]
    return arrived


def bus_day(routing: str, buses: int) -> Run:
    settings = {
        "dissemination": routing,
        "world.buses": buses,
        "workload.every": "1h",
        "lifetime": "2h",
        "run.gauges": "none",
    }
    return read_scenario("city-bus", "unordered", 3, settings)


def judge(routing: str, buses: int) -> None:
    run = bus_day(routing, buses)
    world = build_world(run)
    contacts: dict[int, list[tuple[int, int, int]]] = {}
    for a, b, start, end in world.network.contact_list():  # type: ignore[attr-defined]
        contacts.setdefault(a, []).append((b, start, end))
        contacts.setdefault(b, []).append((a, start, end))
    sink = TableSink()
    carry_out(run, sink)
    number = {name: node for node, name in enumerate(world.names)}
    received: dict[tuple[str, int], dict[int, int]] = {}
    births = {}
    for row in sink.events().to_pylist():
        message = (row["message_source"], row["message_number"])
        if row["kind"] == "broadcast":
            births[message] = row["at_us"]
        elif row["kind"] == "received":
            received.setdefault(message, {})[number[row["node"]]] = row["at_us"]
    assert births
    for message, at in births.items():
        reached = earliest(contacts, number[message[0]], at, at + LIFETIME)
        assert received.get(message, {}) == reached, message


@pytest.mark.parametrize("routing", ["epidemic", "maxprop"])
def test_receptions_equal_an_independent_flood(routing: str) -> None:
    judge(routing, 10)


@pytest.mark.long
@pytest.mark.parametrize("routing", ["epidemic", "maxprop"])
def test_receptions_of_the_whole_bus_day_equal_an_independent_flood(routing: str) -> None:
    judge(routing, 60)
