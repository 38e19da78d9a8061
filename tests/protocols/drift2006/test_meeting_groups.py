"""Groups that nodes found meet and become one, while nodes crash (drift2006, section 7).

The worlds are those of the swarm's `drift+meeting`, which say what is required.
"""

from __future__ import annotations

from random import Random

import pytest

from precede.experiments.swarm.draw.meeting import DRAWER
from precede.experiments.swarm.swarm import run_plan


def check(seed: int) -> None:
    result = run_plan(DRAWER.draw("drift+meeting", seed, Random(seed)), DRAWER)
    assert not result.failed, (seed, result.remarks)


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_groups_that_meet_become_one(first: int) -> None:
    for seed in range(first, first + 20):
        check(seed)


@pytest.mark.parametrize("seed", [147, 412, 427, 463, 665, 709, 947, 1435])
def test_groups_that_meet_become_one_in_worlds_that_once_failed(seed: int) -> None:
    """Nodes entered a group again that they had left, or used a number twice, so messages came twice."""
    check(seed)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_groups_that_meet_become_one_in_two_thousand_worlds() -> None:
    for seed in range(10_000, 12_000):
        check(seed)
