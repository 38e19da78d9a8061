"""A reproduction's tables for the lake, from the marks of its units: runs, verdicts, measures, comparisons."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from precede.lake.schemas import COMPARISONS, MEASURES, RUNS, VERDICTS
from precede.pipeline.sweeps.groups import summarised
from precede.pipeline.sweeps.results import measure_rows, run_row, sorted_json, table_of
from precede.reproduction.judging import Comparison
from precede.reproduction.units import Paper, Unit

Marked = Sequence[tuple[Unit, Mapping[str, Any]]]
"""Units with their done marks."""


def result_tables(
    name: str, paper: Paper, marks: Marked, comparisons: Sequence[Comparison]
) -> dict[str, pa.Table]:
    """Return all tables of a reproduction, rows in the order of units; `name` is their unit in the lake."""
    finished = [(unit, mark) for unit, mark in marks if mark["status"] == "finished"]
    runs = {unit.id: [(run.id, run) for run in paper.runs(unit)] for unit, _ in marks}
    run_rows = [
        {**run_row(run_id, run, _labels(name, unit), mark), "seed": unit.seed}
        for unit, mark in marks
        for run_id, run in runs[unit.id]
    ]
    verdicts = [row for unit, mark in finished for row in _verdicts(name, runs[unit.id], mark)]
    measures = [
        row
        for unit, mark in finished
        for row in measure_rows(_protocol_labels(name, unit), runs[unit.id][0][0], mark["measures"])
    ]
    key = finished[0][0].paper if finished else name
    return {
        "runs": table_of(RUNS, run_rows),
        "verdicts": table_of(VERDICTS, verdicts),
        "measures": table_of(MEASURES, measures + _groups(name, finished)),
        "comparisons": table_of(COMPARISONS, [comparison_row(name, key, one) for one in comparisons]),
    }


def _labels(name: str, unit: Unit) -> dict[str, str]:
    """Return the columns by which the rows of one point differ from those of another."""
    return {"sweep": name, "scenario": unit.experiment, "options": sorted_json(unit.varied)}


def _protocol_labels(name: str, unit: Unit) -> dict[str, str]:
    """Return the labels of a unit with its protocol: the key of its paper, unless the unit varies it."""
    return {**_labels(name, unit), "protocol": str(unit.varied.get("protocol", unit.paper))}


def _verdicts(name: str, runs: Sequence[tuple[str, Any]], mark: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of `verdicts` for the runs of one unit, which share its verdict if it has one."""
    if mark["violations"] is None:
        return []
    return [
        {
            "sweep": name,
            "run_id": run_id,
            "order": mark["order"],
            "promised": mark["order"],
            "verdict": "violated" if mark["violations"] else "holds",
            "violations": mark["violations"],
            "reasons": [],
            "findings": [],
        }
        for run_id, _ in runs
    ]


def _groups(name: str, finished: Marked) -> list[dict[str, Any]]:
    """Return the mean of every measure over the repetitions of each point."""
    points: dict[tuple[str, str], list[tuple[Unit, Mapping[str, Any]]]] = {}
    for unit, mark in finished:
        points.setdefault((unit.experiment, sorted_json(unit.varied)), []).append((unit, mark))
    rows = []
    for repetitions in points.values():
        labels = _protocol_labels(name, repetitions[0][0])
        marks = [mark for _, mark in repetitions]
        for measure in dict.fromkeys(measure for mark in marks for measure in mark["measures"]):
            values = [float(mark["measures"][measure]) for mark in marks if measure in mark["measures"]]
            rows.append(labels | {"measure": measure} | summarised(values))
    return rows


def comparison_row(name: str, paper: str, one: Comparison) -> dict[str, Any]:
    low, high = one.claim.bounds
    return {
        "sweep": name,
        "paper": paper,
        "claim": one.claim.id,
        "place": one.claim.place,
        "says": one.claim.says,
        "measure": one.claim.measure,
        "kind": one.claim.kind,
        "published_low": low if math.isfinite(low) else None,
        "published_high": high if math.isfinite(high) else None,
        "ours_low": None if one.ours is None else one.ours[0],
        "ours_high": None if one.ours is None else one.ours[1],
        "interval_low": None if one.interval is None else one.interval[0],
        "interval_high": None if one.interval is None else one.interval[1],
        "points": one.points,
        "status": one.status,
        "reading": one.reading or None,
        "exhibit": one.claim.exhibit,
        "off_percent": one.off,
        "runs": one.runs,
        "reason": one.reason,
        "shown_by": one.shown_by,
        "scenario": one.claim.experiment,
    }
