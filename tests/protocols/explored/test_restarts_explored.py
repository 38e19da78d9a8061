"""Orderings over disseminations under every schedule of a small world with crashes; faults are found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from precede.core.effects import Deliver, Effect, Effects, Persist
from precede.protocols import registry
from tests.protocols.explored.worlds import Broken, Explorer

PAIRS = [
    ("causal_barrier", "direct"),
    ("causal_barrier", "epidemic"),
    ("causal_barrier", "gossip"),
    ("causal_barrier", "flooding"),
    ("fifo", "direct"),
    ("vector_clock", "epidemic"),
    ("hash_dag", "epidemic"),
]


def explorer(ordering: str, dissemination: str, *bounds: Any, **more: Any) -> Explorer:
    options = {"durable": True, "dissemination": dissemination}
    return Explorer(registry.find(ordering), options, *bounds, **more)


@pytest.mark.parametrize(("ordering", "dissemination"), PAIRS)
def test_no_schedule_with_a_crash_breaks_an_invariant(ordering: str, dissemination: str) -> None:
    assert explorer(ordering, dissemination, (1, 1), 1, 1, heal_every=8).explore(700) > 100


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("bounds", [((2, 1), 2, 1), ((2, 1), 1, 2), ((1, 1, 0), 1, 1)], ids=str)
@pytest.mark.parametrize(("ordering", "dissemination"), PAIRS)
def test_larger_bounds_breadth_first(ordering: str, dissemination: str, bounds: tuple[Any, ...]) -> None:
    """Two and three nodes, a second crash in the recovery from the first, up to 60,000 states each."""
    count = explorer(ordering, dissemination, *bounds, heal_every=8).explore(60_000)
    print(ordering, dissemination, bounds, count)
    assert count > 1_000


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("ordering", "dissemination"), PAIRS)
def test_two_thousand_random_schedules(ordering: str, dissemination: str) -> None:
    made = explorer(ordering, dissemination, (3, 2, 2), 12, 3)
    for seed in range(2_000):
        made.walk(seed, 60)


def without(kind: str) -> Callable[[Effects], Effects]:
    """A fault: values of one kind are never written to the disk."""

    def drop(effects: Effects) -> Effects:
        return [effect for effect in effects if not (type(effect) is Persist and _is_value_of(kind, effect))]

    return drop


def _is_value_of(kind: str, effect: Persist) -> bool:
    key = effect.key[0] if isinstance(effect.key, tuple) else effect.key
    return key == kind and effect.value is not None


def delivering_first(effects: Effects) -> Effects:
    """A fault: what a delivery changes is written after it."""
    swapped: list[Effect] = list(effects)
    for place in range(len(swapped) - 1):
        if type(swapped[place]) is Persist and type(swapped[place + 1]) is Deliver:
            swapped[place : place + 2] = swapped[place + 1], swapped[place]
    return swapped


FAULTS = [
    ("causal_barrier", "direct", without("own")),
    ("causal_barrier", "direct", without("own_delivered")),
    ("causal_barrier", "direct", without("top")),
    ("causal_barrier", "direct", without("held")),
    ("causal_barrier", "direct", delivering_first),
    ("causal_barrier", "epidemic", without("own")),
    ("causal_barrier", "epidemic", without("top")),
    ("causal_barrier", "epidemic", without("net")),
    ("causal_barrier", "epidemic", delivering_first),
    ("causal_barrier", "gossip", without("own")),
    ("causal_barrier", "gossip", without("top")),
    ("causal_barrier", "gossip", without("net")),
    ("causal_barrier", "flooding", without("own")),
    ("causal_barrier", "flooding", without("top")),
    ("causal_barrier", "flooding", delivering_first),
    ("fifo", "direct", without("done")),
    ("fifo", "direct", without("held")),
]


@pytest.mark.parametrize(
    ("ordering", "dissemination", "fault"), FAULTS, ids=[f"{a}-{b}-{n}" for n, (a, b, _) in enumerate(FAULTS)]
)
def test_a_planted_fault_is_found(
    ordering: str, dissemination: str, fault: Callable[[Effects], Effects]
) -> None:
    with pytest.raises(Broken):
        explorer(ordering, dissemination, (2, 1), 1, 1, spoil=fault).explore(6_000)
