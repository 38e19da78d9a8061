"""The runs of a sweep as tasks on Spark.

A task takes several runs. It simulates each one into its own scratch, publishes the files in the lake, has the
verifier judge the log, computes the measures, and then leaves a done mark with everything small about the run.
The mark comes last: a run with a mark is not run again, a run without one is run from its beginning, whatever
process was killed. The driver makes tables from the marks (`sweeps.results`). A mark that another version of
this package left is removed when a sweep begins (`experiments.code_version`).

A run that raises is marked `failed` with its traceback and does not stop the others; the next sweep tries it
again. A run during which two workers died is marked `failed` too, because it may be what kills them. A worker
that ends together with its executor (preemption, a lost machine) did not die of the run (`sweeps.deaths`).
"""

from __future__ import annotations

import os
import shutil
import traceback
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from precede.core.errors import BadInput
from precede.experiments.code_version import is_current, made_by
from precede.experiments.grid import Grid, Point
from precede.experiments.measuring import measured_part
from precede.experiments.run import Run, carry_out_into
from precede.lake.jobs import Job
from precede.lake.layout import Lake
from precede.measures import measure_events, measure_gauges
from precede.pipeline.sessions.tasks import Progress, attempt_number, spread, task_facts
from precede.pipeline.sweeps.deaths import count_deaths, witnessed
from precede.pipeline.sweeps.verdicts import judge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_S_A_TASK: Final = 2.0
"""The CPU seconds of work that a task should have.

Short runs share a task, so that starting tasks (0.05 CPU s each) costs little.
"""

_PILOT: Final = 64
"""The most runs of a first plan that only measures durations.

Such a plan is made if there are more runs than this and the duration of none is known.
"""

_DEATHS: Final = 2
_MARKS_READ: Final = 20_000


class SweepOptions(Struct, frozen=True):
    """The stages that follow the simulation (`verdicts`, `measures`), and which results are run again.

    Results of another version are always run again; with `same_code` also those of other code of this version.
    """

    verdicts: bool = True
    measures: bool = True
    same_code: bool = False

    def stages(self) -> list[str]:
        """Return the stages that a complete mark must have."""
        return [stage for stage in ("verdicts", "measures") if getattr(self, stage)]


class SweptRuns(Struct, frozen=True, kw_only=True):
    """All runs of a sweep with their marks; `failed` are the ids of failed runs."""

    name: str
    runs: int
    finished_before: int
    failed: tuple[str, ...]
    marks: dict[str, dict[str, Any]]


def run_sweep(
    lake: Lake,
    grid: Grid,
    session: SparkSession | None,
    options: SweepOptions,
    job: Job,
    progress: Progress | None = None,
) -> SweptRuns:
    """Carry out the runs of a sweep that are missing; returns when every run has its mark."""
    marks = Marks(lake)
    for point in grid.points:
        if marks.is_stale(point.id, options):
            marks.job.unmark(point.id)
    before = [point for point in grid.points if marks.is_complete(point.id, options)]
    todo = [p for p in grid.points if not marks.is_complete(p.id, options)]
    for point in todo:
        if marks.read(point.id).get("status") == "failed":
            marks.job.unmark(point.id)
    while todo:
        shares = plan_tasks(todo, _known_cpu_s(marks))
        job.write_plan(shares)
        what = f"sweep {grid.name}: simulate {sum(map(len, shares)):,} runs"
        watch = _watch(marks, todo, len(before), progress)
        try:
            spread(session, what, _Batch(lake, job, options), len(shares), watch)
        except Exception as error:
            if isinstance(error, BadInput) or session is None:
                raise
            # workers died more often than Spark retries; continue if some runs were settled meanwhile
            if not any(marks.is_settled(point.id, options) for point in todo):
                raise
        todo = [point for point in todo if not marks.is_settled(point.id, options)]
    by_id = {point.id: marks.read(point.id) for point in grid.points}
    failed = tuple(run_id for run_id, mark in by_id.items() if mark["status"] == "failed")
    return SweptRuns(
        name=grid.name, runs=len(grid.points), finished_before=len(before), failed=failed, marks=by_id
    )


class Marks:
    """The done marks of all runs of a lake, whichever sweep ran them."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self.job = lake.job("runs")

    def read(self, run_id: str) -> dict[str, Any]:
        """Return a run's mark; empty if it or the run's log is missing or damaged."""
        if not self.job.is_marked(run_id):
            return {}
        mark: dict[str, Any] = self.job.record(run_id)
        if mark["status"] == "finished":
            for table in ("events", "gauges"):
                if not self.lake.is_intact(table, run_id):
                    return {}
        return mark

    def is_stale(self, run_id: str, options: SweepOptions) -> bool:
        """Return whether the mark was left by another version, or by other code if `same_code` is demanded."""
        mark = self.read(run_id)
        return bool(mark) and not is_current(mark["version"], options.same_code)

    def is_complete(self, run_id: str, options: SweepOptions) -> bool:
        """Is the run finished, with all stages?"""
        mark = self.read(run_id)
        return mark.get("status") == "finished" and all(stage in mark for stage in options.stages())

    def is_settled(self, run_id: str, options: SweepOptions) -> bool:
        """Is the run complete or failed, so that this sweep does not try it again?"""
        return self.is_complete(run_id, options) or self.read(run_id).get("status") == "failed"


class _Batch:
    """Carries out runs and leaves their marks. `spread` calls it with the number of a task in the job's plan.

    The plan has the runs of each task. A call returns their number.
    """

    def __init__(self, lake: Lake, job: Job, options: SweepOptions) -> None:
        self.lake, self.job, self.options = lake, job, options

    def __call__(self, number: int) -> int:
        points = self.job.read_plan(number, list[Point])
        with witnessed(self.job.scratch):
            for point in points:
                _RunTask(self.lake, self.job, point, self.options).settle()
        return len(points)


class _RunTask:
    """Carries out one run up to its done mark, from the state in which an earlier attempt left it."""

    def __init__(self, lake: Lake, job: Job, point: Point, options: SweepOptions) -> None:
        self.lake, self.job, self.point, self.options = lake, job, point, options
        self.marks = Marks(lake)
        self.begun = job.scratch / f"{point.id}-{attempt_number()}-{os.getpid()}.begun"

    def settle(self) -> None:
        """Carry out the missing steps of the run, and mark it as finished or as failed.

        A file `*.begun` exists while a worker carries out the run; it becomes `*.died` if the run kills it.
        """
        if self.marks.is_complete(self.point.id, self.options):
            return
        deaths = count_deaths(self.job.scratch, self.point.id)
        if deaths >= _DEATHS:
            self._fail(f"{deaths} workers died during this run", "")
            return
        self.begun.touch()
        try:
            mark = self.marks.read(self.point.id)
            if mark.get("status") != "finished":
                mark = self._simulate()
            self._judge_and_measure(mark)
            self._mark(mark)
        except Exception as error:
            self._fail(f"{type(error).__name__}: {error}", traceback.format_exc())
        self.begun.unlink()

    def _simulate(self) -> dict[str, Any]:
        """Simulate into scratch and publish the files; returns a done mark without verdict and measures."""
        folder = self.begun.with_suffix("")
        try:
            outcome: dict[str, Any] = msgspec.to_builtins(carry_out_into(self.point.run, folder))
            for table in ("gauges", "events"):
                self.job.publish(folder / f"{table}.parquet", table, self.point.id)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        del outcome["run_id"]
        return self._facts("finished") | outcome

    def _judge_and_measure(self, mark: dict[str, Any]) -> None:
        """Add to a done mark the requested stages (verdict, measures) that it lacks."""
        events, gauges = (self.lake.checked(table, self.point.id) for table in ("events", "gauges"))
        if self.options.verdicts and "verdicts" not in mark:
            mark["verdicts"] = judge(events, mark["order"])
        if self.options.measures and "measures" not in mark:
            window, energy = measured_part(self.point.run, mark["end_us"])
            mark["measures"] = measure_events(events, window, energy) | measure_gauges(gauges, window)
            mark["measures"] |= {
                name: value for name, value in mark["counters"].items() if name not in mark["measures"]
            }

    def _fail(self, error: str, trace: str) -> None:
        self._mark(self._facts("failed") | {"error": error, "traceback": trace})

    def _facts(self, status: str) -> dict[str, Any]:
        """Return the fields of every mark: status, version, worker, and the run itself."""
        run = msgspec.to_builtins(self.point.run)
        return {"status": status, "version": made_by(), **task_facts(), "run": run}

    def _mark(self, mark: dict[str, Any]) -> None:
        self.marks.job.mark(self.point.id, mark, self.job.scratch)


def plan_tasks(points: Sequence[Point], cpu_s: Mapping[bytes, float]) -> list[list[Point]]:
    """Divide runs into tasks by their estimated work, and not by the cores that a cluster has just now.

    `cpu_s` is the CPU time of runs by everything but their seed. Tasks have about `_S_A_TASK` of work, and the
    longest runs begin first. If there are more than `_PILOT` runs and nothing is known about any, the plan has
    only one run of each kind, at most `_PILOT`; the next plan knows how long they took.
    """
    kinds = [_without_seed(point.run) for point in points]
    unknown = [point for point, kind in zip(points, kinds, strict=True) if kind not in cpu_s]
    if unknown and len(points) > _PILOT and not cpu_s.keys() & set(kinds):
        first = {_without_seed(point.run): point for point in reversed(unknown)}
        return [[point] for point in list(first.values())[::-1][:_PILOT]]
    if unknown and len(points) <= _PILOT:
        return [[point] for point in _longest_first(points, cpu_s)]
    known = [cpu_s[kind] for kind in kinds if kind in cpu_s]
    guess = sum(known) / len(known) if known else _S_A_TASK
    work = sum(cpu_s.get(kind, guess) for kind in kinds)
    tasks = max(1, min(len(points), int(work / _S_A_TASK) + 1))
    ordered = _longest_first(points, cpu_s)
    # dealt in turn like cards: the first runs, which take longest, all begin first
    return [ordered[number::tasks] for number in range(tasks)]


def _longest_first(points: Sequence[Point], cpu_s: Mapping[bytes, float]) -> list[Point]:
    """Return runs sorted by the CPU time that they took with another seed; unknown ones last, in order."""
    return sorted(points, key=lambda point: -cpu_s.get(_without_seed(point.run), 0.0))


def _known_cpu_s(marks: Marks) -> dict[bytes, float]:
    """Return the CPU time of earlier runs, by everything but their seed."""
    cpu_s: dict[bytes, float] = {}
    for run_id in islice(marks.job.marked(), _MARKS_READ):
        mark = marks.read(run_id)
        try:
            key = _without_seed(msgspec.convert(mark.get("run"), Run))
        except msgspec.ValidationError:  # no mark, or one that another version left
            continue
        if "cpu_s" in mark:
            cpu_s[key] = max(cpu_s.get(key, 0.0), mark["cpu_s"])
    return cpu_s


def _without_seed(run: Run) -> bytes:
    return msgspec.json.encode(msgspec.structs.replace(run, seed=0), order="sorted")


def _watch(
    marks: Marks, todo: Sequence[Point], before: int, progress: Progress | None
) -> Callable[[], None] | None:
    """Return a function that reports how many runs are marked; None without a progress callback."""
    if progress is None:
        return None
    ids = {point.id for point in todo}
    at_start = marks.job.marked()

    def watch() -> None:
        progress(before + len((marks.job.marked() - at_start) & ids), before + len(ids))

    return watch
