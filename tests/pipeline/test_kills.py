"""Killed workers and drivers: the tables are the same, and no finished run is repeated.

`precede sweep` runs in its own process on a cluster of a master and two workers; kills are SIGKILL.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time

import psutil
import pytest

from precede.cli import main
from precede.experiments.grid import read_grid
from precede.lake.layout import Lake
from precede.pipeline.sweeps.marks import Marks
from tests.pipeline.cluster import Cluster, kill_tree

SPEC = """
[sweep]
scenario = "some.toml"
protocol = ["vector_clock", "unordered"]
seeds = 6
"""
SCENARIO = """
[world]
kind = "point_to_point"
nodes = 8
delay = "exponential(0.05)"
[workload]
poisson = "200ms"
until = "12s"
[run]
protocol = "vector_clock"
end = "20s"
"""
# the limit of all tests is for quick ones; a cluster on a loaded machine takes minutes to start
pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.timeout(2000)]
TIMES = {"cpu_s", "attempt", "worker", "finished_at"}


def write_spec(folder):
    (folder / "some.toml").write_text(SCENARIO)
    (folder / "some sweep.toml").write_text(SPEC + 'name = "some"\n')
    return folder / "some sweep.toml"


def start_sweep(spec, lake, *arguments):
    command = [sys.executable, "-c", "import sys; from precede.cli import main; sys.exit(main())"]
    return subprocess.Popen(
        [*command, "sweep", str(spec), "--lake", lake.location, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished_marks(lake, grid):
    marks = Marks(lake)
    read = {point.id: marks.read(point.id) for point in grid.points}
    return {run_id: mark for run_id, mark in read.items() if mark.get("status") == "finished"}


def wait_for(condition, process, seconds=900):
    until = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        assert process.poll() is None, process.communicate(timeout=60)
        assert time.monotonic() < until
        time.sleep(0.02)


def tables(lake):
    """Every row of a sweep but for times and attempts."""
    lake = lake.snapshot()
    files = {
        f"{table}/{unit}": lake.read(table, unit).to_pylist()
        for table in ("events", "gauges")
        for unit in lake.units(table)
    }
    for table in ("runs", "verdicts", "violations", "measures"):
        rows = lake.read(table, "some").to_pylist()
        files[table] = sorted(json.dumps({k: v for k, v in row.items() if k not in TIMES}) for row in rows)
    return files


def retried_tasks(events):
    """From Spark's own event log: tasks that were lost, and begun again as another attempt."""
    lost, begun_again = set(), set()
    for file in events.rglob("events_*"):
        for line in file.read_text().splitlines():
            event = json.loads(line)
            if event["Event"] == "SparkListenerTaskEnd" and event["Task End Reason"]["Reason"] != "Success":
                lost.add((event["Stage ID"], event["Task Info"]["Index"]))
            if event["Event"] == "SparkListenerTaskStart" and event["Task Info"]["Attempt"] > 0:
                begun_again.add((event["Stage ID"], event["Task Info"]["Index"]))
    return lost & begun_again


def test_a_cluster_that_loses_a_worker_gives_the_tables_of_the_embedded_run(session, tmp_path):
    from precede.pipeline.sweeps.sweep import sweep

    spec = write_spec(tmp_path)
    grid = read_grid(spec)
    here, there = Lake(tmp_path / "here"), Lake(tmp_path / "the re")
    sweep(here, grid, session)
    log = tmp_path / "event log"
    log.mkdir()
    settings = ("enabled=true", "compress=false", f"dir={log.as_uri()}")
    logged = [word for setting in settings for word in ("--conf", f"spark.eventLog.{setting}")]
    with Cluster(tmp_path / "cluster") as cluster:
        process = start_sweep(spec, there, "--master", cluster.url, *logged)
        try:
            victim = wait_for(lambda: _busy_worker(cluster, there, grid), process)
            kill_tree(victim.pid)
            out, err = process.communicate(timeout=900)
        finally:
            kill_tree(process.pid)
    assert process.returncode == 0, err
    assert "12 runs" in out
    assert tables(there) == tables(here)
    assert retried_tasks(log)


def _busy_worker(cluster, lake, grid):
    """A worker that has finished a run, while another run of its is under way."""
    done = finished_marks(lake, grid)
    if len(done) > len(grid.points) - 3:
        raise AssertionError("the runs were over before a worker could be killed")
    for mark in done.values():
        pid = int(mark["worker"].rsplit(":", 1)[1])
        # the process that watches a worker during a task is its child
        if psutil.pid_exists(pid) and psutil.Process(pid).children():
            return cluster.worker_of(pid)
    return None


def test_after_a_killed_driver_only_missing_runs_are_carried_out(tmp_path):
    spec = write_spec(tmp_path)
    grid = read_grid(spec)
    lake = Lake(tmp_path / "lake")
    first = start_sweep(spec, lake, "--master", "local[2,4]")
    before = wait_for(lambda: len(done := finished_marks(lake, grid)) >= 3 and done, first)
    kill_tree(first.pid)
    first.wait(60)
    before = finished_marks(lake, grid)
    assert len(before) < len(grid.points)
    assert not lake.units("runs")
    second = start_sweep(spec, lake, "--master", "local[2,4]")
    out, err = second.communicate(timeout=900)
    assert second.returncode == 0, err
    assert f"({len(before)} were finished before)" in out
    after = finished_marks(lake, grid)
    assert len(after) == len(grid.points)
    assert {run_id: after[run_id] for run_id in before} == before
    assert len(lake.units("events")) == len(grid.points)
    # the first driver's; it may still live for all that the second one knows
    (left,) = lake.root.glob("_jobs/sweep-*/attempt-*")
    assert main(["lake", "compact", "--lake", lake.location, "--older-than", "1ms"]) == 0
    assert not left.exists()
    third = start_sweep(spec, lake)
    out, _ = third.communicate(timeout=900)
    assert "(12 were finished before)" in out
