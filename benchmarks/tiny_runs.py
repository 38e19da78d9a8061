"""Many tiny runs in a lake: how many files they leave, and how long a finished sweep takes to be found again.

    python -m benchmarks.tiny_runs --runs 100000 --json

The runs are simulated, verified and measured in this process, without Spark. `resume_s` is the time that a
finished sweep takes to be found finished; `listing_s` is the part that reads commit records and compares files
with them. With `--folder DIR` a killed benchmark continues; `sweep_cpu_s` is then that of the last part, and
`runs_cpu_s` that of all runs. `--copies N` measures only the listing, for a lake with N copies of one run under
other ids: it takes seconds instead of half an hour.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

from precede.experiments.grid import read_grid
from precede.lake.commits import RUNS, CommittedFile, Span
from precede.lake.compaction import compact, count_files
from precede.lake.jobs import Job, write_rows
from precede.lake.layout import Lake
from precede.pipeline.sweeps.marks import Marks, SweepOptions
from precede.pipeline.sweeps.sweep import sweep, swept_before

SCENARIO = """
[world]
kind = "point_to_point"
nodes = 2
delay = "constant(0.01)"
[workload]
every = "1s"
until = "1s"
[run]
protocol = "fifo"
gauges = "none"
end = "2s"
"""


def measure(runs: int, folder: Path) -> dict[str, Any]:
    (folder / "tiny.toml").write_text(SCENARIO)
    spec = folder / "spec.toml"
    spec.write_text(f'[sweep]\nscenario = "tiny.toml"\nprotocol = "fifo"\nseeds = {runs}\n')
    lake, options = Lake(folder / "lake"), SweepOptions()
    grid = read_grid(spec)
    began, cpu = time.perf_counter(), time.process_time()
    summary = sweep(lake, grid, None, options)
    sweep_s, cpu = time.perf_counter() - began, time.process_time() - cpu
    assert (summary.runs, summary.failed) == (runs, 0), summary.first_failure
    files = count_files(lake)
    began, cpu_began = time.perf_counter(), time.process_time()
    marks = Marks(Lake(lake.location))
    assert all(marks.is_complete(point.id, options) for point in grid.points)
    listing, listing_cpu = time.perf_counter() - began, time.process_time() - cpu_began
    began, cpu_began = time.perf_counter(), time.process_time()
    again = swept_before(Lake(lake.location), read_grid(spec), options)
    resume, resume_cpu = time.perf_counter() - began, time.process_time() - cpu_began
    assert again is not None
    assert again.finished_before == runs
    with lake.job("compact").hold() as job:
        merged = compact(job).files
    return {
        "runs": runs,
        "finished_before": summary.finished_before,
        "files": files,
        "files_after_compact": merged,
        "bytes": sum(path.stat().st_size for path in lake.root.rglob("*") if path.is_file()),
        "sweep_s": round(sweep_s, 1),
        "sweep_cpu_s": round(cpu, 1),
        "runs_cpu_s": round(sum(mark["task_cpu_s"] for mark in marks.of(list(marks.facts)).values()), 1),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "listing_s": round(listing, 2),
        "listing_cpu_s": round(listing_cpu, 2),
        "resume_s": round(resume, 2),
        "resume_cpu_s": round(resume_cpu, 2),
    }


def measure_copies(copies: int, folder: Path) -> dict[str, Any]:
    """Find N runs finished; their rows and marks are copies of those of one run, packed as by a sweep."""
    (folder / "tiny.toml").write_text(SCENARIO)
    spec = folder / "spec.toml"
    spec.write_text('[sweep]\nscenario = "tiny.toml"\nprotocol = "fifo"\nseeds = 1\n')
    one = Lake(folder / "one")
    sweep(one, read_grid(spec), None)
    (run_id,) = one.units("events")
    mark = one.fact(RUNS, run_id)
    spec.write_text(f'[sweep]\nscenario = "tiny.toml"\nprotocol = "fifo"\nseeds = {copies}\n')
    grid, lake = read_grid(spec), Lake(folder / "lake")
    with lake.job("copy").hold() as job:
        for begin in range(0, copies, 5_000):
            ids = [point.id for point in grid.points[begin : begin + 5_000]]
            files = [_copies(job, one.read(table, run_id), table, ids) for table in ("events", "gauges")]
            job.commit(RUNS, f"pack-{begin}", files, dict.fromkeys(ids, mark))
    began, cpu = time.perf_counter(), time.process_time()
    found, options = Marks(Lake(lake.location)), SweepOptions()
    assert all(found.is_complete(point.id, options) for point in read_grid(spec).points)
    return {
        "copies": copies,
        "files": count_files(lake),
        "bytes": sum(path.stat().st_size for path in lake.root.rglob("*") if path.is_file()),
        "listing_s": round(time.perf_counter() - began, 2),
        "listing_cpu_s": round(time.process_time() - cpu, 2),
    }


def _copies(job: Job, rows: pa.Table, table: str, ids: list[str]) -> CommittedFile:
    """Write a pack with the same rows for every run."""
    place, count = rows.column_names.index("run_id"), rows.num_rows
    many = pa.concat_tables([rows] * len(ids))
    many = many.set_column(place, "run_id", pa.array(ids).take(pa.array(np.repeat(np.arange(len(ids)), count))))
    units = {run_id: Span(number * count, count) for number, run_id in enumerate(ids)}
    with job.workspace() as folder:
        write_rows(folder / "pack.parquet", table, many)
        return job.add_file(table, f"pack-{ids[0]}", folder / "pack.parquet", units)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one object")
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--copies", type=int, help="list so many copies of one run instead")
    parser.add_argument("--folder", type=Path, help="keep the lake here, and continue (default: temporary)")
    options = parser.parse_args()
    with (
        nullcontext(options.folder) if options.folder else TemporaryDirectory(prefix="precede-tiny-") as folder
    ):
        Path(folder).mkdir(parents=True, exist_ok=True)
        count = options.runs if options.copies is None else options.copies
        results = (measure if options.copies is None else measure_copies)(count, Path(folder))
    print(json.dumps(results, indent=2) if options.json else "\n".join(f"{k}: {v}" for k, v in results.items()))


if __name__ == "__main__":
    main()
