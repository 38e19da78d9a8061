"""The swarm of contact worlds: ours is clean, and it sees what the printed algorithms and idle options do."""

from typing import Any

import msgspec
import pytest

from precede.experiments.swarm.plan import draw_plan, find_drawer
from precede.experiments.swarm.swarm import WorldResult, run_plan, run_seed


def with_options(protocol: str, seed: int, changes: dict[str, Any]) -> WorldResult:
    drawer = find_drawer(protocol)
    plan = draw_plan(protocol, seed, drawer)
    run = msgspec.structs.replace(plan.run, options={**plan.run.options, **changes})
    return run_plan(msgspec.structs.replace(plan, run=run), drawer)


@pytest.mark.parametrize(
    ("protocol", "worlds"), [("delta_causal", 60), ("causal_barrier", 50), ("hash_dag", 20)]
)
def test_worlds_are_clean(protocol: str, worlds: int) -> None:
    deliveries = 0
    for seed in range(worlds):
        result = run_seed(protocol, seed)
        assert not result.failed, f"seed {seed}: {result.remarks}"
        deliveries += result.deliveries
    assert deliveries > 20 * worlds


@pytest.mark.long
def test_five_hundred_worlds_are_clean() -> None:
    for seed in range(500):
        result = run_seed("delta_causal", 10_000 + seed)
        assert not result.failed, f"seed {10_000 + seed}: {result.remarks}"


@pytest.mark.parametrize(
    ("protocol", "changes", "finding"),
    [
        ("delta_causal", {"tag": "deadline"}, "violations"),
        ("delta_causal", {"tag": "deadline"}, "duplicates"),
        ("delta_causal", {"skew": "0s"}, "violations"),
        ("delta_causal", {"lazy_expiry": True}, "undelivered"),
        ("delta_causal", {"durable": False}, "duplicates"),
        ("causal_barrier", {"literal": True}, "violations"),
        ("causal_barrier", {"literal": True}, "leaks"),
    ],
)
def test_a_correction_switched_off_is_caught(protocol: str, changes: dict[str, Any], finding: str) -> None:
    assert any(getattr(with_options(protocol, seed, changes), finding) for seed in range(60))
