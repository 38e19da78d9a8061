"""The routing protocols: who gets a copy, in worlds that one can follow by hand; the swarm over all pairs."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import Any

import pytest

from precede.cli import main
from precede.core.effects import RADIO, Persist, SetTimer
from precede.core.errors import BadInput
from precede.core.node import Context
from precede.eventlog.sinks import TableSink
from precede.experiments.run import Run, carry_out
from precede.experiments.swarm.plan import ORDERINGS
from precede.experiments.swarm.swarm import Tally, run_seed
from precede.measures.events import measure_events
from precede.protocols import registry
from precede.protocols.routing.copies import HelloPacket

ROUTINGS = ("direct_delivery", "first_contact", "spray_and_wait", "prophet", "maxprop")
ROOT = Path(__file__).parents[3]


def carried_out(routing: str, meetings: list[str], to: str | None = "3", nodes: int = 5, **options: Any) -> Any:
    """The log and measures of one message of node 0. The nodes of a meeting "01" meet for half a second."""
    contacts = [[pair[0], pair[1], f"{at + 1}s", f"{at + 1}.5s"] for at, pair in enumerate(meetings)]
    birth = {"src": "0", "at": "500ms"} | ({} if to is None else {"to": list(to)})
    sink = TableSink()
    run = Run(
        protocol="unordered",
        world={"kind": "contacts", "nodes": nodes, "meetings": contacts},
        workload={"script": [birth], "size": 10},
        options={"dissemination": routing, **options},
        end="100s",
    )
    carry_out(run, sink)
    return sink.events().to_pylist(), dict(measure_events(sink.events().to_batches()))


def nodes_with(events: list[dict[str, Any]], kind: str) -> list[str]:
    return [event["node"] for event in events if event["kind"] == kind and event["node"] != "0"]


@pytest.mark.parametrize(
    ("routing", "options", "receive"),
    [
        ("direct_delivery", {}, ["3"]),  # 0 meets 3 itself, in the last contact
        ("first_contact", {}, ["1", "2", "3"]),  # 1 passes its only copy to 2, and 2 to 3
        ("spray_and_wait", {"copies": 2}, ["1", "3"]),  # 1 has one copy and waits for 3
        ("spray_and_wait", {"copies": 4}, ["1", "2", "3"]),
        ("epidemic", {}, ["1", "2", "3"]),
        ("maxprop", {}, ["1", "2", "3"]),
        ("prophet", {}, ["3"]),  # nobody has met 3 before
    ],
)
def test_relays_carry_and_only_the_destination_delivers(
    routing: str, options: dict[str, Any], receive: list[str]
) -> None:
    events, measures = carried_out(routing, ["01", "12", "23", "03"], **options)
    assert nodes_with(events, "received") == receive
    assert nodes_with(events, "delivered") == ["3"]
    assert (measures["expected_deliveries"], measures["delivery_ratio"]) == (1, 1.0)


def test_prophet_gives_a_copy_to_a_node_that_has_met_the_destination() -> None:
    sink = TableSink()
    meetings = [["1", "3", "1s", "2s"], ["0", "1", "3s", "4s"], ["0", "2", "3s", "4s"], ["1", "3", "5s", "6s"]]
    run = Run(
        protocol="unordered",
        world={"kind": "contacts", "nodes": 4, "meetings": meetings},
        workload={"script": [{"src": "0", "at": "2500ms", "to": ["3"]}], "size": 10},
        options={"dissemination": "prophet"},
    )
    carry_out(run, sink)
    assert nodes_with(sink.events().to_pylist(), "received") == ["1", "3"]


def test_first_contact_keeps_one_copy() -> None:
    events, _ = carried_out("first_contact", ["01", "02", "14", "13"], "3")
    assert nodes_with(events, "received") == ["1", "4"], "0 has no copy left for 2, and 1 none for 3"


def test_maxprop_drops_a_message_that_was_delivered() -> None:
    events, _ = carried_out("maxprop", ["01", "03", "13", "12"])
    discarded = [(event["node"], event["reason"]) for event in events if event["kind"] == "discarded"]
    assert sorted(discarded) == [("0", "handed_over"), ("1", "acknowledged")]


def test_a_message_without_destinations_is_for_everybody() -> None:
    for routing in ROUTINGS:
        events, _ = carried_out(routing, ["01", "02", "03"], to=None)
        expected = ["1"] if routing == "first_contact" else ["1", "2", "3"]
        assert nodes_with(events, "delivered") == expected, routing


def test_a_full_buffer_evicts_the_oldest_message_of_others() -> None:
    meetings = [["0", "1", "3s", "4s"]]
    script = [{"src": "0", "at": f"{at}s", "to": ["2"]} for at in (0, 1, 2)]
    sink = TableSink()
    run = Run(
        protocol="unordered",
        world={"kind": "contacts", "nodes": 3, "meetings": meetings},
        workload={"script": script, "size": 100},
        options={"dissemination": "spray_and_wait", "buffer": 250},
        gauges="1h",
    )
    carry_out(run, sink)
    evicted = [event for event in sink.events().to_pylist() if event["reason"] == "evicted"]
    assert [(event["node"], event["message_number"]) for event in evicted] == [("1", 1)]
    sizes = [row for row in sink.gauges().to_pylist() if row["node"] == "1" and row["name"] == "buffer_bytes"]
    assert sizes[-1]["value"] == 200


@pytest.mark.parametrize("routing", ROUTINGS)
def test_every_ordering_over_every_routing_in_two_worlds(routing: str) -> None:
    judge(routing, 2)


@pytest.mark.long
@pytest.mark.parametrize("routing", ROUTINGS)
def test_every_ordering_over_every_routing_in_200_worlds(routing: str) -> None:
    judge(routing, 200)


def judge(routing: str, worlds: int) -> None:
    for ordering in ORDERINGS:
        tally = Tally()
        for seed in range(1, worlds + 1):
            result = run_seed(f"{ordering}+{routing}", seed)
            assert not result.failed, (ordering, routing, seed, result.remarks)
            tally.add(result)
        assert tally.worlds == worlds


@pytest.mark.parametrize(("ordering", "entry"), [("delta_causal", "LOSING"), ("fifo", "SILENT")])
def test_a_routing_that_loses_copies_is_found(
    ordering: str, entry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "losing_routing.py").write_text(
        "from precede.protocols.routing.spray_and_wait import DISSEMINATION as GOOD, SprayAndWait\n"
        "from msgspec.structs import replace\n"
        "class Losing(SprayAndWait):\n"
        "    def gave(self, copy, peer):\n"
        "        return False\n"
        "LOSING = replace(GOOD, build=Losing)\n"
        "class Silent(SprayAndWait):\n"
        "    def _offer_all(self, now, effects):\n"
        "        pass\n"
        "SILENT = replace(GOOD, build=Silent)\n"
    )
    monkeypatch.chdir(tmp_path)
    failed = [run_seed(f"{ordering}+losing_routing:{entry}", seed).undelivered for seed in range(1, 16)]
    assert sum(failed) > 0


def test_an_entry_of_a_module_runs_without_a_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine_alone.py").write_text(
        "from msgspec.structs import replace\n"
        "from precede.protocols.layered.fifo import ENTRY as FIFO\n"
        "ENTRY = replace(FIFO, name='mine_alone:ENTRY')\n"
        "CONTACTS = replace(FIFO, name='mine_alone:CONTACTS', worlds=('contacts',))\n"
        "NUMBER = 5\n"
    )
    monkeypatch.chdir(tmp_path)
    assert main(["simulate", "small-office", "--protocol", "mine_alone:ENTRY", "--out", "o"]) == 0
    assert main(["verify", "o"]) == 0
    assert main(["swarm", "--protocol", "mine_alone:ENTRY", "--worlds", "2", "--jobs", "1"]) == 0
    assert main(["conform", "mine_alone:CONTACTS", "--order", "fifo", "--worlds", "2"]) == 0
    assert re.search(r"^mine_alone:CONTACTS +2 +0 +0 +0 +0 ", capsys.readouterr().out, re.M)
    with pytest.raises(BadInput, match="not an Entry"):
        registry.find("mine_alone:NUMBER")
    with pytest.raises(BadInput, match="a int, not a DisseminationEntry"):
        registry.find_dissemination("mine_alone:NUMBER")


def test_a_workload_that_an_ordering_refuses_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.csv").write_text("id,src,dst,time,size\nM1,0,2,1,500\n")
    (tmp_path / "w.toml").write_text(
        '[world]\nkind = "contacts"\nnodes = 3\nmeetings = [["0","1","2s","3s"],["1","2","4s","5s"]]\n'
        '[workload]\nmessages = "m.csv"\n[run]\nprotocol = "unordered"\n'
    )
    assert main(["simulate", "w.toml", "--out", "o", "--json"]) == 0
    assert '"delivery_ratio": 1.0' in capsys.readouterr().out
    assert main(["simulate", "w.toml", "--protocol", "fifo", "--out", "p"]) == 2
    assert "refused every message: fifo delivers to every node" in capsys.readouterr().err


def test_the_guide_adds_a_routing_in_fewer_than_80_lines() -> None:
    guide = (ROOT / "docs" / "guides" / "add-a-routing.md").read_text(encoding="utf-8")
    code = re.search(r"```python file=my_routing.py\n(.*?)```", guide, re.S)
    assert code is not None
    assert len(code[1].splitlines()) < 80


def router(routing: str, node: int = 0, nodes: int = 4, **options: Any) -> Any:
    entry = registry.find("unordered")
    chosen = registry.read_options(entry, {"dissemination": routing, **options})
    context = Context(node, range(nodes), chosen, Random(1), 0)
    return registry.build_node(entry, "node", context).dissemination  # type: ignore[attr-defined]


def meet(one: Any, other: Any, now: int) -> None:
    """Two routers hear each other's hello, as at the beginning of a contact."""
    hellos = [HelloPacket(frozenset(), each.hello(now), each.delivered()) for each in (one, other)]
    one.link_up(other.me, now, RADIO)
    other.link_up(one.me, now, RADIO)
    one.receive(hellos[1], other.me, now, RADIO)
    other.receive(hellos[0], one.me, now, RADIO)


def part(one: Any, other: Any, now: int) -> None:
    one.link_down(other.me, now, RADIO)
    other.link_down(one.me, now, RADIO)


def test_prophet_computes_the_published_predictabilities_on_both_sides_of_a_contact() -> None:
    """Lindgren et al., equations 1 to 3 with the paper's constants; the unit of time is 30 s."""
    a, b, c = (router("prophet", node) for node in range(3))
    meet(b, c, 0)
    part(b, c, 0)
    meet(a, b, 30_000_000)
    aged = 0.75 * 0.98
    assert a._own == pytest.approx({1: 0.75, 2: 0.75 * aged * 0.25})
    assert b._own == pytest.approx({0: 0.75, 2: aged})
    assert a._of_peers[1] == pytest.approx(b._own), "a knows what b holds after the contact"
    a.hello(60_000_000)
    b.hello(60_000_000)
    assert a._of_peers[1] == pytest.approx(b._own), "what a knows of b ages with b"


def test_maxprop_keeps_the_newer_vector_of_a_node() -> None:
    a, b, c, d = (router("maxprop", node) for node in range(4))
    meet(a, b, 0)
    part(a, b, 0)
    meet(c, b, 1)  # c knows b after one encounter ...
    part(c, b, 1)
    for now in (2, 3):
        meet(a, b, now)  # ... and a knows b after three
        part(a, b, now)
    newer = dict(a._others[1])
    assert newer[1] == 3, "the entry of a node in its own vector counts its encounters"
    meet(a, c, 4)
    assert a._others[1] == newer == c._others[1]
    assert sum(a._own.values()) == pytest.approx(1.0)
    meet(d, a, 5)
    assert d._own == {0: 1.0}
    costs = d._all_costs()
    assert (costs[3], costs[0]) == (0.0, 0.0), "d meets nobody but a"
    assert costs[1] == pytest.approx(1 - d._others[0][1])


def test_a_full_buffer_of_maxprop_evicts_the_message_of_highest_cost() -> None:
    meetings = [["1", "2", "1s", "2s"], ["0", "1", "3s", "4s"]]
    script = [{"src": "0", "at": "0s", "to": [to]} for to in ("3", "2", "2")]
    sink = TableSink()
    run = Run(
        protocol="unordered",
        world={"kind": "contacts", "nodes": 4, "meetings": meetings},
        workload={"script": script, "size": 100},
        options={"dissemination": "maxprop", "buffer": 250, "head_start": 0},
        gauges="none",
    )
    carry_out(run, sink)
    evicted = [event for event in sink.events().to_pylist() if event["reason"] == "evicted"]
    assert [(event["node"], event["message_number"]) for event in evicted] == [("1", 1)], "1 never met 3"


@pytest.mark.parametrize("routing", ROUTINGS)
def test_the_only_destination_of_a_message_does_not_carry_it_on(routing: str) -> None:
    events, _ = carried_out(routing, ["03", "31"])
    assert nodes_with(events, "received") == ["3"]


@pytest.mark.parametrize("durable", [True, False])
def test_a_durable_router_forgets_the_id_of_an_expired_message_in_its_store_too(durable: bool) -> None:
    entry = registry.find("delta_causal")
    chosen = registry.read_options(
        entry, {"dissemination": "spray_and_wait", "durable": durable, "lifetime": "1s"}
    )
    node = registry.build_node(entry, "node", Context(0, range(3), chosen, Random(1), 0))
    store: dict[Any, Any] = {}
    effects = [*node.start(0, {}), *node.broadcast(b"x", 10)]
    timers = {effect.key: effect.at for effect in effects if isinstance(effect, SetTimer)}
    for key, at in timers.items():
        effects += node.timer(key, max(at, 1_000_010))
    for effect in effects:
        if isinstance(effect, Persist):
            store[effect.key] = effect.value
    seen = {key: value for key, value in store.items() if "seen" in str(key)}
    assert list(seen.values()) == ([None] if durable else [])
