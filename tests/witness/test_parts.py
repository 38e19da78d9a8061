"""A part of a log, cut off by group, is judged as it is inside the whole."""

from __future__ import annotations

import pyarrow as pa
import pytest

from precede.witness.reading.tables import TableLog
from precede.witness.verify import verify

ROWS = [
    {"g": g, "node": node, "step": step, "kind": kind, "message_source": source, "message_number": number}
    for g, node, step, kind, source, number in [
        ("x", "a", 1, "broadcast", "a", 1),
        ("x", "b", 1, "delivered", "a", 1),
        ("y", "b", 1, "delivered", "a", 1),
        ("y", "b", 2, "delivered", "a", 2),
    ]
]


@pytest.mark.parametrize("engine", ["plain", "numba"])
@pytest.mark.parametrize("order", ["fifo", "causal", "total"])
def test_a_group_of_deliveries_only_in_a_log_that_has_broadcasts(engine, order):
    whole = verify(pa.Table.from_pylist(ROWS), order, by="g", engine=engine)
    part = TableLog(pa.Table.from_pylist(ROWS[2:]))
    part.broadcasts_elsewhere = True
    alone = verify(part, order, by="g", engine=engine)
    assert (alone.verdict, alone.counts) == (whole.verdict, whole.counts) == ("unknown", {})
    (reason,) = alone.reasons
    assert "node a has no rows, but 2 deliveries of its messages are in the log" in reason
    assert whole.reasons == alone.reasons
    unaware = verify(pa.Table.from_pylist(ROWS[2:]), order, by="g", engine=engine)
    assert unaware.verdict == ("unknown" if order == "causal" else "holds")


def test_a_group_without_deadlines_in_a_log_that_has_them():
    rows = [row | {"clock_us": 5, "deadline_us": None} for row in ROWS[:2]]
    part = TableLog(pa.Table.from_pylist(rows))
    assert verify(part, "delta").verdict == "unknown"
    part = TableLog(pa.Table.from_pylist(rows))
    part.deadlines_elsewhere = True
    assert verify(part, "delta").verdict == "holds"


@pytest.mark.parametrize("engine", ["plain", "numba"])
@pytest.mark.parametrize("without", ["x", "y"])
def test_a_run_without_clocks_does_not_make_another_one_unknown(engine, without):
    rows = [
        row | {"g": g, "deadline_us": 9, "clock_us": None if g == without else 5}
        for g in ("x", "y")
        for row in ROWS[:2]
    ]
    verdict = verify(pa.Table.from_pylist(rows), "delta", by="g", engine=engine)
    verdicts = {part.group[0][1]: part.verdict for part in verdict.parts}
    assert verdicts == {"x": "holds", "y": "holds"} | {without: "unknown"}
    assert verdict.verdict == "unknown"
