"""The verifier on a DataFrame: many independent orders in parallel, or one large order.

`precede.pipeline.verify(df, order="causal", by=["topic", "partition"])` gives one row for each order. It uses
the session of the DataFrame and only the DataFrame API (no `SparkContext`, no JVM objects), so it works through
Spark Connect. A group gets the same answer as within the whole log. For that it must know two facts about the
whole log (are there broadcasts, are there deadlines?); a join with one row brings them. Nothing is collected.
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
_BROADCASTS: Final = "precede_broadcasts"
_DEADLINES: Final = "precede_deadlines"
"""The name of an added column which, with `_BROADCASTS`, tells a task what the whole log has."""


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
    partitions: int | None = None,
) -> DataFrame:
    """Verify every independent order in a DataFrame: one row for each combination of `by`, with the answer.

    The options are those of `precede.verify`. A DataFrame has no order of rows, so `step` must be a column.
    Without `by` (and without a column `run_id`) the whole DataFrame is one order; one task verifies it in
    bounded memory. Nothing runs before an action on the result. `partitions` is the number of tasks; by default
    the session decides. Raises BadInput for missing columns; a value that cannot be read fails the action.
    """
    query, layout = settle_query(df.columns, order, by, columns, kinds, steps, duplicates)
    if layout.row_order:
        raise BadInput("a DataFrame has no order of rows: name a column that is the step")
    frame = _narrow(df, layout)
    if not layout.by:
        return frame.coalesce(1).mapInArrow(_OneOrder(query), ANSWER_DDL)
    groups = [_quoted(name) for name in layout.by]
    type_of = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    schema = ", ".join([*(f"{_quoted(name)} {type_of[name]}" for name in layout.by), ANSWER_DDL])
    step = _quoted(layout.columns["step"])
    frame = _with_facts_of_the_whole(frame, layout)
    shuffled = frame.repartition(*groups) if partitions is None else frame.repartition(partitions, *groups)
    return shuffled.sortWithinPartitions(*groups, step).mapInArrow(_Groups(query), schema)


def _narrow(df: DataFrame, layout: Layout) -> DataFrame:
    """Select the columns that are needed, with destinations as text.

    Spark hands arrays of strings to Python at several times the cost of a string, even if nearly all are null.
    """
    from pyspark.sql import functions as sf

    destinations = layout.columns.get("destinations")
    types = {field.name: field.dataType.simpleString() for field in df.schema.fields}
    columns = []
    for name in layout.names_to_read():
        column = sf.col(_quoted(name))
        is_list = name == destinations and types[name].startswith("array")
        columns.append(sf.to_json(column).alias(name) if is_list else column)
    return df.select(*columns)


def settle_query(
    available: Sequence[str],
    order: Order | None,
    by: str | Sequence[str] | None,
    columns: str | Mapping[str, str] | None,
    kinds: str | Mapping[str, str] | None,
    steps: Steps,
    duplicates: Duplicates,
) -> tuple[Query, Layout]:
    """Check the caller's options against the available columns. Returns the query and the columns it uses.

    Raises BadInput for a bad option, a missing column, and a column of `by` that an answer has too.
    """
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


def _with_facts_of_the_whole(frame: DataFrame, layout: Layout) -> DataFrame:
    """Add two columns to every row: whether the whole log has broadcasts, and whether it has deadlines.

    A task needs them, because its own group may have none although the whole log does.
    """
    from pyspark.sql import functions as sf

    words = [word for word, kind in layout.kinds.items() if kind == BROADCAST]
    is_broadcast = sf.lit(layout.constant_kind == BROADCAST)
    if layout.constant_kind is None:
        is_broadcast = sf.col(_quoted(layout.columns["kind"])) == sf.lit(words[0])
    has_deadline = sf.lit(False)
    if "deadline_us" in layout.columns:
        has_deadline = is_broadcast & sf.col(_quoted(layout.columns["deadline_us"])).isNotNull()
    facts = frame.agg(sf.max(is_broadcast).alias(_BROADCASTS), sf.max(has_deadline).alias(_DEADLINES))
    return frame.crossJoin(sf.broadcast(facts))


def _quoted(name: str) -> str:
    """Return a column name in backticks, as Spark's expressions need it."""
    return "`" + name.replace("`", "``") + "`"


class _OneOrder:
    """Verifies one independent order of any size, and yields its answer.

    It writes the rows to a temporary file first, because the verifier may read them twice.
    """

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
        for received in batches:
            if not received.num_rows:
                continue
            batch = self._informed(received)
            held.append(batch)
            rows += batch.num_rows
            if rows >= self.rows_at_once and self._key(held[0], 0) != self._key(batch, batch.num_rows - 1):
                table = pa.Table.from_batches(held)
                cut = int(self._starts(table)[-1])
                yield from self._judge(table.slice(0, cut))
                held, rows = table.slice(cut).to_batches(), table.num_rows - cut
        if held:
            yield from self._judge(pa.Table.from_batches(held))

    def _informed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Store the two facts about the whole log that a batch carries; return the batch without them."""
        broadcasts, deadlines = (bool(batch.column(name)[0].as_py()) for name in (_BROADCASTS, _DEADLINES))
        self.query = msgspec.structs.replace(
            self.query, broadcasts_elsewhere=broadcasts, deadlines_elsewhere=deadlines
        )
        return batch.select([name for name in batch.schema.names if name not in (_BROADCASTS, _DEADLINES)])

    def _key(self, batch: pa.RecordBatch, row: int) -> list[Any]:
        """Return the group of one row."""
        return [batch.column(name)[row].as_py() for name in self.query.by]

    def _starts(self, table: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        begins = np.zeros(table.num_rows, np.bool_)
        begins[0] = True
        for name in self.query.by:
            codes = table[name].combine_chunks().dictionary_encode("encode").indices.to_numpy()
            begins[1:] |= codes[1:] != codes[:-1]
        return np.flatnonzero(begins)

    def _judge(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        """Yield one answer for each group of a table of whole groups."""
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
