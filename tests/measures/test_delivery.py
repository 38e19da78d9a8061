"""Delivery ratio, hops and overhead of small worlds, counted by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from precede.eventlog.schema import LEFT, STARTED
from precede.eventlog.sinks import TableSink
from precede.experiments.run import Run, carry_out
from precede.measures.delivery import Presence, expected_pairs
from precede.measures.events import measure_events
from precede.measures.hops import _count_by_span, hops_of
from precede.measures.machine_paths import lengths_of
from precede.measures.messages import Window
from precede.measures.pairs import RowsByPair


def measured(
    world: dict[str, Any], script: list[dict[str, Any]], window: Window | None = None
) -> dict[str, Any]:
    sink = TableSink()
    run = Run(
        protocol="unordered",
        world={"kind": "contacts", **world},
        workload={"script": script, "size": 10},
        gauges="none",
    )
    carry_out(run, sink)
    return dict(measure_events(sink.events().to_batches(), window))


CHAIN = [["0", "1", "1s", "2s"], ["1", "2", "3s", "4s"], ["2", "3", "5s", "6s"]]


def test_a_message_makes_one_hop_at_each_contact_of_a_chain():
    result = measured({"nodes": 5, "meetings": CHAIN}, [{"src": "0", "at": "0s"}])
    assert (result["expected_deliveries"], result["delivery_ratio"]) == (4, 3 / 4)
    assert (result["hop_count_mean"], result["hop_count_max"]) == (2.0, 3)
    assert (result["relayed"], result["overhead_ratio"]) == (3, 0.0)


def test_only_nodes_that_are_up_between_broadcast_and_end_are_expected_to_deliver():
    stays = [["3", "0s", "1s"], ["4", "5s", "7s"]]
    script = [{"src": "0", "at": "500ms"}, {"src": "0", "at": "2s"}]
    result = measured({"nodes": 5, "meetings": CHAIN[:2], "stays": stays}, script)
    # nodes 1, 2 and 4 for both messages; node 3 for the first one only
    assert result["expected_deliveries"] == 3 + 3 + 1


def test_messages_outside_the_window_are_neither_expected_nor_delivered():
    script = [{"src": "0", "at": "0s"}, {"src": "3", "at": "5500ms"}]
    result = measured({"nodes": 4, "meetings": CHAIN}, script, Window(0, 1_000_000))
    assert (result["broadcasts"], result["expected_deliveries"], result["delivery_ratio"]) == (1, 3, 1.0)


@pytest.mark.parametrize("length", [1, 2, 3, 17, 100])
def test_hops_of_a_long_chain(length: int):
    node = np.arange(1, length + 1)
    message, source = np.zeros(length, np.int64), np.zeros(length, np.int64)
    order = np.random.default_rng(length).permutation(length)
    rows = RowsByPair(node[order], message)
    assert hops_of(rows, node[order], message, node[order] - 1, source).tolist() == node[order].tolist()


@pytest.mark.parametrize("seed", range(20))
def test_paths_are_counted_in_machine_words_as_by_spans(seed: int):
    generator = np.random.default_rng(seed)
    size = int(generator.integers(0, 300))
    parents = generator.integers(-2, np.arange(size)).astype(np.int32)
    lengths = lengths_of(parents.tobytes())
    assert lengths is not None
    assert np.frombuffer(lengths, np.int32).tolist() == _count_by_span(parents).tolist()


@pytest.mark.parametrize("parents", [[0], [-2, 2, -2], [1, 0]])
def test_a_row_that_follows_from_itself_or_a_later_one_is_left_to_the_spans(parents: list[int]):
    assert lengths_of(np.array(parents, np.int32).tobytes()) is None


def test_a_reception_whose_sender_is_unknown_has_no_hops():
    none = np.array([0, 0])
    node = np.array([1, 2])
    assert hops_of(RowsByPair(node, none), node, none, np.array([-1, 1]), none).tolist() == [0, 0]


def test_expected_pairs_where_a_source_has_no_rows_of_its_own():
    presence = Presence()
    presence.add(np.array([STARTED, LEFT, STARTED]), np.array([0, 0, 1]), np.array([0, 50, 10]))
    born, until = np.array([5, 20, 60]), np.array([40, 70, 70])
    everywhere = np.full(3, -1)
    assert expected_pairs(born, until, np.array([0, 9, 1]), everywhere, [0, 1], presence) == 3
    assert expected_pairs(born, until, np.array([1, 1, 0]), everywhere, [0, 1], presence) == 3


def test_expected_pairs_of_births_before_the_beginning_of_time():
    presence = Presence()
    stays = (
        np.array([STARTED, LEFT, STARTED, STARTED]),
        np.array([0, 0, 0, 1]),
        np.array([-100, -50, -40, -100]),
    )
    presence.add(*stays)
    for born in (-30, 30):
        arguments = np.array([born]), np.array([10**6]), np.array([0]), np.array([-1])
        assert expected_pairs(*arguments, [0, 1], presence) == 1
