"""The results of a lake as a report reads them: the rows of the small tables, in memory."""

import json
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from precede.core.errors import BadInput
from precede.lake.layout import Lake
from precede.lake.stored_contacts import find_contacts_unit

Row: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Results:
    """The rows of a lake's small tables, some indexed by `run_id`. Events are read when needed."""

    lake: Lake
    runs: list[Row] = field(default_factory=list)
    verdicts: dict[str, Row] = field(default_factory=dict)
    violations: dict[str, list[Row]] = field(default_factory=dict)
    measures: list[Row] = field(default_factory=list)
    by_run: dict[str, dict[str, float]] = field(default_factory=dict)
    comparisons: list[Row] = field(default_factory=list)
    differences: list[Row] = field(default_factory=list)

    def sweeps(self) -> list[str]:
        return sorted({row["sweep"] for row in self.runs})

    def groups(self, sweep: str) -> list[Row]:
        """Return the measures of a sweep's groups; a group is all runs that differ only in their seed."""
        return [row for row in self.measures if row["scope"] == "group" and row["sweep"] == sweep]

    def of_run(self, run_id: str) -> dict[str, float]:
        return self.by_run.get(run_id, {})

    def contacts_unit(self, trace: str, range_m: float | None) -> str | None:
        """Return the unit of `contacts` that a run on this trace uses; None if the lake cannot provide it."""
        try:
            return find_contacts_unit(self.lake, trace, range_m)
        except BadInput:
            return None


def read_results(lake: Lake) -> Results:
    """Read the small tables of a lake. A table that does not exist has no rows."""
    lake = lake.snapshot()
    violations: dict[str, list[Row]] = {}
    for row in lake.rows("violations"):
        violations.setdefault(row["run_id"], []).append(row)
    measures, by_run = lake.rows("measures"), dict[str, dict[str, float]]()
    for row in measures:
        if row["scope"] == "run":
            by_run.setdefault(row["run_id"], {})[row["measure"]] = row["value"]
    runs: dict[str, Row] = {}
    for row in lake.rows("runs"):
        runs.setdefault(row["run_id"], row | {"about": json.loads(row["description"])})
    return Results(
        lake=lake,
        runs=list(runs.values()),
        verdicts={row["run_id"]: row for row in lake.rows("verdicts")},
        violations=violations,
        measures=measures,
        by_run=by_run,
        comparisons=lake.rows("comparisons"),
        differences=lake.rows("differences"),
    )
