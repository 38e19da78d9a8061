"""WAS in swarm worlds: four regimes of radio cells with faults that end before the run does."""

from __future__ import annotations

import pytest

from precede.eventlog.sinks import TableSink
from precede.experiments.swarm.draw.cellular import REGIMES
from precede.experiments.swarm.plan import draw_plan, find_drawer
from precede.experiments.swarm.swarm import Tally, WorldResult, run_plan, run_seed
from precede.witness.many_logs import verify_one_of_many
from tests.protocols.was2021.literal import literal_entry


@pytest.mark.parametrize("place", range(len(REGIMES)), ids=REGIMES)
def test_worlds_with_faults_hold(place: int) -> None:
    tally = Tally()
    deliveries = 0
    for seed in range(9_000 + place, 9_000 + place + 15 * len(REGIMES), len(REGIMES)):
        result = run_seed("was", seed)
        assert not result.failed, (seed, result.remarks)
        tally.add(result)
        deliveries += result.deliveries
    assert tally.line() == "worlds=15 violations=0 duplicates=0 undelivered=0 leaks=0"
    assert deliveries > 3_000


def run_without(fix: str, seed: int) -> WorldResult:
    """One world with one fix taken out."""
    drawer = find_drawer("was")
    return run_plan(draw_plan("was", seed, drawer), drawer, literal_entry(fix))


@pytest.mark.parametrize("fix", ["E1", "E6", "E7", "E9", "E17"])
def test_the_swarm_finds_the_error_that_a_fix_prevents(fix: str) -> None:
    assert any(run_without(fix, seed).failed for seed in range(9_000, 9_012))


@pytest.mark.parametrize("seed", [700_000_000_492, 710_000_001_390])
def test_order_is_not_required_where_a_station_forgot_everything(seed: int) -> None:
    """A handoff takes messages that the new station lacks for discarded ones: they may be lost."""
    drawer, log = find_drawer("was"), TableSink()
    result = run_plan(draw_plan("was", seed, drawer), drawer, log=log)
    assert not result.failed, result.remarks
    assert verify_one_of_many(log.events(), "causal").verdict == "violated"
