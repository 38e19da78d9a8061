"""Reliable flooding under any ordering: gaps are noticed, asked for and filled; nothing comes twice."""

from __future__ import annotations

from typing import Any

import pytest

from precede.eventlog.sinks import TableSink
from precede.experiments.runs import Run, carry_out
from precede.verify.witness import verify


def run(protocol: str, seed: int, **world: Any) -> Any:
    sink = TableSink()
    described = Run(
        world={
            "kind": "flood",
            "nodes": 10,
            "field": [200, 200],
            "delay": "exponential(0.02)",
            "jitter": "exponential(0.02)",
            **world,
        },
        workload={"every": "exponential(2)", "until": "20s", "size": 20},
        protocol=protocol,
        options={"beacon": "500ms", "beacon_longest": "4s"} if protocol != "drift" else {"quiet": "1s"},
        seed=seed,
        end="90s",
        gauges="none",
    )
    carry_out(described, sink)
    return sink.events()


def counts(log: Any) -> dict[str, int]:
    kinds = log["kind"].to_pylist()
    return {kind: kinds.count(kind) for kind in ("broadcast", "received", "delivered")}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("protocol", "order"),
    [("unordered", "none"), ("fifo", "fifo"), ("causal_barrier", "causal"), ("drift", "total")],
)
def test_everything_comes_to_everybody_although_a_third_is_lost(protocol: str, order: str, seed: int) -> None:
    log = run(protocol, seed, loss=0.3)
    found = counts(log)
    assert found["broadcast"] > 50
    assert found["received"] == 9 * found["broadcast"]
    assert found["delivered"] == 10 * found["broadcast"]
    if order != "none":
        assert verify(log, order).verdict == "holds"


@pytest.mark.parametrize("protocol", ["fifo", "drift"])
def test_everything_comes_to_everybody_although_all_walk(protocol: str) -> None:
    found = counts(run(protocol, 1, speed=20, field=[250, 250], loss=0.1))
    assert found["delivered"] == 10 * found["broadcast"]
