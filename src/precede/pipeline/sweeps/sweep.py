"""A whole sweep: runs, verdicts, measures and tables, as one job that can be killed and run again."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import pyarrow as pa
from msgspec import Struct

from precede.experiments.code_version import is_current
from precede.experiments.grid import Grid
from precede.lake.commits import SWEEPS
from precede.lake.layout import Lake
from precede.pipeline.sessions.tasks import Progress
from precede.pipeline.sweeps.compare import missed
from precede.pipeline.sweeps.marks import Marks, SweepOptions
from precede.pipeline.sweeps.simulate import SweptRuns, run_sweep
from precede.pipeline.sweeps.tables import SweepTables
from precede.reproduction.claims import read_claims

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


RESULTS: Final = ("runs", "verdicts", "violations", "measures", "differences")


class SweepSummary(Struct, frozen=True, kw_only=True):
    """The result of a sweep in numbers, for the command's output.

    `broken_promises` are the runs whose promised order is violated or unknown, `by_other_code` counts runs
    whose results were written by other code with this version number, `claims` counts claims by status.
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
    """Carry out every run of a grid into the lake, in this process without a session; write the tables."""
    with lake.job(f"sweep-{grid.name}").hold() as job:
        claims = None if grid.claims is None else read_claims(Path(grid.claims))
        swept = run_sweep(lake, grid, session, options or SweepOptions(), job, progress)
        tables = SweepTables(grid, swept.marks, claims)
        files = [job.add_rows("measures", grid.name, tables.measures())]
        others = tables.others()
        files += [job.add_rows(name, grid.name, rows) for name, rows in others.items()]
        summary = summarise_sweep(swept)
        if claims is not None:
            summary = _with_claims(summary, others["comparisons"])
        job.commit(SWEEPS, grid.name, files)
    return summary


def _with_claims(summary: SweepSummary, comparisons: pa.Table) -> SweepSummary:
    rows = comparisons.to_pylist()
    return msgspec.structs.replace(
        summary, claims=dict(Counter(row["status"] for row in rows)), missed_claims=tuple(missed(rows))
    )


def swept_before(lake: Lake, grid: Grid, options: SweepOptions) -> SweepSummary | None:
    """Return the summary of a sweep that is finished and written; None with claims or results of other code."""
    marks = Marks(lake)
    if grid.claims is not None or not all(lake.is_intact(table, grid.name) for table in RESULTS):
        return None
    listed = lake.read("runs", grid.name, ["run_id"])["run_id"].to_pylist()
    ids = [point.id for point in grid.points]
    if listed != ids or not all(marks.is_complete(run_id, options) for run_id in ids):
        return None
    if options.verdicts and lake.count("verdicts", grid.name) != len(ids):
        return None
    if options.measures and not lake.count("measures", grid.name):
        return None
    return summarise_sweep(SweptRuns(name=grid.name, finished_before=len(ids), marks=marks.of(ids)))


def summarise_sweep(swept: SweptRuns) -> SweepSummary:
    verdicts = {"holds": 0, "violated": 0, "unknown": 0}
    briefs = {run_id: swept.marks.brief(run_id) for run_id in swept.marks}
    broken = []
    for run_id, brief in briefs.items():
        if brief.verdicts is not None:
            verdicts[brief.verdicts.verdict] += 1
            if brief.verdicts.verdict != "holds" and brief.verdicts.promised == brief.verdicts.order:
                broken.append(run_id)
    marks, failed = briefs.values(), swept.failed
    return SweepSummary(
        name=swept.name,
        runs=len(briefs),
        finished_before=swept.finished_before,
        failed=len(failed),
        first_failure=f"{failed[0]}: {briefs[failed[0]].error}" if failed else None,
        rows=sum(mark.rows for mark in marks),
        cpu_s=sum(mark.cpu_s for mark in marks),
        verdicts=verdicts,
        broken_promises=tuple(broken),
        by_other_code=sum(not is_current(mark.version, same_code=True) for mark in marks),
    )
