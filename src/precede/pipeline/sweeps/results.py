"""A sweep's tables from the marks of its runs: `runs`, `verdicts`, `violations`, `measures` of scope `run`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from precede.experiments.grid import Grid, Point
from precede.lake.schemas import MEASURES, RUNS, TABLES, VERDICTS, VIOLATIONS, Table

Marks = Mapping[str, Mapping[str, Any]]


def result_tables(grid: Grid, marks: Marks) -> dict[str, pa.Table]:
    """Every table of a sweep but the measures of groups, sorted by run as the grid lists them."""
    finished = [point for point in grid.points if marks[point.id]["status"] == "finished"]
    judged = [point for point in finished if "verdicts" in marks[point.id]]
    measured = [point for point in finished if "measures" in marks[point.id]]
    return {
        "runs": _table(RUNS, [_run(grid.name, point, marks[point.id]) for point in grid.points]),
        "verdicts": _table(VERDICTS, [_verdict(grid.name, point, marks[point.id]) for point in judged]),
        "violations": _table(
            VIOLATIONS, [row for point in judged for row in _violations(grid.name, point, marks[point.id])]
        ),
        "measures": _table(
            MEASURES, [row for point in measured for row in _measures(grid.name, point, marks[point.id])]
        ),
    }


def varied_text(point: Point) -> str:
    """What the grid set for a run, as JSON with sorted keys."""
    return msgspec.json.encode(point.varied, order="sorted").decode()


def _table(table: Table, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows in the declared schema; a key that is no column is a mistake, a missing optional one is null."""
    assert table is TABLES[table.name]
    for row in rows[:1]:
        assert not set(row) - set(table.names()), set(row) - set(table.names())
    return pa.Table.from_pylist(list(rows), schema=table.arrow())


def _run(sweep: str, point: Point, mark: Mapping[str, Any]) -> dict[str, Any]:
    copied = (
        *("status", "order", "nodes", "rows", "events", "end_us", "cpu_s"),
        *("attempt", "worker", "finished_at", "version", "error", "traceback"),
    )
    return {
        "sweep": sweep,
        "run_id": point.id,
        "scenario": point.run.scenario,
        "protocol": point.run.protocol,
        "options": varied_text(point),
        "seed": point.run.seed,
        "description": msgspec.json.encode(point.run).decode(),
        **{name: mark.get(name) for name in copied},
    }


def _verdict(sweep: str, point: Point, mark: Mapping[str, Any]) -> dict[str, Any]:
    told = {name: value for name, value in mark["verdicts"].items() if name != "listed"}
    return {"sweep": sweep, "run_id": point.id, **told}


def _violations(sweep: str, point: Point, mark: Mapping[str, Any]) -> list[dict[str, Any]]:
    verdict = mark["verdicts"]
    return [
        {
            "sweep": sweep,
            "run_id": point.id,
            "number": number,
            "order": verdict["order"],
            "kind": listed["kind"],
            "node": listed["node"],
            "incarnation": listed.get("incarnation", 0),
            "step": listed["step"],
            "message": listed["message"],
            "other": listed.get("other"),
            "explanation": listed.get("story"),
        }
        for number, listed in enumerate(verdict["listed"])
    ]


def _measures(sweep: str, point: Point, mark: Mapping[str, Any]) -> list[dict[str, Any]]:
    about = {
        "sweep": sweep,
        "scope": "run",
        "run_id": point.id,
        "scenario": point.run.scenario,
        "protocol": point.run.protocol,
        "options": varied_text(point),
        "runs": 1,
    }
    measures = mark["measures"].items()
    return [{**about, "measure": name, "value": float(value)} for name, value in measures if value is not None]
