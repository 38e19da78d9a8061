"""Measures of every run in a table of events, and of groups of runs, on Spark.

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

from precede.lake.schemas import MEASURES
from precede.measures import EventMeasures, GaugeMeasures, Window, student_quantile
from precede.measures.events import COLUMNS as EVENT_COLUMNS
from precede.measures.gauges import COLUMNS as GAUGE_COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LEVEL: Final = 0.95
_MEASURED: Final = "run_id string, measure string, value double"
_ARROW_MEASURED: Final = pa.schema([("run_id", pa.string()), ("measure", pa.string()), ("value", pa.float64())])
_GROUP: Final = ("sweep", "scenario", "protocol", "options", "measure")
COUNTED: Final = "^(discarded_|packets_|observed_(?!.*_age_us_))"
"""Matches the names of counts for which a run has a row only if the event happened at least once."""


def group_measures(measures: DataFrame, level: float = LEVEL) -> DataFrame:
    """Compute mean, deviation and Student's confidence interval of every measure over each group of runs.

    A group is all runs that differ only in their seed. Takes rows of scope `run` and gives rows of scope
    `group`. A run without a row for a count contributes 0.
    """
    from pyspark.sql import functions as sf

    of_runs = measures.where(sf.col("scope") == "run")
    groups = of_runs.groupBy(*_GROUP).agg(
        sf.avg("value").alias("mean"), sf.count("value").alias("runs"), sf.stddev_samp("value").alias("sd")
    )
    groups = _with_zeros(groups)
    half = sf.col("quantile") * sf.col("sd") / sf.sqrt(sf.col("runs"))
    columns = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in groups.schema.fields)
    return (
        groups.mapInArrow(_Student(level), f"{columns}, quantile double")
        .select(
            "sweep",
            sf.lit("group").alias("scope"),
            sf.lit(None).cast("string").alias("run_id"),
            "scenario",
            "protocol",
            "options",
            "measure",
            sf.col("mean").alias("value"),
            "runs",
            "sd",
            (sf.col("mean") - half).alias("low"),
            (sf.col("mean") + half).alias("high"),
        )
        .select(*MEASURES.names())
    )


def _with_zeros(groups: DataFrame) -> DataFrame:
    """Correct the statistics of groups: every run without a row for a count contributes a 0.

    If k of n values have mean m and deviation s and the others are 0, the mean is m k/n, and the squared
    deviations from it sum up to (k - 1) s^2 + m^2 k (n - k) / n.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as sf

    mean, k, sd = sf.col("mean"), sf.col("runs"), sf.coalesce("sd", sf.lit(0.0))
    all_runs = sf.max("runs").over(Window.partitionBy(*_GROUP[:-1]))
    n = sf.when(sf.col("measure").rlike(COUNTED), all_runs).otherwise(k)
    squares = (k - 1) * sd * sd + mean * mean * k * (n - k) / n
    deviation = sf.when(n > k, sf.sqrt(squares / (n - 1))).otherwise(sf.col("sd"))
    return groups.select(*_GROUP, (mean * k / n).alias("mean"), n.alias("runs"), deviation.alias("sd"))


class _Student:
    """Adds Student's quantile for the number of runs of each group; null for a single run."""

    def __init__(self, level: float) -> None:
        self.level = level

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            sizes = batch.column("runs").to_pylist()
            upper = (1 + self.level) / 2
            quantiles = {n: student_quantile(upper, n - 1) for n in dict.fromkeys(sizes) if n > 1}
            column = pa.array([quantiles.get(size) for size in sizes], pa.float64())
            yield batch.append_column("quantile", column)


def measure(
    events: DataFrame, gauges: DataFrame | None = None, window: tuple[int, int] | None = None
) -> DataFrame:
    """Compute every measure of every run in `events` and `gauges`, as rows of run_id, measure and value.

    With a `window`, only messages are measured that were broadcast from its first instant to before its second.

    A measure without a value has no row. A task measures one run after the other with `precede.measures`, in
    batches.
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
