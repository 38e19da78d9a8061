"""What a follower has said, kept beside its checkpoint, so that it can go on after it was killed.

`ledger.json` holds how every run stands after the last batch that was told, `violations/<batch>.jsonl` what was
found in a batch. A batch that Spark repeats after a kill is told again only if it had not been told to its end.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from precede.core.errors import BadInput
from precede.pipeline.judging.witness import Asked
from precede.witness.verdict import Violation

FORMAT: Final = 2
"""Of what a follower keeps, here and as the state of a run (`verify.live.State`): change them, change it."""

_ANOTHER: Final = "name another --checkpoint, or remove it and begin anew"
_Kept = TypeVar("_Kept")


class Standing(Struct, kw_only=True):
    """How a run stands after a batch; `violations`, `new_conflicts` and `written` are what that batch brought.

    `written` says how many rows came from segments of which modification time (Unix seconds). `timed` says that
    a broadcast had a deadline, `clock_missing` that a delivery had no clock.
    """

    group: list[str]
    order: str
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


class Heard(Struct, kw_only=True):
    """One run in one batch, as it is told."""

    batch: int
    standing: Standing
    lag_s: float
    """How long ago the segments were written that this batch brought: the median over their rows."""


class _Page(Struct):
    batch: int = -1
    runs: list[Standing] = []


class Ledger:
    """The folder of one follower."""

    def __init__(self, folder: Path, page: _Page) -> None:
        self.folder = folder
        self.told = page.batch
        self.runs = {tuple(run.group): run for run in page.runs}

    @staticmethod
    def open(folder: Path, asked: Asked) -> Ledger:
        """Begin, or go on where another left off; a follower that asks something else needs another folder."""
        folder.mkdir(parents=True, exist_ok=True)
        question = folder / "question.json"
        wanted = {"format": FORMAT, **msgspec.json.decode(msgspec.json.encode(asked))}
        if not question.is_file():
            _replace(question, msgspec.json.encode(wanted))
        begun = _read(question, dict[str, Any])
        if begun.get("format") != FORMAT:
            raise BadInput(f"{folder}: was begun by another version of precede; {_ANOTHER}")
        if begun != wanted:
            raise BadInput(f"{folder}: was begun with other options; {_ANOTHER}")
        page = folder / "ledger.json"
        return Ledger(folder, _read(page, _Page) if page.is_file() else _Page())

    def enter(self, batch: int, standings: list[Standing]) -> list[Heard]:
        """Take in what a batch brought; what of it is to be told."""
        now = time.time()
        if batch <= self.told:
            return []
        heard = []
        for standing in standings:
            before = self.runs.get(tuple(standing.group))
            standing.first = before.first if before is not None else None
            if standing.first is None and standing.violations:
                standing.first = standing.violations[0]
            self.runs[tuple(standing.group)] = standing
            heard.append(Heard(batch=batch, standing=standing, lag_s=now - _median(standing.written)))
        found = [(standing.group, one.json()) for standing in standings for one in standing.violations]
        if found:
            file = self.folder / "violations" / f"{batch}.jsonl"
            file.parent.mkdir(exist_ok=True)
            _replace(file, msgspec.json.Encoder().encode_lines({"by": group} | one for group, one in found))
        return heard

    def close(self, batch: int) -> None:
        """The batch was told to its end."""
        if batch <= self.told:
            return
        self.told = batch
        kept = [
            msgspec.structs.replace(run, violations=[], new_conflicts=[], written={})
            for run in self.runs.values()
        ]
        _replace(self.folder / "ledger.json", msgspec.json.encode(_Page(batch, kept)))

    def answers(self, columns: Collection[str]) -> list[dict[str, Any]]:
        """How every run stands, in the form of answers about independent orders; `columns` are those it has."""
        timed = any(run.timed for run in self.runs.values())
        return [_answer(run, [*_lacking(run, columns, timed)]) for run in self.runs.values()]


def _lacking(run: Standing, columns: Collection[str], timed: bool) -> Iterator[str]:
    """What the order needs and the log does not have, in the words of the witness."""
    if run.order == "multicast" and "destinations" not in columns:
        yield "multicast order needs the column destinations"
    if run.order == "delta" and not timed:
        yield "delta order needs deadlines: no broadcast row has a deadline_us"
    if run.order == "delta" and run.clock_missing:
        yield "delta order needs the delivering node's clock: a delivered row has no clock_us"


def _answer(run: Standing, lacking: list[str]) -> dict[str, Any]:
    reasons = [*lacking, *run.conflicts, *run.waits_for]
    if not run.deliveries:
        reasons.append("no deliveries at all")
    violations = sum(run.counts.values())
    return {
        "group": run.group,
        "order": run.order,
        "verdict": "violated" if violations else "unknown" if reasons else "holds",
        "rows": run.rows,
        "deliveries_checked": run.deliveries,
        "violations": violations,
        "counts": run.counts,
        "reasons": reasons,
        "findings": [],
        "first": None if run.first is None else msgspec.json.encode(run.first.json()),
    }


def _median(written: dict[str, int]) -> float:
    """The middle of the modification times, each as often as rows came from it."""
    half = sum(written.values()) / 2
    for at, count in sorted((float(at), count) for at, count in written.items()):
        half -= count
        if half <= 0:
            return at
    return time.time()


def _read(path: Path, kind: type[_Kept]) -> _Kept:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except msgspec.DecodeError as error:
        raise BadInput(f"{path}: {error}; {_ANOTHER}") from None


def _replace(path: Path, content: bytes) -> None:
    temporary = path.with_name(f".{path.name}.partial")
    temporary.write_bytes(content)
    temporary.replace(path)
