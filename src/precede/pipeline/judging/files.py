"""`precede verify --master`: a log of any size on Spark, with the same verdict as in one process.

Files that each hold one order (a lake's `events`: one file for each run) are verified file by file in tasks
that read their own files; no row passes through Spark. Other Parquet files are read as a DataFrame and shuffled
by order. A log that is one single order, and a text log, is one task.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Unpack

import msgspec
import pyarrow.parquet as pq

from precede.core.errors import BadInput
from precede.lake.integrity import check_file, check_log, missing_files
from precede.pipeline.judging.answers import answer_of, combine
from precede.pipeline.judging.frames import Query, settle_query
from precede.pipeline.judging.frames import verify as verify_frame
from precede.pipeline.sessions.frames import escape_path
from precede.pipeline.sessions.tasks import described, spread
from precede.witness.reading.column_names import BROADCAST, Layout
from precede.witness.reading.partitions import Piece, pieces_in
from precede.witness.reading.tables import ParquetLog, parquet_log
from precede.witness.verdict import Order, Verdict
from precede.witness.verify import VerifyOptions
from precede.witness.verify import verify as verify_log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROWS_A_TASK: Final = 1_000_000
"""The rows that one task verifies, about a second of work.

Small logs get a task for each file, up to `_FEW_TASKS`.
"""

_FEW_TASKS: Final = 64
_ROWS_A_PARTITION: Final = 1_500_000
_MAGIC: Final = b"PAR1"
_BAD_INPUT: Final = re.compile(r"precede\.core\.errors\.BadInput: (.*)")


def verify_path(
    session: SparkSession, path: str, order: Order | None = None, **options: Unpack[VerifyOptions]
) -> Verdict:
    """Verify a log in files on Spark, in parallel if it has several independent orders."""
    if path == "-":
        raise BadInput("standard input can only be read by this process: leave out --master")
    pieces = _pieces(Path(path))
    if not pieces:
        return _in_one_task(session, path, order, options)
    query, layout = settle_query(
        _column_names(pieces),
        order,
        options.get("by"),
        options.get("columns"),
        options.get("kinds"),
        options.get("steps", "counted"),
        options.get("duplicates", "forbid"),
    )
    if not layout.by:
        return _in_one_task(session, path, order, options)
    for lost in missing_files(Path(path)):
        raise BadInput(f"{lost.path}: {lost.what}")
    if _one_order_each(pieces, layout.by):
        return combine(_judge_pieces(session, pieces, query, layout), layout.by)
    if layout.row_order:
        return _in_one_task(session, path, order, options)
    check_log(path)
    frame = _frame(session, Path(path), pieces)
    try:
        rows = sum(map(_row_count, pieces))
        partitions = rows // _ROWS_A_PARTITION + 2
        with described(session, f"verify {path}: {rows:,} rows, shuffled by {', '.join(layout.by)}"):
            frame = verify_frame(frame, order, partitions=partitions, **options)
            answers = frame.toArrow().to_pylist()
    except Exception as error:
        raise plain_error(error) from None
    for answer in answers:
        answer["group"] = [str(answer[name]) for name in layout.by]
    return combine(answers, layout.by)


def _pieces(path: Path) -> list[Piece]:
    """Find the Parquet files of a path; none for a text log or a run's folder, which one task verifies."""
    if path.is_dir() and not (path / "events.parquet").is_file():
        return pieces_in(path)
    if not path.is_file():
        return []
    with path.open("rb") as file:
        return [Piece(path)] if file.read(4) == _MAGIC else []


def _column_names(pieces: Sequence[Piece]) -> list[str]:
    """Return the columns in the first file and in folder names (`topic=a/`), the same in all folders."""
    in_file = pq.read_schema(pieces[0].path).names
    in_folders = [name for name in pieces[0].named if name not in in_file]
    for piece in pieces:
        if piece.named.keys() - set(in_file) != set(in_folders):
            raise BadInput(f"{piece.path}: the columns differ from those of {pieces[0].path}")
    return [*in_file, *in_folders]


def _frame(session: SparkSession, path: Path, pieces: Sequence[Piece]) -> DataFrame:
    """Return the files as one DataFrame; columns from folder names are text."""
    from pyspark.sql.types import StringType, StructField, StructType

    files = [escape_path(piece.path) for piece in pieces]
    in_file = session.read.parquet(files[0]).schema
    in_folders = [StructField(name, StringType()) for name in pieces[0].named if name not in in_file.names]
    reader = session.read.schema(StructType([*in_file.fields, *in_folders]))
    return (reader.option("basePath", str(path)) if in_folders else reader).parquet(*files)


def _one_order_each(pieces: Sequence[Piece], by: Sequence[str]) -> bool:
    """Return whether each file holds one independent order and each order lies in one file.

    This is read from the statistics in the files' footers.
    """
    seen = set()
    for piece in pieces:
        key = _order_of(piece, by)
        if key is None or key in seen:
            return False
        seen.add(key)
    return True


def _order_of(piece: Piece, by: Sequence[str]) -> tuple[Any, ...] | None:
    """Read the values of the columns `by` in a file, from its footer or its folder names.

    Returns None if a column has several values or nulls, has no statistics, or does not exist.
    """
    metadata = pq.read_metadata(piece.path)
    columns = {metadata.schema.column(index).path: index for index in range(metadata.num_columns)}
    key = []
    for name in by:
        if name not in columns:
            if piece.named.get(name) is None:
                return None
            key.append(piece.named[name])
            continue
        values = set()
        for group in range(metadata.num_row_groups):
            statistics = metadata.row_group(group).column(columns[name]).statistics
            if statistics is None or not statistics.has_min_max or statistics.null_count:
                return None
            if statistics.min != statistics.max:
                return None
            values.add(statistics.min)
        if len(values) != 1:
            return None
        key.append(values.pop())
    return tuple(key)


def _judge_pieces(
    session: SparkSession, pieces: Sequence[Piece], query: Query, layout: Layout
) -> list[dict[str, Any]]:
    """Verify every file on Spark and return an answer for each.

    A file without broadcasts or deadlines is verified again if other files turn out to have some.
    """
    answers = _spread_pieces(session, pieces, query, layout)
    broadcasts = any(answer["broadcasts"] for answer in answers)
    deadlines = any(answer["deadlines"] for answer in answers)
    again = [
        index
        for index, answer in enumerate(answers)
        if answer["broadcasts"] != broadcasts or answer["deadlines"] != deadlines
    ]
    if again:
        whole = msgspec.structs.replace(query, broadcasts_elsewhere=broadcasts, deadlines_elsewhere=deadlines)
        second = _spread_pieces(session, [pieces[index] for index in again], whole, layout)
        for index, answer in zip(again, second, strict=True):
            answers[index] = answer
    return answers


def _spread_pieces(
    session: SparkSession, pieces: Sequence[Piece], query: Query, layout: Layout
) -> list[dict[str, Any]]:
    """Verify files in Spark tasks, several files in each. Returns an answer per file, in their order."""
    rows = {piece.path: _row_count(piece) for piece in pieces}
    count = min(len(pieces), max(_FEW_TASKS, sum(rows.values()) // _ROWS_A_TASK + 1))
    largest_first = sorted(pieces, key=lambda piece: -rows[piece.path])
    shares = [largest_first[number::count] for number in range(count)]
    what = f"verify: {len(pieces):,} files, {sum(rows.values()):,} rows"
    answers = spread(session, what, _Files(shares, query, layout), count)
    by_path = {piece.path: answer for piece, answer in zip(chain(*shares), chain(*answers), strict=True)}
    return [by_path[piece.path] for piece in pieces]


def _row_count(piece: Piece) -> int:
    """Return the rows of a file, from its footer."""
    return int(pq.read_metadata(piece.path).num_rows)


class _Files:
    """Verifies files, divided into shares. `spread` calls it with the number of a share, each in a task.

    A call returns one answer for each file of the share. Raises Damaged if a file is not what its commit record
    says.
    """

    def __init__(self, shares: Sequence[Sequence[Piece]], query: Query, layout: Layout) -> None:
        self.shares, self.query, self.layout = shares, query, layout

    def __call__(self, number: int) -> list[dict[str, Any]]:
        return [self._judge(piece) for piece in self.shares[number]]

    def _judge(self, piece: Piece) -> dict[str, Any]:
        check_file(piece.path.absolute())
        log = parquet_log([piece])
        verdict = self.query.judge(log, self.query.by)
        key = _order_of(piece, self.query.by)
        assert key is not None
        group = [value if isinstance(value, str) else str(value) for value in key]
        facts = {"broadcasts": self._has_broadcasts(log), "deadlines": self._has_deadlines(log)}
        return {**answer_of(verdict, verdict.rows), "group": group, **facts}

    def _has_broadcasts(self, log: ParquetLog) -> bool:
        if self.layout.constant_kind is not None:
            return self.layout.constant_kind == BROADCAST
        name = self.layout.columns["kind"]
        words = {word for batch in log.batches([name]) for word in batch.column(name).unique().to_pylist()}
        return any(self.layout.kinds.get(word) == BROADCAST for word in words)

    def _has_deadlines(self, log: ParquetLog) -> bool:
        if "deadline_us" not in self.layout.columns:
            return False
        name = self.layout.columns["deadline_us"]
        return any(batch.column(name).null_count < len(batch) for batch in log.batches([name]))


def _in_one_task(session: SparkSession, path: str, order: Order | None, options: VerifyOptions) -> Verdict:
    (verdict,) = spread(
        session, f"verify {path}: one order", _WholeLog(str(Path(path).absolute()), order, options), 1
    )
    return msgspec.convert(verdict, Verdict)


class _WholeLog:
    """Verifies a whole log. `spread` calls it once, in a task; the call returns the verdict as plain data."""

    def __init__(self, path: str, order: Order | None, options: VerifyOptions) -> None:
        self.path, self.order, self.options = path, order, options

    def __call__(self, number: int) -> Any:
        check_log(self.path)
        return msgspec.to_builtins(verify_log(self.path, self.order, **self.options))


def plain_error(error: Exception) -> Exception:
    """Return the BadInput that a task raised, without Spark's report around it; any other error as it is."""
    match = _BAD_INPUT.search(str(error))
    return BadInput(match[1].strip()) if match else error
