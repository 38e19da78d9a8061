"""The verifier on a DataFrame: many independent orders in parallel, or one large order.

`precede.pipeline.verify(df, order="causal", by=["topic", "partition"])` gives one row for each order. It uses
the session of the DataFrame and only the DataFrame API (no `SparkContext`, no JVM objects), so it works through
Spark Connect. A group gets the same answer as within the whole log. For that it must know two facts about the
whole log (are there broadcasts, are there deadlines?); one cheap pass finds them first.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import Struct

from precede.core.errors import BadInput
from precede.pipeline.judging.answers import ANSWER_COLUMNS, ANSWER_DDL, answer_of, answer_schema
from precede.witness.reading.column_names import (
    BROADCAST,
    KNOWN,
    Layout,
    match_columns,
    read_by,
    read_kinds,
    read_mapping,
)
from precede.witness.reading.logs import Log
from precede.witness.reading.partitions import Piece
from precede.witness.reading.tables import TableLog, parquet_log
from precede.witness.verdict import Duplicates, Order, Steps, Verdict, read_order
from precede.witness.verify import verify as verify_log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ROWS_AT_ONCE: Final = 400_000


class Query(Struct, frozen=True, kw_only=True):
    """The options of a verification, as they are sent to tasks.

    `broadcasts_elsewhere` and `deadlines_elsewhere` say that the whole log has some, even if this part has
    none.
    """

    order: Order | None = None
    columns: Mapping[str, str] = {}
    by: tuple[str, ...] = ()
    kinds: Mapping[str, str] = {}
    steps: Steps = "counted"
    duplicates: Duplicates = "forbid"
    broadcasts_elsewhere: bool = False
    deadlines_elsewhere: bool = False

    def judge(self, log: Log, by: Sequence[str]) -> Verdict:
        """Verify a log, which may be a part of a larger one."""
        log.broadcasts_elsewhere = self.broadcasts_elsewhere
        log.deadlines_elsewhere = self.deadlines_elsewhere
        return verify_log(
            log,
            self.order,
            columns=self.columns,
            by=by,
            kinds=self.kinds,
            steps=self.steps,
            duplicates=self.duplicates,
        )


def verify(
    df: DataFrame,
    order: Order | None = None,
    *,
    by: str | Sequence[str] | None = None,
    columns: str | Mapping[str, str] | None = None,
    kinds: str | Mapping[str, str] | None = None,
    steps: Steps = "counted",
    duplicates: Duplicates = "forbid",
) -> DataFrame:
    """Verify every independent order in a DataFrame: one row for each combination of `by`, with the answer.

    The options are those of `precede.verify`. A DataFrame has no order of rows, so `step` must be a column.
    Without `by` (and without a column `run_id`) the whole DataFrame is one order; one task verifies it in
    bounded memory. Raises BadInput for missing columns; a value that cannot be read fails the Spark action.
    """
    query, layout = settle_query(df.columns, order, by, columns, kinds, steps, duplicates)
    if layout.row_order:
        raise BadInput("a DataFrame has no order of rows: name a column that is the step")
    query = _with_facts_of_the_whole(df, query, layout)
    frame = df.select(*(_quoted(name) for name in layout.names_to_read()))
    if not layout.by:
        return frame.coalesce(1).mapInArrow(_OneOrder(query), ANSWER_DDL)
    groups = [_quoted(name) for name in layout.by]
    type_of = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    schema = ", ".join([*(f"{_quoted(name)} {type_of[name]}" for name in layout.by), ANSWER_DDL])
    step = _quoted(layout.columns["step"])
    return frame.repartition(*groups).sortWithinPartitions(*groups, step).mapInArrow(_Groups(query), schema)


def settle_query(
    available: Sequence[str],
    order: Order | None,
    by: str | Sequence[str] | None,
    columns: str | Mapping[str, str] | None,
    kinds: str | Mapping[str, str] | None,
    steps: Steps,
    duplicates: Duplicates,
) -> tuple[Query, Layout]:
    """Check the caller's options against the available columns; returns the query and the columns it uses."""
    mapping, words = read_mapping(columns, "columns", KNOWN), read_kinds(kinds)
    layout = match_columns(available, "the DataFrame", mapping, read_by(by), words)
    if order is not None:
        read_order(order)
    taken = [name for name in layout.by if name in ANSWER_COLUMNS]
    if taken:
        raise BadInput(f"by: the column {taken[0]!r} would collide with the answer's; rename it")
    if (order or "causal") != "delta":
        layout = layout.without("deadline_us", "clock_us")
    query = Query(
        order=order or "causal",
        columns=mapping,
        by=layout.by,
        kinds=read_mapping(kinds, "kinds", ("broadcast", "delivered")),
        steps=steps,
        duplicates=duplicates,
    )
    return query, layout


def _with_facts_of_the_whole(df: DataFrame, query: Query, layout: Layout) -> Query:
    """Find out whether any group of the log has broadcasts and deadlines, and record it in the query."""
    from pyspark.sql import functions as sf

    if not layout.by:
        return query
    words = [word for word, kind in layout.kinds.items() if kind == BROADCAST]
    is_broadcast = sf.lit(layout.constant_kind == BROADCAST)
    if layout.constant_kind is None:
        is_broadcast = sf.col(_quoted(layout.columns["kind"])) == sf.lit(words[0])
    facts = [sf.max(is_broadcast).alias("broadcasts")]
    if "deadline_us" in layout.columns:
        has_deadline = sf.col(_quoted(layout.columns["deadline_us"])).isNotNull()
        facts.append(sf.max(is_broadcast & has_deadline).alias("deadlines"))
    row = df.agg(*facts).collect()[0].asDict()
    return msgspec.structs.replace(
        query, broadcasts_elsewhere=bool(row["broadcasts"]), deadlines_elsewhere=bool(row.get("deadlines"))
    )


def _quoted(name: str) -> str:
    """A column name in backticks, as Spark's expressions need it."""
    return "`" + name.replace("`", "``") + "`"


class _OneOrder:
    """Verifies one independent order of any size. Its rows go to a file first: they may be read twice."""

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


class _Groups:
    """Verifies rows that are sorted by group, some groups at a time.

    Memory holds at most `rows_at_once` rows and one more group.
    """

    def __init__(self, query: Query, rows_at_once: int = _ROWS_AT_ONCE) -> None:
        self.query, self.rows_at_once = query, rows_at_once

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held: list[pa.RecordBatch] = []
        rows = 0
        for batch in batches:
            if not batch.num_rows:
                continue
            held.append(batch)
            rows += batch.num_rows
            if rows >= self.rows_at_once and self._key(held[0], 0) != self._key(batch, batch.num_rows - 1):
                table = pa.Table.from_batches(held)
                cut = int(self._starts(table)[-1])
                yield from self._judge(table.slice(0, cut))
                held, rows = table.slice(cut).to_batches(), table.num_rows - cut
        if held:
            yield from self._judge(pa.Table.from_batches(held))

    def _key(self, batch: pa.RecordBatch, row: int) -> list[Any]:
        """The group of one row."""
        return [batch.column(name)[row].as_py() for name in self.query.by]

    def _starts(self, table: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """The first row of every group."""
        begins = np.zeros(table.num_rows, np.bool_)
        begins[0] = True
        for name in self.query.by:
            codes = table[name].combine_chunks().dictionary_encode("encode").indices.to_numpy()
            begins[1:] |= codes[1:] != codes[:-1]
        return np.flatnonzero(begins)

    def _judge(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        """One answer for each group of a table of whole groups."""
        starts = self._starts(table)
        sizes = np.diff(np.append(starts, table.num_rows)).tolist()
        values = table.select(list(self.query.by)).take(pa.array(starts))
        named = table
        for name in self.query.by:
            index = named.schema.get_field_index(name)
            named = named.set_column(index, name, pc.cast(named[name], pa.string()))
        answers = pa.Table.from_pylist(self._answers(named, starts.tolist(), sizes), answer_schema())
        for index, name in enumerate(self.query.by):
            answers = answers.add_column(index, values.schema.field(name), values[name])
        yield from answers.combine_chunks().to_batches()

    def _answers(self, table: pa.Table, starts: list[int], sizes: list[int]) -> list[dict[str, Any]]:
        whole = self.query.judge(TableLog(table), self.query.by)
        if len(starts) == 1:
            return [answer_of(whole, sizes[0])]
        parts = {tuple(value for _, value in part.group): part for part in whole.parts}
        texts = [table[name].take(pa.array(starts)).to_pylist() for name in self.query.by]
        answers = []
        for start, size, key in zip(starts, sizes, zip(*texts, strict=True), strict=True):
            part = parts[key]
            if part.verdict == "violated" or whole.findings:
                # verify this group again alone, for its own counts and explanation
                verdict = self.query.judge(TableLog(table.slice(start, size)), self.query.by)
            else:
                verdict = Verdict(
                    order=whole.order,
                    verdict=part.verdict,
                    rows=size,
                    deliveries_checked=part.deliveries_checked,
                    violations=0,
                    reasons=part.reasons,
                )
            answers.append(answer_of(verdict, size))
        return answers
