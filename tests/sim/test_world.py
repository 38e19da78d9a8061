"""The simulator: order at one instant, crashes between effects, restarts, stalls, clocks and timers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precede.core.effects import Accept, CancelSend, Deliver, Effects, Persist, Send, SetTimer
from precede.core.identity import MessageId
from precede.core.messages import Message, Packet
from precede.core.node import Node, Saved
from precede.eventlog.recorder import Recorder
from precede.eventlog.sinks import TableSink
from precede.sim.clocks import Clock
from precede.sim.networks.partition import Partition
from precede.sim.networks.point_to_point import PointToPoint
from precede.sim.queue import LAST_PHASE, EventQueue
from precede.sim.randomness import Distribution
from precede.sim.world import World


class Note(Packet, frozen=True, gc=False):
    kind: ClassVar[str] = "note"
    text: str
    size_bytes: int = 1000
    control_bytes: int = 0
    control_entries: int = 0
    messages: int = 0


class Diary(Node):
    """Records every input and returns effects from a script."""

    def __init__(self, id: int, pages: list[tuple[Any, ...]], script: Callable[..., Effects]) -> None:
        self.id = id
        self.pages = pages
        self.script = script

    def start(self, now: int, saved: Saved) -> Effects:
        self.pages.append((now, self.id, "start", dict(saved)))
        return self.script(self.id, "start", now, saved)

    def broadcast(self, payload: bytes, now: int, to: Any = None, lifetime: Any = None) -> Effects:
        self.pages.append((now, self.id, "broadcast"))
        return self.script(self.id, "broadcast", now, payload)

    def receive(self, packet: Packet, sender: int, now: int, over: int) -> Effects:
        self.pages.append((now, self.id, "receive", packet.text, sender))  # type: ignore[attr-defined]
        return self.script(self.id, "receive", now, packet)

    def timer(self, key: Any, now: int) -> Effects:
        self.pages.append((now, self.id, "timer", key))
        return self.script(self.id, "timer", now, key)

    def sent(self, key: Any, now: int, ok: bool) -> Effects:
        self.pages.append((now, self.id, "sent", key, ok))
        return ()

    def link_up(self, peer: int, now: int, over: int) -> Effects:
        self.pages.append((now, self.id, "link_up", peer))
        return ()

    def link_down(self, peer: int, now: int, over: int) -> Effects:
        self.pages.append((now, self.id, "link_down", peer))
        return ()


def stage(
    script: Callable[..., Effects], nodes: int = 2, clocks: Any = None, **network: Any
) -> tuple[World, list[tuple[Any, ...]], TableSink]:
    pages: list[tuple[Any, ...]] = []
    sink = TableSink()
    recorder = Recorder("r", [str(node) for node in range(nodes)], sink)

    def make(id: int, incarnation: int, random: Random) -> Node:
        return Diary(id, pages, script)

    network.setdefault("delay", Distribution(0.01))
    world = World(1, nodes, make, PointToPoint(**network), recorder, clocks)
    world.network.begin()
    for node in range(nodes):
        world.enter(node)
    return world, pages, sink


def silent(*given: Any) -> Effects:
    return ()


def drained(queue: EventQueue) -> Iterator[Any]:
    """Takes all events that are due, one by one."""
    while queue.place < len(queue.current):
        queue.place += 1
        yield queue.current[queue.place - 1]


@given(st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 5)), max_size=60))
def test_events_come_by_instant_then_phase_then_order_of_scheduling(plan: list[tuple[int, int]]) -> None:
    queue = EventQueue()
    for place, (at, phase) in enumerate(plan):
        queue.push_phase(phase, at, lambda: None, (place,))
    seen = []
    while queue.open(1 << 60):
        seen.extend(event.arguments[0] for event in drained(queue))
    assert seen == [
        place for _, _, place in sorted((at, phase, place) for place, (at, phase) in enumerate(plan))
    ]
    assert len(queue) == 0


def test_events_inserted_into_a_long_bucket_are_in_order() -> None:
    queue = EventQueue()
    for place in range(20_000):
        queue.push(place % 900, lambda: None, (place,))
    seen = []
    while queue.open(1 << 60):
        for event in drained(queue):
            when, (place,) = event.when, event.arguments
            seen.append((when, place))
            if place in (0, 5, 7205, 19_000):
                queue.push(when >> 3, lambda: None, (place + 20_000,))
                queue.push(899, lambda: None, (place + 40_000,))
    assert seen == sorted(seen)
    assert len(seen) == queue.taken == 20_008


def test_events_scheduled_before_the_ring_reached_them_come_first() -> None:
    queue = EventQueue()
    late = 3_000_000
    queue.push(late, lambda: None, (1,))
    queue.push(late - 500_000, lambda: None, (0,))
    seen = []
    while queue.open(1 << 60):
        for event in drained(queue):
            seen.append(event.arguments[0])
            if event.arguments == (0,):
                queue.push(late, lambda: None, (2,))
                queue.push(late + 1_024_000 * 2, lambda: None, (3,))
    assert seen == [0, 1, 2, 3]


def test_an_event_beyond_the_limit_is_not_taken() -> None:
    queue = EventQueue()
    for at in (1, 2, 3):
        queue.push(at, lambda: None, (at,))
    assert not queue.open(0)
    assert queue.open(2 << 3)
    assert [event.arguments for event in drained(queue)] == [(1,), (2,), (3,)]
    assert not queue.open(1 << 60)


@pytest.mark.parametrize("after", range(6))
def test_a_crash_falls_between_two_effects_and_never_inside_an_atomic_step(after: int) -> None:
    message = Message(MessageId(0, 0, 1), b"m")

    def script(node: int, what: str, now: int, detail: Any) -> Effects:
        if what != "broadcast":
            return ()
        return [
            Persist("number", 1),
            Accept(message),
            Persist("done", 1),
            Deliver(message),
            Send(Note("hello"), 1),
        ]

    world, pages, sink = stage(script)
    world.crash(0, after)
    world.broadcast(0, b"m")
    world.run(1_000_000)
    crashed_by_itself = not world.is_up(0)
    world.crash(0)
    world.restart(0, keep=True)
    world.recorder.flush()
    kinds = [row["kind"] for row in sink.events().to_pylist() if row["node"] == "0"]
    saved = [page[3] for page in pages if page[1:3] == (0, "start")][-1]
    heard = [page for page in pages if page[1:3] == (1, "receive")]
    expected = [
        ({}, 0, 0, 0),
        ({"number": 1}, 0, 0, 0),
        ({"number": 1}, 1, 0, 0),
        ({"number": 1, "done": 1}, 1, 1, 0),
        ({"number": 1, "done": 1}, 1, 1, 1),
        ({"number": 1, "done": 1}, 1, 1, 1),
    ][after]
    assert (saved, kinds.count("broadcast"), kinds.count("delivered"), len(heard)) == expected
    assert crashed_by_itself == (after < 4)


def test_an_accept_is_recorded_once_and_lost_state_begins_a_new_incarnation() -> None:
    def script(node: int, what: str, now: int, detail: Any) -> Effects:
        return [Accept(Message(MessageId(0, 0, 1), b""))] if node == 0 else ()

    world, _, sink = stage(script)
    world.crash(0)
    world.restart(0, keep=True)
    world.crash(0)
    world.restart(0, keep=False)
    world.recorder.flush()
    rows = [row for row in sink.events().to_pylist() if row["node"] == "0"]
    events = [(row["kind"], row["incarnation"]) for row in rows]
    assert events == [
        ("started", 0),
        ("broadcast", 0),
        ("crashed", 0),
        ("started", 0),
        ("crashed", 0),
        ("started", 1),
        ("broadcast", 1),
    ]
    assert [row["step"] for row in rows] == list(range(len(rows)))


def test_only_the_last_timer_with_a_key_fires_and_by_the_nodes_clock() -> None:
    def script(node: int, what: str, now: int, detail: Any) -> Effects:
        if what == "start":
            return [SetTimer("x", now + 500_000), SetTimer("x", now + 1_000_000)]
        return ()

    clocks = {0: Clock(30_000_000, 200), 1: Clock(-30_000_000, -200)}
    world, pages, _ = stage(script, clocks=clocks)
    world.run()
    for node in (0, 1):
        began = next(page[0] for page in pages if page[1:3] == (node, "start"))
        fired = [page[0] for page in pages if page[1:3] == (node, "timer")]
        assert len(fired) == 1
        assert 0 <= fired[0] - (began + 1_000_000) <= 1


@given(st.integers(-(10**9), 10**9), st.integers(-1000, 1000), st.integers(0, 10**12), st.integers(0, 10**12))
def test_the_world_time_of_a_reading_is_the_first_with_it(
    offset: int, drift: int, reading: int, jumps_at: int
) -> None:
    clock = Clock(offset, drift, jumps_at, 10**9)
    at = clock.world_time(reading)
    assert clock.read(at) >= reading
    assert clock.read(at - 1) < reading or clock.read(at - 1) == clock.read(at)


def test_a_stalled_node_gets_its_inputs_afterwards_in_order() -> None:
    world, pages, _ = stage(silent)
    world.stall(1, 1_000_000)
    for text in "abc":
        world.network.send(0, Send(Note(text), 1))
    world.run()
    heard = [(page[0], page[3]) for page in pages if page[2] == "receive"]
    assert heard == [(1_000_000, "a"), (1_000_000, "b"), (1_000_000, "c")]


def test_a_queued_keyed_send_can_be_replaced_and_cancelled() -> None:
    world, pages, sink = stage(silent, bandwidth=1000.0, delay=Distribution(0))
    for text, key in (("first", "k1"), ("old", "k2"), ("gone", "k3")):
        world.network.send(0, Send(Note(text), 1, 0, key))
    world.network.send(0, Send(Note("new"), 1, 0, "k2"))
    world.carry_out(0, [CancelSend("k3")], 0)
    world.run()
    assert [page[3] for page in pages if page[2] == "receive"] == ["first", "new"]
    assert [page[3:] for page in pages if page[2] == "sent"] == [("k1", True), ("k2", True)]
    world.recorder.flush()
    assert [row["kind"] for row in sink.events().to_pylist()].count("sent") == 2


def test_a_partition_drops_packets_and_reports_links() -> None:
    cut = Partition(100_000, 200_000, ((0,),))
    world, pages, _ = stage(silent, partitions=[cut], link_events=True)
    for at in (50_000, 95_000, 150_000, 250_000):
        world.schedule(at, world.network.send, 0, Send(Note(str(at)), 1))
    world.run()
    assert [page[3] for page in pages if page[2] == "receive"] == ["50000", "250000"]
    events = [page[:3] for page in pages if page[1] == 0 and page[2].startswith("link") and page[0]]
    assert events == [(100_000, 0, "link_down"), (200_000, 0, "link_up")]


def test_only_the_links_that_a_partition_cuts_are_reported() -> None:
    cut = Partition(100_000, 200_000, ((0,),))
    world, pages, _ = stage(silent, nodes=3, partitions=[cut], link_events=True)
    world.run()
    downs = [(page[1], page[3]) for page in pages if page[2] == "link_down"]
    assert downs == [(0, 1), (0, 2), (1, 0), (2, 0)]


def test_a_healed_network_has_no_partition_any_more() -> None:
    cut = Partition(100_000, 900_000, ((0,),))
    world, pages, _ = stage(silent, partitions=[cut], link_events=True)
    world.schedule(150_000, world.network.send, 0, Send(Note("cut"), 1))
    world.schedule(200_000, world.network.heal)
    world.schedule(250_000, world.network.send, 0, Send(Note("heard"), 1))
    world.run()
    assert [page[3] for page in pages if page[2] == "receive"] == ["heard"]
    assert [page[:3] for page in pages if page[1] == 0 and page[2].startswith("link") and page[0]] == [
        (100_000, 0, "link_down"),
        (200_000, 0, "link_up"),
    ]


def test_a_one_way_partition_drops_only_the_packets_of_its_groups() -> None:
    cut = Partition(0, 200_000, ((0,),), one_way=True)
    world, pages, _ = stage(silent, partitions=[cut])
    world.network.send(0, Send(Note("lost"), 1))
    world.network.send(1, Send(Note("heard"), 0))
    world.run()
    assert [page[3] for page in pages if page[2] == "receive"] == ["heard"]


def test_loss_and_duplication_have_their_probabilities() -> None:
    world, pages, _ = stage(silent, loss=0.3, duplication=0.2)
    for _ in range(4000):
        world.network.send(0, Send(Note("x"), 1))
    world.run()
    counters = world.network.counters()
    assert abs(counters["network_lost"] - 1200) < 120
    heard = sum(page[2] == "receive" for page in pages)
    assert heard == 4000 - counters["network_lost"] + counters["network_duplicated"]
    assert abs(counters["network_duplicated"] - 0.2 * 0.7 * 4000) < 90


def test_rows_keep_every_column_through_a_flush() -> None:
    def script(node: int, what: str, now: int, detail: Any) -> Effects:
        if what != "broadcast":
            return ()
        message = Message(MessageId(0, 0, 1), b"m")
        return [Accept(message, (1,), now + 5), Deliver(message), Send(Note("n"), 1)]

    world, _, sink = stage(script, clocks={0: Clock(7), 1: Clock(0)})
    world.broadcast(0, b"m")
    world.run()
    world.recorder.flush()
    table: pa.Table = sink.events()
    rows = {(row["node"], row["kind"]): row for row in table.to_pylist()}
    born = rows["0", "broadcast"]
    assert (born["destinations"], born["deadline_us"], born["clock_us"], born["at_us"]) == (["1"], 12, 7, 0)
    sent, got = rows["0", "sent"], rows["1", "packet_received"]
    assert (sent["peer"], sent["packet_kind"], sent["packet_bytes"], sent["medium"]) == (
        "1",
        "note",
        1000,
        "radio",
    )
    assert (got["peer"], got["at_us"], got["wire_bytes"], got["message_source"]) == ("0", 10_000, None, None)
    assert rows["0", "delivered"]["message_number"] == 1


def test_a_node_that_sets_immediate_timers_without_end_is_an_error() -> None:
    def script(id: int, what: str, now: int, given: Any) -> Effects:
        if what == "timer" or (what == "start" and id == 1):
            return [SetTimer("again", max(now, 20_000))]
        return ()

    world, _, _ = stage(script)
    with pytest.raises(RuntimeError, match=r"node 1 has set 1,000,000 timers .*'again'.* stands still at 20ms"):
        world.run()


def test_immediate_timers_are_no_error_while_time_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("precede.sim.node_effects.MOST_TIMERS", 3)
    fired: list[int] = []

    def script(id: int, what: str, now: int, given: Any) -> Effects:
        fired.append(now)
        return [SetTimer("again", now if len(fired) % 3 else now + 1)] if len(fired) < 3000 else ()

    world, _, _ = stage(script, nodes=1)
    world.run()
    assert (len(fired), fired[-1]) == (3000, 999)


@pytest.mark.parametrize("fifo", [True, False])
def test_packets_of_a_link_overtake_each_other_only_without_fifo(fifo: bool) -> None:
    notes = [Note(str(number)) for number in range(30)]

    def script(id: int, what: str, *rest: Any) -> Effects:
        return [Send(note, 1) for note in notes] if what == "broadcast" else ()

    world, pages, _ = stage(script, delay=Distribution("uniform(0, 1)"), fifo=fifo)
    world.schedule(10, world.broadcast, 0, b"")
    world.run(10_000_000)
    arrived = [page[3] for page in pages if page[2] == "receive"]
    assert sorted(arrived, key=int) == [note.text for note in notes]
    assert (arrived == [note.text for note in notes]) is fifo


def test_a_run_includes_all_phases_of_its_last_instant() -> None:
    world, _, _ = stage(silent)
    happened: list[int] = []
    for at in (10, 11):
        for phase in (0, LAST_PHASE):
            world.schedule_phase(phase, at, happened.append, at)
    world.run(10)
    assert happened == [10, 10]


def test_an_event_between_the_present_one_and_the_next_comes_first_however_near_they_are() -> None:
    queue = EventQueue()
    for at in (5_200, 5_900, 7_000):
        queue.push(at, lambda: None, (at,))
    assert queue.open(1 << 60)
    queue.place += 1
    queue.push(5_500, lambda: None, (5_500,))
    seen = []
    while queue.open(1 << 60):
        seen += [event.arguments[0] for event in drained(queue)]
    assert seen == [5_500, 5_900, 7_000]
