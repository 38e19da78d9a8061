"""The marks of runs: everything small about each run, as the commit records of a lake have it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from precede.experiments.code_version import is_current
from precede.lake.commits import RUNS, Fact
from precede.lake.layout import Lake


class SweepOptions(Struct, frozen=True):
    """The stages that follow the simulation (`verdicts`, `measures`), and which results are run again.

    Results of another version are always run again; with `same_code` also those of other code of this version.
    """

    verdicts: bool = True
    measures: bool = True
    same_code: bool = False

    def stages(self) -> list[str]:
        return [stage for stage in ("verdicts", "measures") if getattr(self, stage)]


class BriefVerdict(Struct, frozen=True):
    """The words of a verdict."""

    verdict: str
    order: str
    promised: str


class Present(Struct, frozen=True):
    """Something that a mark has; its content is not read."""


class Brief(Struct, frozen=True):
    """The parts of a mark that decide what is left to do, and those that a summary counts."""

    status: str
    version: str
    rows: int = 0
    cpu_s: float = 0.0
    verdicts: BriefVerdict | None = None
    measures: Present | None = None
    error: str | None = None


class Marks:
    """The marks of all runs of a lake, whichever sweep ran them, as they were when this was made.

    With `none` it has no marks, and reads nothing.
    """

    def __init__(self, lake: Lake, none: bool = False) -> None:
        self.lake = lake.snapshot()
        self.facts = {} if none else self.lake.facts(RUNS)
        self._intact: dict[str, bool] = {}

    def read(self, run_id: str) -> dict[str, Any]:
        """A run's mark; empty if it has none, or if the run's log is deleted or damaged."""
        return {} if self.brief(run_id) is None else decode(self.facts[run_id])

    def brief(self, run_id: str) -> Brief | None:
        """The most important parts of a run's mark; None if it has none, or its log is deleted or damaged."""
        if run_id not in self.facts:
            return None
        brief = msgspec.json.decode(self.facts[run_id].raw, type=Brief)
        if brief.status == "finished" and not all(self._is_intact(t, run_id) for t in ("events", "gauges")):
            return None
        return brief

    def of(self, run_ids: Sequence[str]) -> DecodedMarks:
        return DecodedMarks(self.facts, run_ids)

    def is_current(self, run_id: str, options: SweepOptions) -> bool:
        """Was the mark left by this version, and by this code if `same_code` is demanded?"""
        brief = self.brief(run_id)
        return brief is not None and is_current(brief.version, options.same_code)

    def is_complete(self, run_id: str, options: SweepOptions) -> bool:
        """Is the run finished, with all stages, by code that counts?"""
        brief = self.brief(run_id)
        if brief is None or brief.status != "finished" or not is_current(brief.version, options.same_code):
            return False
        return all(getattr(brief, stage) is not None for stage in options.stages())

    def is_settled(self, run_id: str, options: SweepOptions, since: int) -> bool:
        """Is the run complete, or did it fail in this generation, so that this sweep does not try it again?"""
        if self.is_complete(run_id, options):
            return True
        brief = self.brief(run_id)
        return brief is not None and brief.status == "failed" and self.facts[run_id].generation >= since

    def _is_intact(self, table: str, run_id: str) -> bool:
        """Is the file with the run's rows undamaged? Each file is compared once."""
        place = self.lake.index(RUNS).places.get(table, {}).get(run_id)
        if place is None:
            return False
        if place.file.path not in self._intact:
            self._intact[place.file.path] = self.lake.is_intact(table, run_id)
        return self._intact[place.file.path]


class DecodedMarks(Mapping[str, dict[str, Any]]):
    """Marks by run, decoded when asked for: those of 100,000 runs do not fit into memory."""

    def __init__(self, facts: Mapping[str, Fact], run_ids: Sequence[str]) -> None:
        self._facts, self._ids = facts, run_ids

    def __getitem__(self, run_id: str) -> dict[str, Any]:
        return decode(self._facts[run_id])

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)

    def brief(self, run_id: str) -> Brief:
        return msgspec.json.decode(self._facts[run_id].raw, type=Brief)


def decode(fact: Fact) -> dict[str, Any]:
    mark: dict[str, Any] = msgspec.json.decode(fact.raw)
    return mark
