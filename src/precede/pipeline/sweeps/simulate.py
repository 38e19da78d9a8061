"""The runs of a sweep as tasks on Spark.

A task takes several runs. It simulates each one, a long one into a folder of its own machine, has the verifier
judge the log and computes the measures. Then it packs the rows of its runs into one file per table, and one
commit record makes the runs visible, with everything small about each run: its *mark* (`sweeps.packs`). A run
with a mark is not run again, a run without one is run from its beginning, whatever process was killed. The
driver makes tables from the marks (`sweeps.tables`). Runs that another version of this package left are run
again (`experiments.code_version`); their new commit replaces the old one.

A run that raises is marked `failed` with its traceback and does not stop the others; the next sweep tries it
again. A run during which two workers died is marked `failed` too, because it may be what kills them. A worker
that ends together with its executor (preemption, a lost machine) did not die of the run (`sweeps.deaths`).
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa
from msgspec import Struct

from precede.core.errors import BadInput
from precede.core.memory import without_collections
from precede.eventlog.sinks import EVENTS, GAUGES, HeldSink, TwoSinks
from precede.experiments.code_version import made_by
from precede.experiments.grid import Grid, Point
from precede.experiments.measuring import measured_part, measuring_sink
from precede.experiments.run import Run, carry_out
from precede.lake.commits import RUNS, Damaged, Key
from precede.lake.compaction import compact
from precede.lake.jobs import Job
from precede.lake.layout import Lake
from precede.measures.columns import Source
from precede.measures.events import measure_events
from precede.measures.gauges import measure_gauges
from precede.measures.statistics import Measures
from precede.pipeline.sessions.tasks import Progress, attempt_number, spread, task_facts
from precede.pipeline.sweeps.deaths import Watched, watched
from precede.pipeline.sweeps.marks import DecodedMarks, Marks, SweepOptions
from precede.pipeline.sweeps.packs import Pack, pack_name
from precede.pipeline.sweeps.verdicts import judge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_S_A_TASK: Final = 2.0
"""The CPU seconds of work that a task should have.

Short runs share a task, so that starting tasks (0.05 CPU s each) costs little.
"""

_PILOT: Final = 64
"""The most kinds of runs in a first plan that only measures durations.

Such a plan is made if there are more runs than this and the duration of none is known.
"""

_PILOT_SEEDS: Final = 5
"""The runs of each kind in a first plan: the first run of a process is slower than those that follow it."""


_DEATHS: Final = 2
_MANY_COMMITS: Final = 200
"""From so many small commits on, a sweep merges them at its end."""

_MARKS_READ: Final = 20_000


class SweptRuns(Struct, frozen=True, kw_only=True):
    """All runs of a sweep with their marks, decoded when asked for; `failed` are the ids of failed runs."""

    name: str
    finished_before: int
    failed: tuple[str, ...] = ()
    marks: DecodedMarks


def run_sweep(
    lake: Lake,
    grid: Grid,
    session: SparkSession | None,
    options: SweepOptions,
    job: Job,
    progress: Progress | None = None,
) -> SweptRuns:
    """Carry out the runs of a sweep that are missing; returns when every run has its mark."""
    for damaged in lake.index(RUNS).damaged:
        lake.storage.delete(damaged.path)  # its runs are run again
    marks = Marks(lake)
    before = [point for point in grid.points if marks.is_complete(point.id, options)]
    done = {point.id for point in before}
    todo = [point for point in grid.points if point.id not in done]
    while todo:
        shares = plan_tasks(todo, _known_cpu_s(marks))
        job.write_plan(shares)
        what = f"sweep {grid.name}: simulate {sum(map(len, shares)):,} runs"
        watch = _watch(job, todo, len(before), progress)
        try:
            marked = any(point.id in marks.facts for point in todo)
            spread(session, what, _Batch(lake, job, options, marked), len(shares), watch)
        except Exception as error:
            if isinstance(error, BadInput) or session is None:
                raise
            # workers died more often than Spark retries; continue if some runs were settled meanwhile
            marks = Marks(lake)
            if not any(marks.is_settled(point.id, options, job.generation) for point in todo):
                raise
        marks = Marks(lake)
        todo = [point for point in todo if not marks.is_settled(point.id, options, job.generation)]
        _refuse_other_code(marks, todo, options, job)
    compact(job, at_least=_MANY_COMMITS)
    own_marks = marks.of([point.id for point in grid.points])
    failed = tuple(run_id for run_id in own_marks if own_marks.brief(run_id).status == "failed")
    return SweptRuns(name=grid.name, finished_before=len(before), failed=failed, marks=own_marks)


def _refuse_other_code(marks: Marks, todo: Sequence[Point], options: SweepOptions, job: Job) -> None:
    """Raise BadInput if this job finished a run by code that does not count: the next round would do the same.

    Then the workers have another version, or the source was edited after the command had begun.
    """
    for point in todo:
        brief = marks.brief(point.id)
        if brief is None or brief.status != "finished" or marks.is_current(point.id, options):
            continue
        if marks.facts[point.id].generation >= job.generation:
            raise BadInput(
                f"run {point.id} was measured by {brief.version}, not by {made_by()} of this command: "
                "the workers have other code, or it changed meanwhile (type the command again)"
            )


class _Batch:
    """Carries out the runs of a task in the job's plan and commits them: `spread` calls it with its number.

    `marked` says that some runs of the plan have marks already.
    """

    def __init__(self, lake: Lake, job: Job, options: SweepOptions, marked: bool) -> None:
        self.lake, self.job, self.options, self.marked = lake, job, options, marked

    def __call__(self, number: int) -> int:
        points = self.job.read_plan(number, list[Point])
        marks = Marks(self.lake, none=not self._may_be_marked([point.id for point in points]))
        with self.job.workspace() as folder, watched(self.job, folder) as watch:
            pack = Pack(self.job)
            for point in points:
                if not marks.is_settled(point.id, self.options, self.job.generation):
                    _RunTask(marks, point, self.options, folder / point.id).settle(pack, watch)
                    pack.commit_if_due()
            pack.commit()
        return len(points)

    def _may_be_marked(self, run_ids: Sequence[str]) -> bool:
        """Can these runs have marks? In a new sweep only if this task was begun before, or by another driver.

        Reading the marks of all runs in every task would take time with the square of their number.
        """
        if self.marked or attempt_number():
            return True
        names = {*run_ids, pack_name(run_ids)}
        return any(key.name in names for key in self.lake.commits.keys(RUNS))


class _RunTask:
    """Carries out one run up to its mark, from the state in which an earlier sweep left it."""

    def __init__(self, marks: Marks, point: Point, options: SweepOptions, folder: Path) -> None:
        self.marks, self.point, self.options, self.folder = marks, point, options, folder

    def settle(self, pack: Pack, watch: Watched) -> None:
        """Carry out the missing steps of the run, and add it to the pack as finished or as failed."""
        deaths = watch.begin(self.point.id)
        if deaths >= _DEATHS:
            pack.add(self.point.id, self._failed(f"{deaths} workers died during this run", ""))
            return
        try:
            mark = self.marks.read(self.point.id)
            if mark.get("status") == "finished" and self.marks.is_current(self.point.id, self.options):
                with (
                    self.marks.lake.extracted("events", self.point.id) as events,
                    self.marks.lake.extracted("gauges", self.point.id) as gauges,
                ):
                    self._judge_and_measure(mark, events, gauges)
                pack.add(self.point.id, mark)
            else:
                began = time.process_time()
                with without_collections():
                    mark, rows = self._simulate()
                    self._judge_and_measure(mark, rows.rows(EVENTS), rows.rows(GAUGES))
                mark["task_cpu_s"] = time.process_time() - began
                pack.add(self.point.id, mark, rows)
        except Exception as error:
            mark = self._failed(f"{type(error).__name__}: {error}", traceback.format_exc())
            pack.add(self.point.id, mark)
        watch.end()

    def _simulate(self) -> tuple[dict[str, Any], HeldSink]:
        """Simulate the run; measure it too while its rows are written, if that is possible."""
        run, rows = self.point.run, HeldSink(self.folder)
        measuring = measuring_sink(run) if self.options.measures else None
        try:
            outcome = carry_out(run, rows if measuring is None else TwoSinks(rows, measuring))
        except BaseException:
            rows.abandon()
            raise
        rows.close()
        mark = self._facts("finished") | msgspec.to_builtins(outcome)
        del mark["run_id"]
        if measuring is not None:
            mark["measures"] = _with_counters(measuring.measures(), outcome.counters)
        return mark, rows

    def _judge_and_measure(
        self, mark: dict[str, Any], events: Path | pa.Table, gauges: Path | pa.Table
    ) -> None:
        """Add the requested stages that a mark does not have yet."""
        if self.options.verdicts and "verdicts" not in mark:
            mark["verdicts"] = judge(events, mark["order"])
        if self.options.measures and "measures" not in mark:
            window, energy = measured_part(self.point.run, mark["end_us"])
            measures = measure_events(_source(events), window, energy) | measure_gauges(_source(gauges), window)
            mark["measures"] = _with_counters(measures, mark["counters"])

    def _failed(self, error: str, trace: str) -> dict[str, Any]:
        return self._facts("failed") | {"error": error, "traceback": trace}

    def _facts(self, status: str) -> dict[str, Any]:
        """Return the fields of every mark: status, version, worker, and the run itself."""
        run = msgspec.to_builtins(self.point.run)
        return {"status": status, "version": made_by(), **task_facts(), "run": run}


def _with_counters(measures: Measures, counters: Mapping[str, int]) -> Measures:
    return measures | {name: value for name, value in counters.items() if name not in measures}


def _source(rows: Path | pa.Table) -> Source:
    return rows if isinstance(rows, Path) else rows.to_batches()


def plan_tasks(points: Sequence[Point], cpu_s: Mapping[bytes, float]) -> list[list[Point]]:
    """Divide runs into tasks by their estimated work, and not by the cores that a cluster has just now.

    `cpu_s` is the CPU time of runs by everything but their seed. Tasks have about `_S_A_TASK` of work, and the
    longest runs begin first. If there are more than `_PILOT` runs and nothing is known about any, the plan has
    only a few runs of each of the first `_PILOT` kinds; the next plan knows how long they took.
    """
    kinds = [_without_seed(point.run) for point in points]
    unknown = [point for point, kind in zip(points, kinds, strict=True) if kind not in cpu_s]
    if unknown and len(points) > _PILOT and not cpu_s.keys() & set(kinds):
        by_kind: dict[bytes, list[Point]] = {}
        for point, kind in zip(points, kinds, strict=True):
            by_kind.setdefault(kind, []).append(point)
        return [[point] for some in list(by_kind.values())[:_PILOT] for point in some[:_PILOT_SEEDS]]
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
    """Return the median CPU time of earlier runs by everything but their seed: the first takes longer."""
    measured: dict[bytes, list[float]] = {}
    for fact in islice(marks.facts.values(), _MARKS_READ):
        try:
            mark = msgspec.json.decode(fact.raw, type=_Timed)
        except msgspec.ValidationError:  # the mark of a failed run, or one that another version left
            continue
        measured.setdefault(_without_seed(mark.run), []).append(mark.task_cpu_s or mark.cpu_s)
    return {key: median(seconds) for key, seconds in measured.items()}


class _Timed(Struct):
    """The parts of a mark that say how long a run took."""

    run: Run
    cpu_s: float
    task_cpu_s: float = 0.0


def _without_seed(run: Run) -> bytes:
    return msgspec.json.encode(msgspec.structs.replace(run, seed=0), order="sorted")


def _watch(
    job: Job, todo: Sequence[Point], before: int, progress: Progress | None
) -> Callable[[], None] | None:
    """A function that reports how many runs are committed; None without a progress callback."""
    if progress is None:
        return None
    ids, done, seen = {point.id for point in todo}, set[str](), set[Key]()

    def watch() -> None:
        for key in job.lake.commits.keys(RUNS):
            if key.generation >= job.generation and key not in seen:
                with suppress(Damaged, FileNotFoundError):  # replaced meanwhile: another record has its runs
                    done.update(ids & job.lake.commits.content(key).facts.keys())
                seen.add(key)
        progress(before + len(done), before + len(ids))

    return watch
