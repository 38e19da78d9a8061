"""The flood radio and who is where: reach, air time, collisions, loss, queues, random waypoints."""

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
from precede.sim.randomness import Distribution, Streams
from precede.sim.world import World


class Word(Packet, frozen=True, gc=False):
    """A packet of a thousand bytes that says something."""

    kind: ClassVar[str] = "word"
    text: str
    size_bytes: int = 1000
    control_bytes: int = 0
    control_entries: int = 0
    messages: int = 0


class Listener(Node):
    """Notes what it hears and what has left."""

    def __init__(self, node: int, heard: list[tuple[int, int, str]], left: list[tuple[int, Key, bool]]) -> None:
        self.node, self.heard, self.left = node, heard, left

    def receive(self, packet: Packet, sender: int, now: int, over: Any) -> Any:
        assert isinstance(packet, Word)
        self.heard.append((now, self.node, packet.text))
        return ()

    def sent(self, key: Key, now: int, ok: bool) -> Any:
        self.left.append((now, key, ok))
        return ()


class Air:
    """Some listeners and a radio; `say` at an instant in milliseconds."""

    def __init__(self, places: list[tuple[float, float]], seed: int = 1, **settings: Any) -> None:
        self.heard: list[tuple[int, int, str]] = []
        self.left: list[tuple[int, Key, bool]] = []
        settings.setdefault("delay", Distribution(0))
        self.radio = FloodRadio(Motion(places), reach=100.0, **settings)
        names = [str(node) for node in range(len(places))]
        self.world = World(
            seed,
            len(places),
            lambda node, incarnation, random: Listener(node, self.heard, self.left),
            self.radio,
            Recorder("radio", names, NoSink()),
        )
        for node in range(len(places)):
            self.world.enter(node)

    def say(self, node: int, at_ms: int, text: str, key: str | None = None, to: int = NEIGHBOURS) -> None:
        self.world.schedule(at_ms * 1000, self.radio.send, node, Send(Word(text), to, RADIO, key))

    def run(self) -> list[tuple[int, int, str]]:
        self.world.run(100 * SECOND)
        return [(at // 1000, node, text) for at, node, text in self.heard]


LINE = [(0.0, 0.0), (90.0, 0.0), (180.0, 0.0), (280.0, 0.0)]


def test_one_transmission_is_heard_by_all_within_reach_and_nobody_else() -> None:
    air = Air(LINE)
    air.say(1, 5, "hello")
    air.say(2, 6, "exactly at the edge")
    assert air.run() == [
        (5, 0, "hello"),
        (5, 2, "hello"),
        (6, 1, "exactly at the edge"),
        (6, 3, "exactly at the edge"),
    ]
    assert air.radio.counters()["network_transmissions"] == 2


def test_a_transmission_takes_its_air_time_and_the_next_one_waits() -> None:
    air = Air(LINE, bandwidth=100_000)
    air.say(0, 0, "first")
    air.say(0, 1, "second")
    assert air.run() == [(10, 1, "first"), (20, 1, "second")]


def test_a_keyed_packet_that_still_waits_is_replaced_and_one_that_left_is_not() -> None:
    air = Air(LINE, bandwidth=100_000)
    air.say(0, 0, "on the air", key="a")
    air.say(0, 1, "old", key="b")
    air.say(0, 2, "new", key="b")
    air.say(0, 3, "too late to replace", key="a")
    assert air.run() == [(10, 1, "on the air"), (20, 1, "new"), (30, 1, "too late to replace")]
    assert [(at // 1000, key, ok) for at, key, ok in air.left] == [
        (0, "a", True),
        (10, "b", True),
        (20, "a", True),
    ]


def test_who_hears_two_at_once_loses_both_also_from_a_hidden_sender() -> None:
    """0 and 2 do not hear each other; 1 does both. 3 hears 2 alone."""
    air = Air(LINE, bandwidth=100_000, collisions=True)
    air.say(0, 0, "left")
    air.say(2, 5, "right")
    air.say(0, 50, "alone")
    assert air.run() == [(15, 3, "right"), (60, 1, "alone")]
    assert air.radio.counters()["network_collided"] == 2


def test_who_sends_does_not_hear() -> None:
    air = Air(LINE[:2], bandwidth=100_000, collisions=True)
    air.say(0, 0, "a")
    air.say(1, 5, "b")
    assert air.run() == []


def test_with_carrier_sense_a_neighbour_waits_for_the_channel() -> None:
    air = Air(LINE[:2], bandwidth=100_000, collisions=True, carrier_sense=True)
    air.say(0, 0, "a")
    air.say(1, 5, "b")
    assert [(node, text) for _, node, text in air.run()] == [(1, "a"), (0, "b")]


def test_loss_is_drawn_per_link_and_does_not_see_the_packet() -> None:
    heard = []
    for words in ("aaaa", "bbbb"):
        air = Air([(0.0, 0.0), (1.0, 0.0), (2.0, 0.0)], loss=0.3)
        for number in range(400):
            air.say(0, number, f"{words}{number}")
        heard.append([(at, node) for at, node, _ in air.run()])
    assert heard[0] == heard[1]
    assert 0.65 < len(heard[0]) / 800 < 0.75
    assert {node for _, node in heard[0]} == {1, 2}


def test_a_packet_to_one_node_is_heard_by_that_node_only() -> None:
    air = Air(LINE[:3])
    air.say(1, 0, "psst", to=2)
    assert air.run() == [(0, 2, "psst")]


def test_on_the_papers_grid_only_adjacent_nodes_hear_each_other() -> None:
    places = grid(10, 10, 70.0)
    motion = Motion(places)
    for node in range(100):
        column, row = node % 10, node // 10
        beside = [(column + 1, row), (column - 1, row), (column, row + 1), (column, row - 1)]
        known = sorted(r * 10 + c for c, r in beside if 0 <= c < 10 and 0 <= r < 10)
        assert motion.in_range(node, 88.0, 0) == known


def test_waypoints_are_walked_at_one_speed_without_a_pause() -> None:
    legs = list(islice(random_waypoints((10.0, 20.0), 400.0, 300.0, 7.0, Random(3)), 50))
    assert (legs[0].x0, legs[0].y0, legs[0].start) == (10.0, 20.0, 0)
    for before, after in pairwise(legs):
        assert (before.x1, before.y1, before.end) == (after.x0, after.y0, after.start)
    for leg in legs:
        way = hypot(leg.x1 - leg.x0, leg.y1 - leg.y0)
        assert way / ((leg.end - leg.start) / SECOND) == pytest.approx(7.0, rel=1e-4)
        assert 0 <= leg.x1 <= 400
        assert 0 <= leg.y1 <= 300


def test_who_is_in_range_while_all_move_is_exact() -> None:
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
        known = [
            other for other in range(12) if other != node and dist(place(node, at), place(other, at)) <= 100.0
        ]
        assert motion.in_range(node, 100.0, at) == known
        assert motion.place(node, at) == pytest.approx(place(node, at))


def test_scattered_places_are_drawn_until_connected() -> None:
    places = scattered_connected(30, 400.0, 400.0, 110.0, Streams(4))
    assert connected(places, 110.0)
    assert not connected([(0.0, 0.0), (200.0, 0.0)], 110.0)
