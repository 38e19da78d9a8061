"""Reused timestamps (drift2006, section 4.4) lead to the same deliveries at the same instants."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precede.core.errors import BadInput
from precede.eventlog.sinks import TableSink
from precede.experiments.run import Run, carry_out
from precede.protocols.drift2006.bounded import _nearest

RUN = Run(
    world={"kind": "flood", "nodes": 6, "field": [150, 150], "delay": "exponential(0.01)", "loss": 0.1},
    workload={"every": "exponential(0.5)", "until": "50s", "size": 10},
    protocol="drift",
    options={"quiet": "1s", "beacon": "500ms", "beacon_longest": "4s"},
    end="70s",
    gauges="none",
    log="messages",
)


def deliveries(run: Run) -> tuple[list[tuple[Any, ...]], dict[str, int]]:
    """The delivered rows of a run, and its counters."""
    sink = TableSink()
    outcome = carry_out(run, sink)
    rows = sink.events().select(["kind", "at_us", "node", "message_source", "message_number"]).to_pylist()
    return [tuple(row.values()) for row in rows if row["kind"] == "delivered"], outcome.counters


@pytest.mark.parametrize("options", [{}, {"limit": "3"}, {"suspect_after": "5s"}])
def test_eight_bits_lead_to_the_same_deliveries_as_all_bits(options: dict[str, str]) -> None:
    """The run has some six hundred messages and clocks above a thousand, with 256 different timestamps."""
    whole = msgspec.structs.replace(RUN, options={**RUN.options, **options})
    eight = msgspec.structs.replace(whole, options={**whole.options, "bounded": "8"})
    with_all_bits, _ = deliveries(whole)
    with_eight_bits, counters = deliveries(eight)
    assert counters["refused"] == 0
    assert with_eight_bits == with_all_bits
    assert len(with_eight_bits) > 6 * 500


def test_a_source_refuses_to_send_while_another_is_too_far_behind() -> None:
    """While node 5 is cut off, the others stop sending after a quarter of the range; they continue later."""
    away = [{"start": "10s", "end": "40s", "groups": [["5"]]}]
    cut = msgspec.structs.replace(
        RUN,
        world={**RUN.world, "loss": 0.0, "partitions": away},
        options={**RUN.options, "bounded": "8"},
        end="90s",
    )
    rows, counters = deliveries(cut)
    assert counters["refused"] > 50
    sequences = [[row[3:] for row in rows if row[2] == str(node)] for node in range(6)]
    assert all(sequence == sequences[0] for sequence in sequences)
    assert len(sequences[0]) > 150


@given(st.integers(0, 10**6), st.integers(-127, 127), st.integers(3, 20))
def test_a_number_is_completed_from_its_lowest_bits(reference: int, off: int, bits: int) -> None:
    number = reference + off
    if number >= 0 and -(1 << bits) <= 2 * off < 1 << bits:
        assert _nearest(reference, number % (1 << bits), 1 << bits) == number


def test_too_few_bits_are_refused() -> None:
    with pytest.raises(BadInput, match="bounded"):
        deliveries(msgspec.structs.replace(RUN, options={"bounded": "3"}))
