"""A sweep's tables from the marks of its runs: `runs`, `verdicts`, `violations`, `measures` of runs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
import pyarrow as pa

from precede.experiments.grid import Grid, Point
from precede.experiments.run import Run
from precede.lake.schemas import MEASURES, RUNS, VERDICTS, VIOLATIONS, Table

Marks = Mapping[str, Mapping[str, Any]]
_OUTCOME: Final = ("order", "nodes", "rows", "events", "end_us")
_RUNS_AT_ONCE: Final = 1_000
"""The rows of so many runs are Python objects at a time: those of 100,000 runs would take gigabytes."""


def result_blocks(grid: Grid, marks: Marks) -> Iterator[dict[str, pa.Table]]:
    """Yield the tables of a block of runs after the other, in the order of the grid; an empty block if none."""
    for first in range(0, max(1, len(grid.points)), _RUNS_AT_ONCE):
        points = grid.points[first : first + _RUNS_AT_ONCE]
        yield _tables_of(grid.name, [(point, marks[point.id]) for point in points])


def _tables_of(sweep: str, runs: Sequence[tuple[Point, Mapping[str, Any]]]) -> dict[str, pa.Table]:
    finished = [(point, mark) for point, mark in runs if mark["status"] == "finished"]
    judged = [(point, mark) for point, mark in finished if "verdicts" in mark]
    measured = [(point, mark) for point, mark in finished if "measures" in mark]
    return {
        "runs": table_of(RUNS, [_run(sweep, point, mark) for point, mark in runs]),
        "verdicts": table_of(VERDICTS, [_verdict(sweep, point, mark) for point, mark in judged]),
        "violations": table_of(
            VIOLATIONS, [row for point, mark in judged for row in _violations(sweep, point, mark)]
        ),
        "measures": table_of(
            MEASURES, [row for point, mark in measured for row in _measures(sweep, point, mark)]
        ),
    }


def table_of(table: Table, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Make an Arrow table in the declared schema from rows. A missing optional column is null."""
    for row in rows[:1]:
        assert not set(row) - set(table.names()), set(row) - set(table.names())
    return pa.Table.from_pylist(list(rows), schema=table.arrow())


def sorted_json(values: Any) -> str:
    return msgspec.json.encode(values, order="sorted").decode()


def run_row(run_id: str, run: Run, labels: Mapping[str, str], mark: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of `runs` for a run and its mark, with `labels`: sweep, scenario and options."""
    copied = ("status", "cpu_s", "attempt", "worker", "finished_at", "version", "error", "traceback")
    return {
        **labels,
        "run_id": run_id,
        "protocol": run.protocol,
        "seed": run.seed,
        "description": msgspec.json.encode(run).decode(),
        **{name: mark.get(name) for name in copied},
    }


def measure_rows(
    labels: Mapping[str, Any], run_id: str, measures: Mapping[str, float | None]
) -> list[dict[str, Any]]:
    """Return the rows of `measures` for one run. `labels` are sweep, scenario, protocol and options."""
    common = {**labels, "scope": "run", "run_id": run_id, "runs": 1}
    return [
        {**common, "measure": name, "value": float(value)}
        for name, value in measures.items()
        if value is not None
    ]


def _run(sweep: str, point: Point, mark: Mapping[str, Any]) -> dict[str, Any]:
    labels = {"sweep": sweep, "scenario": point.run.scenario, "options": sorted_json(point.varied)}
    return {**run_row(point.id, point.run, labels, mark), **{name: mark.get(name) for name in _OUTCOME}}


def _verdict(sweep: str, point: Point, mark: Mapping[str, Any]) -> dict[str, Any]:
    verdict = {name: value for name, value in mark["verdicts"].items() if name != "listed"}
    return {"sweep": sweep, "run_id": point.id, **verdict}


def _violations(sweep: str, point: Point, mark: Mapping[str, Any]) -> list[dict[str, Any]]:
    verdict = mark["verdicts"]
    return [
        {
            "sweep": sweep,
            "run_id": point.id,
            "number": number,
            "order": verdict["order"],
            "kind": violation["kind"],
            "node": violation["node"],
            "incarnation": violation.get("incarnation", 0),
            "step": violation["step"],
            "message": violation["message"],
            "other": violation.get("other"),
            "explanation": violation.get("story"),
        }
        for number, violation in enumerate(verdict["listed"])
    ]


def _measures(sweep: str, point: Point, mark: Mapping[str, Any]) -> list[dict[str, Any]]:
    labels = {
        "sweep": sweep,
        "scenario": point.run.scenario,
        "protocol": point.run.protocol,
        "options": sorted_json(point.varied),
    }
    return measure_rows(labels, point.id, mark["measures"])
