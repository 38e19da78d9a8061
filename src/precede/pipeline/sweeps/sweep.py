"""A whole sweep: runs, verdicts, measures, tables, as one job that can be killed and typed again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from precede.experiments.code_version import is_current
from precede.experiments.grid import Grid
from precede.lake.jobs import Job, Lake
from precede.lake.schemas import MEASURES
from precede.pipeline.sweeps.compare import compare, missed
from precede.pipeline.sweeps.measures import group_measures
from precede.pipeline.sweeps.results import result_tables
from precede.pipeline.sweeps.simulate import Marks, Swept, Wanted, run_sweep
from precede.reproduction.claims import Claims, read_claims

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


RESULTS: Final = ("runs", "verdicts", "violations", "measures")


class SweepSummary(Struct, frozen=True, kw_only=True):
    """What a sweep came to, for whoever typed it."""

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
    session: SparkSession,
    wanted: Wanted | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> SweepSummary:
    """Every run of a grid into the lake, then its tables."""
    with lake.job(f"sweep-{grid.name}").hold() as job:
        claims = None if grid.claims is None else read_claims(Path(grid.claims))
        swept = run_sweep(lake, grid, session, wanted or Wanted(), job, progress)
        write_results(job, grid, swept.marks, session)
        summary = summarise_sweep(swept)
        if claims is not None:
            summary = _hold_against(job, grid, summary, claims)
        job.forget()
    return summary


def _hold_against(job: Job, grid: Grid, summary: SweepSummary, claims: Claims) -> SweepSummary:
    """Compare the measures just written with the claims, and write the table `comparisons`."""
    measures = pq.read_table(job.lake.path("measures", summary.name))
    seeds = {point.id: point.run.seed for point in grid.points}
    table = compare(measures, seeds, claims, summary.name)
    job.write("comparisons", summary.name, table)
    rows = table.to_pylist()
    return msgspec.structs.replace(
        summary, claims=dict(Counter(row["status"] for row in rows)), missed_claims=tuple(missed(rows))
    )


def swept_before(lake: Lake, grid: Grid, wanted: Wanted) -> SweepSummary | None:
    """What a sweep came to, when every run of it is finished and its tables are written; else None."""
    marks = Marks(lake)
    if grid.claims is not None or not all(lake.has(table, grid.name) for table in RESULTS):
        return None
    rows = pq.read_table(lake.path("runs", grid.name), columns=["run_id"])["run_id"].to_pylist()
    ids = [point.id for point in grid.points]
    if rows != ids or not all(marks.complete(run_id, wanted) for run_id in ids):
        return None
    if any(marks.is_stale(run_id, wanted) for run_id in ids):
        return None
    rows_in = {table: pq.read_metadata(lake.path(table, grid.name)).num_rows for table in RESULTS}
    if (wanted.verdicts and rows_in["verdicts"] != len(ids)) or (wanted.measures and not rows_in["measures"]):
        return None
    told = {run_id: marks.read(run_id) for run_id in ids}
    return summarise_sweep(
        Swept(name=grid.name, runs=len(ids), finished_before=len(ids), failed=(), marks=told)
    )


def write_results(job: Job, grid: Grid, marks: dict[str, dict[str, Any]], session: SparkSession) -> None:
    """The tables of a sweep, each replaced as a whole; groups are counted by Spark."""
    tables = result_tables(grid, marks)
    measures = tables["measures"]
    if measures.num_rows:
        groups = group_measures(session.createDataFrame(measures)).orderBy(*MEASURES.key[3:]).toArrow()
        tables["measures"] = pa.concat_tables([measures, groups.cast(MEASURES.arrow())])
    for name, table in tables.items():
        job.write(name, grid.name, table)


def summarise_sweep(swept: Swept) -> SweepSummary:
    """Counts over the marks of a sweep."""
    verdicts = {"holds": 0, "violated": 0, "unknown": 0}
    broken = []
    for run_id, mark in swept.marks.items():
        if "verdicts" in mark:
            told = mark["verdicts"]
            verdicts[told["verdict"]] += 1
            if told["verdict"] != "holds" and told["promised"] == told["order"]:
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
