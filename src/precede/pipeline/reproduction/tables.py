"""A reproduction's tables for the lake, from its units' marks: runs, verdicts, measures, comparisons."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from precede.lake.schemas import COMPARISONS, MEASURES, RUNS, VERDICTS
from precede.measures.statistics import confidence_interval
from precede.reproduction.judging import Comparison
from precede.reproduction.units import Paper, Unit

Marked = Sequence[tuple[Unit, Mapping[str, Any]]]


def result_tables(
    name: str, paper: Paper, marks: Marked, comparisons: Sequence[Comparison]
) -> dict[str, pa.Table]:
    """Every table, rows in the order in which units were asked for."""
    finished = [(unit, mark) for unit, mark in marks if mark["status"] == "finished"]
    ids = {unit.id: [run.id for run in paper.runs(unit)] for unit, _ in marks}
    return {
        "runs": pa.Table.from_pylist(
            [row for unit, mark in marks for row in _runs(name, paper, unit, mark)], RUNS.arrow()
        ),
        "verdicts": pa.Table.from_pylist(
            [row for unit, mark in finished for row in _verdicts(name, ids[unit.id], mark)], VERDICTS.arrow()
        ),
        "measures": pa.Table.from_pylist(
            [row for unit, mark in finished for row in _measures(name, unit, ids[unit.id][0], mark)]
            + _groups(name, finished),
            MEASURES.arrow(),
        ),
        "comparisons": pa.Table.from_pylist(
            [comparison_row(name, finished[0][0].paper if finished else name, one) for one in comparisons],
            COMPARISONS.arrow(),
        ),
    }


def _runs(name: str, paper: Paper, unit: Unit, mark: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "sweep": name,
            "run_id": run.id,
            "scenario": unit.experiment,
            "protocol": run.protocol,
            "options": options_text(unit),
            "seed": unit.seed,
            "status": mark["status"],
            "cpu_s": mark["cpu_s"],
            "attempt": mark["attempt"],
            "worker": mark["worker"],
            "finished_at": mark["finished_at"],
            "version": mark["version"],
            "error": mark.get("error"),
            "traceback": mark.get("traceback"),
            "description": msgspec.json.encode(run).decode(),
        }
        for run in paper.runs(unit)
    ]


def options_text(unit: Unit) -> str:
    """What the experiment varied, as JSON with sorted keys."""
    return msgspec.json.encode(unit.varied, order="sorted").decode()


def _verdicts(name: str, ids: Sequence[str], mark: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The runs of one unit share its verdict; a unit that the witness was not asked about has none."""
    if mark["violations"] is None:
        return []
    verdict = "violated" if mark["violations"] else "holds"
    return [
        {
            "sweep": name,
            "run_id": run_id,
            "order": mark["order"],
            "promised": mark["order"],
            "verdict": verdict,
            "violations": mark["violations"],
            "reasons": [],
            "findings": [],
        }
        for run_id in ids
    ]


def _measures(name: str, unit: Unit, run_id: str, mark: Mapping[str, Any]) -> list[dict[str, Any]]:
    about = {**_about(name, unit), "scope": "run", "run_id": run_id, "runs": 1}
    return [{**about, "measure": measure, "value": float(value)} for measure, value in mark["measures"].items()]


def _about(name: str, unit: Unit) -> dict[str, Any]:
    return {
        "sweep": name,
        "scenario": unit.experiment,
        "protocol": str(unit.varied.get("protocol", unit.paper)),
        "options": options_text(unit),
    }


def _groups(name: str, finished: Marked) -> list[dict[str, Any]]:
    """The mean of every measure over the repetitions of a point."""
    points: dict[tuple[str, str], list[tuple[Unit, Mapping[str, Any]]]] = {}
    for unit, mark in finished:
        points.setdefault((unit.experiment, options_text(unit)), []).append((unit, mark))
    rows = []
    for several in points.values():
        names = dict.fromkeys(measure for _, mark in several for measure in mark["measures"])
        for measure in names:
            values = [float(mark["measures"][measure]) for _, mark in several if measure in mark["measures"]]
            rows.append(_about(name, several[0][0]) | {"scope": "group", "measure": measure} | _mean(values))
    return rows


def _mean(values: Sequence[float]) -> dict[str, Any]:
    mean = math.fsum(values) / len(values)
    interval = confidence_interval(values) if len(values) > 1 else None
    variance = math.fsum((value - mean) ** 2 for value in values) / max(len(values) - 1, 1)
    return {
        "value": mean,
        "runs": len(values),
        "sd": math.sqrt(variance) if len(values) > 1 else None,
        "low": None if interval is None else interval[0],
        "high": None if interval is None else interval[1],
    }


def comparison_row(name: str, paper: str, one: Comparison) -> dict[str, Any]:
    """A judged claim as a row of `comparisons`."""
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
    }
