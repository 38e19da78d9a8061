"""A crash between any two writes of a durable protocol, and a second one during recovery, harm nothing."""

from __future__ import annotations

from collections import Counter

import pytest

from precede.core.effects import Effects, Persist
from precede.experiments.swarm.plan import draw_plan, find_drawer
from precede.experiments.swarm.swarm import run_plan
from tests.swarm.torn_writes import Shape, Watched, torn_worlds, with_nodes

DURABLE = (
    "causal_barrier",
    "delta_causal",
    "hash_dag",
    "timestamp",
    "lamport",
    "sds",
    "unordered",
    "fifo",
    "vector_clock",
    "drift",
    "prs",
    "rst",
    "ses",
    "was",
)


def check(protocol: str, seeds: range, most: int, least: int) -> None:
    """Crash at every kind of place in the effect lists of these seeds, at most `most` times each."""
    drawer = find_drawer(protocol)
    often: Counter[Shape] = Counter()
    for seed in seeds:
        for crashed in torn_worlds(draw_plan(protocol, seed), often, most):
            result = run_plan(crashed, drawer)
            assert not result.failed, (protocol, seed, crashed.run.faults["crashes"], *result.remarks)
    assert often.total() >= least


@pytest.mark.parametrize("protocol", DURABLE)
def test_a_crash_between_two_writes_harms_nothing(protocol: str) -> None:
    check(protocol, range(2000, 2025), most=1, least=5)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("protocol", DURABLE)
def test_hundreds_of_crashes_between_two_writes_harm_nothing(protocol: str) -> None:
    check(protocol, range(3000, 3400), most=8, least=100)


def writes_reversed(effects: Effects) -> Effects:
    """The same writes in the opposite order."""
    writes = [effect for effect in effects if type(effect) is Persist]
    return [writes.pop() if type(effect) is Persist else effect for effect in effects]


@pytest.mark.parametrize("protocol", ["drift", "delta_causal", "was"])
def test_writes_in_the_wrong_order_are_caught(protocol: str) -> None:
    drawer = find_drawer(protocol)
    often: Counter[Shape] = Counter()
    for seed in range(2000, 2100):
        for crashed in torn_worlds(draw_plan(protocol, seed), often, 2):
            plan, spoiled = with_nodes(crashed, lambda inner, _: Watched(inner, writes_reversed))
            result = run_plan(plan, drawer, spoiled)
            assert not any(remark.startswith("Traceback") for remark in result.remarks), result.remarks
            if result.failed:
                return
    pytest.fail("no world showed it")
