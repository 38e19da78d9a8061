"""The witness against the slow second one, on random histories; and no false alarm on correct ones."""

from __future__ import annotations

from random import Random

import pytest

import precede
from tests.witness import second_witness
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
        rows = scrambled(Random(seed)).table()
        for order in ("causal", "fifo", "total"):
            expected = second_witness.judge(rows, order)
            found = precede.verify(rows, order)
            assert (found.verdict, found.counts) == (expected.verdict, expected.counts), f"seed {seed}, {order}"
