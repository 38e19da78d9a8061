"""The witness on somebody's own DataFrame: many independent orders in parallel, or one huge one.

`precede.pipeline.verify(df, order="causal", by=["topic", "partition"])` gives one row for each order. It uses
the session the DataFrame belongs to and nothing below the DataFrame API (no `SparkContext`, no JVM handles), so
it works through Spark Connect. A group is judged exactly as inside the whole log: what must be known of the
whole (are there broadcasts at all? deadlines?) is asked first, in one cheap pass.
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
from precede.witness.reading.column_names import (
    BROADCAST,
    KNOWN,
    Layout,
    read_by,
    read_kinds,
    read_mapping,
    settle,
)
from precede.witness.reading.logs import Log
from precede.witness.reading.partitions import Piece
from precede.witness.reading.tables import TableLog, parquet_log
from precede.witness.verdict import ORDERS, Verdict
from precede.witness.verify import verify as verify_log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ANSWER: Final = (
    "`order` string, verdict string, rows bigint, deliveries_checked bigint, violations bigint, "
    "counts map<string,bigint>, reasons array<string>, findings array<string>, first string"
)
"""What is said of one order; `first` is the first violation as JSON, with its story."""

_ROWS_AT_ONCE: Final = 400_000
_TEXTS: Final = pa.list_(pa.string())
_COUNTS: Final = pa.map_(pa.string(), pa.int64())


class Asked(Struct, frozen=True, kw_only=True):
    """What a caller wants to know of a log."""

    order: str | None = None
    columns: Mapping[str, str] = {}
    by: tuple[str, ...] = ()
    kinds: Mapping[str, str] = {}
    steps: str = "counted"
    duplicates: str = "forbid"
    broadcasts_elsewhere: bool = False
    deadlines_elsewhere: bool = False

    def judge(self, log: Log, by: Sequence[str]) -> Verdict:
        """The witness's verdict about a log that may be a part of a larger one."""
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
    order: str | None = None,
    *,
    by: str | Sequence[str] | None = None,
    columns: str | Mapping[str, str] | None = None,
    kinds: str | Mapping[str, str] | None = None,
    steps: str = "counted",
    duplicates: str = "forbid",
) -> DataFrame:
    """Do the orders in this DataFrame hold? One row for each combination of `by`: its columns, then the answer.

    The options are those of `precede.verify`. A DataFrame has no order of its own, so `step` must be a column.
    Without `by` (and without a column `run_id`) the whole is one order, judged by one task in bounded memory.
    Raises BadInput at once for columns that are not there; a value that cannot be read fails the action.
    """
    asked, layout = settle_question(df.columns, order, by, columns, kinds, steps, duplicates)
    if layout.row_order:
        raise BadInput("a DataFrame has no order of rows: name a column that is the step")
    asked = _know_the_whole(df, asked, layout)
    frame = df.select(*(_quoted(name) for name in layout.wanted()))
    if not layout.by:
        return frame.coalesce(1).mapInArrow(_Whole(asked), ANSWER)
    groups = [_quoted(name) for name in layout.by]
    kind_of = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    schema = ", ".join([*(f"{_quoted(name)} {kind_of[name]}" for name in layout.by), ANSWER])
    step = _quoted(layout.columns["step"])
    return frame.repartition(*groups).sortWithinPartitions(*groups, step).mapInArrow(_Groups(asked), schema)


def settle_question(
    available: Sequence[str],
    order: str | None,
    by: str | Sequence[str] | None,
    columns: str | Mapping[str, str] | None,
    kinds: str | Mapping[str, str] | None,
    steps: str,
    duplicates: str,
) -> tuple[Asked, Layout]:
    """The caller's options, checked against the columns that are there."""
    mapping, words = read_mapping(columns, "columns", KNOWN), read_kinds(kinds)
    layout = settle(available, "the DataFrame", mapping, read_by(by), words)
    if order not in (*ORDERS, None):
        raise BadInput(f"order: {order!r} is none of {', '.join(ORDERS)}")
    taken = [name for name in layout.by if name in {word.split()[0].strip("`") for word in ANSWER.split(", ")}]
    if taken:
        raise BadInput(f"by: the column {taken[0]!r} would collide with the answer's; rename it")
    if (order or "causal") != "delta":
        layout = layout.without("deadline_us", "clock_us")
    asked = Asked(
        order=order or "causal",
        columns=mapping,
        by=layout.by,
        kinds=read_mapping(kinds, "kinds", ("broadcast", "delivered")),
        steps=steps,
        duplicates=duplicates,
    )
    return asked, layout


def _know_the_whole(df: DataFrame, asked: Asked, layout: Layout) -> Asked:
    """Are there broadcasts and deadlines anywhere? A group without them must not be taken for the whole."""
    from pyspark.sql import functions as sf

    if not layout.by:
        return asked
    words = [word for word, kind in layout.kinds.items() if kind == BROADCAST]
    born = sf.lit(layout.constant_kind == BROADCAST)
    if layout.constant_kind is None:
        born = sf.col(_quoted(layout.columns["kind"])) == sf.lit(words[0])
    wanted = [sf.max(born).alias("born")]
    if "deadline_us" in layout.columns:
        given = sf.col(_quoted(layout.columns["deadline_us"])).isNotNull()
        wanted.append(sf.max(born & given).alias("timed"))
    row = df.agg(*wanted).collect()[0].asDict()
    return msgspec.structs.replace(
        asked, broadcasts_elsewhere=bool(row["born"]), deadlines_elsewhere=bool(row.get("timed"))
    )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


class _Whole:
    """One order, whatever its size: its rows go to a file, for the witness may read them twice."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with tempfile.TemporaryDirectory(prefix="precede-verify-") as folder:
            path = Path(folder) / f"{os.getpid()}.parquet"
            rows = _write(path, batches)
            if rows:
                verdict = self.asked.judge(parquet_log([Piece(path)]), ())
                yield pa.RecordBatch.from_pylist([answer(verdict, verdict.rows)], _answer_schema())


def _write(path: Path, batches: Iterator[pa.RecordBatch]) -> int:
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
    """Rows sorted by group, judged some groups at a time: memory is bounded by those and the largest group."""

    def __init__(self, asked: Asked, rows_at_once: int = _ROWS_AT_ONCE) -> None:
        self.asked, self.rows_at_once = asked, rows_at_once

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
        return [batch.column(name)[row].as_py() for name in self.asked.by]

    def _starts(self, table: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Where each group begins."""
        begins = np.zeros(table.num_rows, np.bool_)
        begins[0] = True
        for name in self.asked.by:
            codes = table[name].combine_chunks().dictionary_encode("encode").indices.to_numpy()
            begins[1:] |= codes[1:] != codes[:-1]
        return np.flatnonzero(begins)

    def _judge(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        """One answer for each group of a table of whole groups."""
        starts = self._starts(table)
        sizes = np.diff(np.append(starts, table.num_rows)).tolist()
        values = table.select(list(self.asked.by)).take(pa.array(starts))
        named = table
        for name in self.asked.by:
            place = named.schema.get_field_index(name)
            named = named.set_column(place, name, pc.cast(named[name], pa.string()))
        answers = self._answers(named, starts.tolist(), sizes)
        told = pa.Table.from_pylist(answers, _answer_schema())
        for name in self.asked.by:
            place = self.asked.by.index(name)
            told = told.add_column(place, values.schema.field(name), values[name])
        yield from told.combine_chunks().to_batches()

    def _answers(self, table: pa.Table, starts: list[int], sizes: list[int]) -> list[dict[str, Any]]:
        whole = self.asked.judge(TableLog(table), self.asked.by)
        if len(starts) == 1:
            return [answer(whole, sizes[0])]
        parts = {tuple(value for _, value in part.group): part for part in whole.parts}
        texts = [table[name].take(pa.array(starts)).to_pylist() for name in self.asked.by]
        answers = []
        for place, key in enumerate(zip(*texts, strict=True)):
            part = parts[key]
            if part.verdict == "violated" or whole.findings:
                # told in full, with the counts and the story of this group alone
                own = TableLog(table.slice(starts[place], sizes[place]))
                answers.append(answer(self.asked.judge(own, self.asked.by), sizes[place]))
            else:
                answers.append(
                    {
                        "order": whole.order,
                        "verdict": part.verdict,
                        "rows": sizes[place],
                        "deliveries_checked": part.deliveries_checked,
                        "violations": 0,
                        "counts": [],
                        "reasons": list(part.reasons),
                        "findings": [],
                        "first": None,
                    }
                )
        return answers


def answer(verdict: Verdict, rows: int) -> dict[str, Any]:
    """A verdict as one row."""
    return {
        "order": verdict.order,
        "verdict": verdict.verdict,
        "rows": rows,
        "deliveries_checked": verdict.deliveries_checked,
        "violations": verdict.violations,
        "counts": list(verdict.counts.items()),
        "reasons": list(verdict.reasons),
        "findings": list(verdict.findings),
        "first": None if verdict.first is None else msgspec.json.encode(verdict.first.json()).decode(),
    }


def _answer_schema() -> pa.Schema:
    return pa.schema(
        [
            ("order", pa.string()),
            ("verdict", pa.string()),
            ("rows", pa.int64()),
            ("deliveries_checked", pa.int64()),
            ("violations", pa.int64()),
            ("counts", _COUNTS),
            ("reasons", _TEXTS),
            ("findings", _TEXTS),
            ("first", pa.string()),
        ]
    )
