"""The experiments of guidec2021: one bus's pending messages from its rows, and a trace that a user brings."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from precede.cli import main
from precede.cli.evidence.reproduce import read_requests, request_with_trace
from precede.eventlog.sinks import TableSink
from precede.experiments.run import Run, carry_out, prepare
from precede.experiments.worlds.kinds import BuiltWorld
from precede.lake.layout import Lake
from precede.pipeline.reproduction.reproduce import reproduce
from precede.reproduction.guidec2021 import measures, series
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


def one_day(nodes: int, leave: str) -> tuple[TableSink, BuiltWorld]:
    """Node 2 gets b1 before a1; node 0 leaves before the end."""
    run = Run(
        world={
            "kind": "contacts",
            "nodes": nodes,
            "meetings": [["0", "1", "1s", "2s"], ["1", "2", "3s", "4s"], ["0", "2", "6s", "9s"]],
            "stays": [["0", "0s", leave], ["1", "0s", "20s"], ["2", "1s", "20s"]],
            "overhead": "400ms",
        },
        workload={"script": [{"src": "0", "at": "500ms"}, {"src": "1", "at": "2500ms"}]},
        protocol="causal_barrier",
        options={"order": "newest"},
        end="20s",
        log="messages",
        gauges="1s",
    )
    sink = TableSink()
    ready = prepare(run, sink)
    ready.world.run(ready.end)
    ready.recorder.flush()
    return sink, ready.built


def test_the_series_of_a_day_are_its_stays_its_delays_and_the_registries_of_one_bus(monkeypatch):
    monkeypatch.setattr(series, "ONE_BUS", "2")
    sink, built = one_day(3, "10s")
    day = series.read_series(sink.events(), sink.gauges(), built)
    assert day["stays"] == {"enter_s": [0, 0, 1], "leave_s": [10, 20, 20]}
    delays = measures.read_delays(sink.events())
    assert sorted(delays.wait) == pytest.approx([0, 0, 0, 0.4], abs=0.01), "b1 waits for the transfer of a1"
    (transit_s,), (wait_s,) = day["delays"]["transit_s"], day["delays"]["wait_s"]
    assert transit_s == pytest.approx(max(delays.delivered_transit[delays.wait > 0]), rel=0.02)
    assert wait_s == pytest.approx(0.4, rel=10 ** (0.5 / series.CELLS_PER_TENFOLD) - 1)
    registries = day["registries"]
    assert registries["at_s"][:3] == [0, 1, 2]
    assert max(registries["pending"]) == 1
    assert registries["co_delivered"][-1] == 2


def test_of_people_the_registries_are_of_one_who_stays_five_minutes(monkeypatch):
    monkeypatch.setattr(measures, "FIVE_MINUTES", (9_000_000, 11_000_000))
    sink, built = one_day(3, "10s")
    day = series.read_series(sink.events(), sink.gauges(), built)
    assert max(day["registries"]["at_s"]) == 10
    assert len(day["delays"]["wait_s"]) == len(day["delays"]["transit_s"]) > 1
    assert 0 < min(day["delays"]["wait_s"]) < 0.1, "waits of zero are in the lowest cell"


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
