"""A paper's experiments on Spark: each unit of work once, verified and measured, whoever is killed when.

A task carries out one unit (a point and a seed), has the witness judge its log, measures it, and leaves a mark;
rows are not kept, for a paper's own repetitions would fill a disk. A unit that has a mark is not run again,
unless another version of this package left it (`experiments.made_by`).
Where a paper adds runs until an interval is narrow, units are requested again after each round.
"""

from __future__ import annotations

import os
import platform
import shutil
import time
import traceback
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from precede.experiments.code_version import is_current, made_by
from precede.lake.jobs import Job, Lake
from precede.pipeline.reproduction.tables import result_tables
from precede.pipeline.sessions.tasks import attempt_number, spread
from precede.reproduction.claims import Claims, read_reasons
from precede.reproduction.judging import Sample, judge
from precede.reproduction.request import Reproduction, Request
from precede.reproduction.units import Unit, find_paper

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Progress = Callable[[int, int], None]
MARKS: Final = "units"


class _Prepared(Struct, frozen=True):
    """A request with what it takes to answer it."""

    request: Request
    paper: Any
    claims: Claims
    wanted: frozenset[str]


def reproduce(
    lake: Lake, several: Sequence[Request], session: SparkSession | None, progress: Progress | None = None
) -> list[Reproduction]:
    """Run what is missing, all requests together; compare; write the tables."""
    prepared = [_prepare(request) for request in several]
    name = "-".join(request.name for request in several) if len(several) == 1 else f"all-{several[0].scale}"
    with lake.job(f"reproduce-{name}").hold() as job:
        answered = _run_missing(lake, job, prepared, session, progress)
        told = []
        for one, (units, before) in zip(prepared, answered, strict=True):
            marks = [(unit, _read(lake, unit)) for unit in units]
            found = _summarise(one, marks, before)
            for table, rows in result_tables(one.request.name, one.paper, marks, found.comparisons).items():
                job.write(table, one.request.name, rows)
            told.append(found)
        job.forget()
    return told


def is_finished(lake: Lake, several: Sequence[Request]) -> bool:
    """Is everything measured, so that no session is needed?"""
    marks = lake.job(MARKS)
    units = [(request, unit) for request in several for unit in _units(_prepare(request), marks)]
    return bool(units) and not any(_is_missing(marks, request, unit, again=True) for request, unit in units)


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
    """For each request every unit that is wanted, each with its mark; and how many had one before."""
    marks = lake.job(MARKS)
    marks.done.mkdir(parents=True, exist_ok=True)
    before: list[int] = []
    while True:
        units_of = [_units(one, marks) for one in prepared]
        again = not before
        missing = [
            [unit for unit in units if _is_missing(marks, one.request, unit, again)]
            for one, units in zip(prepared, units_of, strict=True)
        ]
        if not before:
            pairs = zip(units_of, missing, strict=True)
            before = [len(units) - len(todo) for units, todo in pairs]
        todo = list({unit.id: unit for units in missing for unit in units}.values())
        if not todo:
            return list(zip(units_of, before, strict=True))
        for unit in todo:
            marks.unmark(unit.id)
        work = _Work(lake, job, _write_plan(job, todo))
        total = sum(len(units) for units in units_of)
        spread(session, work, len(work.files), _watch(marks, todo, total, progress))
        if any(marks.told(unit.id)["status"] == "failed" for unit in todo):
            return list(zip(units_of, before, strict=True))


def _units(one: _Prepared, marks: Job) -> list[Unit]:
    """What is wanted, given what is measured: a paper may ask for more runs of a point."""
    folder, scale = one.request.folder, one.request.scale
    done = _samples(one.paper.units(folder, scale, ()), marks, one.request.same_code)
    units = [unit for unit in one.paper.units(folder, scale, done) if unit.experiment in one.wanted]
    return list({unit.id: unit for unit in units}.values())


def _is_missing(marks: Job, request: Request, unit: Unit, again: bool) -> bool:
    """What failed, or is not current, is tried again when the command is typed again, and not within one."""
    if not marks.is_marked(unit.id):
        return True
    if not again:
        return False
    mark = marks.told(unit.id)
    return mark["status"] == "failed" or not is_current(mark["version"], request.same_code)


class _Work:
    """One unit as one piece of work; the unit stands in a file of the job."""

    def __init__(self, lake: Lake, job: Job, files: Sequence[Path]) -> None:
        self.lake, self.job, self.files = lake, job, list(files)

    def __call__(self, number: int) -> str:
        unit = msgspec.json.decode(self.files[number].read_bytes(), type=Unit)
        marks = self.lake.job(MARKS)
        if not marks.is_marked(unit.id):
            marks.mark(unit.id, carry_out_unit(unit), self.job.scratch)
        return unit.id


def carry_out_unit(unit: Unit) -> dict[str, Any]:
    """A unit's mark: what it measured, or how it failed."""
    began, clock = time.process_time(), time.monotonic()
    facts = {
        "unit": msgspec.to_builtins(unit),
        "version": made_by(),
        "attempt": attempt_number(),
        "worker": f"{platform.node()}:{os.getpid()}",
    }
    try:
        found = find_paper(unit.paper).measure(unit)
        told = {
            "status": "finished",
            "measures": found.measures,
            "violations": found.violations,
            "order": found.order,
        }
    except Exception as error:
        told = {
            "status": "failed",
            "error": f"{type(error).__name__}: {error}",
            "traceback": traceback.format_exc(),
        }
    times = {"cpu_s": time.process_time() - began, "wall_s": time.monotonic() - clock}
    return facts | told | times | {"finished_at": datetime.now(UTC).isoformat(timespec="seconds")}


def _write_plan(job: Job, units: Sequence[Unit]) -> list[Path]:
    folder = job.folder / "plan"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    files = []
    for number, unit in enumerate(units):
        file = folder / f"{number}.json"
        file.write_bytes(msgspec.json.encode(unit))
        files.append(file)
    return files


def _watch(
    marks: Job, todo: Sequence[Unit], total: int, progress: Progress | None
) -> Callable[[], None] | None:
    if progress is None:
        return None
    ids = {unit.id for unit in todo}

    def watch() -> None:
        progress(total - len(ids) + len(marks.marked() & ids), total)

    return watch


def _read(lake: Lake, unit: Unit) -> dict[str, Any]:
    mark: dict[str, Any] = lake.job(MARKS).told(unit.id)
    return mark


def _samples(first: Sequence[Unit], marks: Job, same_code: bool) -> list[Sample]:
    """Everything current that was measured of the points that a paper asks for, whatever its seed."""
    if not first:
        return []
    points = {(unit.experiment, _text(unit.given)) for unit in first}
    found = []
    for name in sorted(marks.marked()):
        if name.startswith(f"{first[0].paper}-"):
            mark = marks.told(name)
            unit = msgspec.convert(mark["unit"], Unit)
            if not is_current(mark["version"], same_code):
                continue
            if mark["status"] == "finished" and (unit.experiment, _text(unit.given)) in points:
                found.append(_sample(unit, mark))
    return sorted(found, key=lambda sample: sample.replicate.rjust(6))


def _text(given: Any) -> bytes:
    return msgspec.json.encode(given, order="sorted")


def _sample(unit: Unit, mark: dict[str, Any]) -> Sample:
    return Sample(unit.experiment, unit.varied, unit.replicate, mark["measures"])


def _summarise(one: _Prepared, marks: Sequence[tuple[Unit, dict[str, Any]]], before: int) -> Reproduction:
    request, claims = one.request, one.claims
    reasons = read_reasons(request.folder / "reasons.toml").reason
    finished = [(unit, mark) for unit, mark in marks if mark["status"] == "finished"]
    samples = tuple(_sample(unit, mark) for unit, mark in finished)
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
