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
import pyarrow.compute as pc
import pyarrow.parquet as pq

from precede.core.errors import BadInput
from precede.pipeline.jobs import for_spark
from precede.pipeline.tasks import cores, spread
from precede.pipeline.witness import Asked, answer, settle_question
from precede.pipeline.witness import verify as verify_frame
from precede.verify.history import natural
from precede.verify.layout import BROADCAST, Layout
from precede.verify.tables import parquet_log
from precede.verify.verdict import Part, Verdict, Violation
from precede.verify.witness import verify as verify_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TASKS_A_CORE: Final = 16
_MAGIC: Final = b"PAR1"
_REASONS_SHOWN: Final = 5
_BAD_INPUT: Final = re.compile(r"precede\.core\.errors\.BadInput: (.*)")


def verify_path(session: SparkSession, path: str, order: str | None = None, **options: Any) -> Verdict:
    """The verdict about a log in files, as `precede.verify` gives it, by as many tasks as it has orders."""
    if path == "-":
        raise BadInput("standard input is read by this process: leave --master away")
    files = _parquet_files(Path(path))
    if not files:
        return _by_one_task(session, path, order, options)
    schema = pq.read_schema(files[0])
    given = {"by": None, "columns": None, "kinds": None, "steps": "counted", "duplicates": "forbid"} | options
    asked, layout = settle_question(schema.names, order, **given)
    if not layout.by:
        return _by_one_task(session, path, order, options)
    if _one_order_each(files, layout.by):
        return gather(_judge_files(session, files, asked, layout), layout.by)
    if layout.row_order:
        return _by_one_task(session, path, order, options)
    frame = session.read.parquet(*(for_spark(file) for file in files))
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


def _parquet_files(path: Path) -> list[Path]:
    """The Parquet files of a path; none for a text log and for a run's directory, which is one order."""
    if path.is_dir() and not (path / "events.parquet").is_file():
        found = sorted(path.rglob("*.parquet"))
        return [file for file in found if not any(part[0] in "._" for part in file.relative_to(path).parts)]
    if not path.is_file():
        return []
    with path.open("rb") as file:
        return [path] if file.read(4) == _MAGIC else []


def _one_order_each(files: Sequence[Path], by: Sequence[str]) -> bool:
    """Does every file hold one order, and every order stand in one file? The files' own statistics tell."""
    seen = set()
    for file in files:
        key = _order_of(pq.read_metadata(file), by)
        if key is None or key in seen:
            return False
        seen.add(key)
    return True


def _order_of(metadata: Any, by: Sequence[str]) -> tuple[Any, ...] | None:
    """The one value of each column that names the order; None when there are several, or nobody knows."""
    places = {metadata.schema.column(place).path: place for place in range(metadata.num_columns)}
    key = []
    for name in by:
        if name not in places:
            return None
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


def _judge_files(
    session: SparkSession, files: Sequence[Path], asked: Asked, layout: Layout
) -> list[dict[str, Any]]:
    """An answer for every file; a file without broadcasts again, once it is known that others have some."""
    first = _spread_files(session, files, asked, layout)
    born = any(one["born"] for one in first)
    timed = any(one["timed"] for one in first)
    again = [place for place, one in enumerate(first) if one["born"] != born or one["timed"] != timed]
    if again:
        whole = msgspec.structs.replace(asked, broadcasts_elsewhere=born, deadlines_elsewhere=timed)
        second = _spread_files(session, [files[place] for place in again], whole, layout)
        for place, one in zip(again, second, strict=True):
            first[place] = one
    return first


def _spread_files(
    session: SparkSession, files: Sequence[Path], asked: Asked, layout: Layout
) -> list[dict[str, Any]]:
    count = min(len(files), _TASKS_A_CORE * cores(session))
    shares = [list(files[number::count]) for number in range(count)]
    told = spread(session, _Files(shares, asked, layout), count)
    found = dict(zip(chain(*shares), chain(*told), strict=True))
    return [found[file] for file in files]


class _Files:
    """Some files as one piece of work."""

    def __init__(self, shares: Sequence[Sequence[Path]], asked: Asked, layout: Layout) -> None:
        self.shares, self.asked, self.layout = shares, asked, layout

    def __call__(self, number: int) -> list[dict[str, Any]]:
        return [self._judge(file) for file in self.shares[number]]

    def _judge(self, file: Path) -> dict[str, Any]:
        verdict = self.asked.judge(parquet_log([file]), self.asked.by)
        key = _order_of(pq.read_metadata(file), self.asked.by)
        assert key is not None
        group = [value if isinstance(value, str) else str(value) for value in key]
        known = {"group": group, "born": self._born(file), "timed": self._timed(file)}
        return {**answer(verdict, verdict.rows), **known}

    def _born(self, file: Path) -> bool:
        """Does the file have broadcasts?"""
        if self.layout.constant_kind is not None:
            return self.layout.constant_kind == BROADCAST
        name = self.layout.columns["kind"]
        words = pq.read_table(file, columns=[name], read_dictionary=[name])[name].unique().to_pylist()
        return any(self.layout.kinds.get(word) == BROADCAST for word in words)

    def _timed(self, file: Path) -> bool:
        """Does it have deadlines?"""
        if "deadline_us" not in self.layout.columns:
            return False
        name = self.layout.columns["deadline_us"]
        return bool(pc.any(pc.is_valid(pq.read_table(file, columns=[name])[name])).as_py())


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
