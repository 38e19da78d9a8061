"""The swarm on Spark gives the results of one process, and returns failing seeds."""

from __future__ import annotations

import pytest

from precede.experiments.swarm.swarm import WorldResult, run_seeds, spread
from precede.lake.layout import Lake
from precede.pipeline.sweeps import swarm, worlds
from precede.pipeline.sweeps.swarm import swarm_results
from precede.pipeline.sweeps.worlds import count_worlds, run_worlds


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


def fails_on_multiples_of_50(protocol, seed):
    return WorldResult(protocol, seed, violations=int(seed % 50 == 0), deliveries=2)


def test_worlds_accumulate_in_a_lake_and_each_counts_once(tmp_path, monkeypatch):
    ran = []
    monkeypatch.setattr(
        worlds, "run_seed", lambda protocol, seed: ran.append(seed) or fails_on_multiples_of_50(protocol, seed)
    )
    lake = Lake(tmp_path / "lake")
    first = list(run_worlds(lake, None, spread(["fifo"], 150, 10)))
    assert [result.seed for result in first] == list(range(10, 160))
    assert list(run_worlds(lake, None, spread(["fifo"], 150, 10))) == []
    second = list(run_worlds(lake, None, spread(["fifo", "tof"], 100, 100)))
    assert len(ran) == len(first) + len(second) == 150 + 20 + 50
    counted = count_worlds(lake, ["fifo", "tof", "prs"])
    assert counted["fifo"].line() == "worlds=170 violations=3 duplicates=0 undelivered=0 leaks=0"
    assert (counted["tof"].worlds, counted["prs"].worlds) == (50, 0)
    rows = lake.read("worlds", "fifo").to_pylist()
    assert [(row["first_seed"], row["worlds"]) for row in rows] == [(0, 54), (64, 64), (128, 48), (192, 4)]
    assert [row["failing_seeds"] for row in rows] == [["50"], ["100"], ["150"], []]
    assert sum(row["deliveries"] for row in rows) == 340


def test_two_drivers_on_the_same_worlds_count_each_once(tmp_path, monkeypatch):
    monkeypatch.setattr(worlds, "run_seed", fails_on_multiples_of_50)
    lake = Lake(tmp_path / "lake")
    begun_together = worlds._missing(lake, spread(["fifo"], 200, 30), same_code=False)
    assert len(list(run_worlds(lake, None, spread(["fifo"], 200, 0)))) == 200
    with monkeypatch.context() as patch:
        patch.setattr(worlds, "_missing", lambda *_: begun_together)
        assert len(list(run_worlds(lake, None, spread(["fifo"], 200, 30)))) == 200
    assert count_worlds(lake, ["fifo"])["fifo"].worlds == 200, "the second fact of the first block counts"
    list(run_worlds(lake, None, spread(["fifo"], 230, 0)))
    assert count_worlds(lake, ["fifo"])["fifo"].worlds == 230
    assert sum(row["worlds"] for row in lake.read("worlds", "fifo").to_pylist()) == 230
