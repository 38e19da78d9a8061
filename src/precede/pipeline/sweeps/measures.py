"""Measures as DataFrame code: of every run in a table of events, and of groups of runs.

The definitions are those of `precede.measures`; a test compares the two. A sweep measures a run in the task
that simulates it; this module is for events from any source, on the caller's session. Every stage is a function
from DataFrames to a DataFrame and ends in a `select`. Nothing here needs a `SparkContext`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from precede.lake.schemas import MEASURES
from precede.measures import student_quantile
from precede.measures.events import PACKET_SIZES
from precede.measures.statistics import PERCENTILES, STATISTICS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

LEVEL: Final = 0.95
_GROUP: Final = ("sweep", "scenario", "protocol", "options", "measure")
COUNTED: Final = "^(discarded_|packets_|observed_(?!.*_age_us_))"
"""Counts for which a run has a row only if the event happened at least once."""


def group_measures(measures: DataFrame, level: float = LEVEL) -> DataFrame:
    """Mean, deviation and Student's confidence interval of every measure over each group of runs.

    A group is all runs that differ only in their seed. Takes rows of scope `run` and gives rows of scope
    `group`. A run without a row for a count contributes 0.
    """
    from pyspark.sql import functions as sf

    of_runs = measures.where(sf.col("scope") == "run")
    groups = of_runs.groupBy(*_GROUP).agg(
        sf.avg("value").alias("mean"), sf.count("value").alias("runs"), sf.stddev_samp("value").alias("sd")
    )
    groups = _with_zeros(groups)
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


def _with_zeros(groups: DataFrame) -> DataFrame:
    """The same groups, with a 0 for every run that has no row for a count.

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


def _student(groups: DataFrame, level: float) -> Column:
    """Student's quantile for the number of runs of each group; null for a single run."""
    from pyspark.sql import functions as sf

    sizes = [row.runs for row in groups.select("runs").distinct().collect() if row.runs > 1]
    if not sizes:
        return sf.lit(None).cast("double")
    pairs = [sf.lit(number) for size in sizes for number in (size, student_quantile((1 + level) / 2, size - 1))]
    return sf.create_map(*pairs)[sf.col("runs")]


def measure(events: DataFrame, gauges: DataFrame | None = None) -> DataFrame:
    """All measures of every run in `events` and `gauges`, as rows of run_id, measure and value."""
    parts = [_latencies(events), _counts(events), _packets(events)]
    if gauges is not None:
        parts.append(_sizes(gauges))
    rows = parts[0]
    for part in parts[1:]:
        rows = rows.unionByName(part)
    return rows.select("run_id", "measure", "value")


def _latencies(events: DataFrame) -> DataFrame:
    """Statistics of transit, wait and age; a source's own deliveries and observations are separate measures."""
    from pyspark.sql import Window
    from pyspark.sql import functions as sf

    message = ("run_id", "message_source", "message_incarnation", "message_number")
    of_message, here = Window.partitionBy(*message), Window.partitionBy(*message, "node", "incarnation")
    at, kind = sf.col("at_us"), sf.col("kind")
    timed = (
        events.where(kind.isin("broadcast", "received", "delivered", "observed"))
        .withColumn("broadcast_us", sf.min(sf.when(kind == "broadcast", at)).over(of_message))
        .withColumn("received_us", sf.min(sf.when(kind == "received", at)).over(here))
        .withColumn("own", _own())
    )
    age, wait = at - sf.col("broadcast_us"), at - sf.col("received_us")
    delivered, observed = kind == "delivered", kind == "observed"
    age_name = sf.when(sf.col("own"), sf.lit("own_age_us")).otherwise(sf.lit("age_us"))
    named = timed.select(
        "run_id",
        sf.explode(
            sf.array(
                _pair(sf.lit("transit_us"), (kind == "received") & ~sf.col("own"), age),
                _pair(sf.lit("wait_us"), delivered & ~sf.col("own"), wait),
                _pair(age_name, delivered, age),
                _pair(sf.concat(sf.lit("observed_"), sf.col("reason"), sf.lit("_"), age_name), observed, age),
            )
        ).alias("one"),
    ).where("one.value is not null")
    return _long(_summarised(named.select("run_id", "one.name", "one.value")), STATISTICS)


def _own() -> Column:
    """Is the message one of the node's own incarnation?"""
    from pyspark.sql import functions as sf

    same = sf.col("message_source") == sf.col("node")
    return same & (sf.coalesce("message_incarnation", sf.lit(0)) == sf.coalesce("incarnation", sf.lit(0)))


def _pair(name: Column, when: Column, value: Column) -> Column:
    """A name with a value; the value is null where the condition does not hold."""
    from pyspark.sql import functions as sf

    return sf.struct(name.alias("name"), sf.when(when, value).alias("value"))


def _summarised(values: DataFrame) -> DataFrame:
    """The statistics of each run's values by name; percentiles are exact."""
    from pyspark.sql import functions as sf

    value = sf.col("value")
    shares = sf.array(*(sf.lit(percentile / 100) for percentile in PERCENTILES))
    grouped = values.groupBy("run_id", "name").agg(
        sf.avg(value).alias("mean"),
        sf.stddev_samp(value).alias("sd"),
        sf.min(value).cast("double").alias("min"),
        sf.max(value).cast("double").alias("max"),
        sf.percentile(value, shares).alias("shares"),
    )
    percentiles = [sf.col("shares")[place].alias(f"p{p}") for place, p in enumerate(PERCENTILES)]
    return grouped.select("run_id", "name", "mean", "sd", "min", "max", *percentiles)


def _long(wide: DataFrame, columns: Sequence[str]) -> DataFrame:
    """One row for each name and column; the measure is called `name_column`."""
    from pyspark.sql import functions as sf

    pairs = [sf.struct(sf.lit(column).alias("of"), sf.col(column).alias("value")) for column in columns]
    rows = wide.select("run_id", "name", sf.explode(sf.array(*pairs)).alias("one")).where(
        "one.value is not null"
    )
    return rows.select("run_id", sf.concat_ws("_", "name", "one.of").alias("measure"), "one.value")


def _melted(wide: DataFrame) -> DataFrame:
    """One row for each column except `run_id`; the measure has the column's name."""
    from pyspark.sql import functions as sf

    names = [name for name in wide.columns if name != "run_id"]
    doubles = wide.select("run_id", *(sf.col(name).cast("double").alias(name) for name in names))
    return doubles.unpivot("run_id", names, "measure", "value").where("value is not null")


def _counts(events: DataFrame) -> DataFrame:
    """Counts of events by kind and reason, and the shares that follow from them."""
    from pyspark.sql import functions as sf

    kind, reason = sf.col("kind"), sf.col("reason")
    own = sf.count_if((kind == "delivered") & _own())
    deliveries, receptions = sf.count_if(kind == "delivered"), sf.count_if(kind == "received")
    expired = sf.count_if((kind == "discarded") & (reason == "expired_pending"))
    wide = events.groupBy("run_id").agg(
        sf.count_distinct("node").alias("nodes"),
        sf.max("at_us").alias("end_us"),
        *(sf.count_if(kind == word).alias(word) for word in ("started", "crashed", "left", "discarded")),
        sf.count_if(kind == "broadcast").alias("broadcasts"),
        receptions.alias("receptions"),
        deliveries.alias("deliveries"),
        own.alias("own_deliveries"),
        expired.alias("expired"),
        _ratio(deliveries - own, receptions).alias("delivered_share"),
        _ratio(expired, receptions).alias("expired_share"),
    )
    discards = events.where((kind == "discarded") & reason.isNotNull()).groupBy("run_id", "reason").count()
    observations = events.where(kind == "observed").groupBy("run_id", "reason").count()
    named = [
        rows.select(
            "run_id",
            sf.concat(sf.lit(prefix), "reason").alias("measure"),
            sf.col("count").cast("double").alias("value"),
        )
        for prefix, rows in (("discarded_", discards), ("observed_", observations))
    ]
    return _melted(wide).unionByName(named[0]).unionByName(named[1])


def _packets(events: DataFrame) -> DataFrame:
    """Sent packets and their sizes; one transmission is one packet, whatever the number of receivers."""
    from pyspark.sql import functions as sf

    sent, packets = sf.col("kind") == "sent", sf.count_if(sf.col("kind") == "sent")
    sums = {name: sf.coalesce(sf.sum(sf.when(sent, sf.col(name))), sf.lit(0)) for name in PACKET_SIZES}
    wide = events.groupBy("run_id").agg(
        packets.alias("packets"),
        sf.count_if(sf.col("kind") == "packet_received").alias("packets_received"),
        *(total.alias(name) for name, total in sums.items()),
        *(_ratio(total, packets).alias(f"{name}_mean") for name, total in sums.items()),
        _ratio(sums["control_bytes"], sums["packet_bytes"]).alias("control_bytes_share"),
    )
    rows = _melted(wide)
    for column, prefix in (("packet_kind", "packets_"), ("medium", "packets_over_")):
        each = events.where(sent & sf.col(column).isNotNull()).groupBy("run_id", column)
        sizes = each.agg(sf.count("*").alias("count"), sf.sum("packet_bytes").alias("bytes"))
        for name, ending in (("count", ""), ("bytes", "_bytes")):
            rows = rows.unionByName(
                sizes.select(
                    "run_id",
                    sf.concat(sf.lit(prefix), column, sf.lit(ending)).alias("measure"),
                    sf.coalesce(sf.col(name), sf.lit(0)).cast("double").alias("value"),
                )
            )
    return rows


def _sizes(gauges: DataFrame) -> DataFrame:
    """Sizes of registries and buffers: peak, mean of the samples, and sum over the nodes at the end."""
    from pyspark.sql import functions as sf

    last = gauges.groupBy("run_id", "name", "node").agg(sf.max_by("value", "at_us").alias("left"))
    final = last.groupBy("run_id", "name").agg(sf.sum("left").cast("double").alias("size_final"))
    wide = gauges.groupBy("run_id", "name").agg(
        sf.max(sf.greatest("peak", "value")).cast("double").alias("size_peak"),
        sf.avg("value").alias("size_mean"),
    )
    return _long(wide.join(final, ["run_id", "name"]), ("size_peak", "size_mean", "size_final"))


def _ratio(part: Column, whole: Column) -> Column:
    """A quotient; null if the divisor is 0."""
    from pyspark.sql import functions as sf

    return sf.when(whole > 0, part / whole)
