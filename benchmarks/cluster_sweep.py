"""The CPU time of a sweep on a cluster of two workers: `python -m benchmarks.cluster_sweep [--json]`.

`ratio_cpu` is the CPU time of all processes (master, workers, executors, driver, Java and Python, from their
start on) over the CPU time of simulation, verdict and measures of the same runs on this machine without Spark,
in as many processes at a time as the cluster has. Executors must run compiled code from the archive of `precede
spark pack`, which is made before and not counted. `cpu_s_*` says where the rest goes. With `--alone N` the
first N runs stand for all: they differ in their seed only.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import msgspec

import precede.sim.fast_path
from benchmarks.family import Watched, java_cpu_s
from benchmarks.sweep import SCENARIO, grid
from precede.core.compiling import is_compiled
from precede.lake.commits import RUNS
from precede.lake.layout import Lake
from precede.pipeline.sessions.shipping import cached_pack
from precede.pipeline.sweeps.sweep import sweep
from tests.pipeline.cluster import Cluster

WORKERS: Final = 2
_BECOME_REAPER: Final = 36
"""PR_SET_CHILD_SUBREAPER of Linux: orphans become children of this process, so their CPU time is counted."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one object")
    parser.add_argument("--runs", type=int, default=160)
    parser.add_argument("--until", type=int, default=60, help="simulated seconds of a run")
    parser.add_argument("--alone", type=int, help="carry out only so many runs without Spark (default: all)")
    options = parser.parse_args()
    if not is_compiled(precede.sim.fast_path):
        sys.exit("benchmarks.cluster_sweep: the engine is not compiled here (make compile)")
    with tempfile.TemporaryDirectory(prefix="precede-cluster-") as folder:
        results = run(options.runs, options.until, options.alone or options.runs, Path(folder))
    print(json.dumps(results, indent=2) if options.json else "\n".join(f"{k}: {v}" for k, v in results.items()))


def run(runs: int, until: int, sample: int, folder: Path) -> dict[str, Any]:
    ctypes.CDLL(None).prctl(_BECOME_REAPER, 1, 0, 0, 0)
    command = [sys.executable, "-m", "precede"]
    if not cached_pack().is_file():
        subprocess.run([*command, "spark", "pack"], check=True, stdout=subprocess.DEVNULL)
    (folder / "office.toml").write_text(SCENARIO.format(until=until, end=until + 60))
    alone = sum(marked_cpu_s(lake) for lake in sweep_alone(sample, folder)) * runs / sample
    grid(folder, "whole", f"1-{runs}")
    lake = Lake(folder / "lake")
    with Watched() as watched, Cluster(folder / "cluster", workers=WORKERS) as cluster:
        subprocess.run(
            [*command, "sweep", str(folder / "whole.toml"), "--lake", lake.location, "--master", cluster.url],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        daemons = java_cpu_s()  # the driver and the executors have ended
    used = watched.cpu_s
    check_executors(lake, runs)
    tasks = marked_cpu_s(lake)
    return {
        "runs": runs,
        "runs_alone": sample,
        "alone_cpu_s": round(alone, 1),
        "cluster_cpu_s": round(used, 1),
        "cpu_s_of_tasks": round(tasks, 1),
        "cpu_s_of_master_and_workers": round(daemons, 1),
        "cpu_s_of_driver_executors_and_starts": round(used - tasks - daemons, 1),
        "ratio_cpu": round(used / alone, 3),
        "ratio_tasks": round(tasks / alone, 3),
    }


def sweep_alone(runs: int, folder: Path) -> list[Lake]:
    """Sweep without Spark, in two processes that take half of the runs each; returns their lakes."""
    parts = [f"{first}-{last}" for first, last in ((1, runs // 2), (runs // 2 + 1, runs))]
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        locations = pool.map(sweep_part, [str(folder)] * len(parts), parts)
        return [Lake(location) for location in locations]


def sweep_part(folder: str, seeds: str) -> str:
    """Sweep some seeds without Spark; returns where the lake is."""
    lake = Lake(Path(folder) / f"alone-{seeds}")
    sweep(lake, grid(Path(folder), f"alone-{seeds}", seeds), None)
    return lake.location


class Mark(msgspec.Struct):
    """The parts of a run's mark that say how long it took, and who carried it out."""

    task_cpu_s: float
    worker: str
    engine: str


def marked_cpu_s(lake: Lake) -> float:
    """CPU seconds of simulation, verdict and measures of all runs of a lake."""
    return sum(mark.task_cpu_s for mark in read_marks(lake))


def read_marks(lake: Lake) -> list[Mark]:
    return [msgspec.json.decode(fact.raw, type=Mark) for fact in lake.snapshot().facts(RUNS).values()]


def check_executors(lake: Lake, runs: int) -> None:
    """Every run was carried out by compiled code, and both executors had a share."""
    marks = read_marks(lake)
    assert len(marks) == runs, len(marks)
    assert {mark.engine for mark in marks} == {"compiled"}
    assert len({mark.worker for mark in marks}) >= WORKERS


if __name__ == "__main__":
    main()
