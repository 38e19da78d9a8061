"""The swarm on Spark gives the results of one process, and returns failing seeds."""

from __future__ import annotations

import pytest

from precede.experiments.swarm.swarm import WorldResult, run_seeds, spread
from precede.pipeline.sweeps import swarm
from precede.pipeline.sweeps.swarm import swarm_results


@pytest.mark.long
@pytest.mark.spark
def test_worlds_on_spark_give_the_results_of_this_process(session, monkeypatch):
    monkeypatch.setattr(swarm, "_TASKS_A_ROUND", 1)
    monkeypatch.setattr(swarm, "WORLDS_A_TASK", 2)
    work = spread(["vector_clock", "prs"], 7, 41)
    assert list(swarm_results(session, work)) == list(run_seeds(work))


def test_a_failing_world_is_returned_with_its_explanation(monkeypatch):
    def fails_on_odd_seeds(protocol, seed):
        return WorldResult(protocol, seed, violations=seed % 2, remarks=("a story",) if seed % 2 else ())

    monkeypatch.setattr(swarm, "run_seed", fails_on_odd_seeds)
    results = list(swarm_results(None, spread(["vector_clock"], 200, 10)))
    assert [result.seed for result in results] == list(range(10, 210))
    assert [result.seed for result in results if result.failed] == list(range(11, 210, 2))
    assert results[1].remarks == ("a story",)
