"""Destination sets and sending rates of a workload (prs1997, section 7)."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from precede.core.errors import BadInput
from precede.core.instants import SECOND
from precede.eventlog.sinks import TableSink
from precede.experiments.run import Run, carry_out
from precede.experiments.tables import Table
from precede.experiments.workload import read_workload
from precede.sim.workload import Destinations
from precede.witness.verify import verify


def test_sizes_are_uniform_and_a_sender_is_never_its_own_destination() -> None:
    random = Random(1)
    chosen = [Destinations(1, 9).choose(7, 20, random) for _ in range(9_000)]
    sizes = Counter(len(to or ()) for to in chosen)
    assert sorted(sizes) == list(range(1, 10))
    assert all(850 < count < 1_150 for count in sizes.values())
    named = Counter(node for to in chosen for node in to or ())
    assert 7 not in named
    assert len(named) == 19
    assert max(named.values()) < 1.15 * min(named.values())


@pytest.mark.parametrize("selectivity", [0.0, 0.5, 1.0])
def test_selectivity_is_the_share_of_messages_that_stay_in_the_group(selectivity: float) -> None:
    random = Random(2)
    destinations = Destinations(3, 9, groups=2, selectivity=selectivity)
    stayed = 0
    for count in range(4_000):
        to = destinations.choose(count % 20, 20, random)
        assert to is not None
        assert len(set(to)) == len(to) >= 3
        assert count % 20 not in to
        stayed += all(other % 2 == count % 2 for other in to)
    by_chance = 0.03
    assert selectivity <= stayed / 4_000 + 0.03
    assert stayed / 4_000 <= selectivity + (1 - selectivity) * by_chance + 0.03


def test_rates_are_relative_and_keep_the_mean() -> None:
    run = Run(
        world={"kind": "point_to_point", "nodes": 4, "delay": "constant(0.001)"},
        workload={"poisson": "1s", "until": "2000s", "to": 1, "rates": [1, 3]},
        protocol="prs",
        options={"rto": "0s"},
        gauges="none",
    )
    sink = TableSink()
    outcome = carry_out(run, sink)
    assert outcome.end_us >= 1_990 * SECOND
    rows = sink.events().select(["kind", "node"]).to_pylist()
    sent = Counter(row["node"] for row in rows if row["kind"] == "broadcast")
    assert 7_700 < sum(sent.values()) < 8_300
    assert 2.8 < (sent["1"] + sent["3"]) / (sent["0"] + sent["2"]) < 3.2


@pytest.mark.parametrize(
    ("key", "value"),
    [("to", [0, 3]), ("to", [3, 1]), ("to", [1, 2, 3]), ("rates", [1, 0]), ("rates", []), ("groups", 8)],
)
def test_bad_values_name_the_key(key: str, value: object) -> None:
    table = Table({"selectivity": 0.5, "groups": 2, "to": 2, key: value}, "workload")
    with pytest.raises(BadInput, match=key):
        read_workload(table, [str(node) for node in range(10)], range(10))


@pytest.mark.parametrize(
    "world",
    [
        {"kind": "point_to_point"},
        {"kind": "flood", "field": [60, 60]},
        {"kind": "contacts", "meetings": [["0", "1", "0s", "9s"], ["1", "2", "0s", "9s"]]},
    ],
    ids=["direct", "flooding", "epidemic"],
)
def test_only_destinations_deliver_a_message(world: dict[str, object]) -> None:
    """Node 1 carries the first message and does not deliver it."""
    run = Run(
        world={"nodes": 3, **world},
        workload={"script": [{"src": "0", "at": "1s", "to": ["2"]}, {"src": "0", "at": "2s"}], "until": "9s"},
        protocol="unordered",
        gauges="none",
    )
    sink = TableSink()
    assert carry_out(run, sink).counters["refused"] == 0
    verdict = verify(sink.events(), "fifo")
    assert (verdict.verdict, verdict.deliveries_checked) == ("holds", 5)
