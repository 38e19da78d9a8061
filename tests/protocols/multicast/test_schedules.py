"""PRS, RST and SES on identical schedules: equal deliveries, and the contents and sizes of their stamps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.protocols.multicast.multicast_world import (
    Id,
    Played,
    Sending,
    barrier_pairs,
    draw,
    log_pairs,
    necessary,
    oracle,
    play,
)
from tests.protocols.prs1997.literal import LiteralProcess, Tuples

RIVALS = (
    ("prs", {}),
    ("rst", {}),
    ("ses", {}),
    ("prs", {"pruning": "optimal"}),
    ("prs", {"pruning": "fat"}),
)


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(8))
def test_all_rules_deliver_every_message_at_the_instant_of_the_oracle(batch: int) -> None:
    """200 schedules with overlapping destination sets and copies that overtake each other."""
    waited = 0
    for seed in range(25 * batch, 25 * batch + 25):
        processes = 2 + seed % 29
        schedule = draw(seed, processes, messages=40)
        expected = oracle(schedule, processes)
        for protocol, options in RIVALS:
            played = play(schedule, processes, protocol, **options)
            assert played.deliveries == expected.deliveries, (seed, protocol, options)
        arrivals = {
            (sending.at + delay, to)
            for sending in schedule
            for to, delay in zip(sending.to, sending.delays, strict=True)
        }
        waited += sum((at, to) not in arrivals for to, got in expected.deliveries.items() for at, _ in got)
        waited += sum(len(got) - len({at for at, _ in got}) for got in expected.deliveries.values())
    assert waited > 100, "schedules in which no message waits would test nothing"


@settings(max_examples=60)
@given(st.data())
def test_all_rules_agree_with_the_oracle_on_generated_schedules(data: st.DataObject) -> None:
    processes = data.draw(st.integers(2, 5))
    schedule = []
    taken: set[int] = set()
    for place in range(data.draw(st.integers(1, 12))):
        source = data.draw(st.integers(0, processes - 1))
        others = [process for process in range(processes) if process != source]
        to = tuple(data.draw(st.lists(st.sampled_from(others), min_size=1, unique=True)))
        at = 1000 * (place + 1)
        delays = []
        for _ in to:
            delay = 1000 * data.draw(st.integers(0, 12)) + 1
            while at + delay in taken:
                delay += 1
            taken.add(at + delay)
            delays.append(delay)
        schedule.append(Sending(at, source, to, tuple(delays)))
    expected = oracle(schedule, processes).deliveries
    for protocol, options in RIVALS:
        assert play(schedule, processes, protocol, **options).deliveries == expected


def test_barriers_equal_those_of_the_printed_algorithm() -> None:
    """Compares our maps, without the loop of step 8, with section 5.2 line by line."""
    compared = 0
    for seed in range(30):
        processes = 2 + seed % 9
        follower = _Follower(processes)
        schedule = draw(seed, processes, messages=50)
        compared += sum(map(len, play(schedule, processes, "prs", follower).deliveries.values()))
    assert compared > 3000


class _Follower:
    """After each event of a process, repeats it with the printed algorithm and compares the barriers."""

    def __init__(self, processes: int) -> None:
        self.literal = [LiteralProcess(process, processes) for process in range(processes)]
        self.carried: dict[Id, list[Tuples]] = {}
        self.to: dict[Id, tuple[int, ...]] = {}
        self.done = [0] * processes

    def __call__(self, played: Played, process: int) -> None:
        here = self.literal[process]
        for _, message in played.deliveries[process][self.done[process] :]:
            assert here.may_deliver(self.carried[message])
            here.deliver(*message, self.to[message], self.carried[message])
        self.done[process] = len(played.deliveries[process])
        message = (process, here.sent + 1)
        if message in played.packets:
            packet = next(iter(played.packets[message].values()))
            self.to[message] = packet.destinations
            self.carried[message] = here.send(packet.destinations)
            assert _rows(packet.stamp.barrier) == _filled(self.carried[message])
        assert _rows(played.nodes[process].rule.barrier) == _filled(here.CB)


def _rows(barrier: Mapping[int, Mapping[int, int]]) -> dict[int, Tuples]:
    return {to: frozenset(row.items()) for to, row in barrier.items()}


def _filled(rows: Sequence[Tuples]) -> dict[int, Tuples]:
    return {to: row for to, row in enumerate(rows) if row}


def test_the_optimal_pruning_carries_exactly_the_necessary_pairs() -> None:
    """The printed algorithm carries at least these. The oracle computes which pairs are necessary."""
    printed_more = 0
    for seed in range(40):
        processes = 2 + seed % 11
        schedule = draw(seed, processes, messages=50)
        history = oracle(schedule, processes)
        printed = play(schedule, processes, "prs").packets
        optimal = play(schedule, processes, "prs", pruning="optimal").packets
        for message, copies in optimal.items():
            needed = necessary(history, message)
            for to, packet in copies.items():
                others = set(history.to[message]) - {to}
                expected = {pair for pair in needed if pair[0] not in others}
                assert log_pairs(packet.stamp.log) == expected, (seed, message, to)
            packet = next(iter(printed[message].values()))
            of_others = {pair for pair in barrier_pairs(packet.stamp.barrier) if pair[0] != message[0]}
            assert needed <= of_others
            printed_more += len(of_others - needed)
    assert printed_more > 100


def _to_everybody(seed: int, processes: int, messages: int) -> list[Sending]:
    random = Random(seed)
    schedule, taken = [], set()
    for place in range(messages):
        at = 1000 * place + 1
        source = random.randrange(processes)
        to = tuple(process for process in range(processes) if process != source)
        delays = []
        for _ in to:
            delay = 1 + int(random.expovariate(1 / 3000))
            while at + delay in taken or (at + delay) % 1000 == 1:
                delay += 1
            taken.add(at + delay)
            delays.append(delay)
        schedule.append(Sending(at, source, to, tuple(delays)))
    return schedule


def test_broadcast_one_row_suffices() -> None:
    """Section 8.2: equal deliveries as with all rows, with at most N tuples: those of all rows together."""
    for seed in range(20):
        processes = 2 + seed % 10
        schedule = _to_everybody(seed, processes, messages=60)
        general = play(schedule, processes, "prs")
        one_row = play(schedule, processes, "prs", case="broadcast")
        history = oracle(schedule, processes)
        assert one_row.deliveries == general.deliveries == history.deliveries
        for message, copies in one_row.packets.items():
            stamp = next(iter(copies.values())).stamp
            assert len(stamp.row) <= processes
            assert stamp.integers == 2 * stamp.entries == 2 * len(stamp.row)
            direct = set(history.maximal(history.past[message]))
            assert set(stamp.row.items()) == direct, "the direct predecessors"
            rows = next(iter(general.packets[message].values())).stamp.barrier
            others = {pair for to, row in rows.items() if to != message[0] for pair in row.items()}
            assert others <= direct, "each of the other rows is a subset"


def test_broadcast_with_the_printed_algorithm_is_optimal() -> None:
    """Section 8.3: if all messages are broadcasts, no row has a tuple that is not necessary."""
    for seed in range(20):
        processes = 2 + seed % 10
        schedule = _to_everybody(seed, processes, messages=60)
        history = oracle(schedule, processes)
        for message, copies in play(schedule, processes, "prs").packets.items():
            barrier = next(iter(copies.values())).stamp.barrier
            others = {pair for pair in barrier_pairs(barrier) if pair[0] != message[0]}
            assert others == necessary(history, message)


@pytest.mark.parametrize("pruning", ["printed", "optimal", "fat"])
def test_disjoint_groups_never_carry_a_tuple_of_each_other(pruning: str) -> None:
    """Odd processes send to odd ones and even to even ones: no tuple of the other half is sent or stored."""
    processes = 20
    for seed in range(10):
        random = Random(seed)
        schedule = []
        for sending in draw(seed, processes, messages=150, largest=9):
            group = [one for one in range(processes) if one % 2 == sending.source % 2 and one != sending.source]
            to = tuple(random.sample(group, min(len(sending.to), len(group))))
            schedule.append(Sending(sending.at, sending.source, to, sending.delays[: len(to)]))
        played = play(schedule, processes, "prs", pruning=pruning)
        tuples = 0
        for (source, _), copies in played.packets.items():
            for packet in copies.values():
                stamp = packet.stamp
                pairs = log_pairs(stamp.log) if pruning == "optimal" else barrier_pairs(stamp.barrier)
                tuples += len(pairs)
                for to, (sender, _) in pairs:
                    assert to % 2 == sender % 2 == source % 2
        assert tuples > 1000
        for process, node in enumerate(played.nodes):
            registry = node.rule.log if pruning == "optimal" else node.rule.delivered
            assert all(other % 2 == process % 2 for other in registry)


def test_sizes_follow_the_size_model_of_each_paper() -> None:
    processes = 7
    schedule = draw(3, processes, messages=60)
    tuples = play(schedule, processes, "prs").packets
    bitmap = play(schedule, processes, "prs", encoding="bitmap").packets
    rst = play(schedule, processes, "rst").packets
    ses = play(schedule, processes, "ses").packets
    for message in tuples:
        one = next(iter(tuples[message].values()))
        count = sum(len(row) for row in one.stamp.barrier.values())
        assert one.control_entries == count
        assert one.stamp.integers == 2 * count
        assert one.stamp.order_bytes == 8 * count + 8 * len(one.stamp.barrier)
        assert one.control_bytes == one.stamp.order_bytes + 20 + 4 * len(one.destinations)
        mapped = next(iter(bitmap[message].values()))
        assert mapped.stamp.barrier == one.stamp.barrier
        assert mapped.stamp.integers == count + 2, "49 bits are two words"
        assert mapped.stamp.order_bytes == 4 * count + 7
        matrix = next(iter(rst[message].values()))
        assert matrix.stamp.integers == matrix.control_entries == processes**2
        pairs = next(iter(ses[message].values()))
        held = len(pairs.stamp.pairs)
        assert pairs.stamp.integers == held * (processes + 1) + processes
        assert pairs.stamp.order_bytes == 4 * pairs.stamp.integers
