"""Packs: the runs of a task in one file per table, made visible by one commit record.

A run that is alone in its pack keeps the file that the simulation wrote. Runs that share a pack lie in it one
after the other; the record says which rows are whose. So 100,000 runs of milliseconds leave some hundred files.
The rows of short runs are in memory until then.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from precede.eventlog.sinks import HeldSink
from precede.lake.commits import RUNS, CommittedFile, Span
from precede.lake.jobs import Job, write_rows
from precede.lake.layout import ROWS_A_GROUP
from precede.lake.schemas import TABLES

_S_A_COMMIT: Final = 10.0
"""After so many CPU seconds a task commits what it has, so that a kill loses no more than that."""

TABLES_OF_RUNS: Final = ("gauges", "events")


class Pack:
    """Runs of one task that are not yet committed."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._marks: dict[str, dict[str, Any]] = {}
        self._rows: dict[str, HeldSink] = {}
        self._since = time.process_time()

    def add(self, run_id: str, mark: dict[str, Any], rows: HeldSink | None = None) -> None:
        """Add a run: its mark, and its rows if it was simulated now."""
        self._marks[run_id] = mark
        if rows is not None:
            self._rows[run_id] = rows

    def commit_if_due(self) -> None:
        if time.process_time() - self._since > _S_A_COMMIT:
            self.commit()

    def commit(self) -> None:
        """Write the files, then the record; the runs are visible when this returns."""
        simulated, others = list(self._rows), [id for id in self._marks if id not in self._rows]
        if simulated:
            name = pack_name(simulated)
            files = [self._add_file(table, name) for table in TABLES_OF_RUNS]
            self.job.commit(RUNS, name, files, {id: self._marks[id] for id in simulated})
        if others:  # later stages of earlier runs, and failures: their files, if any, stay as they are
            self.job.commit(RUNS, f"marks-{_hash(others)}", (), {id: self._marks[id] for id in others})
        for rows in self._rows.values():
            rows.delete()
        self._marks, self._rows, self._since = {}, {}, time.process_time()

    def _add_file(self, table: str, name: str) -> CommittedFile:
        """Move the rows of all runs to one file of a table."""
        file = f"{table}.parquet"
        if len(self._rows) == 1:
            return self.job.add_file(table, name, self._rows[name].file(file))
        spans: dict[str, Span] = {}
        with self.job.workspace() as folder:
            rows = _rows_of(
                {id: rows.rows(file) for id, rows in self._rows.items()}, TABLES[table].arrow(), spans
            )
            write_rows(folder / "pack.parquet", table, rows)
            return self.job.add_file(table, name, folder / "pack.parquet", spans)


def pack_name(run_ids: Sequence[str]) -> str:
    return run_ids[0] if len(run_ids) == 1 else f"pack-{_hash(run_ids)}"


def _hash(run_ids: Sequence[str]) -> str:
    return blake2b("\n".join(sorted(run_ids)).encode(), digest_size=8).hexdigest()


def _rows_of(
    runs: Mapping[str, Path | pa.Table], schema: pa.Schema, spans: dict[str, Span]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of all runs, one run after the other, and note in `spans` which rows are whose."""
    first = 0
    for run_id, rows in runs.items():
        count = 0
        for batch in _batches_of(rows):
            yield batch.cast(schema)
            count += batch.num_rows
        spans[run_id] = Span(first, count)
        first += count


def _batches_of(rows: Path | pa.Table) -> Iterator[pa.RecordBatch]:
    if isinstance(rows, pa.Table):
        yield from rows.to_batches()
    else:
        with pq.ParquetFile(rows) as file:
            yield from file.iter_batches(ROWS_A_GROUP, use_threads=False)
