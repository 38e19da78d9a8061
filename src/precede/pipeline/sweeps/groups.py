"""Measures of groups of runs without Spark, for a sweep that is carried out in one process.

The rows are those of `group_measures`, which computes them on Spark.
"""

from __future__ import annotations

import math
import re
from typing import Any

import pyarrow as pa

from precede.lake.schemas import MEASURES
from precede.measures import confidence_interval
from precede.pipeline.sweeps.measures import COUNTED, LEVEL


def group_rows(measures: pa.Table, level: float = LEVEL) -> pa.Table:
    """Compute mean, deviation and Student's interval of every measure over runs that differ only in seed."""
    values: dict[tuple[str, ...], list[float]] = {}
    runs: dict[tuple[str, ...], int] = {}
    for row in measures.to_pylist():
        if row["scope"] != "run" or row["value"] is None:
            continue
        group = tuple(row[name] for name in ("sweep", "scenario", "protocol", "options"))
        several = values.setdefault((*group, row["measure"]), [])
        several.append(row["value"])
        runs[group] = max(runs.get(group, 0), len(several))
    rows = []
    for key in sorted(values):
        zeros = runs[key[:-1]] - len(values[key]) if re.match(COUNTED, key[-1]) else 0
        rows.append(_row(key, [*values[key], *[0.0] * zeros], level))
    return pa.Table.from_pylist(rows, schema=MEASURES.arrow())


def _row(key: tuple[str, ...], values: list[float], level: float) -> dict[str, Any]:
    """Return the row of one measure of one group."""
    count = len(values)
    mean = math.fsum(values) / count
    low, high = confidence_interval(values, level) or (None, None)
    deviation = (
        math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1)) if count > 1 else None
    )
    names = dict(zip(("sweep", "scenario", "protocol", "options", "measure"), key, strict=True))
    return names | {
        **{"scope": "group", "run_id": None, "value": mean, "runs": count},
        **{"sd": deviation, "low": low, "high": high},
    }
