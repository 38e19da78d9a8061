"""Measures on logs small enough to count by hand, and the statistics against tables and scipy."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precede.core.errors import BadInput
from precede.eventlog.schema import event_schema, gauge_schema
from precede.experiments.measuring import measure_folder
from precede.measures.events import measure_events
from precede.measures.messages import Window
from precede.measures.statistics import confidence_interval, student_quantile, summarise


def row(node, kind, at, message=None, **more):
    """One event; `message` is (source, number) or (source, incarnation, number)."""
    made = dict.fromkeys(event_schema().names)
    made |= {
        "run_id": "r",
        "node": node,
        "incarnation": 0,
        "step": 0,
        "at_us": at,
        "clock_us": at,
        "kind": kind,
    }
    if message is not None:
        source, *incarnation_number, number = message
        made |= {
            "message_source": source,
            "message_incarnation": incarnation_number[0] if incarnation_number else 0,
            "message_number": number,
        }
    return made | more


def table(rows):
    return pa.Table.from_pylist(rows, schema=event_schema())


def batches(rows, size=1000):
    return table(rows).to_batches(max_chunksize=size)


# a broadcasts 1 and 2; b gets 2 first, waits for 1; c gets 1 only; b broadcasts 1, nobody hears it
STORY = [
    row("a", "started", 0),
    row("b", "started", 0),
    row("c", "started", 0),
    row("a", "broadcast", 100, ("a", 1)),
    row("a", "delivered", 100, ("a", 1)),
    row("a", "broadcast", 200, ("a", 2), destinations=["b"]),
    row("a", "delivered", 200, ("a", 2)),
    row("a", "sent", 210, packet_kind="data", medium="radio", packet_bytes=60, control_bytes=10,
        control_entries=2, messages_in_packet=1),
    row("a", "sent", 220, packet_kind="summary", medium="wired", packet_bytes=20, control_bytes=20,
        control_entries=1, messages_in_packet=0),
    row("b", "packet_received", 240, packet_kind="data"),
    row("b", "received", 240, ("a", 2)),
    row("b", "received", 400, ("a", 1)),
    row("b", "delivered", 400, ("a", 1)),
    row("b", "delivered", 400, ("a", 2)),
    row("c", "received", 500, ("a", 1)),
    row("c", "observed", 505, ("a", 1), reason="tof"),
    row("c", "discarded", 510, ("a", 1), reason="expired_pending"),
    row("c", "discarded", 510, ("a", 2), reason="late"),
    row("b", "broadcast", 600, ("b", 1)),
    row("b", "delivered", 650, ("b", 1)),
    row("b", "left", 700),
]  # fmt: skip

EXPECTED = {
    "nodes": 3, "started": 3, "crashed": 0, "left": 1, "end_us": 700,
    "broadcasts": 3, "receptions": 3, "deliveries": 5, "own_deliveries": 3,
    "expired": 1, "discarded": 2, "discarded_expired_pending": 1, "discarded_late": 1,
    "delivered_of_received_share": 2 / 3, "expired_share": 1 / 3,
    "expected_deliveries": 2 + 1 + 2, "delivery_ratio": 2 / 5,
    "transit_us_mean": (40 + 300 + 400) / 3, "transit_us_min": 40, "transit_us_max": 400,
    "transit_us_p50": 300.0,
    "wait_us_mean": 80.0, "wait_us_min": 0, "wait_us_max": 160, "wait_us_p50": 80.0,
    "age_us_mean": 250.0, "age_us_min": 200, "age_us_max": 300,
    "own_age_us_mean": 50 / 3, "own_age_us_max": 50,
    "observed_tof": 1, "observed_tof_age_us_mean": 405.0,
    "packets": 2, "packets_received": 1, "packet_bytes": 80, "packet_bytes_mean": 40.0,
    "control_bytes_mean": 15.0,
    "control_entries_mean": 1.5, "messages_in_packet_mean": 0.5, "control_bytes_share": 30 / 80,
    "packets_data": 1, "packets_data_bytes": 60, "packets_summary": 1, "packets_over_radio": 1,
    "packets_over_wired": 1, "packets_over_wired_bytes": 20,
}  # fmt: skip


def test_measures_equal_a_count_by_hand():
    result = measure_events(batches(STORY))
    assert {name: result[name] for name in EXPECTED} == pytest.approx(EXPECTED)


@pytest.mark.parametrize("size", [1, 2, 7])
def test_batches_and_the_order_of_rows_do_not_matter(size):
    shuffled = random.Random(size).sample(STORY, len(STORY))
    assert measure_events(batches(shuffled, size)) == measure_events(batches(STORY))


def test_plain_strings_measure_like_dictionaries():
    plain = table(STORY).cast(
        pa.schema([f.with_type(pa.string()) if pa.types.is_dictionary(f.type) else f for f in event_schema()])
    )
    assert measure_events(plain.to_batches()) == measure_events(batches(STORY))


def test_a_run_directory_is_measured_as_plain_data(tmp_path):
    pq.write_table(table(STORY), tmp_path / "events.parquet", row_group_size=4)
    assert measure_folder(tmp_path) == measure_events(batches(STORY))
    gauges = [
        {"run_id": "r", "node": node, "at_us": at, "name": name, "value": value, "peak": peak}
        for node, at, name, value, peak in [
            ("a", 1, "pending", 2, 3), ("b", 1, "pending", 4, 9), ("b", 2, "pending", 0, 4),
            ("a", 2, "pending", 1, 1), ("a", 2, "cache", 6, 6),
        ]
    ]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(gauges, schema=gauge_schema()), tmp_path / "gauges.parquet")
    result = measure_folder(tmp_path)
    assert json.loads(json.dumps(result)) == result
    assert {k: v for k, v in result.items() if "_size_" in k} == {
        "pending_size_peak": 9, "pending_size_mean": 1.75, "pending_size_final": 1,
        "cache_size_peak": 6, "cache_size_mean": 6.0, "cache_size_final": 6,
    }  # fmt: skip


def test_a_window_measures_the_messages_broadcast_in_it():
    result = measure_events(batches(STORY), Window(150, 600))
    assert result["broadcasts"] == 1
    assert result["receptions"] == 1
    assert result["deliveries"] == 2
    assert result["age_us_mean"] == 200.0
    assert result["discarded"] == 1
    assert result["packets"] == 2
    assert result["observed_tof"] == 0
    assert measure_events(batches(STORY), Window(215, 600))["packets"] == 1


def test_a_new_incarnation_is_another_process():
    rows = [
        row("a", "broadcast", 0, ("a", 0, 1)),
        row("b", "received", 10, ("a", 0, 1)),
        row("b", "received", 50, ("a", 0, 1), incarnation=1),
        row("b", "delivered", 60, ("a", 0, 1), incarnation=1),
        row("a", "broadcast", 70, ("a", 1, 1), incarnation=1),
        row("b", "received", 75, ("a", 1, 1), incarnation=1),
        row("b", "delivered", 75, ("a", 1, 1), incarnation=1),
        row("a", "delivered", 90, ("a", 0, 1), incarnation=1),
    ]
    result = measure_events(batches(rows, 3))
    assert result["nodes"] == 2
    assert (result["wait_us_min"], result["wait_us_max"]) == (0, 10)
    assert result["own_deliveries"] == 0
    assert result["transit_us_mean"] == pytest.approx((10 + 50 + 5) / 3)


def test_hops_of_rows_that_are_not_in_the_order_of_steps():
    packet = {"medium": "radio", "packet_bytes": 1, "control_bytes": 0, "messages_in_packet": 1}
    rows = [
        row("a", "broadcast", 1, ("a", 1), step=1),
        row("b", "packet_received", 2, peer="a", step=1, **packet),
        row("b", "received", 2, ("a", 1), step=2),
        row("b", "delivered", 2, ("a", 1), step=3),
        row("c", "packet_received", 3, peer="b", step=2, **packet),  # brings the message
        row("c", "packet_received", 3, peer="a", step=1, **packet),  # was earlier, at the same instant
        row("b", "sent", 3, peer="c", step=4, **packet),
        row("c", "received", 3, ("a", 1), step=3),
        row("c", "delivered", 3, ("a", 1), step=4),
    ]
    result = measure_events(batches(rows))
    assert (result["hop_count_mean"], result["hop_count_max"]) == (1.5, 2)


@pytest.mark.parametrize("incarnation", [0, 1])
def test_delivery_ratios_are_of_ages_whether_or_not_a_node_has_two_incarnations(incarnation: int):
    second = 1_000_000
    rows = [
        row("a", "started", 0),
        row("b", "started", 0),
        row("a", "broadcast", 50 * second, ("a", 1)),
        row("b", "received", 50 * second + 5, ("a", 1)),
        row("b", "delivered", 52 * second, ("a", 1)),
        row("a", "broadcast", 60 * second, ("a", 2)),
        row("b", "received", 60 * second + 7, ("a", 2), incarnation=incarnation),
        row("b", "delivered", 80 * second, ("a", 2), incarnation=incarnation),
    ]
    result = measure_events(batches(rows))
    shares = [result[f"delivery_ratio_within_{age}"] for age in ("1s", "10s", "1min")]
    assert (result["delivery_ratio"], shares) == (1.0, [0.0, 0.5, 1.0])
    assert (result["transit_us_max"], result["age_us_max"]) == (7, 20 * second)


def test_an_empty_log_has_no_means_and_an_unknown_message_no_age():
    result = measure_events([])
    assert result["deliveries"] == 0
    assert result["wait_us_mean"] is None
    result = measure_events(
        batches([row("b", "delivered", 5, ("x", 3)), row("a", "broadcast", 1, ("a", 2**40))])
    )
    assert result["deliveries"] == 1
    assert result["age_us_mean"] is None
    assert result["nodes"] == 2


def test_input_that_is_no_event_log_is_bad_input(tmp_path):
    wrong = tmp_path / "noise.parquet"
    wrong.write_bytes(b"no parquet at all")
    with pytest.raises(BadInput, match=r"noise\.parquet"):
        measure_events(wrong)
    with pytest.raises(BadInput, match="no column 'node'"):
        measure_events([pa.record_batch({"x": [1]})])
    with pytest.raises(BadInput, match="unknown kind 'eaten'"):
        measure_events(table([row("a", "eaten", 1)]).to_batches())
    with pytest.raises(BadInput, match="nowhere"):
        measure_events(Path("nowhere.parquet"))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5), st.integers(0, 10**9)), max_size=60))
def test_random_logs_against_a_plain_count(drawn):
    born = {}
    rows = []
    for source, number, at in drawn:
        if (source, number) not in born:
            born[source, number] = at
            rows.append(row(str(source), "broadcast", at, (str(source), number)))
    ages, waits, transits = [], [], []
    for place, ((source, number), at) in enumerate(born.items()):
        node = str((source + 1 + place % 3) % 4)
        rows.append(row(node, "received", at + place, (str(source), number)))
        transits.append(place)
        if place % 2:
            rows.append(row(node, "delivered", at + 3 * place, (str(source), number)))
            ages.append(3 * place)
            waits.append(2 * place)
    result = measure_events(batches(rows, 7) if rows else [])
    for name, values in (("transit_us", transits), ("wait_us", waits), ("age_us", ages)):
        assert {k: v for k, v in result.items() if k.startswith(name)} == pytest.approx(
            summarise(name, np.array(values, np.int64))
        )


def test_student_quantiles_and_intervals_match_scipy():
    from scipy import stats

    for freedom in (1, 2, 3, 5, 9, 29, 99, 999, 100_000):
        for probability in (0.5, 0.6, 0.9, 0.95, 0.975, 0.995, 0.9995, 0.025):
            assert student_quantile(probability, freedom) == pytest.approx(
                stats.t.ppf(probability, freedom), rel=1e-8, abs=1e-12
            )
    values = [12.0, 15.5, 9.25, 13.0, 11.0]
    assert confidence_interval(values) == pytest.approx(
        stats.t.interval(0.95, 4, np.mean(values), stats.sem(values))
    )
    assert confidence_interval([3.0]) is None
    assert confidence_interval([2.0, 2.0, 2.0]) == (2.0, 2.0)
    with pytest.raises(ValueError):
        student_quantile(1.0, 3)
