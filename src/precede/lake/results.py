"""The lake's tables as a report reads them: plain rows of the small ones, paths of the large ones."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow.parquet as pq

Row: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Results:
    """Everything small that a lake knows, and where the rest is."""

    root: Path
    runs: list[Row] = field(default_factory=list)
    verdicts: dict[str, Row] = field(default_factory=dict)
    violations: dict[str, list[Row]] = field(default_factory=dict)
    measures: list[Row] = field(default_factory=list)
    by_run: dict[str, dict[str, float]] = field(default_factory=dict)
    comparisons: list[Row] = field(default_factory=list)

    def sweeps(self) -> list[str]:
        """Names of the sweeps, in order."""
        return sorted({row["sweep"] for row in self.runs})

    def groups(self, sweep: str) -> list[Row]:
        """Measures of runs that differ in their seed alone."""
        return [row for row in self.measures if row["scope"] == "group" and row["sweep"] == sweep]

    def of_run(self, run_id: str) -> dict[str, float]:
        """The measures of one run."""
        return self.by_run.get(run_id, {})

    def events(self, run_id: str) -> Path:
        return self.root / "events" / f"{run_id}.parquet"

    def gauges(self, run_id: str) -> Path:
        return self.root / "gauges" / f"{run_id}.parquet"

    def contacts(self, trace: str, range_m: float | None) -> Path | None:
        """Contacts of a trace: as it gave them, or within a range."""
        folder = self.root / "contacts"
        if range_m is not None and (folder / f"{trace}@{range_m:.12g}m.parquet").is_file():
            return folder / f"{trace}@{range_m:.12g}m.parquet"
        exact = folder / f"{trace}.parquet"
        computed = sorted(folder.glob(f"{trace}@*m.parquet"))
        return exact if exact.is_file() else computed[0] if computed else None

    def segments(self, trace: str) -> Path | None:
        path = self.root / "segments" / f"{trace}.parquet"
        return path if path.is_file() else None


def read_results(root: Path) -> Results:
    """The tables of a lake; one that is not there has no rows."""
    violations: dict[str, list[Row]] = {}
    for row in _rows(root, "violations"):
        violations.setdefault(row["run_id"], []).append(row)
    measures, by_run = _rows(root, "measures"), dict[str, dict[str, float]]()
    for row in measures:
        if row["scope"] == "run":
            by_run.setdefault(row["run_id"], {})[row["measure"]] = row["value"]
    runs: dict[str, Row] = {}
    for row in _rows(root, "runs"):
        runs.setdefault(row["run_id"], row | {"about": json.loads(row["description"])})
    return Results(
        root=root,
        runs=list(runs.values()),
        verdicts={row["run_id"]: row for row in _rows(root, "verdicts")},
        violations=violations,
        measures=measures,
        by_run=by_run,
        comparisons=_rows(root, "comparisons"),
    )


def _rows(root: Path, table: str) -> list[Row]:
    found: list[Row] = []
    for path in sorted((root / table).glob("*.parquet")):
        if not path.name.startswith("_"):
            found += pq.read_table(path).to_pylist()
    return found
