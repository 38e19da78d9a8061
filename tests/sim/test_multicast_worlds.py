"""PRS, RST and SES in the same simulated worlds: the same deliveries at the same instants, in causal order."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from precede.eventlog.sinks import TableSink
from precede.experiments.run import Run, carry_out
from precede.witness.verify import verify

RIVALS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("prs", {}),
    ("rst", {}),
    ("ses", {}),
    ("prs", {"pruning": "optimal"}),
)


def _run(seed: int, protocol: str, options: dict[str, Any]) -> Run:
    """A run over reliable, non-FIFO channels with overlapping groups and up to 30 nodes."""
    random = Random(seed)
    nodes = random.randint(3, 30)
    most = random.randint(1, nodes - 1)
    return Run(
        world={
            "kind": "point_to_point",
            "nodes": nodes,
            "delay": random.choice(("exponential(0.1)", "exponential(1)", "uniform(0.01, 5)")),
        },
        workload={
            "poisson": "1s",
            "until": f"{40 / nodes:.3f}s",
            "to": [1, most],
            "groups": random.choice((1, 2)) if nodes >= 4 else 1,
            "selectivity": random.choice((0.0, 0.5, 1.0)),
            "size": 0,
        },
        protocol=protocol,
        options={"rto": "0s", **options},
        seed=seed,
        gauges="none",
        log="messages",
    )


def _deliveries(log: pa.Table) -> list[tuple[Any, ...]]:
    columns = ["node", "at_us", "message_source", "message_number"]
    rows = log.filter(pc.equal(log["kind"].cast(pa.string()), "delivered")).select(columns).to_pylist()
    return [tuple(row.values()) for row in rows]


@pytest.mark.slow
@pytest.mark.parametrize("batch", [0, 1, *(pytest.param(batch, marks=pytest.mark.long) for batch in (2, 3))])
def test_all_protocols_deliver_the_same_in_200_worlds(batch: int) -> None:
    checked = 0
    for seed in range(50 * batch, 50 * batch + 50):
        expected = None
        for protocol, options in RIVALS:
            sink = TableSink()
            carry_out(_run(seed, protocol, options), sink)
            log = sink.events()
            deliveries = _deliveries(log)
            if expected is None:
                expected = deliveries
                verdict = verify(log, "multicast")
                assert verdict.verdict == "holds", (seed, verdict)
                checked += verdict.deliveries_checked
            assert deliveries == expected, (seed, protocol, options)
    assert checked > 5_000


def test_the_same_worlds_violate_causal_order_without_ordering() -> None:
    """The schedules are hard enough: messages delivered as they arrive violate causal order."""
    broken = 0
    for seed in range(20):
        sink = TableSink()
        carry_out(_run(seed, "unordered", {}), sink)
        broken += verify(sink.events(), "multicast").verdict == "violated"
    assert broken >= 10
