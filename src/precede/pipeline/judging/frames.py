"""The verifier on a DataFrame: many independent orders in parallel, or one large order.

`precede.pipeline.verify(df, order="causal", by=["topic", "partition"])` gives one row for each order. It uses
the session of the DataFrame and only the DataFrame API (no `SparkContext`, no JVM objects), so it works through
Spark Connect. A group gets the same answer as within the whole log. For that it must know two facts about the
whole log (are there broadcasts, are there deadlines?); a join with one row brings them. Nothing is collected.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import pyarrow as pa
import pyarrow.parquet as pq

from precede.core.errors import BadInput
from precede.pipeline.judging.answers import ANSWER_COLUMNS, ANSWER_DDL, answer_of, answer_schema
from precede.pipeline.judging.buckets import BROADCASTS, DEADLINES, JUDGED_DDL, JudgeBuckets
from precede.pipeline.judging.packing import BLOB_DDL, Packer, PackFrame
from precede.pipeline.judging.query import Query, settle_query
from precede.witness.reading.column_names import BROADCAST, Layout
from precede.witness.reading.partitions import Piece
from precede.witness.reading.tables import parquet_log
from precede.witness.verdict import Order
from precede.witness.verify import VerifyOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def verify(
    df: DataFrame,
    order: Order | None = None,
    *,
    partitions: int | None = None,
    **options: Unpack[VerifyOptions],
) -> DataFrame:
    """Verify every independent order in a DataFrame: one row for each combination of `by`, with the answer.

    The options are those of `precede.verify`. A DataFrame has no order of rows, so `step` must be a column.
    Without `by` (and without a column `run_id`) the whole DataFrame is one order; one task verifies it in
    bounded memory. Nothing runs before an action on the result. `partitions` is the number of tasks; by default
    the session decides. Raises BadInput for missing columns; a value that cannot be read fails the action.
    """
    query, layout = settle_query(df.columns, order, **options)
    if layout.row_order:
        raise BadInput("a DataFrame has no order of rows: name a column that is the step")
    frame = _narrow(df, layout)
    if not layout.by:
        return frame.coalesce(1).mapInArrow(_OneOrder(query), ANSWER_DDL)
    buckets = partitions or int(df.sparkSession.conf.get("spark.sql.shuffle.partitions", "200") or 200)
    packer = Packer(layout.by, layout.names_to_read(), buckets)
    blobs = frame.mapInArrow(PackFrame(packer), BLOB_DDL)
    blobs = blobs.crossJoin(_facts_of_the_whole(frame, layout))
    shuffled = blobs.repartition("bucket") if partitions is None else shuffle(blobs, partitions)
    types = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    schema = ", ".join([*(f"{quoted(name)} {types[name]}" for name in layout.by), JUDGED_DDL])
    answers = shuffled.mapInArrow(JudgeBuckets(query), schema)
    return answers.select(*(quoted(name) for name in (*layout.by, *ANSWER_COLUMNS)))


def shuffle(blobs: DataFrame, buckets: int) -> DataFrame:
    """Bring the blobs of a bucket to one task. Before Spark 4.1 a task may get several buckets or none."""
    if hasattr(blobs, "repartitionById"):
        return blobs.repartitionById(buckets, "bucket")
    return blobs.repartition(buckets, "bucket")


def _narrow(df: DataFrame, layout: Layout) -> DataFrame:
    """Select the columns that are needed, with destinations as text: Spark hands over lists slowly."""
    from pyspark.sql import functions as sf

    destinations = layout.columns.get("destinations")
    types = {field.name: field.dataType.simpleString() for field in df.schema.fields}
    columns = []
    for name in layout.names_to_read():
        column = sf.col(quoted(name))
        is_list = name == destinations and types[name].startswith("array")
        columns.append(sf.to_json(column).alias(name) if is_list else column)
    return df.select(*columns)


def _facts_of_the_whole(frame: DataFrame, layout: Layout) -> DataFrame:
    """Return one row: does the whole log have broadcasts, deadlines? A task's own orders may have none."""
    from pyspark.sql import functions as sf

    words = [word for word, kind in layout.kinds.items() if kind == BROADCAST]
    is_broadcast = sf.lit(layout.constant_kind == BROADCAST)
    if layout.constant_kind is None:
        is_broadcast = sf.col(quoted(layout.columns["kind"])) == sf.lit(words[0])
    has_deadline = sf.lit(False)
    if "deadline_us" in layout.columns:
        has_deadline = is_broadcast & sf.col(quoted(layout.columns["deadline_us"])).isNotNull()
    facts = frame.agg(sf.max(is_broadcast).alias(BROADCASTS), sf.max(has_deadline).alias(DEADLINES))
    return sf.broadcast(facts)


def quoted(name: str) -> str:
    """A column name in backticks, as Spark's expressions need it."""
    return "`" + name.replace("`", "``") + "`"


class _OneOrder:
    """Verifies one order of any size, from a temporary file, because the verifier may read it twice."""

    def __init__(self, query: Query) -> None:
        self.query = query

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with tempfile.TemporaryDirectory(prefix="precede-verify-") as folder:
            path = Path(folder) / f"{os.getpid()}.parquet"
            rows = _write(path, batches)
            if rows:
                verdict = self.query.judge(parquet_log([Piece(path)]), ())
                yield pa.RecordBatch.from_pylist([answer_of(verdict, verdict.rows)], answer_schema())


def _write(path: Path, batches: Iterator[pa.RecordBatch]) -> int:
    """Write batches to a Parquet file; returns the number of rows. No rows, no file."""
    writer, rows = None, 0
    for batch in batches:
        if batch.num_rows:
            if writer is None:
                writer = pq.ParquetWriter(path, batch.schema, compression="lz4")
            writer.write_batch(batch)
            rows += batch.num_rows
    if writer is not None:
        writer.close()
    return rows
