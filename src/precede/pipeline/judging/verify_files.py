"""`precede verify --master`: a log of any size on Spark, with the answer that one process would give.

Files that each hold one order (a lake's `events`, a file for every run) are judged file by file, a task reading
its own files: no row passes through Spark. Other Parquet is read as a DataFrame and shuffled by order. One
single order, and text logs, are one task.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow.parquet as pq

from precede.core.errors import BadInput
from precede.core.natural_order import natural
from precede.lake.jobs import for_spark
from precede.pipeline.judging.witness import Asked, answer, settle_question
from precede.pipeline.judging.witness import verify as verify_frame
from precede.pipeline.sessions.tasks import cores, spread
from precede.witness.reading.column_names import BROADCAST, Layout
from precede.witness.reading.partitions import Piece, pieces_in
from precede.witness.reading.tables import ParquetLog, parquet_log
from precede.witness.verdict import Part, Verdict, Violation
from precede.witness.verify import verify as verify_log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TASKS_A_CORE: Final = 16
_MAGIC: Final = b"PAR1"
_REASONS_SHOWN: Final = 5
_BAD_INPUT: Final = re.compile(r"precede\.core\.errors\.BadInput: (.*)")


def verify_path(session: SparkSession, path: str, order: str | None = None, **options: Any) -> Verdict:
    """The verdict about a log in files, as `precede.verify` gives it, by as many tasks as it has orders."""
    if path == "-":
        raise BadInput("standard input is read by this process: leave --master away")
    pieces = _pieces(Path(path))
    if not pieces:
        return _by_one_task(session, path, order, options)
    names = _names(pieces)
    given = {"by": None, "columns": None, "kinds": None, "steps": "counted", "duplicates": "forbid"} | options
    asked, layout = settle_question(names, order, **given)
    if not layout.by:
        return _by_one_task(session, path, order, options)
    if _one_order_each(pieces, layout.by):
        return gather(_judge_pieces(session, pieces, asked, layout), layout.by)
    if layout.row_order:
        return _by_one_task(session, path, order, options)
    frame = _frame(session, Path(path), pieces)
    try:
        rows = verify_frame(frame, order, **options).toArrow().to_pylist()
    except Exception as error:
        raise plain_error(error) from None
    for row in rows:
        row["group"] = [str(row[name]) for name in layout.by]
    return gather(rows, layout.by)


def gather(answers: Sequence[dict[str, Any]], by: Sequence[str]) -> Verdict:
    """One verdict of the answers about every order."""
    if not answers:
        raise BadInput("the log is empty (no rows)")
    answers = sorted(answers, key=lambda one: [natural(text) for text in one["group"]])
    parts = tuple(
        Part(
            tuple(zip(by, one["group"], strict=True)),
            one["verdict"],
            one["deliveries_checked"],
            one["violations"],
            tuple(one["reasons"]),
        )
        for one in answers
    )
    counts: dict[str, int] = {}
    for one in answers:
        for kind, count in dict(one["counts"]).items():
            counts[kind] = counts.get(kind, 0) + count
    told = {one["verdict"] for one in answers}
    guilty = next((one for one in answers if one["violations"]), None)
    return Verdict(
        order=answers[0]["order"],
        verdict="violated" if "violated" in told else "unknown" if "unknown" in told else "holds",
        rows=sum(one["rows"] for one in answers),
        deliveries_checked=sum(one["deliveries_checked"] for one in answers),
        violations=sum(one["violations"] for one in answers),
        first=None if guilty is None else _violation(guilty, by),
        counts=counts,
        reasons=_shortened(reason for one in answers for reason in one["reasons"]),
        findings=_shortened(finding for one in answers for finding in one["findings"]),
        parts=parts if len(parts) > 1 else (),
    )


def _violation(guilty: dict[str, Any], by: Sequence[str]) -> Violation:
    told = msgspec.json.decode(guilty["first"])
    told["group"] = list(zip(by, guilty["group"], strict=True))
    told.pop("by", None)
    told["rows"] = [{"incarnation": 0, **row} for row in told.get("rows", [])]
    return msgspec.convert({"incarnation": 0, **told}, Violation)


def _shortened(texts: Any) -> tuple[str, ...]:
    distinct = list(dict.fromkeys(texts))
    more = len(distinct) - _REASONS_SHOWN
    return tuple(distinct if more <= 0 else [*distinct[:_REASONS_SHOWN], f"and {more} more"])


def _pieces(path: Path) -> list[Piece]:
    """The Parquet files of a path; none for a text log and for a run's directory, which is one order."""
    if path.is_dir() and not (path / "events.parquet").is_file():
        return pieces_in(path)
    if not path.is_file():
        return []
    with path.open("rb") as file:
        return [Piece(path)] if file.read(4) == _MAGIC else []


def _names(pieces: Sequence[Piece]) -> list[str]:
    """The columns of the first file; the folders of the others must name the same ones."""
    written = pq.read_schema(pieces[0].path).names
    named = [name for name in pieces[0].named if name not in written]
    for piece in pieces:
        if piece.named.keys() - set(written) != set(named):
            raise BadInput(f"{piece.path}: other columns than in {pieces[0].path}")
    return [*written, *named]


def _frame(session: SparkSession, path: Path, pieces: Sequence[Piece]) -> DataFrame:
    """The files as one table, with the columns that their folders name, as text."""
    from pyspark.sql.types import StringType, StructField, StructType

    files = [for_spark(piece.path) for piece in pieces]
    written = session.read.parquet(files[0]).schema
    named = [StructField(name, StringType()) for name in pieces[0].named if name not in written.names]
    reader = session.read.schema(StructType([*written.fields, *named]))
    return (reader.option("basePath", str(path)) if named else reader).parquet(*files)


def _one_order_each(pieces: Sequence[Piece], by: Sequence[str]) -> bool:
    """Does every file hold one order, and every order stand in one file? The files' own statistics tell."""
    seen = set()
    for piece in pieces:
        key = _order_of(piece, by)
        if key is None or key in seen:
            return False
        seen.add(key)
    return True


def _order_of(piece: Piece, by: Sequence[str]) -> tuple[Any, ...] | None:
    """The one value of each column that names the order; None when there are several, or nobody knows."""
    metadata = pq.read_metadata(piece.path)
    places = {metadata.schema.column(place).path: place for place in range(metadata.num_columns)}
    key = []
    for name in by:
        if name not in places:
            if piece.named.get(name) is None:
                return None
            key.append(piece.named[name])
            continue
        values = set()
        for group in range(metadata.num_row_groups):
            found = metadata.row_group(group).column(places[name]).statistics
            if found is None or not found.has_min_max or found.null_count or found.min != found.max:
                return None
            values.add(found.min)
        if len(values) != 1:
            return None
        key.append(values.pop())
    return tuple(key)


def _judge_pieces(
    session: SparkSession, pieces: Sequence[Piece], asked: Asked, layout: Layout
) -> list[dict[str, Any]]:
    """An answer for every file; a file without broadcasts again, once it is known that others have some."""
    first = _spread_pieces(session, pieces, asked, layout)
    born = any(one["born"] for one in first)
    timed = any(one["timed"] for one in first)
    again = [place for place, one in enumerate(first) if one["born"] != born or one["timed"] != timed]
    if again:
        whole = msgspec.structs.replace(asked, broadcasts_elsewhere=born, deadlines_elsewhere=timed)
        second = _spread_pieces(session, [pieces[place] for place in again], whole, layout)
        for place, one in zip(again, second, strict=True):
            first[place] = one
    return first


def _spread_pieces(
    session: SparkSession, pieces: Sequence[Piece], asked: Asked, layout: Layout
) -> list[dict[str, Any]]:
    count = min(len(pieces), _TASKS_A_CORE * cores(session))
    shares = [list(pieces[number::count]) for number in range(count)]
    told = spread(session, _Pieces(shares, asked, layout), count)
    found = {piece.path: one for piece, one in zip(chain(*shares), chain(*told), strict=True)}
    return [found[piece.path] for piece in pieces]


class _Pieces:
    """Some files as one piece of work."""

    def __init__(self, shares: Sequence[Sequence[Piece]], asked: Asked, layout: Layout) -> None:
        self.shares, self.asked, self.layout = shares, asked, layout

    def __call__(self, number: int) -> list[dict[str, Any]]:
        return [self._judge(piece) for piece in self.shares[number]]

    def _judge(self, piece: Piece) -> dict[str, Any]:
        log = parquet_log([piece])
        verdict = self.asked.judge(log, self.asked.by)
        key = _order_of(piece, self.asked.by)
        assert key is not None
        group = [value if isinstance(value, str) else str(value) for value in key]
        known = {"group": group, "born": self._born(log), "timed": self._timed(log)}
        return {**answer(verdict, verdict.rows), **known}

    def _born(self, log: ParquetLog) -> bool:
        """Does the file have broadcasts?"""
        if self.layout.constant_kind is not None:
            return self.layout.constant_kind == BROADCAST
        name = self.layout.columns["kind"]
        words = {word for batch in log.batches([name]) for word in batch.column(name).unique().to_pylist()}
        return any(self.layout.kinds.get(word) == BROADCAST for word in words)

    def _timed(self, log: ParquetLog) -> bool:
        """Does it have deadlines?"""
        if "deadline_us" not in self.layout.columns:
            return False
        name = self.layout.columns["deadline_us"]
        return any(batch.column(name).null_count < len(batch) for batch in log.batches([name]))


def _by_one_task(session: SparkSession, path: str, order: str | None, options: dict[str, Any]) -> Verdict:
    (told,) = spread(session, _One(str(Path(path).absolute()), order, options), 1)
    return msgspec.convert(told, Verdict)


class _One:
    """A whole log as one piece of work."""

    def __init__(self, path: str, order: str | None, options: dict[str, Any]) -> None:
        self.path, self.order, self.options = path, order, options

    def __call__(self, number: int) -> Any:
        return msgspec.to_builtins(verify_log(self.path, self.order, **self.options))


def plain_error(error: Exception) -> Exception:
    """What a task said about the log, without what Spark says about the task."""
    said = _BAD_INPUT.search(str(error))
    return BadInput(said[1].strip()) if said else error
