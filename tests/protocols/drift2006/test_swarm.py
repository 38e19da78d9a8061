"""DRIFT and TOF in some swarm worlds; `precede swarm --protocol drift` runs more."""

from __future__ import annotations

import pytest

from precede.experiments.swarm.swarm import run_seed


@pytest.mark.parametrize("first", range(0, 50, 10))
def test_drift_keeps_total_order_and_delivers_everything(first: int) -> None:
    failures = [result for seed in range(first, first + 10) if (result := run_seed("drift", seed)).failed]
    assert not failures, failures[0]


@pytest.mark.slow
def test_tof_keeps_total_order_and_delivers_everything() -> None:
    failures = [result for seed in range(50) if (result := run_seed("tof", seed)).failed]
    assert not failures, failures[0]
