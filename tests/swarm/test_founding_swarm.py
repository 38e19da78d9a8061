"""Starts of groups that founders agree on: late hearing, loss, cuts and crashes; and a founding that is wrong.

`precede swarm --protocol drift+founding --seed 0 --worlds 500` runs the same worlds.
"""

from __future__ import annotations

import pytest

from precede.experiments.swarm.plan import draw_plan
from precede.experiments.swarm.swarm import run_seed
from precede.protocols.drift2006.founding.ballots import Ballots


def failures(first: int, count: int) -> list[tuple[int, tuple[str, ...]]]:
    """The starts that failed, by seed."""
    results = [run_seed("drift+founding", first + place) for place in range(count)]
    return [(result.seed, result.remarks) for result in results if result.failed]


def test_founders_deliver_one_sequence_from_the_first_message() -> None:
    assert failures(0, 30) == []


def test_a_founder_that_decides_alone_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a quorum of one. Founders that do not hear each other found several groups."""
    monkeypatch.setattr(Ballots, "quorum", property(lambda ballots: 1))
    assert failures(0, 10) != []


def test_a_majority_without_stores_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: founders without stores decide by majority."""
    majority = property(lambda ballots: len(ballots.founders) // 2 + 1)
    monkeypatch.setattr(Ballots, "quorum", majority)
    # It takes an unlucky crash: two of 240 worlds without stores. The exploration of foundings finds it surely.
    assert failures(560, 1) != []


@pytest.mark.parametrize("seed", [0, 7_123_069_636])
def test_worlds_of_drift_itself_found_nothing(seed: int) -> None:
    """Fresh seeds have twelve digits; for a while all of them drew foundings, and no other world of DRIFT."""
    assert "founding" not in draw_plan("drift", seed).run.options


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_five_hundred_starts() -> None:
    assert failures(0, 500) == []
