"""The experiments of a paper on Spark: each unit of work is run, verified and measured once.

A task carries out one unit (a point and a seed), has the verifier judge its log, measures it, and leaves a done
mark. Logs are not kept: the repetitions of a paper would fill a disk. A unit with a mark is not run again,
unless another version of this package left the mark (`experiments.code_version`). At the paper's scale, claims
that the first seeds leave open get more; the units of a request are therefore determined anew after each round.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from precede.experiments.code_version import is_current, made_by
from precede.lake.commits import SWEEPS
from precede.lake.jobs import Job
from precede.lake.layout import Lake
from precede.pipeline.reproduction.tables import result_tables
from precede.pipeline.sessions.tasks import Progress, spread, task_facts
from precede.reproduction.claims import Claims, experiments_of, read_reasons
from precede.reproduction.judging import Sample, judge
from precede.reproduction.request import Reproduction, Request
from precede.reproduction.results import write_results
from precede.reproduction.storing import add_results
from precede.reproduction.units import Unit, find_paper

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UNITS: Final = "units"
"""The kind of the commits that hold the marks of all units."""


class _Prepared(Struct, frozen=True):
    """A request with its paper, its claims, and the experiments that answer them."""

    request: Request
    paper: Any
    claims: Claims
    experiments: frozenset[str]


def reproduce(
    lake: Lake,
    requests: Sequence[Request],
    session: SparkSession | None,
    progress: Progress | None = None,
    store: bool = False,
) -> list[Reproduction]:
    """Run the missing units of all requests together, compare with the claims, and write the tables.

    With `store`, the measures also go into the paper's stored results.
    """
    prepared = [_prepare(request) for request in requests]
    name = requests[0].name if len(requests) == 1 else f"all-{requests[0].scale}"
    with lake.job(f"reproduce-{name}").hold() as job:
        answered = _run_missing(lake, job, prepared, session, progress)
        results = []
        for one, (units, before) in zip(prepared, answered, strict=True):
            lake_marks = Marks(lake)
            marks = [(unit, lake_marks.read(unit.id)) for unit in units]
            result = _summarise(one, marks, before)
            tables = result_tables(one.request.name, one.paper, marks, result.comparisons)
            job.write_tables(SWEEPS, one.request.name, tables)
            if store and not result.failed:
                request = one.request
                write_results(request.folder, add_results(request.folder, request.key, request.scale, marks))
            results.append(result)
    return results


def is_finished(lake: Lake, requests: Sequence[Request]) -> bool:
    """Are all units measured, so that no Spark session is needed?"""
    marks = Marks(lake)
    units = [(request, unit) for request in requests for unit in _units(_prepare(request), marks)]
    return bool(units) and not any(_is_missing(marks, request, unit, retry=True) for request, unit in units)


def _prepare(request: Request) -> _Prepared:
    paper = find_paper(request.key)
    claims = request.claims()
    return _Prepared(request, paper, claims, frozenset(request.experiments(claims, paper)))


def _run_missing(
    lake: Lake,
    job: Job,
    prepared: Sequence[_Prepared],
    session: SparkSession | None,
    progress: Progress | None,
) -> list[tuple[list[Unit], int]]:
    """Run the missing units of all requests, in rounds, until none is missing or one has failed.

    Returns for each request its units, and how many of them needed no run when the first round began.
    """
    before: list[int] = []
    while True:
        marks = Marks(lake)
        needed = [_units(one, marks) for one in prepared]
        is_first_round = not before
        missing = [
            [unit for unit in units if _is_missing(marks, one.request, unit, retry=is_first_round)]
            for one, units in zip(prepared, needed, strict=True)
        ]
        if is_first_round:
            before = [len(units) - len(absent) for units, absent in zip(needed, missing, strict=True)]
        todo = list({unit.id: unit for units in missing for unit in units}.values())
        if not todo:
            return list(zip(needed, before, strict=True))
        total = sum(len(units) for units in needed)
        what = f"{job.name}: {len(todo):,} units"
        spread(session, what, _Work(lake, job), job.write_plan(todo), _watch(job, todo, total, progress))
        marks = Marks(lake)
        if any(marks.read(unit.id)["status"] == "failed" for unit in todo):
            return list(zip(needed, before, strict=True))


def _units(one: _Prepared, marks: Marks) -> list[Unit]:
    """Return the units that a request needs now: the first ones, and more seeds for claims they leave open.

    Only the first ones decide which claims are open, so a claim gets more seeds at most once.
    """
    folder, scale = one.request.folder, one.request.scale
    first = [unit for unit in one.paper.units(folder, scale) if unit.experiment in one.experiments]
    more: list[Unit] = []
    if scale == "paper" and all(unit.id in marks.facts for unit in first):
        marked = [(unit, marks.read(unit.id)) for unit in first]
        samples = [sample_of(unit, mark) for unit, mark in marked if mark["status"] == "finished"]
        judged = judge(one.claims, samples, scale)
        experiments = experiments_of([one.claim for one in judged if one.status == "open"])
        everything = one.experiments if "*" in experiments else experiments
        more = [unit for unit in one.paper.units(folder, scale, more=True) if unit.experiment in everything]
    return list({unit.id: unit for unit in (*first, *more)}.values())


def _is_missing(marks: Marks, request: Request, unit: Unit, retry: bool) -> bool:
    """Must the unit be run? With `retry`, also if it failed or other code left its mark."""
    if unit.id not in marks.facts:
        return True
    if not retry:
        return False
    mark = marks.read(unit.id)
    return mark["status"] == "failed" or not is_current(mark["version"], request.same_code)


class Marks:
    """The marks of all units of a lake, as they were when this was made."""

    def __init__(self, lake: Lake) -> None:
        self.facts = lake.facts(UNITS)

    def read(self, unit: str) -> dict[str, Any]:
        mark: dict[str, Any] = msgspec.json.decode(self.facts[unit].raw)
        return mark


class _Work:
    """Runs units by their number in the job's plan and commits their marks, unless another attempt has."""

    def __init__(self, lake: Lake, job: Job) -> None:
        self.lake, self.job = lake, job

    def __call__(self, number: int) -> str:
        unit = self.job.read_plan(number, Unit)
        if unit.id not in _marked_since(self.job):
            self.job.commit(UNITS, unit.id, facts={unit.id: carry_out_unit(unit)})
        return unit.id


def carry_out_unit(unit: Unit) -> dict[str, Any]:
    """Run and measure a unit; returns its mark: the measures, or the error."""
    cpu_began, wall_began = time.process_time(), time.monotonic()
    try:
        measured = find_paper(unit.paper).measure(unit)
        outcome = {
            "status": "finished",
            "measures": measured.measures,
            "violations": measured.violations,
            "order": measured.order,
            **({"series": measured.series} if measured.series else {}),
        }
    except Exception as error:
        outcome = {
            "status": "failed",
            "error": f"{type(error).__name__}: {error}",
            "traceback": traceback.format_exc(),
        }
    times = {"cpu_s": time.process_time() - cpu_began, "wall_s": time.monotonic() - wall_began}
    return {"unit": msgspec.to_builtins(unit), "version": made_by(), **task_facts(), **outcome, **times}


def _watch(job: Job, todo: Sequence[Unit], total: int, progress: Progress | None) -> Callable[[], None] | None:
    """A function that reports how many units are marked; None without a progress callback."""
    if progress is None:
        return None
    ids = {unit.id for unit in todo}

    def watch() -> None:
        progress(total - len(ids) + len(_marked_since(job) & ids), total)

    return watch


def _marked_since(job: Job) -> set[str]:
    """The units that were marked since the job began, by it or by another driver."""
    return {key.name for key in job.lake.commits.keys(UNITS) if key.generation >= job.generation}


def sample_of(unit: Unit, mark: dict[str, Any]) -> Sample:
    series = mark.get("series", {})
    return Sample(unit.experiment, unit.varied, unit.replicate, mark["measures"], unit.cluster, series)


def _summarise(one: _Prepared, marks: Sequence[tuple[Unit, dict[str, Any]]], before: int) -> Reproduction:
    """Return the result of a request from the marks of its units."""
    request, claims = one.request, one.claims
    reasons = read_reasons(request.folder / "reasons.toml").reason
    finished = [(unit, mark) for unit, mark in marks if mark["status"] == "finished"]
    samples = tuple(sample_of(unit, mark) for unit, mark in finished)
    return Reproduction(
        request=request,
        claims=claims,
        comparisons=tuple(judge(claims, samples, request.scale, reasons)),
        samples=samples,
        units=len(marks),
        finished_before=before,
        failed=tuple(f"{unit.id}: {mark['error']}" for unit, mark in marks if mark["status"] == "failed"),
        violations=sum(mark["violations"] or 0 for _, mark in finished),
        unverified=sum(mark["violations"] is None for _, mark in finished),
        by_other_code=sum(not is_current(mark["version"], same_code=True) for _, mark in marks),
        cpu_s=sum(mark["cpu_s"] for _, mark in marks),
    )
