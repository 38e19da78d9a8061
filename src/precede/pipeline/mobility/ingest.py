"""Real files into the lake: `segments` or `contacts`, `rejects`, and a summary that adds up (DESIGN section 5).

A file is one task: a reader of `traces` gives rows in bounded batches, and they go to scratch. Only when every
file of a call was read to its end do the tables appear in the lake, so a file that cannot be used leaves it as
it was. Segments are kept in order of time, so that a slice of time is a stretch of the file.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator, Sequence
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
from precede.lake.jobs import Job, Lake, check_unit, in_groups
from precede.lake.schemas import CONTACTS, REJECTS, SEGMENTS, Table
from precede.pipeline.mobility.contacts import contacts_of
from precede.pipeline.sessions.tasks import attempt_number, spread
from precede.traces.reading import Options, Reading
from precede.traces.records import Batch, MessageRow, Summary
from precede.traces.writers import seconds_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MESSAGES: Final = "messages"
"""A folder beside the tables: workloads that came with a trace, as CSV for `[workload] messages`."""

_ROWS_IN_MEMORY: Final = 4_000_000
_SUFFIXES: Final = re.compile(r"(\.(csv|txt|tsv|dat|zip|gz|tcl|ns2|one|tij))+$", re.IGNORECASE)


class Source(Struct, frozen=True):
    """One file to read, and the name its trace gets."""

    path: str
    name: str
    format: str
    options: Options


class Ingested(Struct, frozen=True):
    """What became of one file. `again` says that the lake had it already, unchanged."""

    name: str
    summary: Summary
    tables: dict[str, str]
    again: bool = False


def sources_of(
    paths: Sequence[Path], format: str, name: str | None = None, options: Options | None = None
) -> list[Source]:
    """Files with the names of their traces: the one that is said, else each file's own."""
    if name is not None and len(paths) > 1:
        raise BadInput(f"--name {name!r} is for one file, and there are {len(paths)}")
    if name is not None and "@" in name:
        raise BadInput(f"--name {name!r}: an @ parts a trace from the range of its contacts (bus@50m)")
    options = options or Options()
    made = []
    for path in paths:
        Reading(path, format, options)
        if not path.exists():
            raise BadInput(f"{path}: no such file")
        made.append(Source(str(path.absolute()), check_unit(name or _name_of(path)), format, options))
    names = [source.name for source in made]
    twice = next((one for one in names if names.count(one) > 1), None)
    if twice is not None:
        raise BadInput(f"two files would both be the trace {twice!r}: ingest them one by one, with --name")
    return made


def ingest(lake: Lake, sources: Sequence[Source], session: SparkSession | None = None) -> list[Ingested]:
    """Every file into the lake, or none."""
    with ExitStack() as stack:
        jobs = [stack.enter_context(lake.job(f"ingest-{source.name}").hold()) for source in sources]
        known = [_known(job, source) for job, source in zip(jobs, sources, strict=True)]
        missing = [number for number, found in enumerate(known) if found is None]
        work = _Files([jobs[number] for number in missing], [sources[number] for number in missing])
        staged = dict(zip(missing, spread(session, work, len(missing)), strict=True))
        done = []
        for number, source in enumerate(sources):
            found = known[number]
            done.append(found if found is not None else _publish(jobs[number], source, staged[number]))
        return done


def _name_of(path: Path) -> str:
    """A trace's name from its file's: without endings, odd characters as dashes.

    >>> _name_of(Path("a/bus@day (2).csv.gz"))
    'bus-day-2'
    """
    stem = re.sub(r"[^\w.+=-]+", "-", _SUFFIXES.sub("", path.name)).strip("-._")
    return stem or "trace"


def _identity(source: Source) -> list[Any]:
    """What tells this reading of a file from another."""
    path = Path(source.path)
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    stats = [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    told: list[Any] = msgspec.json.decode(msgspec.json.encode([source, stats]))
    return told


def _known(job: Job, source: Source) -> Ingested | None:
    """What an earlier call made of the very same file, if it is all still there."""
    if not job.is_marked(source.name):
        return None
    told = job.told(source.name)
    if told["identity"] != _identity(source):
        return None
    found = msgspec.convert(told["ingested"], Ingested)
    if not all(Path(path).is_file() for path in found.tables.values()):
        return None
    return msgspec.structs.replace(found, again=True)


class _Files:
    """The files as pieces of work."""

    def __init__(self, jobs: Sequence[Job], sources: Sequence[Source]) -> None:
        self.jobs, self.sources = jobs, sources

    def __call__(self, number: int) -> dict[str, Any]:
        staging = _Staging(self.jobs[number].scratch, self.sources[number])
        summary = staging.read()
        return {"summary": msgspec.to_builtins(summary), "files": staging.finish()}


class _Staging:
    """One file on its way to scratch: raw rows as they come, then sorted."""

    def __init__(self, scratch: Path, source: Source) -> None:
        self.folder = scratch / f"{attempt_number()}-{os.getpid()}"
        self.folder.mkdir(exist_ok=True)
        self.source = source
        self.writers: dict[str, pq.ParquetWriter] = {}
        self.messages: list[MessageRow] = []

    def read(self) -> Summary:
        reading = Reading(self.source.path, self.source.format, self.source.options)
        try:
            for batch in reading.batches():
                self._take(batch)
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
        rows = len(columns[0])
        schema = table.arrow()
        arrays = [pa.repeat(self.source.name, rows)]
        arrays += [
            pa.array(column, field.type) for column, field in zip(columns, list(schema)[1:], strict=False)
        ]
        arrays += [pa.nulls(rows, field.type) for field in list(schema)[len(arrays) :]]
        if table.name not in self.writers:
            self.writers[table.name] = pq.ParquetWriter(
                self._file(table.name, "raw"), schema, compression="lz4"
            )
        self.writers[table.name].write_table(pa.table(arrays, schema=schema))

    def finish(self) -> dict[str, str]:
        """Sorted files, ready to be given their names."""
        made = {}
        for name in self.writers:
            raw, made[name] = self._file(name, "raw"), str(self._file(name, "sorted"))
            sort = {"segments": _segments_by_time, "contacts": _contacts_by_pair, "rejects": _as_they_came}[
                name
            ]
            with pq.ParquetWriter(made[name], pq.read_schema(raw), compression="zstd") as writer:
                for group in in_groups(sort(raw)):
                    writer.write_table(group)
            raw.unlink()
        if self.messages:
            made[MESSAGES] = str(self._file(MESSAGES, "csv"))
            _write_messages(Path(made[MESSAGES]), self.messages)
        return made

    def _file(self, table: str, kind: str) -> Path:
        return self.folder / f"{table}.{kind}"


def _segments_by_time(raw: Path) -> Iterator[pa.RecordBatch]:
    """Sorted by beginning, a share of the time at once."""
    begins = pq.read_table(raw, columns=["t0_us"])["t0_us"].to_numpy()
    shares = -(-len(begins) // _ROWS_IN_MEMORY)
    edges = np.unique(np.quantile(begins, np.arange(1, shares) / shares, method="nearest")).tolist()
    for low, high in zip([None, *edges], [*edges, None], strict=True):
        wanted = pc.scalar(True)
        if low is not None:
            wanted = wanted & (pc.field("t0_us") >= low)
        if high is not None:
            wanted = wanted & (pc.field("t0_us") < high)
        table = pq.read_table(raw, filters=None if low is None and high is None else wanted)
        keys = [("t0_us", "ascending"), ("node", "ascending"), ("t1_us", "ascending")]
        yield from table.sort_by(keys).to_batches()


def _contacts_by_pair(raw: Path) -> Iterator[pa.RecordBatch]:
    """Sorted by pair, as people sort names, and beginning."""
    table = pq.read_table(raw)
    names = sorted({*table["a"].unique().to_pylist(), *table["b"].unique().to_pylist()}, key=natural)
    known = pa.array(names, pa.string())
    a, b = (pc.index_in(table[side], value_set=known).to_numpy() for side in ("a", "b"))
    yield from table.take(pa.array(np.lexsort((table["start_us"].to_numpy(), b, a)))).to_batches()


def _as_they_came(raw: Path) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(raw) as file:
        yield from file.iter_batches()


def _write_messages(path: Path, messages: Sequence[MessageRow]) -> None:
    """A workload as a scenario reads it."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("id", "src", "dst", "time", "size"))
        for row in sorted(messages, key=lambda row: (row.at_us, natural(row.id))):
            writer.writerow((row.id, row.source, row.destination, seconds_text(row.at_us), row.size_bytes))


def _publish(job: Job, source: Source, staged: dict[str, Any]) -> Ingested:
    """The tables of a trace in place of what was there; contacts of an older movement go with it."""
    lake, name = job.lake, source.name
    tables = {}
    for table in ("rejects", "segments", "contacts"):
        if table in staged["files"]:
            job.publish(Path(staged["files"][table]), table, name)
            tables[table] = str(lake.path(table, name))
        else:
            lake.path(table, name).unlink(missing_ok=True)
    for unit in contacts_of(lake, name):
        lake.path("contacts", unit).unlink()
    workload = lake.root / MESSAGES / f"{name}.csv"
    workload.unlink(missing_ok=True)
    if MESSAGES in staged["files"]:
        workload.parent.mkdir(exist_ok=True)
        Path(staged["files"][MESSAGES]).replace(workload)
        tables[MESSAGES] = str(workload)
    ingested = Ingested(name, msgspec.convert(staged["summary"], Summary), tables)
    job.mark(name, {"identity": _identity(source), "ingested": ingested})
    return ingested
