"""The witness against the slow oracle, on random histories; and no false alarm on correct ones."""

from __future__ import annotations

from random import Random

import pytest

import precede
from tests.witness import oracle
from tests.witness.histories import correct, scrambled

MANY = [
    pytest.param(range(250), id="some"),
    pytest.param(range(250, 5000), id="many", marks=pytest.mark.long),
]


@pytest.mark.parametrize("seeds", MANY)
def test_no_false_alarm_on_correct_histories_with_partial_delivery(seeds):
    for seed in seeds:
        log = correct(Random(seed))
        for order in ("causal", "fifo"):
            verdict = precede.verify(log.table(), order)
            assert verdict.violations == 0, f"seed {seed}: {verdict.first}"
        verdict = precede.verify(correct(Random(seed), "total").table(), "total")
        assert verdict.violations == 0, f"seed {seed}: {verdict.first}"


@pytest.mark.parametrize("seeds", MANY)
def test_verdicts_equal_those_of_the_transitive_closure(seeds):
    for seed in seeds:
        log = scrambled(Random(seed))
        rows = log.table()
        causal = precede.verify(rows, "causal").counts
        assert causal.get("causal", 0) == len(oracle.late_causal(log)), f"seed {seed}"
        assert causal.get("duplicate", 0) == oracle.duplicates(log), f"seed {seed}"
        fifo = precede.verify(rows, "fifo").counts
        assert fifo.get("fifo", 0) == len(oracle.late_fifo(log)), f"seed {seed}"
        total = precede.verify(rows, "total").counts
        assert ("total" in total) == bool(oracle.total_disagreements(log)), f"seed {seed}"
