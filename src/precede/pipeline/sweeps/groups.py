"""Measures of groups of runs that differ only in their seed: mean, deviation and Student's interval."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from precede.lake.schemas import MEASURES
from precede.measures.statistics import confidence_interval
from precede.pipeline.sessions.frames import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LEVEL: Final = 0.95
COUNTED: Final = "^(discarded_|packets_|observed_(?!.*_age_us_))"
"""Matches the names of counts for which a run has a row only if the event happened at least once."""
_GROUP: Final = ("sweep", "scenario", "protocol", "options")


def group_measures(measures: DataFrame, level: float = LEVEL) -> DataFrame:
    """Compute `group_rows` of a DataFrame; a group is in one task."""
    of_runs = measures.where("scope = 'run'").repartition(*_GROUP)
    return of_runs.mapInArrow(partial(_group_batches, level=level), spark_schema(MEASURES))


def _group_batches(batches: Iterator[pa.RecordBatch], level: float) -> Iterator[pa.RecordBatch]:
    rows = list(batches)
    if rows:
        yield from group_rows(pa.Table.from_batches(rows), level).to_batches()


def group_rows(measures: pa.Table, level: float = LEVEL) -> pa.Table:
    """Return rows of scope `group` from those of scope `run`."""
    grouped = GroupedValues()
    grouped.add(measures)
    return grouped.rows(level)


class GroupedValues:
    """The values of each measure in each group of runs. Rows of `measures` are added block by block."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, ...], array[float]] = {}

    def add(self, measures: pa.Table) -> None:
        """Add the values of rows of scope `run`; the rows themselves are not kept."""
        counted = pc.and_(pc.equal(measures["scope"], "run"), pc.is_valid(measures["value"]))
        values_of_runs = measures.select([*_GROUP, "measure", "value"]).filter(counted)
        grouped = values_of_runs.group_by([*_GROUP, "measure"], use_threads=False)
        for row in grouped.aggregate([("value", "list")]).to_pylist():
            key = tuple(row[name] for name in (*_GROUP, "measure"))
            self._values.setdefault(key, array("d")).extend(row["value_list"])

    def rows(self, level: float = LEVEL) -> pa.Table:
        """Return rows of scope `group`. A run without a row for a count contributes 0."""
        runs: dict[tuple[str, ...], int] = {}
        for key, several in self._values.items():
            runs[key[:-1]] = max(runs.get(key[:-1], 0), len(several))
        rows = []
        for key in sorted(self._values):
            values = self._values[key]
            zeros = runs[key[:-1]] - len(values) if re.match(COUNTED, key[-1]) else 0
            labels = dict(zip((*_GROUP, "measure"), key, strict=True))
            rows.append(labels | summarised([*values, *[0.0] * zeros], level))
        return pa.Table.from_pylist(rows, schema=MEASURES.arrow())


def summarised(values: Sequence[float], level: float = LEVEL) -> dict[str, Any]:
    """Return the columns of `measures` about the values of one measure over a group."""
    count = len(values)
    mean = math.fsum(values) / count
    squares = math.fsum((value - mean) ** 2 for value in values)
    low, high = confidence_interval(values, level) or (None, None)
    deviation = math.sqrt(squares / (count - 1)) if count > 1 else None
    return {"scope": "group", "value": mean, "runs": count, "sd": deviation, "low": low, "high": high}
