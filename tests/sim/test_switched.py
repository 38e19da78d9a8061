"""The packet-switched network: times computed by hand, and packets lost in a crash."""

from __future__ import annotations

from typing import ClassVar

import pytest

from precede.core.effects import WIRED, CancelSend, Effects, Key, Medium, Send
from precede.core.identity import NEIGHBOURS, NodeId
from precede.core.instants import MILLISECOND, Instant
from precede.core.messages import Packet
from precede.core.node import Node
from precede.eventlog.recorder import Recorder
from precede.eventlog.sinks import TableSink
from precede.sim.networks.switched import Switched
from precede.sim.randomness import Distribution
from precede.sim.wheel_world import WheelWorld
from precede.sim.world import World


class Parcel(Packet, frozen=True, gc=False):
    kind: ClassVar[str] = "parcel"
    name: str
    size_bytes: int = 1
    control_bytes: int = 0
    control_entries: int = 0
    messages: int = 0


class Puppet(Node):
    """Sends what the test passes in, and records what it receives."""

    def __init__(self) -> None:
        self.next: Effects = ()
        self.heard: list[tuple[Instant, NodeId, str]] = []
        self.left: list[tuple[Instant, Key, bool]] = []

    def broadcast(self, payload, now, to=None, lifetime=None) -> Effects:
        return self.next

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        self.heard.append((now, sender, packet.name))
        return ()

    def sent(self, key: Key, now: Instant, ok: bool) -> Effects:
        self.left.append((now, key, ok))
        return ()


def world_of(
    nodes: int,
    make_world: type[World] = World,
    make_network: type[Switched] = Switched,
    **network: object,
) -> tuple[World, list[Puppet]]:
    puppets = [Puppet() for _ in range(nodes)]
    settings = {
        "propagation": Distribution("constant(0.1)"),
        "transmission": MILLISECOND,
        "processing": MILLISECOND,
    }
    recorder = Recorder("run", [str(n) for n in range(nodes)], TableSink())
    world = make_world(
        7,
        nodes,
        lambda node, incarnation, generator: puppets[node],
        make_network(**{**settings, **network}),
        recorder,
    )
    for node in range(nodes):
        world.enter(node)
    return world, puppets


def ask(world: World, puppets: list[Puppet], node: NodeId, *effects) -> None:
    puppets[node].next = effects
    world.broadcast(node, b"")


def test_a_packet_takes_queueing_transmission_propagation_and_processing_time() -> None:
    world, puppets = world_of(4)
    ask(world, puppets, 0, Send(Parcel("a"), 1), Send(Parcel("b"), 2), Send(Parcel("c"), 1))
    world.run()
    assert puppets[1].heard == [(102_000, 0, "a"), (104_000, 0, "c")]
    assert puppets[2].heard == [(103_000, 0, "b")]
    counters = world.network.counters()
    assert counters == {"network_packets": 3, "network_queued_us": 3000, "network_dropped": 0}


def test_a_packet_to_all_is_queued_once_per_receiver() -> None:
    world, puppets = world_of(4)
    ask(world, puppets, 1, Send(Parcel("x"), NEIGHBOURS))
    world.run()
    assert [puppets[n].heard for n in (0, 2, 3)] == [
        [(102_000, 1, "x")],
        [(103_000, 1, "x")],
        [(104_000, 1, "x")],
    ]
    assert puppets[1].heard == []


@pytest.mark.parametrize("make_world", [World, WheelWorld])
@pytest.mark.parametrize("drawn", ["packet", "link"])
@pytest.mark.parametrize("crashes", [False, True])
@pytest.mark.parametrize("key", [None, "k"])
@pytest.mark.parametrize("to", [-2, 4, 1 << 20])
def test_a_packet_to_nobody_is_an_error(
    make_world: type[World], drawn: str, crashes: bool, key: str | None, to: NodeId
) -> None:
    world, puppets = world_of(4, make_world, drawn=drawn)
    world.network.crashes = crashes
    with pytest.raises(KeyError, match=f"node 1 sends to node {to}, which does not exist"):
        ask(world, puppets, 1, Send(Parcel("x"), to, key=key))


def test_a_crash_drops_queued_packets_but_not_those_that_have_left() -> None:
    world, puppets = world_of(3)
    ask(world, puppets, 0, *(Send(Parcel(str(n)), 1) for n in range(5)))
    world.schedule(2_500, world.crash, 0)
    world.schedule(3_000, world.restart, 0, True)
    world.schedule(3_000, ask, world, puppets, 0, Send(Parcel("again"), 1))
    world.run()
    assert puppets[1].heard == [(102_000, 0, "0"), (103_000, 0, "1"), (105_000, 0, "again")]
    assert world.network.counters()["network_dropped"] == 3


@pytest.mark.parametrize("make_world", [World, WheelWorld])
def test_a_network_that_overrides_send_gets_every_packet(make_world: type[World]) -> None:
    class LosesEverySecond(Switched):
        sends = 0

        def send(self, sender: NodeId, send: Send) -> None:
            self.sends += 1
            if self.sends % 2:
                super().send(sender, send)

    world, puppets = world_of(2, make_world, LosesEverySecond)
    ask(world, puppets, 0, *(Send(Parcel(name), 1) for name in "abcd"))
    world.run()
    assert [name for _, _, name in puppets[1].heard] == ["a", "c"]


@pytest.mark.parametrize("make_world", [World, WheelWorld])
def test_a_node_that_enters_again_has_an_empty_queue(make_world: type[World]) -> None:
    world, puppets = world_of(2, make_world)
    ask(world, puppets, 0, *[Send(Parcel("earlier"), 1)] * 50)
    world.leave(0)
    world.enter(0)
    ask(world, puppets, 0, Send(Parcel("later"), 1))
    world.run()
    assert (102_000, 0, "later") in puppets[1].heard


def test_a_queued_keyed_packet_can_be_replaced_and_cancelled() -> None:
    world, puppets = world_of(3)
    ask(
        world,
        puppets,
        0,
        Send(Parcel("a"), 1),
        Send(Parcel("old"), 1, key="k"),
        Send(Parcel("gone"), 1, key="g"),
    )
    ask(world, puppets, 0, Send(Parcel("new"), 2, key="k"), CancelSend("g"))
    world.run()
    assert puppets[1].heard == [(102_000, 0, "a")]
    assert puppets[2].heard == [(103_000, 0, "new")]
    assert puppets[0].left == [(2_000, "k", True)]
    assert world.network.counters()["network_packets"] == 3, "one of them was cancelled in the queue"


def delays(drawn: str, **network: object) -> list[Instant]:
    world, puppets = world_of(
        3, propagation=Distribution("normal(0.1, 0.025)"), transmission=0, processing=0, drawn=drawn, **network
    )
    for _ in range(400):
        ask(world, puppets, 0, Send(Parcel("x"), 1, WIRED))
    world.run()
    return [at for at, _, _ in puppets[1].heard]


def test_propagation_is_drawn_for_each_packet_or_once_for_each_link() -> None:
    per_packet, per_link = delays("packet"), delays("link")
    assert len(set(per_packet)) > 350
    assert 95_000 < sum(per_packet) / 400 < 105_000
    assert len(set(per_link)) == 1
    assert max(delays("packet", longest=100_000)) == 100_000
    assert delays("packet") == per_packet
