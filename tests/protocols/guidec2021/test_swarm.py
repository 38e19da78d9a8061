"""Random contact worlds: our protocols pass them, the printed algorithms and disabled corrections do not."""

from typing import Any

import msgspec
import pytest

from precede.core.context import Context
from precede.experiments.swarm.plan import draw_plan, find_drawer
from precede.experiments.swarm.swarm import WorldResult, run_plan, run_seed
from precede.protocols.guidec2021.delta_causal import ENTRY, DeltaCausal
from precede.protocols.guidec2021.options import DeltaCausalOptions
from precede.protocols.registry import Entry
from tests.protocols.guidec2021.literal import PRINTED_CAUSAL, PRINTED_DELTA


def with_options(protocol: str, seed: int, changes: dict[str, Any], entry: Entry | None = None) -> WorldResult:
    """Run the world of a seed with changed options, or with another entry in the protocol's place."""
    drawer = find_drawer(protocol)
    plan = draw_plan(protocol, seed, drawer)
    run = msgspec.structs.replace(plan.run, options={**plan.run.options, **changes})
    return run_plan(msgspec.structs.replace(plan, run=run), drawer, entry)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("protocol", "worlds"), [("delta_causal", 60), ("causal_barrier", 50), ("hash_dag", 20)]
)
def test_random_worlds_have_no_findings(protocol: str, worlds: int) -> None:
    deliveries = 0
    for seed in range(worlds):
        result = run_seed(protocol, seed)
        assert not result.failed, f"seed {seed}: {result.remarks}"
        deliveries += result.deliveries
    assert deliveries > 20 * worlds


@pytest.mark.long
def test_five_hundred_random_worlds_have_no_findings() -> None:
    for seed in range(500):
        result = run_seed("delta_causal", 10_000 + seed)
        assert not result.failed, f"seed {10_000 + seed}: {result.remarks}"


@pytest.mark.parametrize(
    ("changes", "finding"),
    [
        ({"skew": "0s"}, "violations"),
        ({"durable": False}, "duplicates"),
    ],
)
def test_a_correction_switched_off_is_caught(changes: dict[str, Any], finding: str) -> None:
    assert any(getattr(with_options("delta_causal", seed, changes), finding) for seed in range(60))


def test_nodes_that_notice_expiry_late_are_caught_where_they_promise_to_notice_it() -> None:
    """The worlds do not say `lazy_expiry`: with it, less is due."""

    def lazy(context: Context[DeltaCausalOptions]) -> DeltaCausal:
        options = msgspec.structs.replace(context.options, lazy_expiry=True)
        return DeltaCausal(msgspec.structs.replace(context, options=options))

    entry = msgspec.structs.replace(ENTRY, ordering=lazy)
    assert any(with_options("delta_causal", seed, {}, entry).undelivered for seed in range(60))


@pytest.mark.parametrize(
    ("protocol", "printed", "finding"),
    [
        ("delta_causal", PRINTED_DELTA, "violations"),
        ("delta_causal", PRINTED_DELTA, "duplicates"),
        ("causal_barrier", PRINTED_CAUSAL, "violations"),
        ("causal_barrier", PRINTED_CAUSAL, "leaks"),
    ],
)
def test_the_printed_algorithm_is_caught(protocol: str, printed: Entry, finding: str) -> None:
    assert any(getattr(with_options(protocol, seed, {}, printed), finding) for seed in range(60))
