"""The contention channel: collisions against Bianchi's formula (IEEE JSAC 18(3), 2000), and interference."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import Any, ClassVar

import pytest

from precede.core.effects import RADIO, Send
from precede.core.identity import NEIGHBOURS
from precede.core.messages import Packet
from precede.sim.networks.contention import ContentionRadio, _Channel
from precede.sim.networks.lossy_radio import LossyRadio
from precede.sim.networks.radio import FrameQueue
from precede.sim.randomness import Distribution, Generators


class Frame(Packet, frozen=True, gc=False):
    kind: ClassVar[str] = "frame"
    size_bytes: int = 148
    control_bytes: ClassVar[int] = 0
    control_entries: ClassVar[int] = 0
    messages: ClassVar[int] = 0


class Bench:
    """A small simulator with cells: a heap, positions, and counts of receptions."""

    def __init__(self, seed: int, stations: int, cell: list[int], place: list[tuple[float, float]]) -> None:
        self.now = 0
        self.generators = Generators(seed)
        self.world = self
        self.stations = stations
        self.cell = cell
        self.place = place
        self.hosts_in: list[dict[int, None]] = [{} for _ in range(stations)]
        for node, station in enumerate(cell[stations:], stations):
            self.hosts_in[station][node] = None
        self.heap: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self.order = count()
        self.heard: list[tuple[int, int]] = []
        self.refill: Callable[[int], None] = lambda node: None

    def schedule(self, at: int, function: Callable[..., None], *arguments: Any) -> None:
        heappush(self.heap, (at, next(self.order), function, arguments))

    def transmitted(self, node: int, packet: Packet, to: int, over: int) -> None:
        pass

    def sent(self, node: int, key: Any, ok: bool) -> None:
        self.refill(node)

    def is_up(self, node: int) -> bool:
        return True

    def receive(self, to: int, packet: Packet, sender: int, over: int) -> None:
        self.heard.append((to, sender))

    def run(self, until: int) -> None:
        while self.heap and self.heap[0][0] <= until:
            self.now, _, function, arguments = heappop(self.heap)
            function(*arguments)


def collision_probability(nodes: int, retries: int, frames: int, seed: int) -> float:
    """The share of frames that collide when so many hosts always have a frame for their station."""
    bench = Bench(seed, 1, [0] * (nodes + 1), [(0.0, 0.0)] * (nodes + 1))
    radio = ContentionRadio(1e6, 120.0, retries)
    bench.refill = lambda node: radio.send(node, Send(Frame(), 0, RADIO, node))
    radio.attach(bench, nodes + 1)  # type: ignore[arg-type]
    for node in range(1, nodes + 1):
        bench.refill(node)
    while radio.counters()["radio_frames"] < frames:
        bench.run(bench.heap[0][0])
    counts = radio.counters()
    return counts["radio_collided"] / counts["radio_frames"]


def bianchi(nodes: int, retries: int, window: int = 32) -> float:
    """The fixed point of tau (a node transmits in a slot) and p (another node does too)."""

    def tau(p: float) -> float:
        # A retry limit ends the geometric series; after it the window is the first one again.
        stages = range(retries + 1)
        weights = [p**stage for stage in stages]
        backoff = sum(
            weight * (window * 2**stage + 1) / 2 for stage, weight in zip(stages, weights, strict=True)
        )
        return sum(weights) / backoff

    low, high = 0.0, 1.0
    for _ in range(100):
        p = (low + high) / 2
        if 1 - (1 - tau(p)) ** (nodes - 1) > p:
            low = p
        else:
            high = p
    return low


@pytest.mark.parametrize("retries", [0, 5])
@pytest.mark.parametrize("nodes", [2, 5, 10, 20, 40])
def test_collisions_agree_with_the_formula(nodes: int, retries: int) -> None:
    measured = collision_probability(nodes, retries, 12_000, seed=1)
    assert measured == pytest.approx(bianchi(nodes, retries), abs=0.03)


def test_a_single_sender_never_collides() -> None:
    bench = Bench(1, 1, [0, 0], [(0.0, 0.0)] * 2)
    radio = ContentionRadio(1e6, 120.0)
    bench.refill = lambda node: radio.send(node, Send(Frame(), 0, RADIO, node))
    radio.attach(bench, 2)  # type: ignore[arg-type]
    bench.refill(1)
    bench.run(10_000_000)
    assert radio.counters()["radio_collided"] == 0
    # 148 bytes are 1184 us on the air; DIFS 50 us and 15.5 slots of 20 us on average come before.
    assert len(bench.heard) == pytest.approx(10_000_000 / (1184 + 50 + 310), rel=0.02)


def test_only_a_transmitter_of_another_cell_in_range_interferes() -> None:
    """Stations 200 m apart; host 2 stands between them, host 3 behind its own station."""
    bench = Bench(1, 2, [0, 1, 0, 0], [(0.0, 0.0), (200.0, 0.0), (100.0, 0.0), (-100.0, 0.0)])
    radio = ContentionRadio(1e6, 120.0)
    bench.refill = lambda node: radio.send(node, Send(Frame(), NEIGHBOURS, RADIO, node))
    radio.attach(bench, 4)  # type: ignore[arg-type]
    for station in (0, 1):
        bench.refill(station)
    bench.run(5_000_000)
    heard = [to for to, _ in bench.heard]
    assert heard.count(3) > 2000
    assert heard.count(2) < heard.count(3) / 4
    assert radio.counters()["radio_interfered"] == heard.count(3) - heard.count(2)
    radio.heal()
    bench.heard.clear()
    bench.run(6_000_000)
    heard = [to for to, _ in bench.heard]
    assert heard.count(2) == heard.count(3)


def test_a_keyed_frame_replaces_the_queued_one() -> None:
    queue = FrameQueue()
    for send in (Send(Frame(1), 0, RADIO, "a"), Send(Frame(2), 0), Send(Frame(3), 0, RADIO, "a")):
        queue.put(send)
    queue.put(Send(Frame(4), 0, RADIO, "b"))
    queue.remove("b")
    queue.put_back(Send(Frame(5), 0, RADIO, "a"))
    assert [queue.take().packet.size_bytes for _ in range(len(queue))] == [3, 2]


def test_a_single_sender_begins_at_slots_that_its_generator_draws() -> None:
    """Each frame waits for its back-off of 0 to 31 slots, then the channel is idle for 50 us."""
    bench = Bench(1, 1, [0, 0], [(0.0, 0.0)] * 2)
    radio = ContentionRadio(1e6, 120.0)
    begins: list[int] = []
    bench.transmitted = lambda *_: begins.append(bench.now)  # type: ignore[method-assign]
    bench.refill = lambda node: radio.send(node, Send(Frame(), 0, RADIO, node))
    radio.attach(bench, 2)  # type: ignore[arg-type]
    bench.refill(1)
    bench.run(400_000)
    draws = Generators(1).numpy("backoff", 1).integers(0, 1024, 200).tolist()
    at, expected = 0, []
    for draw in draws:
        at += draw * 32 // 1024 * 20
        expected.append(at)
        at += 148 * 8 + 50
    assert begins[:200] == expected


def test_a_node_whose_frame_was_cancelled_while_it_waited_contends_again_for_the_next_one() -> None:
    bench = Bench(1, 1, [0, 0, 0], [(0.0, 0.0)] * 3)
    radio = ContentionRadio(1e6, 120.0)
    radio.attach(bench, 3)  # type: ignore[arg-type]
    radio.send(1, Send(Frame(), 0, RADIO, "k"))
    radio.cancel(1, "k")
    bench.run(1_000_000)
    assert bench.heard == []
    radio.send(1, Send(Frame(), 0, RADIO, "k"))
    bench.run(2_000_000)
    assert bench.heard == [(0, 1)]


def test_a_lossy_radio_says_of_a_keyed_frame_that_it_left() -> None:
    bench = Bench(1, 1, [0, 0], [(0.0, 0.0)] * 2)
    bench.soon = lambda function, *arguments: function(*arguments)  # type: ignore[attr-defined]
    left: list[tuple[int, str, bool]] = []
    bench.sent = lambda *given: left.append(given)  # type: ignore[method-assign, assignment]
    radio = LossyRadio(Distribution(0.001), 1.0)
    radio.attach(bench, 2)  # type: ignore[arg-type]
    radio.send(1, Send(Frame(), 0, RADIO))
    assert left == []
    radio.send(1, Send(Frame(), 0, RADIO, "k"))
    radio.send(1, Send(Frame(), 7, RADIO, "elsewhere"))
    assert left == [(1, "k", True), (1, "elsewhere", False)]


def test_a_transmission_that_ends_when_another_begins_does_not_disturb_it() -> None:
    channel, other = _Channel(0), _Channel(1)
    channel.near.append(other)
    other.aired.extend([(0, 10, (1.0, 1.0)), (5, 11, (2.0, 2.0)), (20, 30, (3.0, 3.0))])
    channel.longest = other.longest = 10
    assert channel.noise(10, 20) == [(2.0, 2.0)]
