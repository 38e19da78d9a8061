"""Timestamps that are used again (drift2006, section 4.4): the same deliveries at the same instants."""

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


def rows(run: Run) -> tuple[list[tuple[Any, ...]], dict[str, int]]:
    sink = TableSink()
    outcome = carry_out(run, sink)
    found = sink.events().select(["kind", "at_us", "node", "message_source", "message_number"]).to_pylist()
    return [tuple(row.values()) for row in found if row["kind"] == "delivered"], outcome.counters


@pytest.mark.parametrize("options", [{}, {"limit": "3"}, {"suspect_after": "5s"}])
def test_with_eight_bits_everything_happens_as_with_all(options: dict[str, str]) -> None:
    """Some six hundred messages, clocks beyond a thousand, 256 timestamps."""
    whole = msgspec.structs.replace(RUN, options={**RUN.options, **options})
    eight = msgspec.structs.replace(whole, options={**whole.options, "bounded": "8"})
    all_bits, _ = rows(whole)
    found, counters = rows(eight)
    assert counters["refused"] == 0
    assert found == all_bits
    assert len(found) > 6 * 500


def test_a_source_refuses_before_somebody_is_left_behind() -> None:
    """Node 5 is away for a while: the others stop sending after a quarter of the range, and go on then."""
    away = [{"start": "10s", "end": "40s", "groups": [["5"]]}]
    cut = msgspec.structs.replace(
        RUN,
        world={**RUN.world, "loss": 0.0, "partitions": away},
        options={**RUN.options, "bounded": "8"},
        end="90s",
    )
    found, counters = rows(cut)
    assert counters["refused"] > 50
    sequences = [[row[3:] for row in found if row[2] == str(node)] for node in range(6)]
    assert all(mine == sequences[0] for mine in sequences)
    assert len(sequences[0]) > 150


@given(st.integers(0, 10**6), st.integers(-127, 127), st.integers(3, 20))
def test_the_nearest_number_with_these_bits(known: int, off: int, bits: int) -> None:
    true = known + off
    if true >= 0 and -(1 << bits) <= 2 * off < 1 << bits:
        assert _nearest(known, true % (1 << bits), 1 << bits) == true


def test_too_few_bits_are_refused() -> None:
    with pytest.raises(BadInput, match="bounded"):
        rows(msgspec.structs.replace(RUN, options={"bounded": "3"}))
