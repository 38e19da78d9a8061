"""The verifier in a process that judges many worlds."""

import pytest

from precede.eventlog.sinks import TableSink
from precede.experiments.swarm.plan import draw_plan, find_drawer
from precede.experiments.swarm.swarm import run_plan
from precede.witness import many_logs
from precede.witness.reading.logs import LARGE_ROWS
from precede.witness.verdict import Order


@pytest.mark.parametrize(
    ("protocol", "order"), [("unordered", "causal"), ("vcube", "causal"), ("drift", "total")]
)
def test_worlds_are_judged_alike_before_and_after_many_rows(
    protocol: str, order: Order, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawer, sink = find_drawer(protocol), TableSink()
    run_plan(draw_plan(protocol, 5, drawer), drawer, log=sink)
    events = sink.events()
    monkeypatch.setattr(many_logs._JUDGED, "rows", 0)
    few = many_logs.verify_one_of_many(events, order)
    assert many_logs._JUDGED.rows == events.num_rows < LARGE_ROWS
    monkeypatch.setattr(many_logs._JUDGED, "rows", LARGE_ROWS)
    many = many_logs.verify_one_of_many(events, order)
    assert many == few
    assert few.deliveries_checked > 0
    assert (few.verdict == "violated") == (protocol == "unordered")
