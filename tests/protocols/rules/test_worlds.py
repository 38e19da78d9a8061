"""Random worlds: each rule shows what its text says, and the witness counts what the oracle counts."""

from __future__ import annotations

from collections import Counter

import pytest

from precede.eventlog.sinks import TableSink
from precede.experiments.swarm.plan import draw_plan, find_drawer
from precede.experiments.swarm.swarm import run_plan
from precede.witness.verify import verify
from tests.protocols.rules.oracle import Oracle

RULES = ("arrival", "timestamp", "lamport", "sds")
MANY = [
    pytest.param(range(20), id="some"),
    pytest.param(range(1000), id="thousand", marks=[pytest.mark.long, pytest.mark.timeout(3600)]),
]


@pytest.mark.parametrize("seeds", MANY)
@pytest.mark.parametrize("rule", RULES)
def test_screens_and_counts_are_those_of_the_oracle(rule: str, seeds: range) -> None:
    drawer = find_drawer(rule)
    certain = 0
    seen: Counter[str] = Counter()
    for seed in seeds:
        plan = draw_plan(rule, seed, drawer)
        log = TableSink()
        result = run_plan(plan, drawer, log=log)
        assert not result.failed, f"seed {seed}: {result.remarks}"
        oracle = Oracle(rule, dict(plan.run.options), log.events())
        verdict = verify(log.events(), "display")
        counts = Counter(verdict.counts, revisions=verdict.revisions or 0, moved=verdict.moved or 0)
        assert +counts == +oracle.counts, f"seed {seed}"
        # Flooding hands messages over in their source's order, so the clock at that instant is not in the log.
        unseen = rule == "timestamp" and plan.run.world["kind"] == "flood"
        if not oracle.uncertain and not unseen:
            certain += 1
            assert not oracle.faults, f"seed {seed}: {oracle.faults[:3]}"
        seen += oracle.counts
    assert certain > 0.75 * len(seeds)
    assert seen["answer_first"], "no world shows an answer first: the test shows nothing"
    assert bool(seen["answer_above"]) == (rule in ("arrival", "timestamp"))
    assert bool(seen["revisions"]) == (rule != "arrival")
