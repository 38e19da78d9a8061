"""The topology compared with the paper's table for 8 nodes, and with brute force up to 1,024 nodes."""

from __future__ import annotations

import random

import pytest

from precede.core.errors import BadInput
from precede.protocols.vcube2018 import topology
from tests.protocols.vcube2018.literal import children

# Figure 3's table for 8 nodes, row s, column i.
TABLE_OF_EIGHT = {
    1: ["1", "0", "3", "2", "5", "4", "7", "6"],
    2: ["2 3", "3 2", "0 1", "1 0", "6 7", "7 6", "4 5", "5 4"],
    3: ["4 5 6 7", "5 4 7 6", "6 7 4 5", "7 6 5 4", "0 1 2 3", "1 0 3 2", "2 3 0 1", "3 2 1 0"],
}


def recursive_cluster(i: int, s: int) -> list[int]:
    """c(i, s) exactly as section 2 defines it."""
    nearest = i ^ (1 << (s - 1))
    return [nearest, *(node for k in range(1, s) for node in recursive_cluster(nearest, k))]


def recursive_children(i: int, r: int, h: int, live: set[int]) -> list[int]:
    """Algorithm 1, with `1 <= s <= h` and the first fault-free node for the first node."""
    if i == r:
        firsts = (next((x for x in recursive_cluster(i, s) if x in live), None) for s in range(1, h + 1))
        return [child for child in firsts if child is not None]
    s = next(s for s in range(1, 20) if i in recursive_cluster(r, s))
    first = next(x for x in recursive_cluster(r, s) if x in live)
    return recursive_children(i, first, s - 1, live)


def test_clusters_of_eight_nodes_equal_the_papers_table() -> None:
    for s, row in TABLE_OF_EIGHT.items():
        for i, written in enumerate(row):
            assert topology.members(i, s) == [int(word) for word in written.split()]


def test_auxiliary_functions_give_the_papers_examples() -> None:
    everybody = (1 << 8) - 1
    assert topology.first_child(0, 1, everybody) == 1
    assert topology.first_child(1, 2, everybody) == 3
    assert topology.first_child(1, 3, everybody) == 5
    assert topology.first_child(7, 2, everybody) == 5
    assert topology.first_child(4, 1, everybody) == 5
    assert children(4, 2, everybody) == [5]
    assert [children(i, 0, everybody) for i in range(8)] == [
        [1, 2, 4], [], [3], [], [5, 6], [], [7], [],
    ]  # fmt: skip


def test_members_equal_the_recursive_definition_up_to_1024() -> None:
    for s in range(1, 11):
        for i in (0, 1, 5, 511, 640, 1023):
            assert topology.members(i, s) == recursive_cluster(i, s)


@pytest.mark.parametrize("positions", [1, 2, 3, 4, 5, 7, 8, 11, 16])
def test_children_equal_algorithm_1_for_every_root_and_node(positions: int) -> None:
    live = set(range(positions))
    mask = topology.live_mask(live)
    d = topology.dimension(mask)
    for r in range(positions):
        for i in range(positions):
            assert children(i, r, mask) == recursive_children(i, r, d, live)


def test_children_equal_algorithm_1_for_any_set_of_working_nodes() -> None:
    rng = random.Random(5)
    for _ in range(120):
        live = {x for x in range(32) if rng.random() < rng.choice((0.2, 0.5, 0.9))} | {rng.randrange(32)}
        mask = topology.live_mask(live)
        d = topology.dimension(mask)
        for r in sorted(live):
            i = rng.choice(sorted(live))
            assert children(i, r, mask) == recursive_children(i, r, d, live)


@pytest.mark.parametrize("positions", [1, 2, 6, 13, 64, 100, 1000, 1024])
def test_every_tree_reaches_every_node_exactly_once(positions: int) -> None:
    live = (1 << positions) - 1
    rng = random.Random(positions)
    for root in {0, positions - 1, *(rng.randrange(positions) for _ in range(3))}:
        reached, frontier = [root], [(root, topology.dimension(live))]
        while frontier:
            node, below = frontier.pop()
            for s in range(1, below + 1):
                child = topology.first_child(node, s, live)
                if child is not None:
                    reached.append(child)
                    frontier.append((child, s - 1))
        assert sorted(reached) == list(range(positions))


@pytest.mark.parametrize("positions", [1, 2, 3, 8, 21, 32])
def test_responsibilities_agree_with_heights(positions: int) -> None:
    rng = random.Random(positions)
    for _ in range(8):
        live = (1 << positions) - 1 if rng.random() < 0.3 else rng.getrandbits(positions) | 1
        for i in (x for x in range(positions) if live >> x & 1):
            masks = [mask << shift for mask, shift in topology.responsibilities(i, live)]
            for source in (x for x in range(positions) if live >> x & 1):
                below = topology.height(i, source, live)
                assert [mask >> source & 1 for mask in masks] == [
                    int(below >= s) for s in range(1, topology.dimension(live) + 1)
                ]


def test_a_childs_sources_agree_modulo_a_power_of_two_up_to_1024() -> None:
    live = (1 << 1024) - 1
    rng = random.Random(1)
    for _ in range(2000):
        i, t, source = rng.randrange(1024), rng.randrange(10), rng.randrange(1024)
        by_arithmetic = i % (2 << t) == source % (2 << t)
        assert by_arithmetic == (i ^ (1 << t) in children(i, source, live))


def test_a_number_that_is_no_position_is_refused() -> None:
    with pytest.raises(BadInput, match="no position"):
        topology.live_mask([3, -1])
    with pytest.raises(BadInput, match="no position"):
        topology.live_mask([1 << 40])
