"""`WheelWorld` gives the rows, gauges, counters and numbers of events of `World`; `Wheel` keeps its order."""

from __future__ import annotations

import sys
from collections.abc import Callable
from heapq import heappop, heappush
from random import Random
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from benchmarks.tree.node import TreeNode
from precede.core.effects import Discard, Effects, Medium, Send, SetTimer
from precede.core.identity import NodeId
from precede.core.instants import Instant
from precede.core.messages import Packet
from precede.core.node import Node
from precede.core.writing_node import EffectWriter, WritingNode
from precede.eventlog.recorder import Recorder
from precede.eventlog.sinks import NoSink, TableSink
from precede.experiments.run import Prepared, Run, prepare
from precede.experiments.swarm.large_numbers import builder
from precede.experiments.swarm.plan import FURTHER_FROM, Plan, draw_plan, find_drawer
from precede.sim import choosing
from precede.sim.choosing import world_for
from precede.sim.clocks import Clock
from precede.sim.networks.partition import Partition
from precede.sim.networks.point_to_point import PointToPoint
from precede.sim.networks.switched import Switched
from precede.sim.randomness import Distribution
from precede.sim.wheel import NEVER, Wheel
from precede.sim.wheel_world import NODES, WheelWorld
from precede.sim.world import World

MAKERS: Final = (World, WheelWorld)

# -- the order of the wheel --------------------------------------------------------------------------------

SPANS: Final = (0, 1, 30, 2_000, 40_000, 300_000, 5_000_000)
LIMITS: Final = tuple(1 << bits for bits in (6, 10, 18, 26, 34, 42, 50, 58))
"""Where the wheel keeps an entry differs on the two sides of a multiple of these."""
BURSTS: Final = (1, 1, 1, 2, 31, 32, 62, 63, 200)
"""A chunk has 31 entries."""


@pytest.mark.parametrize("seed", range(20))
def test_entries_come_by_instant_then_in_the_order_of_adding(seed: int) -> None:
    random = Random(seed)
    wheel, expected = Wheel(), list[tuple[int, int]]()
    taken, now = [], 0
    for word in range(3_000):
        at = now + random.randrange(random.choice(SPANS) + 1)
        wheel.add(at, word)
        expected.append((at, word))
        while random.random() < 0.5 and wheel.seek(now + random.randrange(3_000)):
            now = wheel.at
            taken.append((now, wheel.take()))
        now = wheel.at
    while wheel.seek(NEVER):
        taken.append((wheel.at, wheel.take()))
    assert taken == sorted(expected)
    assert wheel.taken == 3_000
    assert not wheel.is_waiting()


def due(random: Random, now: int) -> int:
    """Draw an instant from now on, often at or beside a limit of the wheel."""
    if random.random() < 0.4:
        return now + random.randrange(random.choice(SPANS) + 1)
    limit = random.choice(LIMITS)
    return max(now, (now // limit + 1) * limit + random.randrange(-2, 3))


@pytest.mark.parametrize("seed", range(20))
def test_entries_beside_the_limits_of_the_wheel_keep_their_order(seed: int) -> None:
    random = Random(seed)
    wheel, waiting = Wheel(), list[tuple[int, int]]()
    word = 0
    for _ in range(300):
        at, same = due(random, wheel.at), random.random() < 0.5
        for _ in range(random.choice(BURSTS)):
            word += 1
            entry = (at if same else max(wheel.at, at + random.randrange(-3, 4)), word)
            wheel.add(*entry)
            heappush(waiting, entry)
        limit = random.choice((waiting[0][0], waiting[0][0] + random.randrange(-2, 3), due(random, wheel.at)))
        before = wheel.at
        assert wheel.seek(limit) == (bool(waiting) and waiting[0][0] <= limit)
        assert before <= wheel.at <= max(before, limit)
        while waiting and waiting[0][0] == wheel.at <= limit and random.random() < 0.99:
            assert wheel.take() == heappop(waiting)[1]
            assert wheel.is_waiting() == bool(waiting)
        if waiting and waiting[0][0] > 1 << 57:
            break
    while waiting:
        assert wheel.seek(NEVER)
        assert (wheel.at, wheel.take()) == heappop(waiting)
    assert not wheel.is_waiting()


def test_the_wheel_refuses_an_entry_in_the_past() -> None:
    wheel = Wheel()
    wheel.add(5_000, 1)
    assert wheel.seek(NEVER)
    with pytest.raises(ValueError, match="an event at 4999, before the present instant, 5000"):
        wheel.add(4_999, 2)


@pytest.mark.parametrize("make_world", [World, WheelWorld])
def test_a_world_refuses_an_event_in_the_past(make_world: type[World]) -> None:
    network = PointToPoint(Distribution("constant(0.01)"))
    world = make_world(1, 1, lambda *_: Node(), network, Recorder("run", ["0"], NoSink()))
    world.run(5_000)
    with pytest.raises(ValueError, match="an event at 4999, before the present instant, 5000"):
        world.schedule(4_999, print)


def test_a_limit_that_is_none_turns_the_wheel_nowhere() -> None:
    wheel = Wheel()
    wheel.add(NEVER, 1)
    assert not wheel.seek(1 << 58)
    wheel.add(5, 2)
    assert wheel.seek(1 << 58)
    assert (wheel.at, wheel.take()) == (5, 2)


def test_the_wheel_turns_no_further_than_to_the_limit() -> None:
    wheel = Wheel()
    wheel.add(10_000_000, 7)
    assert not wheel.seek(9_999_999)
    assert wheel.at <= 9_999_999
    wheel.add(9_999_999, 8)
    assert wheel.seek(NEVER)
    assert (wheel.at, wheel.take()) == (9_999_999, 8)
    assert wheel.seek(10_000_000)
    assert (wheel.at, wheel.take()) == (10_000_000, 7)
    assert not wheel.seek(NEVER)


# -- the same worlds ---------------------------------------------------------------------------------------


def finished(prepared: Prepared, sink: TableSink, end: Instant) -> tuple[pa.Table, pa.Table, Any]:
    """Run a world to its end; return its events, its gauges and what it counted."""
    world = prepared.world
    world.run(end)
    if world.gauged:
        world.sample_gauges()
    prepared.recorder.flush()
    counts = world.handled, world.now, world.busy(), world.refused, dict(prepared.built.network.counters())
    return sink.events(), sink.gauges(), counts


def planned(plan: Plan, make_world: type[World]) -> tuple[pa.Table, pa.Table, Any]:
    sink = TableSink()
    prepared = prepare(plan.run, sink, make_world=make_world, build_node=builder(plan))
    prepared.world.schedule(plan.heal_at, prepared.world.heal, plan.dead)
    return finished(prepared, sink, plan.end)


@pytest.mark.parametrize("protocol", ["prs", "rst", "ses", "vcube", "fifo", "vector_clock"])
def test_swarm_worlds_have_the_same_rows(protocol: str) -> None:
    """With loss, partitions, crashes between two effects, restarts, stalls, clocks, churn and healing."""
    drawer, rows, compared = find_drawer(protocol), 0, 0
    for seed in [*range(12), *range(FURTHER_FROM, FURTHER_FROM + 12)]:
        plan = draw_plan(protocol, seed, drawer)
        if plan.run.world["kind"] not in ("point_to_point", "switched"):
            continue
        shared, wheel = (planned(plan, make_world) for make_world in MAKERS)
        assert wheel[0].equals(shared[0]), (protocol, seed)
        assert wheel[1].equals(shared[1]), (protocol, seed)
        assert wheel[2] == shared[2], (protocol, seed)
        rows += shared[0].num_rows
        compared += 1
    assert compared >= 3
    assert rows > 1_000


DELAYS: Final = ("exponential(0.02)", "uniform(0, 0.9)", "constant(0)", "exponential(2)")
WORLDS: Final[dict[str, dict[str, Any]]] = {
    "point_to_point": {"kind": "point_to_point", "nodes": 9},
    "switched": {"kind": "switched", "nodes": 9, "transmission": "2ms"},
}


def run_of(kind: str, protocol: str, delay: str, **given: Any) -> Run:
    key = "delay" if kind == "point_to_point" else "propagation"
    return Run(
        world={**WORLDS[kind], key: delay},
        workload={"first": "exponential(0.1)", "every": "exponential(0.1)", "count": 6, "size": 50},
        protocol=protocol,
        seed=5,
        **given,
    )


@pytest.mark.parametrize("delay", DELAYS)
@pytest.mark.parametrize(
    ("kind", "protocol"),
    [("point_to_point", "prs"), ("point_to_point", "vector_clock"), ("switched", "vcube")],
)
def test_undisturbed_worlds_have_the_same_rows_and_gauges(kind: str, protocol: str, delay: str) -> None:
    results = []
    for make_world in MAKERS:
        sink = TableSink()
        prepared = prepare(run_of(kind, protocol, delay, gauges="13ms"), sink, make_world=make_world)
        results.append(finished(prepared, sink, prepared.end))
    assert results[0] == results[1]
    assert results[0][0]["kind"].to_pylist().count("delivered") >= 9 * 6


def test_a_world_may_go_on_after_a_pause() -> None:
    logs = []
    for make_world in MAKERS:
        sink = TableSink()
        prepared = prepare(run_of("point_to_point", "prs", DELAYS[0]), sink, make_world=make_world)
        for until in (0, 1, 250_000, 250_001, 1_000_000):
            prepared.world.run(until)
            assert prepared.world.now == until
        prepared.world.broadcast(3, b"late")
        logs.append(finished(prepared, sink, prepared.end))
    assert logs[0] == logs[1]


# -- nodes that write their effects ------------------------------------------------------------------------


class Chatty(WritingNode):
    """Forwards down a tree, and writes effects that have a method and others."""

    def __init__(self, node: NodeId, bits: int) -> None:
        self.tree = TreeNode(node, bits)

    def broadcast(self, payload: bytes, now: Instant, to: Any = None, lifetime: Any = None) -> Effects:
        return self.tree.broadcast(payload, now, to, lifetime)

    def take(self, packet: Packet, sender: NodeId, now: Instant, over: Medium, effects: EffectWriter) -> None:
        if now % 2:
            self.tree.take(packet, sender, now, over, effects)
            return
        message = packet.message  # type: ignore[attr-defined]
        effects.arrive(message)
        effects.add(SetTimer("later", now + 5_000))
        effects.add(Discard(message, "late"))
        for effect in self.tree.receive(packet, sender, now, over):
            is_keyed = isinstance(effect, Send) and now % 3 == 0
            effects.add(Send(effect.packet, effect.to, key=effect.to) if is_keyed else effect)

    def timer(self, key: Any, now: Instant) -> Effects:
        return ()


class Listing(Node):
    """The same node as one that returns lists."""

    def __init__(self, node: NodeId, bits: int) -> None:
        self.written = Chatty(node, bits)
        self.broadcast = self.written.broadcast  # type: ignore[method-assign]
        self.receive = self.written.receive  # type: ignore[method-assign]
        self.timer = self.written.timer  # type: ignore[method-assign]


NETWORKS: Final[dict[str, Callable[[], PointToPoint]]] = {
    "only delays": lambda: PointToPoint(Distribution("exponential(0.05)")),
    "loss": lambda: PointToPoint(Distribution("exponential(0.05)"), loss=0.2, duplication=0.2),
}


def chatter(make_world: type[World], make_node: Any, network: PointToPoint, troubled: bool) -> pa.Table:
    sink = TableSink()
    recorder = Recorder("r", [str(node) for node in range(16)], sink)
    clocks = {3: Clock(offset=7_000)} if troubled else None
    world = make_world(1, 16, lambda node, *_: make_node(node, 4), network, recorder, clocks)
    for node in range(16):
        world.enter(node)
        world.schedule(node * 1_000, world.broadcast, node, b"x")
    if troubled:
        for at in range(10_000, 200_000, 10_000):
            world.schedule(at, world.crash, at // 10_000 % 16, at // 10_000 % 5)
            world.schedule(at + 15_000, world.restart, at // 10_000 % 16, False)
        world.schedule(30_000, world.stall, 9, 40_000)
    world.run(400_000)
    recorder.flush()
    return sink.events()


@pytest.mark.parametrize("troubled", [False, True], ids=["quiet", "crashes, stalls and clocks"])
@pytest.mark.parametrize("network", NETWORKS)
def test_a_node_may_write_its_effects_or_list_them(network: str, troubled: bool) -> None:
    logs = [
        chatter(make_world, make_node, NETWORKS[network](), troubled)
        for make_world in MAKERS
        for make_node in (Listing, Chatty)
    ]
    assert all(log.equals(logs[0]) for log in logs[1:])
    kinds = logs[0]["kind"].to_pylist()
    assert all(kinds.count(kind) > 5 for kind in ("sent", "received", "delivered", "discarded"))
    assert not troubled or kinds.count("crashed") > 2


class Own(Chatty):
    """A node that writes and overrides `receive`, which counts packets."""

    packets = 0

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        Own.packets += 1
        return Chatty.receive(self, packet, sender, now, over)


def counting(node: NodeId, bits: int) -> Node:
    """Return a node that writes, with a `receive` that only this instance has."""
    made = Chatty(node, bits)
    made.receive = Own.receive.__get__(made)  # type: ignore[method-assign]
    return made


@pytest.mark.parametrize("make_node", [Own, counting], ids=["of its class", "of the instance"])
@pytest.mark.parametrize("make_world", MAKERS)
def test_a_receive_of_its_own_is_called(make_world: type[World], make_node: Any) -> None:
    Own.packets = 0
    log = chatter(make_world, make_node, NETWORKS["only delays"](), False)
    assert Own.packets == log["kind"].to_pylist().count("packet_received") > 100


# -- the most nodes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("make_world", MAKERS)
def test_the_last_nodes_of_the_largest_world_get_their_packets(make_world: type[World]) -> None:
    sink = TableSink()
    recorder = Recorder("r", [str(node) for node in range(NODES)], sink)
    network = PointToPoint(Distribution("constant(1)"))
    world = make_world(1, NODES, lambda node, *_: TreeNode(node, 16), network, recorder)
    last = NODES - 1
    for node in (last, last - 1, last >> 1):
        world.enter(node)
    world.broadcast(last, b"x")
    world.run()
    recorder.flush()
    received = sink.events().filter(pc.field("kind") == "packet_received")
    assert received["node"].to_pylist() == [str(last - 1), str(last >> 1)]
    assert received["peer"].to_pylist() == [str(last)] * 2


# -- timers without end ------------------------------------------------------------------------------------


class Impatient(Node):
    """Sets a timer that no run reaches, and one a millisecond after each broadcast."""

    def __init__(self, never: Instant) -> None:
        self.never = never
        self.rang: list[Instant] = []

    def start(self, now: Instant, saved: Any) -> Effects:
        return [SetTimer("never", self.never)]

    def broadcast(self, payload: bytes, now: Instant, to: Any = None, lifetime: Any = None) -> Effects:
        return [SetTimer("soon", now + 1_000)]

    def timer(self, key: Any, now: Instant) -> Effects:
        self.rang.append(now)
        return ()


@pytest.mark.parametrize("never", [1 << 59, sys.maxsize])
@pytest.mark.parametrize("make_world", MAKERS)
def test_a_timer_that_no_run_reaches_stops_nothing(make_world: type[World], never: Instant) -> None:
    node = Impatient(never)
    network = PointToPoint(Distribution("constant(1)"))
    world = make_world(1, 1, lambda *_: node, network, Recorder("r", ["0"], TableSink()))
    world.enter(0)
    for _ in range(3):
        world.broadcast(0, b"x")
        world.run()
    assert node.rang == [1_000, 2_000, 3_000]
    assert world.busy()


# -- where it is used --------------------------------------------------------------------------------------


def test_the_wheel_is_used_for_networks_that_only_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "is_compiled", lambda module: True)
    delay = Distribution("exponential(1)")
    assert world_for(PointToPoint(delay), 2) is WheelWorld
    assert world_for(Switched(delay), NODES) is WheelWorld
    assert world_for(PointToPoint(delay), NODES + 1) is World
    for given in (
        {"loss": 0.1},
        {"duplication": 0.1},
        {"fifo": True},
        {"bandwidth": 1000.0},
        {"overhead": 5},
        {"partitions": [Partition(0, 1, ((0,), (1,)))]},
    ):
        assert world_for(PointToPoint(delay, **given), 2) is World, given  # type: ignore[arg-type]
    monkeypatch.setattr(choosing, "is_compiled", lambda module: False)
    assert world_for(PointToPoint(delay), 2) is World
