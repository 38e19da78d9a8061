"""The ledger of a follower: which batches are done, and the tables of what they brought.

    CHECKPOINT/question.json            the options it was begun with
    CHECKPOINT/ledger.json              the last batch that is done, and the files of the state after it
    CHECKPOINT/state/...                those files (`following.state`)
    CHECKPOINT/spark/...                Spark's checkpoint: which rows belong to which batch
    CHECKPOINT/tables/verdicts/...      one row for each run: a file for each bucket, replaced when it changes
    CHECKPOINT/tables/violations/...    one row for each violation: a file for each batch that has some
    CHECKPOINT/tables/rejects/...       one row for each rejected message: a file for each batch that has some
    CHECKPOINT/metrics.prom             counters (`following.metrics`)

After a kill Spark repeats the last batch with the same rows. If the ledger has it, nothing is done. If not, it
is judged again from the state before it, which gives the same rows, and its files replace those of the first
attempt, which have the same names. So each violation is in the tables exactly once.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from precede.core.errors import BadInput
from precede.lake.storage import Storage
from precede.pipeline.following.metrics import Totals, metrics_text
from precede.pipeline.following.standings import (
    BatchReport,
    BucketReport,
    Reject,
    Standing,
    StateFile,
    answer,
    median,
)
from precede.pipeline.judging.query import Query

FORMAT: Final = 6
"""Version of the stored data: of the ledger, its tables, and the state of a run (`precede.witness.live`)."""

_REMEDY: Final = "name another --checkpoint, or remove it and begin anew"
_Kept = TypeVar("_Kept")

_VIOLATION_FIELDS: Final = (
    *(("batch", pa.int64()), ("order", pa.string()), ("kind", pa.string()), ("node", pa.string())),
    *(("incarnation", pa.int32()), ("step", pa.int64()), ("message", pa.string()), ("other", pa.string())),
    ("explanation", pa.string()),
)
_VERDICT_FIELDS: Final = (
    *(("order", pa.string()), ("verdict", pa.string()), ("rows", pa.int64())),
    *(("deliveries_checked", pa.int64()), ("violations", pa.int64()), ("reasons", pa.list_(pa.string()))),
    ("standing", pa.string()),
)
_REJECT_FIELDS: Final = (
    *(("batch", pa.int64()), ("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())),
    ("cause", pa.string()),
)


class _Page(Struct):
    """The content of `ledger.json`."""

    batch: int = -1
    buckets: dict[int, list[StateFile]] = {}
    totals: Totals = msgspec.field(default_factory=Totals)


class Ledger:
    """The folder of one follower. `done` is the number of the last batch that is done."""

    def __init__(self, folder: Path, query: Query, columns: Collection[str], buckets: int) -> None:
        self.folder, self.query, self.columns, self.buckets = folder, query, columns, buckets
        self.storage = Storage(folder)
        page = folder / "ledger.json"
        self._page = _read(page, _Page) if page.is_file() else _Page()
        self.runs = {tuple(run.group): run for run in self._stored_standings()}
        self._remove_strays()

    @staticmethod
    def open(folder: Path, query: Query, columns: Collection[str], buckets: int = 2) -> Ledger:
        """Begin a ledger in a folder, or continue the one that is there.

        The number of `buckets` counts only for a new one. Raises BadInput if the old one was begun with another
        query or by another version.
        """
        question = folder / "question.json"
        plain = msgspec.json.decode(msgspec.json.encode(query))
        if not question.is_file():
            stored = {"format": FORMAT, "buckets": buckets, "query": plain}
            Storage(folder).put("question.json", msgspec.json.encode(stored))
        begun = _read(question, dict[str, Any])
        if begun.get("format") != FORMAT:
            raise BadInput(f"{folder}: was begun by another version of precede; {_REMEDY}")
        if begun.get("query") != plain or not isinstance(begun.get("buckets"), int):
            raise BadInput(f"{folder}: was begun with other options; {_REMEDY}")
        return Ledger(folder, query, columns, begun["buckets"])

    @property
    def done(self) -> int:
        """The number of the last batch that is done."""
        return self._page.batch

    @property
    def files(self) -> dict[int, list[StateFile]]:
        """The files of the state of each bucket."""
        return self._page.buckets

    def enter(self, batch: int, buckets: Sequence[BucketReport]) -> list[BatchReport]:
        """Write what a batch brought to the tables. Returns what to report."""
        now = time.time()
        standings = [standing for bucket in buckets for standing in bucket.standings]
        timed = self._timed()
        for standing in standings:
            before = self.runs.get(tuple(standing.group))
            standing.first = before.first if before is not None else None
            if standing.first is None and standing.violations:
                standing.first = standing.violations[0]
            self.runs[tuple(standing.group)] = standing
        self._write_violations(batch, standings)
        self._write_rejects(batch, [reject for bucket in buckets for reject in bucket.rejects])
        touched = dict.fromkeys(
            run.bucket for run in (standings if timed == self._timed() else self.runs.values())
        )
        for bucket in touched:
            self._write_verdicts(bucket)
        return [
            BatchReport(batch=batch, standing=standing, lag_s=now - median(standing.written))
            for standing in standings
        ]

    def close(self, batch: int, buckets: Sequence[BucketReport]) -> None:
        """Record that a batch is done: from now on its state counts."""
        before = self._page
        files = before.buckets | {bucket.bucket: bucket.files for bucket in buckets}
        standings = [standing for bucket in buckets for standing in bucket.standings]
        written = [instant for standing in standings for instant in standing.written]
        totals = Totals(
            batches=before.totals.batches + 1,
            rejects=before.totals.rejects + sum(len(bucket.rejects) for bucket in buckets),
            lag_s=max((time.time() - float(at) for at in written), default=before.totals.lag_s),
        )
        self._page = _Page(batch, files, totals)
        self.storage.put("ledger.json", msgspec.json.encode(self._page))
        kept = {file.path for bucket in buckets for file in bucket.files}
        for bucket in buckets:
            for file in before.buckets.get(bucket.bucket, ()):
                if file.path not in kept:
                    self.storage.delete(file.path)
        self.write_metrics()

    def write_metrics(self) -> None:
        """Write the counters of everything so far."""
        text = metrics_text(self._page.totals, list(self.runs.values()), self.state_bytes())
        self.storage.put("metrics.prom", text.encode(), durable=False)

    def state_bytes(self) -> int:
        """The size of the stored state of all runs."""
        return sum(file.size for files in self.files.values() for file in files)

    def answers(self) -> list[dict[str, Any]]:
        """Return the state of every run as an answer (`judging.answers`)."""
        return [answer(run, self.columns, self._timed()) for run in self.runs.values()]

    def _timed(self) -> bool:
        return any(run.timed for run in self.runs.values())

    def _write_violations(self, batch: int, standings: Sequence[Standing]) -> None:
        rows = [
            {**self._names(standing), "batch": batch, "order": standing.order, "kind": violation.kind}
            | {"node": violation.node, "incarnation": violation.incarnation, "step": violation.step}
            | {"message": violation.message, "other": violation.other, "explanation": violation.story}
            for standing in standings
            for violation in standing.violations
        ]
        self._write("violations", f"{batch}.parquet", rows, self._schema(_VIOLATION_FIELDS))

    def _write_rejects(self, batch: int, rejects: Sequence[Reject]) -> None:
        ordered = sorted(rejects, key=lambda each: (each.topic, each.partition, each.offset))
        rows = [{"batch": batch, **msgspec.structs.asdict(reject)} for reject in ordered]
        self._write("rejects", f"{batch}.parquet", rows, pa.schema(_REJECT_FIELDS))

    def _write_verdicts(self, bucket: int) -> None:
        rows = []
        for run in self.runs.values():
            if run.bucket == bucket:
                kept = msgspec.structs.replace(run, violations=[], new_conflicts=[], written={})
                row = answer(run, self.columns, self._timed())
                row = {name: row[name] for name, _ in _VERDICT_FIELDS if name in row}
                rows.append({**self._names(run), **row, "standing": msgspec.json.encode(kept).decode()})
        self._write("verdicts", f"bucket-{bucket}.parquet", rows, self._schema(_VERDICT_FIELDS))

    def _names(self, standing: Standing) -> dict[str, str]:
        return dict(zip(self.query.by, standing.group, strict=True))

    def _schema(self, fields: Sequence[tuple[str, pa.DataType]]) -> pa.Schema:
        return pa.schema([*((name, pa.string()) for name in self.query.by), *fields])

    def _write(self, table: str, name: str, rows: Sequence[dict[str, Any]], schema: pa.Schema) -> None:
        """Write a file of a table, whole; no file without rows."""
        if not rows:
            return
        sink = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_pylist(rows, schema), sink, compression="zstd", write_page_checksum=True)
        self.storage.put(f"tables/{table}/{name}", sink.getvalue().to_pybytes())

    def _stored_standings(self) -> list[Standing]:
        """The standings of all runs, from the table of verdicts."""
        texts = [
            text
            for file in sorted((self.folder / "tables" / "verdicts").glob("bucket-*.parquet"))
            for text in pq.read_table(file, columns=["standing"])["standing"].to_pylist()
        ]
        return [msgspec.json.decode(text, type=Standing) for text in texts]

    def _remove_strays(self) -> None:
        """Remove files of the state that a killed batch left."""
        kept = {file.path for files in self.files.values() for file in files}
        for path, _ in self.storage.walk("state"):
            if path not in kept:
                self.storage.delete(path)


def _read(path: Path, kind: type[_Kept]) -> _Kept:
    """Decode a JSON file of the ledger."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except msgspec.DecodeError as error:
        raise BadInput(f"{path}: {error}; {_REMEDY}") from None
