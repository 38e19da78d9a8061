"""`precede verify --master`: a log of any size on Spark, with the same verdict as in one process.

Files that hold whole orders (a lake's `events`: one file for each run) are verified file by file in tasks that
read their own files; no row passes through Spark. The rows of other Parquet files are packed by the tasks that
read them and shuffled by order (see `packing.py`). A huge order is verified node by node (`one_order.py`). Any
other log that is one single order, and a text log, is one task.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Unpack

import msgspec
import pyarrow.parquet as pq

from precede.core.errors import BadInput
from precede.lake.integrity import check_file, check_log, is_table, missing_files, table_files
from precede.lake.logs import local_log
from precede.lake.storage import is_url
from precede.pipeline.judging.answers import combine
from precede.pipeline.judging.buckets import JUDGED_DDL, JudgeBuckets, knowing
from precede.pipeline.judging.frames import quoted, shuffle
from precede.pipeline.judging.lake_tables import BY, ROWS_A_TASK, find_table, judge_files, judge_table
from precede.pipeline.judging.one_order import judge_one_order
from precede.pipeline.judging.packing import BLOB_DDL, Packer, PackFiles, divide
from precede.pipeline.judging.query import Query, settle_query
from precede.pipeline.sessions.shipping import is_embedded
from precede.pipeline.sessions.tasks import cores, described, spread
from precede.witness.reading.column_names import Layout
from precede.witness.reading.partitions import Piece, pieces_in
from precede.witness.reading.tables import ParquetLog, parquet_log
from precede.witness.verdict import Order, Verdict
from precede.witness.verify import VerifyOptions
from precede.witness.verify import verify as verify_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HUGE_ROWS: Final = 20_000_000
"""The rows from which one order is verified by many tasks: one task would need more than 1 GiB."""

_ROWS_A_BUCKET: Final = 1_500_000
_MAGIC: Final = b"PAR1"
_BAD_INPUT: Final = re.compile(r"precede\.(?:core\.errors\.BadInput|lake\.commits\.Damaged): (.*)")


def verify_path(
    session: SparkSession,
    path: str,
    order: Order | None = None,
    *,
    scratch: Path | None = None,
    **options: Unpack[VerifyOptions],
) -> Verdict:
    """Verify a log in files on Spark, in parallel if it has several independent orders or one that is huge.

    `scratch` is a folder that all workers reach, for the intermediate files of a huge order. Tasks on this
    machine need none; on a cluster without one, a huge order is verified by one task.
    """
    if path == "-":
        raise BadInput("standard input can only be read by this process: leave out --master")
    table = find_table(path)
    if table is not None and (is_url(path) or max(file.rows for file in table.files) < HUGE_ROWS):
        query, layout = settle_query(table.column_names(), order, **options)
        if layout.by == BY:
            return combine(judge_table(session, table, query), layout.by)
    pieces = [] if is_url(path) else _pieces(Path(path))
    if not pieces:
        return _in_one_task(session, path, order, options)
    query, layout = settle_query(_column_names(pieces), order, **options)
    for lost in missing_files(Path(path)):
        raise BadInput(f"{lost.path}: {lost.what}")
    answers, left = _judge_huge(session, path, pieces, query, layout, scratch)
    if left and (not layout.by or (layout.row_order and not _whole_orders(left, layout.by))):
        return _in_one_task(session, path, order, options)
    if left and _whole_orders(left, layout.by):
        files = [_PlainFile(piece, query.by, pq.read_metadata(piece.path).num_rows) for piece in left]
        answers += judge_files(session, "verify", files, query)
    elif left:
        answers += _judge_shuffled(session, path, left, query, layout)
    return combine(answers, layout.by)


def _judge_huge(
    session: SparkSession,
    path: str,
    pieces: Sequence[Piece],
    query: Query,
    layout: Layout,
    scratch: Path | None,
) -> tuple[list[dict[str, Any]], Sequence[Piece]]:
    """Verify the huge orders of a log, each in many tasks. Return their answers and the files of others."""
    if scratch is None and not is_embedded(session.conf.get("spark.master", "") or ""):
        return [], pieces
    answers = []
    for key, own in _huge_orders(pieces, layout.by).items():
        group = dict(zip(layout.by, key, strict=True))
        with tempfile.TemporaryDirectory(prefix="precede-verify-", dir=scratch) as folder:
            answer = judge_one_order(session, f"verify {path}", own, query, layout, Path(folder), group=group)
        if answer is not None:
            answers.append(answer | {"group": list(key)})
            pieces = [piece for piece in pieces if piece not in own]
    return answers, pieces


def _huge_orders(pieces: Sequence[Piece], by: Sequence[str]) -> dict[tuple[str, ...], list[Piece]]:
    """Return the files of each independent order that is too large for one task and shares no file.

    An order is named by its values of the columns `by`. The result is empty if a file does not tell its orders.
    """
    files: dict[tuple[str, ...], list[Piece]] = {}
    rows: dict[tuple[str, ...], int] = {}
    for piece in pieces:
        orders = _orders_of(piece, by)
        if orders is None:
            return {}
        for key, count in orders.items():
            files.setdefault(key, []).append(piece)
            rows[key] = rows.get(key, 0) + (count if len(orders) == 1 else -(1 << 62))
    return {key: own for key, own in files.items() if rows[key] >= HUGE_ROWS}


def _judge_shuffled(
    session: SparkSession, path: str, pieces: Sequence[Piece], query: Query, layout: Layout
) -> list[dict[str, Any]]:
    """Verify orders that are spread over files: tasks pack row groups, and Spark moves the packed rows.

    If only some buckets have broadcasts or deadlines, all are judged again, with that knowledge.
    """
    units = divide(pieces, ROWS_A_TASK)
    rows = sum(unit.rows for unit in units)
    buckets = max(cores(session), rows // _ROWS_A_BUCKET + 1)
    names = layout.names_to_read()
    work = PackFiles(units, Packer(layout.by, names, buckets), names)
    blobs = session.range(0, len(units), 1, len(units)).mapInArrow(work, BLOB_DDL)
    schema = ", ".join([*(f"{quoted(name)} string" for name in layout.by), JUDGED_DDL])
    while True:
        judged = shuffle(blobs, buckets).mapInArrow(JudgeBuckets(query, as_text=True), schema)
        try:
            with described(session, f"verify {path}: {rows:,} rows, shuffled by {', '.join(layout.by)}"):
                answers: list[dict[str, Any]] = judged.toArrow().to_pylist()
        except Exception as error:
            raise plain_error(error) from None
        whole = knowing(query, answers)
        if whole == query:
            break
        query = whole
    for answer in answers:
        answer["group"] = [answer[name] for name in layout.by]
    return answers


def _pieces(path: Path) -> list[Piece]:
    """Find the Parquet files of a path; none for a text log or a run's folder, which one task verifies."""
    if path.is_dir() and not (path / "events.parquet").is_file():
        table = path.absolute()
        return [Piece(file) for file in table_files(table)] if is_table(table) else pieces_in(path)
    if not path.is_file():
        return []
    with path.open("rb") as file:
        return [Piece(path)] if file.read(4) == _MAGIC else []


def _column_names(pieces: Sequence[Piece]) -> list[str]:
    """The columns in the first file and in folder names (`topic=a/`); all folders must name the same ones."""
    in_file = pq.read_schema(pieces[0].path).names
    in_folders = [name for name in pieces[0].named if name not in in_file]
    for piece in pieces:
        if piece.named.keys() - set(in_file) != set(in_folders):
            raise BadInput(f"{piece.path}: the columns differ from those of {pieces[0].path}")
    return [*in_file, *in_folders]


def _whole_orders(pieces: Sequence[Piece], by: Sequence[str]) -> bool:
    """Does each order lie in one file, and each row group in one order, by the statistics in footers?"""
    seen: set[tuple[Any, ...]] = set()
    for piece in pieces:
        orders = _orders_of(piece, by)
        if orders is None or not seen.isdisjoint(orders):
            return False
        seen.update(orders)
    return True


def _orders_of(piece: Piece, by: Sequence[str]) -> dict[tuple[str, ...], int] | None:
    """Read the orders in a file and their numbers of rows, from footer and folder names; None if it cannot."""
    metadata = pq.read_metadata(piece.path)
    columns = {metadata.schema.column(index).path: index for index in range(metadata.num_columns)}
    orders: dict[tuple[str, ...], int] = {}
    for group in range(metadata.num_row_groups):
        key = []
        for name in by:
            if name not in columns:
                value = piece.named.get(name)
            else:
                statistics = metadata.row_group(group).column(columns[name]).statistics
                value = _only_value(statistics)
            if value is None:
                return None
            key.append(value if isinstance(value, str) else str(value))
        orders[tuple(key)] = orders.get(tuple(key), 0) + metadata.row_group(group).num_rows
    return orders or None


def _only_value(statistics: Any) -> Any:
    """The value that all rows of a row group have; None if they differ, are null, or have no statistics."""
    if statistics is None or not statistics.has_min_max or statistics.null_count:
        return None
    return statistics.min if statistics.min == statistics.max else None


class _PlainFile(NamedTuple):
    """A file of whole orders outside of a lake, or of another program in it."""

    piece: Piece
    by: Sequence[str]
    rows: int

    def open(self) -> tuple[ParquetLog, dict[tuple[str, ...], int]]:
        check_file(self.piece.path.absolute())
        orders = _orders_of(self.piece, self.by)
        assert orders is not None
        return parquet_log([self.piece]), orders


def _in_one_task(session: SparkSession, path: str, order: Order | None, options: VerifyOptions) -> Verdict:
    log = path if is_url(path) else str(Path(path).absolute())
    (verdict,) = spread(session, f"verify {path}: one order", _WholeLog(log, order, options), 1)
    return msgspec.convert(verdict, Verdict)


class _WholeLog:
    """Verifies a whole log. `spread` calls it once, in a task; the call returns the verdict as plain data."""

    def __init__(self, path: str, order: Order | None, options: VerifyOptions) -> None:
        self.path, self.order, self.options = path, order, options

    def __call__(self, number: int) -> Any:
        with local_log(self.path) as path:
            check_log(path)
            return msgspec.to_builtins(verify_log(path, self.order, **self.options))


def plain_error(error: Exception) -> Exception:
    """Return the BadInput that a task raised, without Spark's report around it; any other error as it is."""
    match = _BAD_INPUT.search(str(error))
    return BadInput(match[1].strip()) if match else error
