"""A sweep: every run of a grid as one unit of work on Spark (DESIGN section 5).

A task takes some runs. For each it simulates into its own scratch, gives the finished files their names in the
lake, has the witness judge the log, counts the measures, and then leaves a mark with all that is small about
the run. The mark comes last: a run that has one is not run again, a run that has none is run from its
beginning, whoever was killed when. The driver turns marks into tables (`pipeline.results`). A mark that
another version of this package left is taken away when a sweep begins (`experiments.made_by`).

A run that raises is marked `failed` with its traceback and stops nobody; it is tried again when the sweep is
typed again. A run during which two workers died is marked so as well, for it may be what kills them.
"""

from __future__ import annotations

import os
import platform
import shutil
import traceback
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from precede.core.errors import BadInput
from precede.experiments.code_version import is_current, made_by
from precede.experiments.grid import Grid, Point
from precede.experiments.run import Outcome, Run, carry_out_into
from precede.lake.jobs import Job, Lake
from precede.measures import measure_events, measure_gauges
from precede.pipeline.sessions.tasks import attempt_number, cores, spread
from precede.pipeline.sweeps.verdicts import judge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TASKS_A_CORE: Final = 32
"""Short runs share a task: enough tasks to even out, few enough that each has some seconds of work."""

_DEATHS: Final = 2
_REMEMBERED: Final = 20_000


class Wanted(Struct, frozen=True):
    """Which stages a sweep goes through after simulating.

    `same_code`: what other code of this version left is to be run again.
    """

    verdicts: bool = True
    measures: bool = True
    same_code: bool = False


class Swept(Struct, frozen=True, kw_only=True):
    """What a sweep came to."""

    name: str
    runs: int
    finished_before: int
    failed: tuple[str, ...]
    marks: dict[str, dict[str, Any]]


def run_sweep(
    lake: Lake,
    grid: Grid,
    session: SparkSession | None,
    wanted: Wanted,
    job: Job,
    progress: Callable[[int, int], None] | None = None,
) -> Swept:
    """Carry out what is missing of a sweep; returns when every run has its mark."""
    marks = Marks(lake)
    for point in grid.points:
        if marks.is_stale(point.id, wanted):
            marks.job.unmark(point.id)
    before = [point for point in grid.points if marks.complete(point.id, wanted)]
    todo = _longest_first([p for p in grid.points if not marks.complete(p.id, wanted)], marks)
    marks.job.done.mkdir(parents=True, exist_ok=True)
    for point in todo:
        if marks.read(point.id).get("status") == "failed":
            marks.job.unmark(point.id)
    while todo:
        plan = _Batch(lake, job, _write_plan(job, todo, cores(session)), wanted)
        try:
            spread(session, plan, len(plan.files), _watch(marks, todo, len(before), progress))
        except Exception as error:
            if isinstance(error, BadInput) or session is None:
                raise
            # a worker died more often than Spark retries: go on, for the runs it died of are known by now
            if not any(marks.settled(point.id, wanted) for point in todo):
                raise
        todo = [point for point in todo if not marks.settled(point.id, wanted)]
    told = {point.id: marks.read(point.id) for point in grid.points}
    failed = tuple(run_id for run_id, mark in told.items() if mark["status"] == "failed")
    return Swept(name=grid.name, runs=len(grid.points), finished_before=len(before), failed=failed, marks=told)


class Marks:
    """What is known about every run of a lake, whichever sweep ran it."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self.job = lake.job("runs")

    def read(self, run_id: str) -> dict[str, Any]:
        """A run's mark; empty when it has none, or when its files were taken away."""
        if not self.job.is_marked(run_id):
            return {}
        try:
            mark: dict[str, Any] = self.job.told(run_id)
        except msgspec.DecodeError:
            return {}
        if mark["status"] == "finished" and not self.lake.has("events", run_id):
            return {}
        return mark

    def is_stale(self, run_id: str, wanted: Wanted) -> bool:
        """Of another version, or of other code where that is not wanted."""
        mark = self.read(run_id)
        return bool(mark) and not is_current(mark["version"], wanted.same_code)

    def complete(self, run_id: str, wanted: Wanted) -> bool:
        """Finished, with everything that is wanted of it."""
        mark = self.read(run_id)
        if mark.get("status") != "finished":
            return False
        return all(stage in mark for stage in _stages(wanted))

    def settled(self, run_id: str, wanted: Wanted) -> bool:
        """Finished, or failed in this sweep: not to be tried again now."""
        return self.complete(run_id, wanted) or self.read(run_id).get("status") == "failed"


def _stages(wanted: Wanted) -> list[str]:
    return [stage for stage in ("verdicts", "measures") if getattr(wanted, stage)]


class _Batch:
    """Some runs as one piece of work; the runs of a piece stand in a file of the job."""

    def __init__(self, lake: Lake, job: Job, files: Sequence[Path], wanted: Wanted) -> None:
        self.lake, self.job, self.files, self.wanted = lake, job, list(files), wanted

    def __call__(self, number: int) -> int:
        points = msgspec.json.decode(self.files[number].read_bytes(), type=list[Point])
        for point in points:
            _Unit(self.lake, self.job, point, self.wanted).settle()
        return len(points)


class _Unit:
    """One run, from wherever an earlier attempt left it to its mark."""

    def __init__(self, lake: Lake, job: Job, point: Point, wanted: Wanted) -> None:
        self.lake, self.job, self.point, self.wanted = lake, job, point, wanted
        self.marks = Marks(lake)
        self.begun = job.scratch / f"{point.id}-{attempt_number()}-{os.getpid()}.begun"

    def settle(self) -> None:
        if self.marks.complete(self.point.id, self.wanted):
            return
        deaths = sum(1 for _ in self.job.scratch.glob(f"{self.point.id}-*.begun"))
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
        """The run into scratch, then under its names in the lake."""
        folder = self.begun.with_suffix("")
        try:
            outcome = carry_out_into(self.point.run, folder)
            for table in ("gauges", "events"):
                self.job.publish(folder / f"{table}.parquet", table, self.point.id)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return self._facts("finished") | _outcome(outcome)

    def _judge_and_measure(self, mark: dict[str, Any]) -> None:
        events, gauges = (self.lake.path(table, self.point.id) for table in ("events", "gauges"))
        if self.wanted.verdicts and "verdicts" not in mark:
            mark["verdicts"] = judge(events, mark["order"])
        if self.wanted.measures and "measures" not in mark:
            mark["measures"] = measure_events(events) | measure_gauges(gauges)
            mark["measures"] |= {
                name: value for name, value in mark["counters"].items() if name not in mark["measures"]
            }

    def _fail(self, error: str, where: str) -> None:
        self._mark(self._facts("failed") | {"error": error, "traceback": where})

    def _facts(self, status: str) -> dict[str, Any]:
        return {
            "status": status,
            "version": made_by(),
            "attempt": attempt_number(),
            "worker": f"{platform.node()}:{os.getpid()}",
            "finished_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "run": msgspec.to_builtins(self.point.run),
        }

    def _mark(self, mark: dict[str, Any]) -> None:
        self.marks.job.mark(self.point.id, mark, self.job.scratch)


def _outcome(outcome: Outcome) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(outcome)
    del told["run_id"]
    return told


def _write_plan(job: Job, points: Sequence[Point], workers: int) -> list[Path]:
    """Deal the runs to files, one for each task, as from a pack of cards: the first runs begin first."""
    count = min(len(points), TASKS_A_CORE * workers)
    folder = job.folder / "plan"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    files = []
    for number in range(count):
        file = folder / f"{number}.json"
        file.write_bytes(msgspec.json.encode(points[number::count]))
        files.append(file)
    return files


def _longest_first(points: Sequence[Point], marks: Marks) -> list[Point]:
    """Runs whose like took long before begin first; the others keep their order, behind them."""
    known: dict[bytes, float] = {}
    for run_id in islice(marks.job.marked(), _REMEMBERED):
        mark = marks.read(run_id)
        try:
            key = _kind(msgspec.convert(mark.get("run"), Run))
        except msgspec.ValidationError:  # no mark, or one that another version left
            continue
        known[key] = max(known.get(key, 0.0), mark.get("cpu_s", 0.0))
    return sorted(points, key=lambda point: -known.get(_kind(point.run), 0.0))


def _kind(run: Run) -> bytes:
    """Everything about a run but its seed."""
    return msgspec.json.encode(msgspec.structs.replace(run, seed=0), order="sorted")


def _watch(
    marks: Marks, todo: Sequence[Point], before: int, progress: Callable[[int, int], None] | None
) -> Callable[[], None] | None:
    if progress is None:
        return None
    ids = {point.id for point in todo}
    known = marks.job.marked()

    def watch() -> None:
        progress(before + len((marks.job.marked() - known) & ids), before + len(ids))

    return watch
