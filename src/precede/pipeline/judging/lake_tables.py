"""The events of a lake on Spark: commit records say which file has which runs, so no row is shuffled.

Tasks read the files through `precede.lake`, from a folder or an object store, and compare them with their
records. Spark itself needs no client of the storage.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import pyarrow.parquet as pq

from precede.lake.commits import CommittedFile
from precede.lake.integrity import is_table, readable_files, verified
from precede.lake.storage import Storage, is_url
from precede.pipeline.judging.answers import answer_of
from precede.pipeline.judging.buckets import BROADCASTS, DEADLINES, WORTH_NUMBA, knowing
from precede.pipeline.judging.query import Query
from precede.pipeline.sessions.tasks import spread
from precede.witness.reading.partitions import Piece
from precede.witness.reading.tables import ParquetLog, parquet_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVENTS: Final = "events"
BY: Final = ("run_id",)
ROWS_A_TASK: Final = 1_000_000
"""The rows that one task verifies, about a second of work, if there are more than `_FEW_TASKS` files."""

_FEW_TASKS: Final = 64


class LakeTable(NamedTuple):
    """The table `events` of a lake whose files all have commit records."""

    location: str
    files: list[CommittedFile]

    def column_names(self) -> list[str]:
        names: list[str] = pq.read_schema(verified(Storage(self.location), self.files[0])).names
        return names


def find_table(log: str) -> LakeTable | None:
    """Return the table that a path or URL means; None if it is none, or has files of other programs."""
    location = log.rstrip("/") if is_url(log) else str(Path(log).absolute())
    parent, _, name = location.rpartition("/")
    if name != EVENTS or not (is_url(log) or is_table(Path(location))):
        return None
    storage = Storage(parent)
    files = [file for file in readable_files(storage, EVENTS) if file.rows]
    names = [entry.name for entry in storage.entries(EVENTS)]
    foreign = any("~" not in name for name in names)
    return LakeTable(parent, files) if files and not foreign else None


def judge_table(session: SparkSession, table: LakeTable, query: Query) -> list[dict[str, Any]]:
    """Verify every run of a table and return an answer for each."""
    files = [_LakeFile(table.location, file) for file in table.files]
    return judge_files(session, f"verify {table.location}/{EVENTS}", files, query)


class OrderFile(Protocol):
    """A file of whole orders, as it is sent to a task."""

    @property
    def rows(self) -> int:
        """The number of rows in the file."""

    def open(self) -> tuple[ParquetLog, dict[tuple[str, ...], int]]:
        """Return the file as a log, with the rows of each order in it. Raises Damaged if it was altered."""


class _LakeFile(NamedTuple):
    location: str
    file: CommittedFile

    @property
    def rows(self) -> int:
        return self.file.rows

    def open(self) -> tuple[ParquetLog, dict[tuple[str, ...], int]]:
        path = verified(Storage(self.location), self.file)
        units = self.file.units.items()
        orders: dict[tuple[str, ...], int] = {(unit,): span.rows for unit, span in units if span.rows}
        return parquet_log([Piece(path)], f"{self.location}/{self.file.path}"), orders


def judge_files(
    session: SparkSession, what: str, files: Sequence[OrderFile], query: Query
) -> list[dict[str, Any]]:
    """Verify files of whole orders in tasks, several files in each, and return an answer for each order.

    If only some files have broadcasts or deadlines, all are judged again, with that knowledge.
    """
    rows = sum(file.rows for file in files)
    count = min(len(files), max(_FEW_TASKS, rows // ROWS_A_TASK + 1))
    largest_first = sorted(files, key=lambda file: -file.rows)
    shares = [largest_first[number::count] for number in range(count)]
    while True:
        described = f"{what}: {len(files):,} files, {rows:,} rows"
        answers = list(chain(*spread(session, described, _Shares(shares, query), count)))
        whole = knowing(query, answers)
        if whole == query:
            return answers
        query = whole


class _Shares:
    """Verifies files. `spread` calls it with the number of a share of them, each in a task."""

    def __init__(self, shares: Sequence[Sequence[OrderFile]], query: Query) -> None:
        self.shares, self.query = shares, query

    def __call__(self, number: int) -> list[dict[str, Any]]:
        large = sum(file.rows for file in self.shares[number]) >= WORTH_NUMBA
        return [answer for file in self.shares[number] for answer in self._judge(file, large)]

    def _judge(self, file: OrderFile, large: bool) -> list[dict[str, Any]]:
        log, orders = file.open()
        log.large = large
        verdicts, facts = self.query.judge_each(log, orders)
        seen = {BROADCASTS: not facts.deliveries_only, DEADLINES: facts.has_deadline}
        return [
            {**answer_of(verdict, verdict.rows), "group": list(key), **seen}
            for key, verdict in verdicts.items()
        ]
