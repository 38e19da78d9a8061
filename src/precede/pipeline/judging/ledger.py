"""The ledger of a follower: what it has reported, kept with its checkpoint, so that it continues after a kill.

`ledger.json` holds the state of every run after the last reported batch; `violations/<batch>.jsonl` holds the
violations of one batch. Spark repeats the last batch after a kill. It is reported again only if its report had
not been completed.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from precede.core.errors import BadInput
from precede.pipeline.judging.answers import answer_of
from precede.pipeline.judging.query import Query
from precede.witness.verdict import Order, Verdict, Violation

FORMAT: Final = 4
"""Version of the stored data: of the ledger, and of the state of a run (`precede.witness.live`)."""

_REMEDY: Final = "name another --checkpoint, or remove it and begin anew"
_Kept = TypeVar("_Kept")


class Standing(Struct, kw_only=True):
    """The state of one run after a batch.

    `violations`, `new_conflicts` and `written` are what this batch added. `written` maps modification times of
    segments (Unix seconds) to the number of rows that came from them. `timed` is true if a broadcast had a
    deadline, `clock_missing` if a delivery had no clock. `absent` has a reason for each member without rows,
    `lacks` counts the messages that members lack so far, `first_lack` is the first of them.
    """

    group: list[str]
    order: Order
    rows: int
    deliveries: int
    counts: dict[str, int]
    held: int
    parked: int
    waits_for: list[str]
    conflicts: list[str]
    new_conflicts: list[str] = []
    violations: list[Violation] = []
    written: dict[str, int] = {}
    first: Violation | None = None
    timed: bool = False
    clock_missing: bool = False
    absent: list[str] = []
    lacks: int = 0
    first_lack: Violation | None = None


class BatchReport(Struct, kw_only=True):
    """One run in one batch, as a follower reports it."""

    batch: int
    standing: Standing
    lag_s: float
    """The age of the segments of this batch: the median over their rows."""


class _Page(Struct):
    """The content of `ledger.json`."""

    batch: int = -1
    runs: list[Standing] = []


class Ledger:
    """The folder of one follower. `reported` is the number of the last batch whose report was completed."""

    def __init__(self, folder: Path, page: _Page) -> None:
        self.folder = folder
        self.reported = page.batch
        self.runs = {tuple(run.group): run for run in page.runs}

    @staticmethod
    def open(folder: Path, query: Query) -> Ledger:
        """Begin a ledger in a folder, or continue one; BadInput if that has another query or version."""
        folder.mkdir(parents=True, exist_ok=True)
        question = folder / "question.json"
        current = {"format": FORMAT, **msgspec.json.decode(msgspec.json.encode(query))}
        if not question.is_file():
            _replace(question, msgspec.json.encode(current))
        begun = _read(question, dict[str, Any])
        if begun.get("format") != FORMAT:
            raise BadInput(f"{folder}: was begun by another version of precede; {_REMEDY}")
        if begun != current:
            raise BadInput(f"{folder}: was begun with other options; {_REMEDY}")
        page = folder / "ledger.json"
        return Ledger(folder, _read(page, _Page) if page.is_file() else _Page())

    def enter(self, batch: int, standings: list[Standing]) -> list[BatchReport]:
        """Record the violations of a batch. Return what to report: nothing if it was reported before."""
        now = time.time()
        if batch <= self.reported:
            return []
        reports = []
        for standing in standings:
            before = self.runs.get(tuple(standing.group))
            standing.first = before.first if before is not None else None
            if standing.first is None and standing.violations:
                standing.first = standing.violations[0]
            self.runs[tuple(standing.group)] = standing
            reports.append(BatchReport(batch=batch, standing=standing, lag_s=now - _median(standing.written)))
        lines = [
            {"by": standing.group} | violation.plain()
            for standing in standings
            for violation in standing.violations
        ]
        if lines:
            file = self.folder / "violations" / f"{batch}.jsonl"
            file.parent.mkdir(exist_ok=True)
            _replace(file, msgspec.json.Encoder().encode_lines(lines))
        return reports

    def close(self, batch: int) -> None:
        """Record that the report of a batch is complete."""
        if batch <= self.reported:
            return
        self.reported = batch
        kept = [
            msgspec.structs.replace(run, violations=[], new_conflicts=[], written={})
            for run in self.runs.values()
        ]
        _replace(self.folder / "ledger.json", msgspec.json.encode(_Page(batch, kept)))

    def answers(self, columns: Collection[str]) -> list[dict[str, Any]]:
        """Return the state of every run as an answer (`judging.answers`), given the log's `columns`."""
        timed = any(run.timed for run in self.runs.values())
        return [_answer(run, [*_lacking(run, columns, timed)]) for run in self.runs.values()]


def _lacking(run: Standing, columns: Collection[str], timed: bool) -> Iterator[str]:
    """Yield why the verdict is unknown: data that the order needs and the log lacks."""
    if run.order == "multicast" and "destinations" not in columns:
        yield "multicast order needs the column destinations"
    if run.order == "delta" and not timed:
        yield "delta order needs deadlines: no broadcast row has a deadline_us"
    if run.order == "delta" and run.clock_missing:
        yield "delta order needs the delivering node's clock: a delivered row has no clock_us"


def _answer(run: Standing, lacking: list[str]) -> dict[str, Any]:
    """Return the state of one run as an answer (a verdict as a row, see `judging.answers`)."""
    reasons = [*lacking, *run.conflicts, *run.waits_for, *run.absent]
    if not run.deliveries:
        reasons.append("no deliveries at all")
    counts = run.counts | ({"agreement": run.lacks} if run.lacks else {})
    violations = sum(counts.values())
    verdict = Verdict(
        order=run.order,
        verdict="violated" if violations else "unknown" if reasons else "holds",
        rows=run.rows,
        deliveries_checked=run.deliveries,
        violations=violations,
        first=run.first or run.first_lack,
        counts=counts,
        reasons=tuple(reasons),
    )
    return {"group": run.group, **answer_of(verdict, run.rows)}


def _median(written: dict[str, int]) -> float:
    """Return the median of modification times, each counted once for every row."""
    half = sum(written.values()) / 2
    for at, count in sorted((float(at), count) for at, count in written.items()):
        half -= count
        if half <= 0:
            return at
    return time.time()


def _read(path: Path, kind: type[_Kept]) -> _Kept:
    """Decode a JSON file of the ledger."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except msgspec.DecodeError as error:
        raise BadInput(f"{path}: {error}; {_REMEDY}") from None


def _replace(path: Path, content: bytes) -> None:
    """Write a file so that a reader sees the old content or the new one, never a part."""
    temporary = path.with_name(f".{path.name}.partial")
    temporary.write_bytes(content)
    temporary.replace(path)
