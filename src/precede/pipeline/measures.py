"""Measures as DataFrame code: groups of runs with confidence intervals (DESIGN section 5).

Every stage is a function from DataFrames to a DataFrame that ends in a `select` of the declared columns.
Nothing here needs a `SparkContext`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from precede.measures import student_quantile
from precede.pipeline.schemas import MEASURES

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

LEVEL: Final = 0.95
_GROUP: Final = ("sweep", "scenario", "protocol", "options", "measure")


def group_measures(measures: DataFrame, level: float = LEVEL) -> DataFrame:
    """Runs that differ in their seed alone, as one row per measure: mean, deviation, Student's interval.

    Takes rows of scope `run` and gives rows of scope `group`.
    """
    from pyspark.sql import functions as sf

    of_runs = measures.where(sf.col("scope") == "run")
    groups = of_runs.groupBy(*_GROUP).agg(
        sf.avg("value").alias("mean"), sf.count("value").alias("runs"), sf.stddev_samp("value").alias("sd")
    )
    half = _student(groups, level) * sf.col("sd") / sf.sqrt(sf.col("runs"))
    return groups.select(
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
    ).select(*MEASURES.names())


def _student(groups: DataFrame, level: float) -> Column:
    """Student's quantile for each group's number of runs; null for a single one."""
    from pyspark.sql import functions as sf

    sizes = [row.runs for row in groups.select("runs").distinct().collect() if row.runs > 1]
    if not sizes:
        return sf.lit(None).cast("double")
    pairs = [sf.lit(number) for size in sizes for number in (size, student_quantile((1 + level) / 2, size - 1))]
    return sf.create_map(*pairs)[sf.col("runs")]
