"""Timed transfers over contacts: `TimedWorld` gives the rows, gauges and counters of the shared path."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from precede.core.identity import MessageId
from precede.core.messages import Message
from precede.core.node import Context
from precede.experiments.contact_worlds import choosing
from precede.experiments.instant_contacts.world import InstantWorld
from precede.experiments.scenario import read_scenario
from precede.experiments.timed_contacts.carried import Carried, Catalogue
from precede.experiments.timed_contacts.carrier import Carrier
from precede.experiments.timed_contacts.links import Link
from precede.experiments.timed_contacts.marks import Marks
from precede.experiments.timed_contacts.transfers import TransferQueue
from precede.experiments.timed_contacts.world import TimedWorld
from precede.protocols import registry
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.epidemic.options import EpidemicOptions
from precede.protocols.layered.node import LayeredNode
from precede.protocols.layered.parsed_envelopes import NEVER
from precede.sim.hosted_node import HostedNode
from precede.sim.queue import Event
from precede.sim.world import World
from tests.experiments.contact_runs import SHARED_PATH_TOO, assert_same, world_of, write_comings_and_goings

TIMED = {"overhead": "100ms", "lifetime": "90s", "end": "8min"}
RUNS = {
    "as in the paper": (
        "delta_causal",
        {**TIMED, "order": "random", "lazy_expiry": "true", "prune": "false"},
    ),
    "bandwidth": ("delta_causal", {**TIMED, "overhead": "0s", "bandwidth": "1e6", "sweep": "0s"}),
    "jitter": ("delta_causal", {**TIMED, "overhead": "0s", "jitter": "exponential(0.1)", "order": "random"}),
    "long transfers": ("delta_causal", {**TIMED, "overhead": "2s", "order": "newest"}),
    "oldest first": ("delta_causal", {**TIMED, "order": "oldest", "log": "messages"}),
    "by source": ("delta_causal", {**TIMED, "order": "per_source", "gauges": "none"}),
    "no lifetime": ("causal_barrier", {"overhead": "100ms", "end": "6min", "order": "random"}),
    "another rule": ("hash_dag", {"overhead": "100ms", "end": "6min"}),
    "mixed lifetimes": ("delta_causal", {**TIMED, "workload.lifetime": "uniform(10, 200)", "order": "random"}),
}


@pytest.fixture(autouse=True)
def also_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "is_compiled", lambda module: True)


@pytest.mark.parametrize("name", RUNS)
def test_the_rows_are_those_of_the_shared_path(name: str) -> None:
    protocol, settings = RUNS[name]
    rows, _ = assert_same(read_scenario("pedestrians", protocol, 5, settings), TimedWorld)
    assert rows.num_rows > 5_000


@pytest.mark.parametrize("seed", range(4))
def test_nodes_that_come_back_and_links_that_end_during_a_transfer(tmp_path: Path, seed: int) -> None:
    settings = {"overhead": "300ms", "every": "4s", "order": ("random", "received")[seed % 2]}
    if seed & 2:
        settings["workload.lifetime"] = "uniform(1, 80)"
    run = read_scenario(str(write_comings_and_goings(tmp_path, seed)), None, seed, settings)
    _, counters = assert_same(run, TimedWorld)
    assert counters["transfers_cut"] > 40


@pytest.mark.parametrize(
    "settings",
    [
        {"jitter": "uniform(0, 0.0000009)"},
        {"overhead": "100ms", "share": "node"},
        {"overhead": "100ms", "summaries": "timed"},
        *({"overhead": "100ms", key: value} for key, value in SHARED_PATH_TOO.items() if key != "share"),
    ],
    ids=str,
)
def test_other_runs_take_the_shared_path(settings: dict[str, str]) -> None:
    assert world_of(settings) not in (TimedWorld, InstantWorld)


def test_plain_python_takes_the_shared_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "is_compiled", lambda module: False)
    assert world_of({"overhead": "100ms"}) is World


def test_a_queue_gives_smaller_ranks_first_and_equal_ones_in_order() -> None:
    random = Random(1)
    node = registry.make("unordered", "node", Context(0, (0, 1), {}, random))
    assert isinstance(node, LayeredNode)
    carrier = Carrier(EpidemicOptions(), random, node.ordering)
    link = Link(carrier, carrier)
    queued: list[tuple[int, int, int]] = []
    for step in range(2_000):
        if random.random() < 0.6:
            rank, serial = random.randrange(-20, 20), random.randrange(1 << 31)
            queued.append((rank, step, serial))
            link.enqueue(rank, serial)
        elif queued:
            first = min(queued)
            queued.remove(first)
            assert link.take() == first[2]
    for _, _, serial in sorted(queued):
        assert link.take() == serial
    assert link.take() == -1


def test_marks_forget_what_is_too_low_when_they_need_room() -> None:
    marks = Marks(0, 0)
    for serial in range(0, 3_000, 3):
        marks.add(serial, max(0, serial - 100))
    assert [serial for serial in range(2_900, 3_000) if marks.has(serial)] == list(range(2_901, 3_000, 3))
    marks.remove(2_997)
    marks.remove(5_000)
    assert not marks.has(2_997)
    assert not marks.has(5_000)
    assert not marks.has(-1)


def test_an_expired_message_is_forgotten_when_no_node_carries_it() -> None:
    node = registry.make("unordered", "node", Context(0, (0, 1), {}, Random(1)))
    assert isinstance(node, LayeredNode)
    carrier, catalogue = Carrier(EpidemicOptions(), Random(1), node.ordering), Catalogue()
    carrier.enter(HostedNode(0, None), catalogue, None)

    def births(numbers: range, now: int) -> list[Carried]:
        messages = [Message(MessageId(1, 0, number), b"text") for number in numbers]
        return [
            catalogue.add(Envelope(message, (), message.id.number, None, 0, 0), now) for message in messages
        ]

    late, early = births(range(4, 2, -1), 0)
    carrier.keep(late)
    carrier.keep(early)
    births(range(5, 3_000), 5_000)
    assert catalogue.first_alive == 0
    assert (carrier.count(), carrier.held_bytes(), carrier.first_deadline()) == (2, 8, 3)
    assert carrier.take_expired(5_000) == [early.parsed, late.parsed]
    assert (carrier.count(), carrier.held_bytes(), carrier.first_deadline()) == (0, 0, NEVER)
    births(range(3_000, 5_000), 5_000)
    assert catalogue.first_alive > 3_000


@pytest.mark.parametrize("span", [2, 40, 5_000, 30_000_000])
def test_ends_of_transfers_keep_their_order_among_other_events(span: int) -> None:
    random = Random(span)
    node = registry.make("unordered", "node", Context(0, (0, 1), {}, random))
    assert isinstance(node, LayeredNode)
    carrier = Carrier(EpidemicOptions(), random, node.ordering)
    queue, expected = TransferQueue(), list[tuple[int, int, Event]]()
    now = 0
    for step in range(4_000):
        if random.random() < (0.6 if step < 2_500 else 0.3):
            when = now + random.randrange(span)
            event = Link(carrier, carrier) if random.random() < 0.7 else Event(when)
            expected.append((when, step, event))
            if isinstance(event, Link):
                queue.begin(event, when)
            else:
                queue.insert(event)
        elif expected:
            first = min(expected, key=lambda entry: entry[:2])
            now = first[0]
            assert queue.next_when(now - 1) < 0
            assert not queue.open(now - 1)
            assert take(queue, now) is first[2]
            expected.remove(first)
        assert len(queue) == len(expected)
        assert queue.is_waiting() == bool(expected)
    assert queue.taken > 1_500


def take(queue: TransferQueue, limit: int) -> Event:
    """Take the next event as `TimedWorld` does."""
    if queue.next_when(limit) >= 0:
        return queue.take_transfer()
    assert queue.open(limit)
    event = queue.current[queue.place]
    queue.place += 1
    queue.note_others()
    return event
