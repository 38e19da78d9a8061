"""Judges a bucket: all orders whose blobs came to one task of the narrow shuffle (see `packing.py`)."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from precede.pipeline.judging.answers import ANSWER_DDL, answer_of, answer_schema
from precede.pipeline.judging.packing import GROUP, ROWS
from precede.pipeline.judging.query import Query
from precede.pipeline.sessions.tasks import settle_worker
from precede.witness.reading.logs import Columns, Log

BROADCASTS: Final = "precede_broadcasts"
DEADLINES: Final = "precede_deadlines"
"""Like `BROADCASTS`, a column beside blobs and answers.

Beside a blob: does the whole log have some? Beside an answer: does the bucket have some?
"""

WORTH_NUMBA: Final = 10_000
"""The rows of a task from which the numba engine is used: few, as Spark's workers go on to the next task."""

ROWS_AT_ONCE: Final = 1_000_000
JUDGED_DDL: Final = f"{ANSWER_DDL}, {BROADCASTS} boolean, {DEADLINES} boolean"


class BlobLog(Log):
    """The rows of a bucket, in the order of the log."""

    def __init__(self, by: Sequence[str]) -> None:
        self.name = "the log"
        self.by = tuple(by)
        self.expected = 0
        self.values: dict[tuple[str, ...], tuple[Any, ...]] = {}
        self.rows: dict[tuple[str, ...], int] = {}
        self._batches: list[pa.RecordBatch] = []

    def add(self, groups: Any, rows: Any) -> None:
        """Add a blob: its orders and its rows, as Arrow streams."""
        table = pa.ipc.open_stream(groups).read_all()
        texts = [pc.cast(table[name], pa.string()).combine_chunks() for name in self.by]
        values = zip(*(table[name] for name in self.by), strict=True)
        keys = zip(*(column.to_pylist() for column in texts), strict=True)
        for key, value, count in zip(keys, values, table[ROWS].to_pylist(), strict=True):
            self.values.setdefault(key, value)
            self.rows[key] = self.rows.get(key, 0) + count
        for batch in pa.ipc.open_stream(rows):
            codes = batch.column(GROUP)
            by = [pa.DictionaryArray.from_arrays(codes, column) for column in texts]
            kept = [name for name in batch.schema.names if name != GROUP]
            columns = [*by, *(batch.column(name) for name in kept)]
            self.names = [*self.by, *kept]
            self._batches.append(pa.RecordBatch.from_arrays(columns, names=self.names))
            self.expected += batch.num_rows
        self.large = self.expected >= WORTH_NUMBA

    def add_rows(self, batch: pa.RecordBatch) -> None:
        self._batches.append(batch)
        self.expected += batch.num_rows

    def read(self, names: Sequence[str]) -> Iterator[Columns]:
        for batch in self.batches(names):
            yield batch.to_pydict(), batch.num_rows

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        for batch in self._batches:
            yield batch.select(list(names))


class JudgeBuckets:
    """Verifies the buckets of a partition in a Spark task, and yields an answer for each order.

    Small buckets are verified together, about `ROWS_AT_ONCE` rows at a time.
    With `as_text` the values that identify an order are text, else they have the types that the rows have.
    """

    def __init__(self, query: Query, as_text: bool = False) -> None:
        self.query, self.as_text = query, as_text

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        received = [batch for batch in batches if batch.num_rows]
        if not received:
            return
        query = self._informed(received[0])
        places = sorted(
            (bucket, serial, number, row)
            for number, batch in enumerate(received)
            for row, (bucket, serial) in enumerate(_keys(batch))
        )
        log, current = BlobLog(query.by), places[0][0]
        for bucket, _, number, row in places:
            if bucket != current and log.expected >= ROWS_AT_ONCE:
                yield self._judge(query, log)
                log = BlobLog(query.by)
            current = bucket
            blob = received[number]
            log.add(*(blob.column(name)[row].as_buffer() for name in ("groups", "rows")))
        yield self._judge(query, log)
        settle_worker()

    def _informed(self, batch: pa.RecordBatch) -> Query:
        """The query with the facts about the whole log, if the blobs carry them."""
        if BROADCASTS not in batch.schema.names:
            return self.query
        broadcasts, deadlines = (bool(batch.column(name)[0].as_py()) for name in (BROADCASTS, DEADLINES))
        return msgspec.structs.replace(
            self.query, broadcasts_elsewhere=broadcasts, deadlines_elsewhere=deadlines
        )

    def _judge(self, query: Query, log: BlobLog) -> pa.RecordBatch:
        verdicts, facts = query.judge_each(log, log.rows)
        answers = [answer_of(verdict, verdict.rows) for verdict in verdicts.values()]
        table = pa.Table.from_pylist(answers, answer_schema())
        for index, name in enumerate(query.by):
            texts = pa.array([key[index] for key in verdicts])
            values = [log.values[key][index] for key in verdicts]
            column = texts if self.as_text else pa.array(values, values[0].type)
            table = table.add_column(index, name, column)
        for name, fact in ((BROADCASTS, not facts.deliveries_only), (DEADLINES, facts.has_deadline)):
            table = table.append_column(name, pa.array(np.full(len(answers), fact)))
        return table.combine_chunks().to_batches()[0]


def _keys(batch: pa.RecordBatch) -> list[tuple[int, int]]:
    return list(zip(batch.column("bucket").to_pylist(), batch.column("serial").to_pylist(), strict=True))


def knowing(query: Query, answers: Sequence[dict[str, Any]]) -> Query:
    """The query with what is true elsewhere, if not all tasks saw broadcasts or deadlines."""
    facts = {}
    for field, name in (("broadcasts_elsewhere", BROADCASTS), ("deadlines_elsewhere", DEADLINES)):
        seen = {answer[name] for answer in answers}
        facts[field] = getattr(query, field) or len(seen) == 2
    return msgspec.structs.replace(query, **facts)
