"""PRS in all its forms, RST and SES in swarm worlds."""

from __future__ import annotations

import pytest

from precede.experiments.swarm.plan import draw_plan
from precede.experiments.swarm.swarm import Tally, run_seed


@pytest.mark.parametrize("protocol", ["prs", "rst", "ses"])
def test_worlds_with_faults_have_no_finding(protocol: str) -> None:
    tally = Tally()
    deliveries = 0
    for seed in range(7_000, 7_100):
        result = run_seed(protocol, seed)
        assert not result.failed, (seed, result.remarks)
        tally.add(result)
        deliveries += result.deliveries
    assert tally.line() == "worlds=100 violations=0 duplicates=0 undelivered=0 leaks=0"
    assert deliveries > 2_000


def test_every_form_of_prs_and_crashes_are_drawn() -> None:
    plans = [draw_plan("prs", seed) for seed in range(7_000, 7_100)]
    forms = {
        tuple(
            sorted(
                (key, value)
                for key, value in plan.run.options.items()
                if key not in ("durable", "rto", "checkpoint")
            )
        )
        for plan in plans
    }
    assert len(forms) == 5
    assert sum(bool(plan.run.faults["crashes"]) for plan in plans) > 50
