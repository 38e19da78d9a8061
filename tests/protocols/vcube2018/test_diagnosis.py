"""VCube with crashes, joins and leaves: schedules, swarm worlds, and nodes without one of the parts."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from precede.core.effects import WIRED, Discard, Effect, Send
from precede.core.errors import Refused
from precede.core.identity import NodeId
from precede.core.instants import MILLISECOND, SECOND, Instant
from precede.core.node import Context, Node
from precede.eventlog.sinks import TableSink
from precede.experiments.run import Prepared, Run, prepare
from precede.experiments.swarm.draw.vcube import CALM, FAULTY
from precede.experiments.swarm.events import events_of
from precede.experiments.swarm.plan import Drawer, draw_plan
from precede.experiments.swarm.swarm import run_plan
from precede.protocols import registry
from precede.protocols.vcube2018.diagnosis import DiagnosedVCubeNode
from precede.protocols.vcube2018.log import Logged
from precede.protocols.vcube2018.packets import (
    Report,
    StampedMessage,
    VCubeJoinPacket,
    VCubePacket,
    VCubeStatePacket,
    VCubeTestPacket,
)
from precede.witness.verify import verify

OPTIONS = {"diagnosis": True, "test_every": "200ms", "test_timeout": "250ms"}


def play(
    nodes: int,
    script: Sequence[tuple[int, str]],
    crashes: Sequence[dict[str, Any]] = (),
    stays: Sequence[dict[str, Any]] = (),
    seconds: int = 6,
    cut_after: Sequence[tuple[NodeId, Instant, int]] = (),
    **faults: Any,
) -> tuple[Prepared, dict[int, list[tuple[int, int]]], Any]:
    """Run a small world with constant delays; returns it, each node's deliveries in order, and the log.

    `cut_after` is (node, instant, steps): the node crashes that many effects after the instant.
    """
    run = Run(
        world={
            "kind": "switched",
            "nodes": nodes,
            "propagation": "constant(0.1)",
            "transmission": "0s",
            "processing": "0s",
            "stays": list(stays),
        },
        workload={"script": [{"src": str(node), "at": at} for node, at in script], "size": 1},
        faults={"crashes": list(crashes), **faults},
        protocol="vcube",
        options=OPTIONS,
        gauges="none",
    )
    sink = TableSink()
    prepared = prepare(run, sink)
    for node, at, steps in cut_after:
        prepared.world.schedule(at, prepared.world.crash, node, steps)
    prepared.world.run(seconds * SECOND)
    prepared.recorder.flush()
    log = sink.events()
    delivered: dict[int, list[tuple[int, int]]] = {node: [] for node in range(nodes)}
    for row in events_of(log, "delivered"):
        delivered[int(row["node"])].append((int(row["message_source"]), row["message_number"]))
    assert not verify(log, "causal").violations
    return prepared, delivered, log


def sizes(prepared: Prepared) -> list[int]:
    """The sizes that must be zero in the end, of all working nodes."""
    return [
        hosted.node.sizes()[name]
        for hosted in prepared.world.nodes
        if hosted.up
        for name in hosted.node.drains()
    ]


def test_the_next_node_of_a_cluster_takes_over_from_a_forwarder_that_crashed() -> None:
    """Node 4 forwards to 5, 6 and 7 in the tree of 0, and is down when the message comes."""
    prepared, delivered, _ = play(8, [(0, "100ms")], [{"node": "4", "at": "150ms"}])
    assert [delivered[node] for node in range(8)] == [[(0, 1)]] * 4 + [[]] + [[(0, 1)]] * 3
    assert not any(sizes(prepared))
    assert all(
        not hosted.node._view.is_working(4) and hosted.node._children == expected
        for hosted, expected in zip(prepared.world.nodes, TREES_WITHOUT_4, strict=True)
        if hosted.up
    )


TREES_WITHOUT_4 = (
    [1, 2, 5],
    [0, 3, 5],
    [3, 0, 6],
    [2, 1, 7],
    [],
    [None, 7, 1],
    [7, 5, 2],
    [6, 5, 3],
)


@pytest.mark.parametrize("packets", [0, 1, 2])
def test_a_message_sent_once_before_its_source_crashed_reaches_all(packets: int) -> None:
    """The source sends so many of its three packets: every other node has the message, or none."""
    cut = (0, SECOND - 1, 2 + packets)
    prepared, delivered, _ = play(8, [(0, "1s")], cut_after=[cut])
    assert delivered[0] == [(0, 1)]
    assert [delivered[node] for node in range(1, 8)] == [[(0, 1)] if packets else []] * 7
    assert not any(sizes(prepared))


def lost_with_its_source() -> tuple[Prepared, dict[int, list[tuple[int, int]]], Any]:
    """0 sends a message to 1 only; 1 broadcasts after it; both crash before any node tests 1."""
    script = [(0, "1s"), (1, "1105ms")]
    return play(4, script, [{"node": "1", "at": "1110ms"}], seconds=8, cut_after=[(0, SECOND - 1, 3)])


def test_messages_that_wait_for_a_lost_message_are_discarded_everywhere() -> None:
    prepared, delivered, log = lost_with_its_source()
    assert delivered[1] == [(0, 1), (1, 1)]
    assert (delivered[2], delivered[3]) == ([], [])
    given_up = [(row["node"], row["message_source"], row["reason"]) for row in events_of(log, "discarded")]
    assert sorted(given_up) == [("2", "1", "orphaned"), ("3", "1", "orphaned")]
    assert not any(sizes(prepared))
    assert verify(log, "causal").holds


def test_a_newcomer_begins_at_its_sponsors_vector_and_misses_nothing_after() -> None:
    script = [(0, "100ms"), (1, "500ms"), (2, "3500ms"), (5, "5s"), (0, "6s")]
    prepared, delivered, log = play(6, script, stays=[{"node": "5", "enter": "1s"}], seconds=9)
    newcomer = prepared.world.nodes[5].node
    assert isinstance(newcomer, DiagnosedVCubeNode)
    assert newcomer.joined
    assert newcomer.begins_after == {0: 1, 1: 1}
    assert delivered[5] == [(2, 1), (5, 1), (0, 2)]
    assert all(delivered[node] == [(0, 1), (1, 1), (2, 1), (5, 1), (0, 2)] for node in range(5))
    entries = [
        row["control_entries"]
        for row in log.select(["node", "kind", "at_us", "packet_kind", "control_entries"]).to_pylist()
        if (row["node"], row["kind"], row["at_us"], row["packet_kind"]) == ("5", "sent", 5 * SECOND, "vcube")
    ]
    assert set(entries) == {4}, "its first message has entries for 0, 1, 2 and itself"
    assert not any(sizes(prepared))


def test_a_newcomer_passes_on_messages_that_only_its_sponsor_had() -> None:
    """6 sends a message to 7 and 4 only; 4 sponsors the newcomer; then 4, 6 and 7 crash."""
    prepared, delivered, _ = play(
        8,
        [(6, "3060ms"), (5, "8s")],
        [{"node": "4", "at": "3170ms"}, {"node": "7", "at": "3170ms"}],
        stays=[{"node": "5", "enter": "1s"}],
        seconds=14,
        cut_after=[(6, 3060 * MILLISECOND - 1, 4)],
    )
    newcomer = prepared.world.nodes[5].node
    assert isinstance(newcomer, DiagnosedVCubeNode)
    assert newcomer.begins_after == {6: 1}, "the newcomer must begin after the message of 6"
    assert [delivered[node] for node in range(4)] == [[(6, 1), (5, 1)]] * 4
    assert delivered[5] == [(5, 1)]
    assert not any(sizes(prepared))


def test_a_newcomer_that_has_not_joined_refuses_to_broadcast() -> None:
    prepared, delivered, _ = play(5, [(4, "1001ms")], stays=[{"node": "4", "enter": "1s"}])
    assert prepared.world.refused == 1
    assert not any(delivered.values())


def test_the_others_know_of_a_leave_before_any_test_fails() -> None:
    stays = [{"node": "3", "leave": "1s"}]
    prepared, delivered, _ = play(4, [(0, "900ms"), (1, "1500ms")], stays=stays, seconds=5)
    assert all(not prepared.world.nodes[node].node._view.is_working(3) for node in range(3))
    assert all(delivered[node] == [(0, 1), (1, 1)] for node in range(3))
    assert not any(sizes(prepared))


def test_a_node_declared_crashed_by_mistake_learns_it_and_stops() -> None:
    stalls = [{"node": "2", "at": "1s", "duration": "2s"}]
    prepared, delivered, _ = play(4, [(0, "4s"), (2, "5s")], stalls=stalls, seconds=8)
    stopped = prepared.world.nodes[2].node
    assert isinstance(stopped, DiagnosedVCubeNode)
    with pytest.raises(Refused, match="cannot come back"):
        stopped.broadcast(b"", 9 * SECOND)
    assert prepared.world.refused == 1
    assert [delivered[node] for node in range(4)] == [[(0, 1)], [(0, 1)], [], [(0, 1)]]


@pytest.mark.parametrize("keep", [True, False])
def test_a_node_that_restarts_stays_out(keep: bool) -> None:
    """With or without its state, a restarted node answers no test, so the others notice even a short crash."""
    crash = {"node": "1", "at": "1s", "restart": "1010ms", "keep": keep}
    prepared, delivered, _ = play(4, [(0, "900ms"), (1, "2s"), (0, "3s")], [crash], seconds=7)
    assert prepared.world.refused == 1
    assert all(delivered[node] == [(0, 1), (0, 2)] for node in (0, 2, 3))
    assert all(not prepared.world.nodes[node].node._view.is_working(1) for node in (0, 2, 3))


def check_worlds(drawer: Drawer, seeds: range) -> None:
    for seed in seeds:
        result = run_plan(draw_plan("vcube", seed, drawer), drawer)
        assert not result.failed, f"seed {seed}: {result.remarks}"


@pytest.mark.slow
@pytest.mark.parametrize("block", range(3))
def test_worlds_without_faults_hold(block: int) -> None:
    check_worlds(CALM, range(block * 20, block * 20 + 20))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(3))
def test_worlds_with_crashes_joins_and_leaves_hold(block: int) -> None:
    check_worlds(FAULTY, range(block * 10, block * 10 + 10))


def test_a_state_that_comes_in_parts_is_as_good(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over sockets a sponsor sends most messages of a long state as messages, before it."""
    whole, parts = DiagnosedVCubeNode.receive, []

    def receive(self: Any, packet: Any, sender: NodeId, now: Instant, over: Any) -> list[Effect]:
        if type(packet) is not VCubeStatePacket or len(packet.content) < 2:
            return list(whole(self, packet, sender, now, over))
        divided = packet.divided(1)
        assert [type(part) for part in divided[:-1]] == [VCubePacket] * (len(packet.content) - 1)
        parts.extend(divided)
        return [effect for part in divided for effect in whole(self, part, sender, now, over)]

    monkeypatch.setattr(DiagnosedVCubeNode, "receive", receive)
    check_worlds(FAULTY, range(6))
    assert len(parts) > 20


@pytest.mark.long
@pytest.mark.parametrize("block", range(20))
def test_500_worlds_with_crashes_hold(block: int) -> None:
    check_worlds(FAULTY, range(1000 + block * 25, 1000 + block * 25 + 25))


@pytest.mark.long
@pytest.mark.parametrize("block", range(20))
def test_2000_worlds_without_faults_hold(block: int) -> None:
    check_worlds(CALM, range(1000 + block * 100, 1000 + block * 100 + 100))


class ForgetsAtOnce(DiagnosedVCubeNode):
    """Keeps no log: messages that a crashed node should have forwarded are not sent again."""

    def _take(self, stamped: StampedMessage, below: int, now: Instant, effects: list[Effect]) -> Any:
        covered = super()._take(stamped, below, now, effects)
        self._log.entries.clear()
        return covered


class NeverRepairs(DiagnosedVCubeNode):
    """Tests, and takes over in the trees, but sends nothing again."""

    def _repair(
        self, peer: NodeId, have: Sequence[int], urgent: bool, now: Instant, effects: list[Effect]
    ) -> None:
        return


class NeverDetectsCrashes(DiagnosedVCubeNode):
    """Ignores missing answers."""

    def _miss_answer(self, node: NodeId, now: Instant, effects: list[Effect]) -> None:
        self._tests.by_node.pop(node, None)


class KeepsOrphans(DiagnosedVCubeNode):
    """Waits for ever for lost messages."""

    def _give_up_orphans(self, report: Any, effects: list[Effect]) -> None:
        return


SABOTEURS: dict[type[DiagnosedVCubeNode], range] = {
    ForgetsAtOnce: range(0, 20),
    NeverRepairs: range(0, 20),
    NeverDetectsCrashes: range(0, 20),
}


def entry_of(saboteur: type[DiagnosedVCubeNode]) -> registry.Entry:
    honest = registry.find("vcube")

    def build(role: str, context: Context) -> Node:
        return saboteur(context)

    return registry.Entry(
        honest.name, honest.title, honest.paper, honest.order, honest.worlds, honest.options, build=build
    )


@pytest.mark.parametrize("saboteur", SABOTEURS, ids=lambda kind: kind.__name__)
def test_a_node_without_one_part_is_caught(saboteur: type[DiagnosedVCubeNode]) -> None:
    entry = entry_of(saboteur)
    for seed in SABOTEURS[saboteur]:
        if run_plan(draw_plan("vcube", seed, FAULTY), FAULTY, entry).failed:
            return
    pytest.fail(f"{saboteur.__name__} was never caught")


def test_orphans_wait_for_ever_if_they_are_not_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DiagnosedVCubeNode, "_give_up_orphans", KeepsOrphans._give_up_orphans)
    prepared, _, _ = lost_with_its_source()
    assert [len(hosted.node.waiting()) for hosted in prepared.world.nodes if hosted.up] == [1, 1]


def test_a_duplicate_from_a_node_that_took_over_is_forwarded_to_more_clusters() -> None:
    context = Context(
        2,
        tuple(range(8)),
        registry.read_options(registry.find("vcube"), OPTIONS),
        random.Random(1),
    )
    node = DiagnosedVCubeNode(context)
    source = DiagnosedVCubeNode(Context(0, context.members, context.options, context.random))
    packet = next(e.packet for e in source.broadcast(b"x", 0) if hasattr(e, "packet"))
    node.receive(packet, 3, 1, 1)
    (logged,) = node._log.entries.values()
    assert isinstance(logged, Logged)
    assert logged.below == 0
    again = node.receive(packet, 6, 2, 1)
    assert [effect.to for effect in again] == [3, 0]


def test_a_sponsor_gives_a_newcomer_what_it_has_delivered_and_what_still_waits() -> None:
    """Nobody else may have these messages when the sponsor crashes next."""
    options = registry.read_options(registry.find("vcube"), OPTIONS)
    sponsor, source = (DiagnosedVCubeNode(Context(k, (0, 1, 2, 3), options, random.Random(1))) for k in (2, 0))
    packets = [next(e.packet for e in source.broadcast(b"x", at) if hasattr(e, "packet")) for at in range(3)]
    for packet in (packets[0], packets[2]):
        sponsor.receive(packet, 0, 5, 1)
    (answer,) = sponsor.receive(VCubeJoinPacket(), 1, 6, 1)
    assert isinstance(answer, Send)
    assert isinstance(answer.packet, VCubeStatePacket)
    assert sorted(stamped.message.id.number for stamped in answer.packet.content) == [1, 3]


def test_messages_held_for_a_cluster_are_dropped_when_nobody_is_left_in_it() -> None:
    """Node 0 forwards messages of node 4 to the clusters of nodes 1 and 2, and gets the second one first."""
    everybody = tuple(range(8))
    node, source = (
        registry.make("vcube", "node", Context(id, everybody, OPTIONS, random.Random(id))) for id in (0, 4)
    )
    node.start(0, {})
    source.start(0, {})
    source.broadcast(b"first", 1)
    (second,) = [e.packet for e in source.broadcast(b"second", 2) if isinstance(e, Send) and e.to == 0]
    node.receive(second, 4, 10, WIRED)
    assert node.sizes()["held"] == 2
    tested = node.timer("test", SECOND)
    for now, gone in ((2 * SECOND, 2), (3 * SECOND, 3)):
        assert gone in [effect.to for effect in tested if isinstance(effect, Send)]
        tested = node.timer(("silent", gone), now)
    assert node.sizes()["held"] == 1


@pytest.mark.parametrize(
    ("settled", "waited", "given_up"),
    [(False, SECOND, []), (True, 249 * MILLISECOND, []), (True, 250 * MILLISECOND, [2])],
)
def test_an_orphan_is_given_up_only_when_every_node_has_held_the_view_for_long_enough(
    settled: bool, waited: int, given_up: list[int]
) -> None:
    """Node 2 crashed after its second message came. Before that time its first may still be in flight."""
    node, source = (
        registry.make("vcube", "node", Context(id, (0, 1, 2), OPTIONS, random.Random(id))) for id in (0, 2)
    )
    node.start(0, {})
    source.start(0, {})
    source.broadcast(b"first", 1)
    (second,) = [e.packet for e in source.broadcast(b"second", 2) if isinstance(e, Send) and e.to == 0]
    node.receive(second, 2, 10, WIRED)
    tests = [effect for effect in node.timer("test", SECOND) if isinstance(effect, Send)]
    number = next(test.packet.number for test in tests if test.to == 1)
    node.timer(("silent", 2), 2 * SECOND)
    events = node._view.events
    report = Report(events, settled, (), (), ())
    node.receive(VCubeTestPacket(number, True, events, None, report), 1, 2 * SECOND + 1, WIRED)
    effects = node.timer("test", 2 * SECOND + waited)
    assert [e.message.id.number for e in effects if isinstance(e, Discard)] == given_up
