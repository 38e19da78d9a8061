"""The events of a lake on Spark: commit records say which file has which runs, so no row is shuffled.

Tasks read the files through `precede.lake`, from a folder or an object store, and compare them with their
records. Spark itself needs no client of the storage.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow.parquet as pq

from precede.lake.commits import CommittedFile
from precede.lake.integrity import is_table, readable_files, verified
from precede.lake.storage import Storage, is_url
from precede.pipeline.judging.answers import answer_of
from precede.pipeline.judging.buckets import BROADCASTS, DEADLINES, WORTH_NUMBA, knowing
from precede.pipeline.judging.query import Query
from precede.pipeline.sessions.tasks import spread
from precede.witness.reading.partitions import Piece
from precede.witness.reading.tables import parquet_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVENTS: Final = "events"
BY: Final = ("run_id",)
_ROWS_A_TASK: Final = 1_000_000
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
    """Verify every run of a table, again if only some files have broadcasts or deadlines."""
    rows = sum(file.rows for file in table.files)
    count = min(len(table.files), max(_FEW_TASKS, rows // _ROWS_A_TASK + 1))
    largest_first = sorted(table.files, key=lambda file: (-file.rows, file.path))
    shares = [largest_first[number::count] for number in range(count)]
    what = f"verify {table.location}/{EVENTS}: {len(table.files):,} files, {rows:,} rows"
    while True:
        answers = list(chain(*spread(session, what, _Files(table.location, shares, query), count)))
        whole = knowing(query, answers)
        if whole == query:
            return answers
        query = whole


class _Files:
    """Verifies files of a lake. `spread` calls it with the number of a share of the files, each in a task.

    A call returns an answer for each run. Raises Damaged if a file is not what its commit record says.
    """

    def __init__(self, location: str, shares: Sequence[Sequence[CommittedFile]], query: Query) -> None:
        self.location, self.shares, self.query = location, shares, query

    def __call__(self, number: int) -> list[dict[str, Any]]:
        large = sum(file.rows for file in self.shares[number]) >= WORTH_NUMBA
        return [answer for file in self.shares[number] for answer in self._judge(file, large)]

    def _judge(self, file: CommittedFile, large: bool) -> list[dict[str, Any]]:
        log = parquet_log([Piece(verified(Storage(self.location), file))], f"{self.location}/{file.path}")
        log.large = large
        rows: dict[tuple[str, ...], int] = {
            (unit,): span.rows for unit, span in file.units.items() if span.rows
        }
        verdicts, facts = self.query.judge_each(log, rows)
        seen = {BROADCASTS: not facts.deliveries_only, DEADLINES: facts.has_deadline}
        return [
            {**answer_of(verdict, verdict.rows), "group": list(key), **seen}
            for key, verdict in verdicts.items()
        ]
