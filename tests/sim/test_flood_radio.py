"""The flood radio and the motion of its nodes: reach, air time, collisions, loss, queues, random waypoints."""

from __future__ import annotations

from itertools import islice, pairwise
from math import dist, hypot
from random import Random
from typing import Any, ClassVar

import pytest

from precede.core.effects import RADIO, Key, Send
from precede.core.identity import NEIGHBOURS
from precede.core.instants import SECOND
from precede.core.messages import Packet
from precede.core.node import Node
from precede.eventlog.recorder import Recorder
from precede.eventlog.sinks import NoSink
from precede.sim.networks.flood import FloodRadio
from precede.sim.networks.motion import (
    Motion,
    connected,
    grid,
    random_waypoints,
    scattered,
    scattered_connected,
)
from precede.sim.randomness import Distribution, Generators
from precede.sim.world import World


class Word(Packet, frozen=True, gc=False):
    """A packet of a thousand bytes with a text."""

    kind: ClassVar[str] = "word"
    text: str
    size_bytes: int = 1000
    control_bytes: int = 0
    control_entries: int = 0
    messages: int = 0


class Listener(Node):
    """A node that records the packets that it receives, and those of its own that have departed."""

    def __init__(
        self, node: int, received: list[tuple[int, int, str]], departed: list[tuple[int, Key, bool]]
    ) -> None:
        self.node, self.received, self.departed = node, received, departed

    def receive(self, packet: Packet, sender: int, now: int, over: Any) -> Any:
        assert isinstance(packet, Word)
        self.received.append((now, self.node, packet.text))
        return ()

    def sent(self, key: Key, now: int, ok: bool) -> Any:
        self.departed.append((now, key, ok))
        return ()


class Air:
    """Some listeners and a radio; `send` transmits at an instant in milliseconds."""

    def __init__(self, places: list[tuple[float, float]], seed: int = 1, **settings: Any) -> None:
        self.received: list[tuple[int, int, str]] = []
        self.departed: list[tuple[int, Key, bool]] = []
        settings.setdefault("delay", Distribution(0))
        self.radio = FloodRadio(Motion(places), reach=100.0, **settings)
        names = [str(node) for node in range(len(places))]
        self.world = World(
            seed,
            len(places),
            lambda node, incarnation, random: Listener(node, self.received, self.departed),
            self.radio,
            Recorder("radio", names, NoSink()),
        )
        for node in range(len(places)):
            self.world.enter(node)

    def send(self, node: int, at_ms: int, text: str, key: str | None = None, to: int = NEIGHBOURS) -> None:
        self.world.schedule(at_ms * 1000, self.radio.send, node, Send(Word(text), to, RADIO, key))

    def run(self) -> list[tuple[int, int, str]]:
        self.world.run(100 * SECOND)
        return [(at // 1000, node, text) for at, node, text in self.received]


LINE = [(0.0, 0.0), (90.0, 0.0), (180.0, 0.0), (280.0, 0.0)]


def test_all_nodes_within_reach_receive_a_transmission_and_no_others() -> None:
    air = Air(LINE)
    air.send(1, 5, "hello")
    air.send(2, 6, "exactly at the edge")
    assert air.run() == [
        (5, 0, "hello"),
        (5, 2, "hello"),
        (6, 1, "exactly at the edge"),
        (6, 3, "exactly at the edge"),
    ]
    assert air.radio.counters()["network_transmissions"] == 2


def test_a_transmission_takes_its_air_time_and_the_next_one_waits() -> None:
    air = Air(LINE, bandwidth=100_000)
    air.send(0, 0, "first")
    air.send(0, 1, "second")
    assert air.run() == [(10, 1, "first"), (20, 1, "second")]


def test_a_keyed_packet_is_replaced_while_it_waits_and_not_after_it_left() -> None:
    air = Air(LINE, bandwidth=100_000)
    air.send(0, 0, "on the air", key="a")
    air.send(0, 1, "old", key="b")
    air.send(0, 2, "new", key="b")
    air.send(0, 3, "too late to replace", key="a")
    assert air.run() == [(10, 1, "on the air"), (20, 1, "new"), (30, 1, "too late to replace")]
    assert [(at // 1000, key, ok) for at, key, ok in air.departed] == [
        (0, "a", True),
        (10, "b", True),
        (20, "a", True),
    ]


def test_two_transmissions_at_once_are_both_lost_even_if_the_senders_do_not_hear_each_other() -> None:
    """0 and 2 are not within reach of each other; 1 is within reach of both, 3 only of 2."""
    air = Air(LINE, bandwidth=100_000, collisions=True)
    air.send(0, 0, "left")
    air.send(2, 5, "right")
    air.send(0, 50, "alone")
    assert air.run() == [(15, 3, "right"), (60, 1, "alone")]
    assert air.radio.counters()["network_collided"] == 2


def test_a_node_receives_nothing_while_it_sends() -> None:
    air = Air(LINE[:2], bandwidth=100_000, collisions=True)
    air.send(0, 0, "a")
    air.send(1, 5, "b")
    assert air.run() == []


def test_with_carrier_sense_a_neighbour_waits_for_the_channel() -> None:
    air = Air(LINE[:2], bandwidth=100_000, collisions=True, carrier_sense=True)
    air.send(0, 0, "a")
    air.send(1, 5, "b")
    assert [(node, text) for _, node, text in air.run()] == [(1, "a"), (0, "b")]
    backoff = Distribution("uniform(0, 0.002)").draws(Generators(1), "backoff", 1).next()
    assert [at for at, _, _ in air.received] == [10_000, 10_000 + 1 + backoff + 10_000]


def test_loss_is_drawn_per_link_and_does_not_depend_on_the_packet() -> None:
    received = []
    for prefix in ("aaaa", "bbbb"):
        air = Air([(0.0, 0.0), (1.0, 0.0), (2.0, 0.0)], loss=0.3)
        for number in range(400):
            air.send(0, number, f"{prefix}{number}")
        received.append([(at, node) for at, node, _ in air.run()])
    assert received[0] == received[1]
    assert 0.65 < len(received[0]) / 800 < 0.75
    assert {node for _, node in received[0]} == {1, 2}
    assert air.radio.counters()["network_lost"] == 800 - len(received[0])


def test_only_its_destination_receives_a_packet_to_one_node() -> None:
    air = Air(LINE[:3])
    air.send(1, 0, "psst", to=2)
    assert air.run() == [(0, 2, "psst")]


def test_on_the_grid_of_the_paper_only_adjacent_nodes_are_within_reach() -> None:
    places = grid(10, 10, 70.0)
    motion = Motion(places)
    for node in range(100):
        column, row = node % 10, node // 10
        adjacent = [(column + 1, row), (column - 1, row), (column, row + 1), (column, row - 1)]
        expected = sorted(r * 10 + c for c, r in adjacent if 0 <= c < 10 and 0 <= r < 10)
        assert motion.in_range(node, 88.0, 0) == expected


def test_a_node_walks_its_waypoints_at_one_speed_without_a_pause() -> None:
    legs = list(islice(random_waypoints((10.0, 20.0), 400.0, 300.0, 7.0, Random(3)), 50))
    assert (legs[0].x0, legs[0].y0, legs[0].start) == (10.0, 20.0, 0)
    for before, after in pairwise(legs):
        assert (before.x1, before.y1, before.end) == (after.x0, after.y0, after.start)
    for leg in legs:
        way = hypot(leg.x1 - leg.x0, leg.y1 - leg.y0)
        assert way / ((leg.end - leg.start) / SECOND) == pytest.approx(7.0, rel=1e-4)
        assert 0 <= leg.x1 <= 400
        assert 0 <= leg.y1 <= 300


def test_the_nodes_in_range_are_exact_while_all_move() -> None:
    random = Random(5)
    start = scattered(12, 300.0, 300.0, random)
    legs = {
        node: list(islice(random_waypoints(start[node], 300, 300, 20.0, Random(node)), 40)) for node in range(9)
    }
    motion = Motion(start, {node: iter(walked) for node, walked in legs.items()})

    def place(node: int, at: int) -> tuple[float, float]:
        if node not in legs:
            return start[node]
        leg = next(leg for leg in legs[node] if leg.start <= at < leg.end)
        share = (at - leg.start) / (leg.end - leg.start)
        return leg.x0 + share * (leg.x1 - leg.x0), leg.y0 + share * (leg.y1 - leg.y0)

    for at in sorted(random.randrange(100 * SECOND) for _ in range(200)):
        node = random.randrange(12)
        expected = [
            other for other in range(12) if other != node and dist(place(node, at), place(other, at)) <= 100.0
        ]
        assert motion.in_range(node, 100.0, at) == expected
        assert motion.place(node, at) == pytest.approx(place(node, at))


def test_scattered_places_are_drawn_until_they_are_connected() -> None:
    places = scattered_connected(30, 400.0, 400.0, 110.0, Generators(4))
    assert connected(places, 110.0)
    assert not connected([(0.0, 0.0), (200.0, 0.0)], 110.0)
