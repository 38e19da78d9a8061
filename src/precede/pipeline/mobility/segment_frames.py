"""Positions in a DataFrame become straight segments, with DataFrame expressions alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from precede.core.errors import BadInput
from precede.core.instants import Duration
from precede.lake.schemas import SEGMENTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

POSITIONS = ("trace", "node", "t_us", "x", "y")


def segments(positions: DataFrame, gap_us: Duration | None) -> DataFrame:
    """Join each position of a node to its next one, unless the next is later by more than a gap."""
    from pyspark.sql import Window
    from pyspark.sql import functions as sf

    for name in POSITIONS:
        if name not in positions.columns:
            raise BadInput(f"segments: no column {name!r} (there are: {', '.join(positions.columns)})")
    in_time = Window.partitionBy("trace", "node").orderBy("t_us")
    lasts = sf.lead("t_us").over(in_time)
    moment = sf.col("t_us").cast("bigint")
    twice = sf.raise_error(
        sf.concat(sf.lit("two positions of one node at "), moment.cast("string"), sf.lit(" us"))
    )
    pieces = positions.select(
        sf.col("trace").cast("string").alias("trace"),
        sf.col("node").cast("string").alias("node"),
        moment.alias("t0_us"),
        sf.col("x").cast("double").alias("x0"),
        sf.col("y").cast("double").alias("y0"),
        sf.when(lasts == sf.col("t_us"), twice.cast("bigint")).otherwise(lasts.cast("bigint")).alias("t1_us"),
        sf.lead("x").over(in_time).cast("double").alias("x1"),
        sf.lead("y").over(in_time).cast("double").alias("y1"),
    )
    joined = pieces.where(sf.col("t1_us").isNotNull())
    if gap_us is not None:
        joined = joined.where(sf.col("t1_us") - sf.col("t0_us") <= gap_us)
    return joined.select(*SEGMENTS.names())
