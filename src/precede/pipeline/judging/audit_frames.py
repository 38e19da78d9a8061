"""The audit of deployments on a DataFrame: late copies, at least and at most, for every group of rows.

Stages are DataFrame to DataFrame on the caller's session: events to first copies (a shuffle by node and
message, a join with the creations), first copies to bounds (one task for each group, with the kernel of
`precede.audit.bounds`). Nothing is collected. A group must fit into the memory of a task: 48 bytes for each
copy and 4 bytes for each message and source.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from precede.audit.bounds import bound_all
from precede.audit.copies import UNBOUNDED, encode_table
from precede.core.errors import BadInput
from precede.pipeline.judging.frames import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

NEEDED: Final = ("node", "kind", "message", "at_us")
BOUNDS_DDL: Final = (
    "`order` string, margin_us bigint, copies bigint, at_least bigint, at_most bigint, verdict string,"
    " ghosts bigint"
)


def first_copies(events: DataFrame, by: Sequence[str], missing: bool) -> DataFrame:
    """Compute the first copy of each message at each node that did not create it.

    A row has the columns of `by`, node, message, source, created_us, earliest_us and latest_us. The source of a
    message that nobody created is null. `missing` adds copies without a row, as intervals.
    """
    from pyspark.sql import functions as sf

    lacking = [name for name in (*by, *NEEDED) if name not in events.columns]
    if lacking:
        raise BadInput(f"events: no column {lacking[0]!r} (needed: {', '.join(NEEDED)})")
    keys = [sf.col(quoted(name)) for name in by]
    kind, at = sf.col("kind"), sf.col("at_us")
    nothing = sf.lit(None).cast("bigint")

    def seen(rows: DataFrame, node: str, received: Column, sent: Column) -> DataFrame:
        columns = (sf.col(node).alias("node"), sf.col("message"), received.alias("first"), sent.alias("sent"))
        return rows.select(*keys, *columns)

    received, sent = events.where(kind == "received"), events.where(kind == "sent")
    mentions = seen(received, "node", at, nothing).unionAll(seen(sent, "node", nothing, at))
    if "peer" in events.columns:
        taken = sent.where("accepted") if "accepted" in events.columns else sent
        for rows in (received, taken):
            mentions = mentions.unionAll(seen(rows.where("peer is not null"), "peer", nothing, nothing))
    had = mentions.groupBy(*keys, "node", "message").agg(
        sf.min("first").alias("first"), sf.min("sent").alias("sent")
    )
    created = events.where(kind == "created").select(
        *keys, sf.col("message"), sf.col("node").alias("source"), at.alias("created_us")
    )
    is_row = sf.col("first").isNotNull() & (sf.col("sent").isNull() | (sf.col("first") <= sf.col("sent")))
    copies = had.join(created, [*by, "message"], "left").where("source is null or node <> source")
    copies = copies if missing else copies.where(is_row)
    return copies.select(
        *keys,
        "node",
        "message",
        "source",
        "created_us",
        sf.when(is_row, sf.col("first")).otherwise(sf.lit(-UNBOUNDED)).alias("earliest_us"),
        sf.when(is_row, sf.col("first")).otherwise(sf.coalesce("sent", sf.lit(UNBOUNDED))).alias("latest_us"),
    )


def audit(events: DataFrame, by: Sequence[str], margins_us: Sequence[int], missing: bool) -> DataFrame:
    """Count the late copies of every group: a row for each order and margin."""
    from pyspark.sql import functions as sf

    copies = first_copies(events, by, missing)
    if not by:
        copies = copies.withColumn("_group", sf.lit(0))
    keys = list(by) or ["_group"]
    types = {field.name: field.dataType.simpleString() for field in copies.schema.fields}
    schema = ", ".join([*(f"{quoted(name)} {types[name]}" for name in keys), BOUNDS_DDL])
    counted = copies.groupBy(*(quoted(name) for name in keys)).applyInArrow(_counter(keys, margins_us), schema)
    return counted if by else counted.drop("_group")


def _counter(keys: Sequence[str], margins_us: Sequence[int]) -> Callable[[pa.Table], pa.Table]:
    """Return the function that counts the late copies of one group. Spark reads its annotations."""

    def count(table: pa.Table) -> pa.Table:
        known = table.filter(pc.is_valid(table["source"]))
        group = {name: table[name][0].as_py() for name in keys}
        ghosts = table.num_rows - known.num_rows
        rows: list[dict[str, Any]] = [
            group
            | {
                "order": bounds.order,
                "margin_us": bounds.margin_us,
                "copies": bounds.copies,
                "at_least": bounds.at_least,
                "at_most": bounds.at_most,
                "verdict": bounds.verdict,
                "ghosts": ghosts,
            }
            for bounds in bound_all(encode_table(known), margins_us)
        ]
        types = {name: table.schema.field(name).type for name in keys} | {
            "order": pa.string(),
            "verdict": pa.string(),
        }
        return pa.Table.from_pylist(
            rows, schema=pa.schema([(name, types.get(name, pa.int64())) for name in rows[0]])
        )

    return count
