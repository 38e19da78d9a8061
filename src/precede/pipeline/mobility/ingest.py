"""Trace files into the lake: `segments` or `contacts`, `rejects`, and a summary that adds up.

A file is one task: a reader of `precede.traces` yields rows in bounded batches, and they are staged. The
tables appear in the lake only when every file of the call was read to its end, so a file that cannot be used
leaves the lake as it was. All tables of a trace appear at once. Segments are sorted by time, so that a slice of
time is a contiguous part of the file.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import Struct

from precede.core.errors import BadInput
from precede.core.natural_order import natural
from precede.lake.columns import distinct_names, indices
from precede.lake.commits import CONTACTS as COMPUTED
from precede.lake.commits import TRACES, CommittedFile
from precede.lake.integrity import describe_file, digest_file
from precede.lake.jobs import Job, write_rows
from precede.lake.layout import Lake, check_unit, foreign_path
from precede.lake.schemas import CONTACTS, REJECTS, SEGMENTS, TABLES, Table
from precede.lake.stored_contacts import computed_units
from precede.pipeline.sessions.tasks import spread
from precede.traces.reading import Options, Reading
from precede.traces.records import Batch, MessageRow, Summary
from precede.traces.writers import seconds_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MESSAGES: Final = "messages"
_ROWS_IN_MEMORY: Final = 4_000_000
_SUFFIXES: Final = re.compile(r"(\.(csv|txt|tsv|dat|zip|gz|tcl|ns2|one|tij|movements))+$", re.IGNORECASE)


class Source(Struct, frozen=True):
    """A file to read, the name of its trace, its format, and the format's options."""

    path: str
    name: str
    format: str
    options: Options


class Ingested(Struct, frozen=True):
    """The result for one file. `again`: the lake already had this trace from the same, unchanged file."""

    name: str
    summary: Summary
    tables: dict[str, str]
    again: bool = False


def sources_of(
    paths: Sequence[Path], format: str, name: str | None = None, options: Options | None = None
) -> list[Source]:
    """Check files and return each with the name of its trace, its format and its options.

    The name is `name` for a single file, else it is made from the file's name. Raises BadInput for a missing
    file, an unknown format or option, and a name that is not allowed or that two files would have.
    """
    if name is not None and len(paths) > 1:
        raise BadInput(f"--name {name!r} is for one file, but {len(paths)} are given")
    if name is not None and "@" in name:
        raise BadInput(f"--name {name!r}: an @ separates a trace from the range of its contacts (bus@50m)")
    options = options or Options()
    sources = []
    for path in paths:
        Reading(path, format, options)  # raises BadInput for an unknown format or an option it does not have
        if not path.exists():
            raise BadInput(f"{path}: no such file")
        sources.append(Source(str(path.absolute()), check_unit(name or _name_of(path)), format, options))
    names = [source.name for source in sources]
    repeated = next((one for one in names if names.count(one) > 1), None)
    if repeated is not None:
        raise BadInput(f"two files would both be the trace {repeated!r}: ingest them one by one, with --name")
    return sources


def ingest(
    lake: Lake,
    sources: Sequence[Source],
    session: SparkSession | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[Ingested]:
    """Read all files into the lake, or none of them if one cannot be used.

    `progress` is called with the rows of a file that were read, if it is read in this process.
    """
    with ExitStack() as stack:
        jobs = [stack.enter_context(lake.job(f"ingest-{source.name}").hold()) for source in sources]
        earlier = [_earlier_result(job, source) for job, source in zip(jobs, sources, strict=True)]
        missing = [number for number, result in enumerate(earlier) if result is None]
        work = _Files([jobs[number] for number in missing], [sources[number] for number in missing], progress)
        what = f"ingest {', '.join(source.name for source in sources[:3])}: {len(missing):,} files"
        staged = dict(zip(missing, spread(session, what, work, len(missing)), strict=True))
        results = []
        for number, source in enumerate(sources):
            result = earlier[number]
            results.append(result if result is not None else _publish(jobs[number], source, staged[number]))
        return results


def _name_of(path: Path) -> str:
    """Make a trace's name from the name of its file.

    Suffixes are removed, and dashes replace characters that a name cannot have.

    >>> _name_of(Path("a/bus@day (2).csv.gz"))
    'bus-day-2'
    """
    stem = re.sub(r"[^\w.+=-]+", "-", _SUFFIXES.sub("", path.name)).strip("-._")
    return stem or "trace"


def _identity(source: Source) -> list[Any]:
    """Return everything that the result depends on: options, and size and time of every file, as plain data."""
    path = Path(source.path)
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    stats = [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    identity: list[Any] = msgspec.json.decode(msgspec.json.encode([source, stats]))
    return identity


def _earlier_result(job: Job, source: Source) -> Ingested | None:
    """Return the undamaged result of an earlier call for the same, unchanged file, or None."""
    record = job.lake.fact(TRACES, source.name)
    if record is None or record["identity"] != _identity(source):
        return None
    ingested = msgspec.convert(record["ingested"], Ingested)
    if _MESSAGES in ingested.tables and job.lake.messages(source.name) is None:
        return None
    if not all(job.lake.is_intact(table, source.name) for table in ingested.tables if table in TABLES):
        return None
    return msgspec.structs.replace(ingested, again=True)


class _Files:
    """Reads trace files into sorted files and stages them. `spread` calls it with the number of a file.

    A call returns the summary of its file, and the staged files with their descriptions.
    """

    def __init__(
        self, jobs: Sequence[Job], sources: Sequence[Source], progress: Callable[[int], None] | None
    ) -> None:
        self.jobs, self.sources, self.progress = jobs, sources, progress

    def __call__(self, number: int) -> dict[str, Any]:
        with self.jobs[number].workspace() as folder:
            staging = _Staging(self.jobs[number], self.sources[number], folder)
            summary = staging.read(self.progress)
            return {"summary": msgspec.to_builtins(summary), "files": staging.finish()}


class _Staging:
    """Writes the content of one trace file to a folder: first rows as they are read, then sorted files."""

    def __init__(self, job: Job, source: Source, folder: Path) -> None:
        self.job, self.source, self.folder = job, source, folder
        self.writers: dict[str, pq.ParquetWriter] = {}
        self.messages: list[MessageRow] = []

    def read(self, progress: Callable[[int], None] | None) -> Summary:
        """Write all rows of the file to the folder as they come."""
        reading = Reading(self.source.path, self.source.format, self.source.options)
        try:
            for batch in reading.batches():
                self._take(batch)
                if progress is not None:
                    progress(reading.summary.rows_read)
        finally:
            for writer in self.writers.values():
                writer.close()
        return reading.summary

    def _take(self, batch: Batch) -> None:
        for table, rows in ((SEGMENTS, batch.segments), (CONTACTS, batch.contacts), (REJECTS, batch.rejects)):
            if rows:
                self._write(table, list(zip(*rows, strict=True)))
        self.messages += batch.messages

    def _write(self, table: Table, columns: Sequence[Sequence[Any]]) -> None:
        """Append rows; the trace's name is the first column, and columns that the reader lacks are null."""
        rows = len(columns[0])
        schema = table.arrow()
        arrays = [pa.repeat(self.source.name, rows)]
        arrays += [
            pa.array(column, field.type) for column, field in zip(columns, list(schema)[1:], strict=False)
        ]
        arrays += [pa.nulls(rows, field.type) for field in list(schema)[len(arrays) :]]
        if table.name not in self.writers:
            self.writers[table.name] = pq.ParquetWriter(self._raw(table.name), schema, compression="lz4")
        self.writers[table.name].write_table(pa.table(arrays, schema=schema))

    def finish(self) -> list[Any]:
        """Stage the sorted files. Returns the path and the description of each, as plain data."""
        sorters = {"segments": _segments_by_time, "contacts": _contacts_by_pair, "rejects": _in_file_order}
        name, staged = self.source.name, []
        for table in self.writers:
            path = self.folder / f"{table}.parquet"
            write_rows(path, table, sorters[table](self._raw(table)))
            staged.append((describe_file(table, name, path), self.job.stage(path)))
        if self.messages:
            path = self.folder / "messages.csv"
            _write_messages(path, self.messages)
            size, digest = path.stat().st_size, digest_file(path)
            file = CommittedFile(_MESSAGES, f"{_MESSAGES}/{name}.csv", size, 0, digest, {})
            staged.append((file, self.job.stage(path)))
        plain: list[Any] = msgspec.to_builtins(staged)
        return plain

    def _raw(self, table: str) -> Path:
        return self.folder / f"{table}.raw"


def _segments_by_time(raw: Path) -> Iterator[pa.RecordBatch]:
    """Yield segments sorted by start; only a share of the time is in memory at once."""
    begins = pq.read_table(raw, columns=["t0_us"])["t0_us"].to_numpy()
    shares = -(-len(begins) // _ROWS_IN_MEMORY)
    edges = np.unique(np.quantile(begins, np.arange(1, shares) / shares, method="nearest")).tolist()
    for low, high in zip([None, *edges], [*edges, None], strict=True):
        in_share = pc.scalar(True)
        if low is not None:
            in_share = in_share & (pc.field("t0_us") >= low)
        if high is not None:
            in_share = in_share & (pc.field("t0_us") < high)
        table = pq.read_table(raw, filters=None if low is None and high is None else in_share)
        keys = [("t0_us", "ascending"), ("node", "ascending"), ("t1_us", "ascending")]
        yield from table.sort_by(keys).to_batches()


def _contacts_by_pair(raw: Path) -> Iterator[pa.RecordBatch]:
    """Yield contacts sorted by pair, in natural order of the names, and by start."""
    table = pq.read_table(raw)
    names = distinct_names(table["a"], table["b"])
    a, b = indices(table["a"], names), indices(table["b"], names)
    yield from table.take(pa.array(np.lexsort((table["start_us"].to_numpy(), b, a)))).to_batches()


def _in_file_order(raw: Path) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(raw) as file:
        yield from file.iter_batches()


def _write_messages(path: Path, messages: Sequence[MessageRow]) -> None:
    """Write a workload as the CSV file that a scenario reads (`[workload] messages`)."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("id", "src", "dst", "time", "size"))
        for row in sorted(messages, key=lambda row: (row.at_us, natural(row.id))):
            writer.writerow((row.id, row.source, row.destination, seconds_text(row.at_us), row.size_bytes))


def _publish(job: Job, source: Source, staged: dict[str, Any]) -> Ingested:
    """Replace the tables of a trace by the staged files, all at once; contacts of its old movement go."""
    lake, name = job.lake, source.name
    files = msgspec.convert(staged["files"], list[tuple[CommittedFile, str]])
    for file, place in files:
        job.storage.move(place, file.path)
    tables = {file.table: f"{lake.location}/{file.path}" for file, _ in files}
    ingested = Ingested(name, msgspec.convert(staged["summary"], Summary), tables)
    facts = {name: {"identity": _identity(source), "ingested": ingested}}
    job.commit(TRACES, name, [file for file, _ in files], facts)
    for unit in computed_units(lake, name):
        job.withdraw(COMPUTED, unit)
    for table in ("rejects", "segments", "contacts"):
        job.storage.delete(foreign_path(table, name))
    return ingested
