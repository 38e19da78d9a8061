"""Measures of every run in a table of events, on Spark.

The measures of a run are those of `precede.measures`, which tasks call. A sweep measures a run in the task that
simulates it; `measure` is for events from any source, on the caller's session. Every stage is a function from
DataFrames to a DataFrame and ends in a `select`. Nothing here needs a `SparkContext`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from precede.measures.events import COLUMNS as EVENT_COLUMNS
from precede.measures.events import EventMeasures
from precede.measures.gauges import COLUMNS as GAUGE_COLUMNS
from precede.measures.gauges import GaugeMeasures
from precede.measures.messages import Window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MEASURED: Final = "run_id string, measure string, value double"
_ARROW_MEASURED: Final = pa.schema([("run_id", pa.string()), ("measure", pa.string()), ("value", pa.float64())])


def measure(
    events: DataFrame, gauges: DataFrame | None = None, window: tuple[int, int] | None = None
) -> DataFrame:
    """Compute every measure of every run in `events` and `gauges`, as rows of run_id, measure and value.

    With a `window`, only messages broadcast between its two instants are measured. A measure without a value
    has no row.
    """
    part = None if window is None else Window(*window)
    measured = _by_run(events, EVENT_COLUMNS, partial(EventMeasures, part))
    if gauges is None:
        return measured
    return measured.unionByName(_by_run(gauges, GAUGE_COLUMNS, partial(GaugeMeasures, part)))


def _by_run(
    rows: DataFrame, columns: Sequence[str], measures: Callable[[], EventMeasures | GaugeMeasures]
) -> DataFrame:
    """Compute the measures of every run in a table, from those of the given columns that the table has."""
    needed = rows.select("run_id", *(name for name in columns if name in rows.columns))
    sorted_rows = needed.repartition("run_id").sortWithinPartitions("run_id")
    return sorted_rows.mapInArrow(_Runs(measures), _MEASURED).select("run_id", "measure", "value")


class _Runs:
    """Measures the runs of one partition, whose rows are sorted by run."""

    def __init__(self, measures: Callable[[], EventMeasures | GaugeMeasures]) -> None:
        self.measures = measures

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for run_id, parts in groupby(self._parts(batches), key=lambda part: part[0]):
            run = self.measures()
            for _, part in parts:
                run.add(part)
            rows = [
                {"run_id": run_id, "measure": name, "value": float(value)}
                for name, value in run.measures().items()
                if value is not None
            ]
            yield pa.RecordBatch.from_pylist(rows, _ARROW_MEASURED)

    def _parts(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Divide each batch by run, and yield the parts with their run ids."""
        for batch in batches:
            runs = pc.run_end_encode(batch.column("run_id")) if batch.num_rows else None
            begin = 0
            for run_id, end in (
                zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True) if runs else ()
            ):
                yield run_id, batch.slice(begin, end - begin)
                begin = end
