"""A whole sweep: runs, verdicts, measures and tables, as one job that can be killed and run again."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa
from msgspec import Struct

from precede.experiments.code_version import is_current
from precede.experiments.grid import Grid
from precede.lake.jobs import Job
from precede.lake.layout import Lake
from precede.lake.schemas import MEASURES
from precede.pipeline.sessions.tasks import Progress
from precede.pipeline.sweeps.compare import compare, missed
from precede.pipeline.sweeps.differences import differences
from precede.pipeline.sweeps.groups import group_rows
from precede.pipeline.sweeps.measures import group_measures
from precede.pipeline.sweeps.results import result_tables
from precede.pipeline.sweeps.simulate import Marks, SweepOptions, SweptRuns, run_sweep
from precede.reproduction.claims import Claims, read_claims

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


RESULTS: Final = ("runs", "verdicts", "violations", "measures", "differences")


class SweepSummary(Struct, frozen=True, kw_only=True):
    """The result of a sweep in numbers, for the command's output.

    `broken_promises` are the runs whose promised order does not hold, `by_other_code` counts runs that other
    code of this version left, `claims` counts claims by status.
    """

    name: str
    runs: int
    finished_before: int
    failed: int
    first_failure: str | None
    rows: int
    cpu_s: float
    verdicts: dict[str, int]
    broken_promises: tuple[str, ...]
    by_other_code: int
    claims: dict[str, int] = {}
    missed_claims: tuple[str, ...] = ()


def sweep(
    lake: Lake,
    grid: Grid,
    session: SparkSession | None,
    options: SweepOptions | None = None,
    progress: Progress | None = None,
) -> SweepSummary:
    """Carry out every run of a grid into the lake, then write the sweep's tables.

    Without a session the runs are carried out in this process, one after the other.
    """
    with lake.job(f"sweep-{grid.name}").hold() as job:
        claims = None if grid.claims is None else read_claims(Path(grid.claims))
        swept = run_sweep(lake, grid, session, options or SweepOptions(), job, progress)
        write_results(job, grid, swept.marks, session)
        summary = summarise_sweep(swept)
        if claims is not None:
            summary = _compare_with_claims(job, grid, summary, claims)
        job.forget()
    return summary


def _compare_with_claims(job: Job, grid: Grid, summary: SweepSummary, claims: Claims) -> SweepSummary:
    """Compare the measures just written with the claims, and write the table `comparisons`."""
    seeds = {point.id: point.run.seed for point in grid.points}
    table = compare(job.lake.read("measures", summary.name), seeds, claims, summary.name)
    job.write("comparisons", summary.name, table)
    rows = table.to_pylist()
    return msgspec.structs.replace(
        summary, claims=dict(Counter(row["status"] for row in rows)), missed_claims=tuple(missed(rows))
    )


def swept_before(lake: Lake, grid: Grid, options: SweepOptions) -> SweepSummary | None:
    """Return the summary of a sweep whose runs are all finished and whose tables are written; else None.

    It is None too for a grid with claims, and if results of other code must be run again.
    """
    marks = Marks(lake)
    if grid.claims is not None or not all(lake.is_intact(table, grid.name) for table in RESULTS):
        return None
    listed = lake.read("runs", grid.name, ["run_id"])["run_id"].to_pylist()
    ids = [point.id for point in grid.points]
    if listed != ids or not all(marks.is_complete(run_id, options) for run_id in ids):
        return None
    if any(marks.is_stale(run_id, options) for run_id in ids):
        return None
    if options.verdicts and lake.count("verdicts", grid.name) != len(ids):
        return None
    if options.measures and not lake.count("measures", grid.name):
        return None
    by_id = {run_id: marks.read(run_id) for run_id in ids}
    return summarise_sweep(
        SweptRuns(name=grid.name, runs=len(ids), finished_before=len(ids), failed=(), marks=by_id)
    )


def write_results(job: Job, grid: Grid, marks: dict[str, dict[str, Any]], session: SparkSession | None) -> None:
    """Write the tables of a sweep to the lake. Spark computes the measures of groups."""
    tables = result_tables(grid, marks)
    measures = tables["measures"]
    if measures.num_rows:
        if session is None:
            groups = group_rows(measures)
        else:
            groups = group_measures(session.createDataFrame(measures)).orderBy(*MEASURES.key[3:]).toArrow()
        tables["measures"] = pa.concat_tables([measures, groups.cast(MEASURES.arrow())])
    seeds = {point.id: point.run.seed for point in grid.points}
    tables["differences"] = differences(measures, seeds, grid.name)
    for name, table in tables.items():
        job.write(name, grid.name, table)


def summarise_sweep(swept: SweptRuns) -> SweepSummary:
    """Count the marks of a sweep and return the numbers as a summary."""
    verdicts = {"holds": 0, "violated": 0, "unknown": 0}
    broken = []
    for run_id, mark in swept.marks.items():
        if "verdicts" in mark:
            verdict = mark["verdicts"]
            verdicts[verdict["verdict"]] += 1
            if verdict["verdict"] != "holds" and verdict["promised"] == verdict["order"]:
                broken.append(run_id)
    marks = swept.marks.values()
    return SweepSummary(
        name=swept.name,
        runs=swept.runs,
        finished_before=swept.finished_before,
        failed=len(swept.failed),
        first_failure=f"{swept.failed[0]}: {swept.marks[swept.failed[0]]['error']}" if swept.failed else None,
        rows=sum(mark.get("rows", 0) for mark in marks),
        cpu_s=sum(mark.get("cpu_s", 0.0) for mark in marks),
        verdicts=verdicts,
        broken_promises=tuple(broken),
        by_other_code=sum(not is_current(mark["version"], same_code=True) for mark in marks),
    )
