"""The experiments of drift2006: what a run is and measures, TOVF is never later."""

from __future__ import annotations

import msgspec
import pyarrow as pa
import pytest

from precede.eventlog.sinks import TableSink
from precede.experiments.run import carry_out
from precede.reproduction.drift2006.backbones import dominating_set
from precede.reproduction.drift2006.measures import Rows, Slower, Window, assert_never_slower, measure_latencies
from precede.reproduction.drift2006.points import Point, measure_run

SMALL = Point(experiment="small", nodes=8, base_rate=10.0, rate_delay=2.0, messages=4)


def log_of(point: Point) -> pa.Table:
    sink = TableSink()
    carry_out(point.run(1), sink)
    return sink.events()


def test_every_source_sends_at_its_own_rate() -> None:
    rows = Rows(log_of(SMALL))
    for source in range(8):
        born = rows.born[rows.source == source]
        assert all(abs(born[1:] - born[:-1] - (10 + 2 * source) * 1_000_000) < 100)
        assert 0 <= born[0] <= (10 + 2 * source) * 1_000_000
        assert len(born) >= 4


def test_a_later_tovf_is_an_error() -> None:
    rows = Rows(log_of(SMALL))
    assert assert_never_slower(rows) > 100
    rows.delivered[5, 3] = rows.observed[5, 3] + 1
    with pytest.raises(Slower, match="node 3"):
        assert_never_slower(rows)


def test_the_three_speedups_by_hand() -> None:
    """Two sources, two destinations, one message each: TOF takes 10 and 30 s at most, TOVF 5 and 3 s."""
    rows: list[dict[str, object]] = []

    def row(kind: str, node: str, at: int, source: str) -> None:
        rows.append({"kind": kind, "node": node, "at_us": at * 1_000_000, "message_source": source})

    for source, tof, tovf in (("0", (10, 4), (5, 4)), ("1", (20, 30), (2, 3))):
        row("broadcast", source, 100, source)
        for node in ("0", "1"):
            row("delivered", node, 100 + tovf[int(node)], source)
            row("observed", node, 100 + tof[int(node)], source)
    row("sent", "0", 100, "0")
    names = pa.array(["0", "1"])
    kinds = ["started", "crashed", "left", "broadcast", "sent", "packet_received", "received", "delivered"]
    kinds += ["discarded", "observed"]

    def coded(column: str, defined: pa.Array) -> pa.Array:
        places = [defined.to_pylist().index(row[column]) for row in rows]
        return pa.DictionaryArray.from_arrays(pa.array(places, pa.int32()), defined)

    log = pa.table(
        {
            "kind": coded("kind", pa.array(kinds)),
            "node": coded("node", names),
            "message_source": coded("message_source", names),
            "at_us": pa.array([row["at_us"] for row in rows], pa.int64()),
            "message_number": pa.array([1] * len(rows), pa.int64()),
            "packet_bytes": pa.array([0] * len(rows), pa.int64()),
            "control_entries": pa.array([0] * len(rows), pa.int64()),
        }
    )
    result = measure_latencies(Rows(log), Window(0, 200_000_000))
    assert result["tof_latency_s"] == 20.0
    assert result["tovf_latency_s"] == 4.0
    assert result["speedup"] == 5.0
    assert result["speedup_by_source"] == (10 / 5 + 30 / 3) / 2
    assert result["speedup_of_means"] == (10 + 4 + 20 + 30) / (5 + 4 + 2 + 3)


def test_the_experiment_with_motes_is_measured() -> None:
    result = measure_run(Point(experiment="m", layout="motes", base_rate=1.0, messages=10, start="together"), 1)
    assert result.violations == 0
    assert result.measures["pairs_percent"] == 100.0
    assert result.measures["speedup"] >= 1.0


@pytest.mark.parametrize("kind", ["dominating", "tree"])
def test_a_backbone_alone_relays_and_everybody_delivers_the_same_order(kind):
    """Section 8: fewer transmissions, the same deliveries; TOVF stays no later than TOF."""
    point = Point("backbones", nodes=25, base_rate=2.0, messages=4, backbone=kind)
    everybody = measure_run(msgspec.structs.replace(point, backbone="all"), 1)
    few = measure_run(point, 1)
    relays = point.run(1).options["backbone"].split()
    assert few.violations == everybody.violations == 0
    assert 1 <= len(relays) < 25
    assert few.measures["compared"] == everybody.measures["compared"]
    own_or_relayed = len(relays) + 1
    assert few.measures["transmissions_per_message"] <= own_or_relayed < 25
    assert everybody.measures["transmissions_per_message"] > 24


def test_a_network_in_two_parts_has_no_backbone():
    with pytest.raises(ValueError, match="not connected"):
        dominating_set([[1], [0], [3], [2]])
