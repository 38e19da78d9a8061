"""Contacts of movement in a DataFrame: the exact kernel on slices of time, on the caller's session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from precede.core.errors import BadInput
from precede.core.instants import Duration
from precede.lake.columns import distinct_names
from precede.lake.schemas import CONTACTS, SEGMENTS
from precede.pipeline.mobility.contacts import segments_of
from precede.traces.kernel import find_contacts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PIECES = "trace string, a string, b string, start_us bigint, end_us bigint"


def contacts(segments: DataFrame, range_m: float, slice_us: Duration) -> DataFrame:
    """Compute all contacts within a range; a task computes a slice of time, a window joins the pieces."""
    from pyspark.sql import Window
    from pyspark.sql import functions as sf

    if slice_us <= 0:
        raise BadInput("a slice of time must be longer than nothing")
    first, last = (sf.floor(sf.col(name) / slice_us).cast("bigint") for name in ("t0_us", "t1_us"))
    sliced = segments.select(*SEGMENTS.names(), sf.explode(sf.sequence(first, last)).alias("slice"))
    work = _Slice(range_m, slice_us)
    # a lambda, because PySpark reads the type hints of a callable and refuses an object that has them
    pieces = sliced.groupBy("trace", "slice").applyInArrow(lambda table: work(table), _PIECES)  # noqa: PLW0108
    in_time = Window.partitionBy("trace", "a", "b").orderBy("start_us", "end_us")
    earlier = in_time.rowsBetween(Window.unboundedPreceding, -1)
    begins = sf.coalesce(sf.col("start_us") > sf.max("end_us").over(earlier), sf.lit(True))
    marked = pieces.withColumn("begins", begins.cast("int"))
    numbered = marked.withColumn("contact", sf.sum("begins").over(in_time))
    joined = numbered.groupBy("trace", "a", "b", "contact").agg(
        sf.min("start_us").alias("start_us"), sf.max("end_us").alias("end_us")
    )
    return joined.withColumn("range_m", sf.lit(float(range_m))).select(*CONTACTS.names())


class _Slice:
    """Computes the contacts of one slice of one trace, as pieces that end at the cuts."""

    def __init__(self, range_m: float, slice_us: Duration) -> None:
        self.range_m, self.slice_us = range_m, slice_us

    def __call__(self, table: pa.Table) -> pa.Table:
        names = distinct_names(table["node"])
        begin = table["slice"][0].as_py() * self.slice_us
        pieces = find_contacts(segments_of(table, names), self.range_m, begin, begin + self.slice_us)
        named = pa.array(names, pa.string())
        return pa.table(
            {
                "trace": pa.repeat(table["trace"][0], len(pieces.a)),
                "a": named.take(pa.array(pieces.a)),
                "b": named.take(pa.array(pieces.b)),
                "start_us": pa.array(pieces.start_us, pa.int64()),
                "end_us": pa.array(pieces.end_us, pa.int64()),
            }
        )
