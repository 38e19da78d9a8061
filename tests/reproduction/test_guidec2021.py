"""The experiments of guidec2021: one bus's pending messages from its rows, and a trace that a user brings."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from precede.cli import main
from precede.cli.evidence.reproduce import read_requests, request_with_trace
from precede.eventlog.sinks import TableSink
from precede.experiments.run import Run, carry_out
from precede.lake.layout import Lake
from precede.pipeline.reproduction.reproduce import reproduce
from precede.reproduction.guidec2021 import measures
from tests.protocols.guidec2021.stage import Stage

ROOT = Path(__file__).parents[2]


def walkers() -> str:
    """Twelve people who cross a square of 60 m one after another, 40 s each, ten seconds apart."""
    random, events = Random(1), []
    for number in range(12):
        begins = 10 * number
        x, y = random.uniform(0, 60), random.uniform(0, 60)
        events += [
            (begins, f"create {number} {x:.1f} {y:.1f} 0"),
            (begins, f"setdest {number} {60 - x:.1f} {60 - y:.1f} 0 1.5 {begins + 40}"),
            (begins + 120, f"destroy {number}"),
        ]
    return "".join(f"{at} {event}\n" for at, event in sorted(events))


def test_tables_4_to_6_run_on_a_trace_that_the_user_has(tmp_path, capsys):
    file = tmp_path / "ostermalm.tr"
    file.write_text(walkers())
    where = ["--lake", str(tmp_path / "lake"), "--papers", str(ROOT / "papers")]
    option = ["--with", f"ostermalm_001_1={file}"]
    requests = read_requests("guidec2021/table4", "quick", ROOT / "papers")
    request = request_with_trace(requests, option[1], str(tmp_path / "lake"), store=False)
    (result,) = reproduce(Lake(tmp_path / "lake"), [request], None)
    ours = {one.claim.id: one.ours for one in result.comparisons}
    assert ours["pedestrians-nodes"] == (12.0, 12.0)
    assert not any(name.startswith("city-bus") for name in ours)
    assert result.violations == 0
    for arguments, error in [
        (["prs1997", "--scale", "quick", *option], "--with is for guidec2021"),
        (["guidec2021", *option], "add --scale quick"),
        (["guidec2021", "--scale", "quick", "--with", "vannes=x"], "expected ostermalm_001_1=FILE"),
        (["guidec2021", "--scale", "quick", "--with", "ostermalm_001_1=nowhere"], "no such file"),
    ]:
        assert main(["reproduce", *arguments, *where]) == 2
        assert error in capsys.readouterr().err


def test_pending_messages_of_one_bus_are_counted_from_its_rows(monkeypatch):
    """Node 2 gets b1 before a1, which b1 depends on; when a1 comes, both are there for an instant."""
    meetings = [["0", "1", "1s", "2s"], ["1", "2", "3s", "4s"], ["0", "2", "6s", "9s"]]
    run = Run(
        world={"kind": "contacts", "nodes": 3, "meetings": meetings, "overhead": "400ms"},
        workload={"script": [{"src": "0", "at": "500ms"}, {"src": "1", "at": "2500ms"}]},
        protocol="causal_barrier",
        options={"order": "newest"},
        end="20s",
        log="messages",
    )
    sink = TableSink()
    carry_out(run, sink)
    monkeypatch.setattr(measures, "ONE_BUS", "2")
    assert measures._pending_at_one_bus(sink.events()) == {"one_bus_pending_most": 2.0}
    monkeypatch.setattr(measures, "ONE_BUS", "nobody")
    assert measures._pending_at_one_bus(sink.events()) == {}


@pytest.mark.parametrize("prune", [True, False])
@pytest.mark.parametrize("protocol", ["causal_barrier", "delta_causal"])
def test_the_barrier_grows_with_deliveries_and_falls_to_one_with_each_broadcast(protocol, prune):
    """Figure 6: it grows with messages of unheard-of nodes, "shrinks to 1 whenever it broadcasts a message"."""
    options = {"lifetime": "1h"} if protocol == "delta_causal" else {}
    stage = Stage(protocol, prune=prune, **options)
    bus = stage.actors
    for number, others in enumerate(("AB", "ABCDE", "FG")):
        for met, other in enumerate(others):
            stage.arrive("L", stage.broadcast(other, 10 * number + met), 10 * number + met)
            assert bus["L"].sizes()["causal_barrier"] == met + 1 + (number > 0)
        stage.broadcast("L", 10 * number + 9)
        assert bus["L"].sizes()["causal_barrier"] == 1
