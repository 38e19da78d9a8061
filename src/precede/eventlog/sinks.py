"""Sinks for blocks of rows: Parquet files, Arrow tables in memory, or none."""

import os
import shutil
from pathlib import Path
from typing import Final

import pyarrow as pa

from precede.eventlog.parquet.file import ParquetFile
from precede.eventlog.recorder import Sink
from precede.eventlog.schema import FILE_VERSION, VERSION_KEY, event_schema, gauge_schema

EVENTS: Final = "events.parquet"
GAUGES: Final = "gauges.parquet"
HELD_ROWS: Final = 5_000
"""A run of more rows is written to files: rows in memory take about 170 bytes each."""
_RISING: Final = ("step", "at_us", "clock_us")
_BOUNDED: Final = ("run_id", "at_us")
"""The columns with bounds in each row group."""


class ParquetSink:
    """Writes `events.parquet` and `gauges.parquet` in a folder, under temporary names until `close`.

    No file is created before the first rows are written: a run that fails at its start leaves nothing behind.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, ParquetFile] = {}

    def write_events(self, block: pa.RecordBatch) -> None:
        self._file(EVENTS).write(block)

    def write_gauges(self, block: pa.RecordBatch) -> None:
        self._file(GAUGES).write(block)

    def close(self) -> None:
        """Completes both files and gives them their names."""
        for name in (EVENTS, GAUGES):
            self._file(name).close({VERSION_KEY: str(FILE_VERSION).encode()})
        for name in (EVENTS, GAUGES):
            os.replace(self._temporary(name), self._folder / name)

    def abandon(self) -> None:
        for name, file in self._files.items():
            file.abandon()
            self._temporary(name).unlink(missing_ok=True)

    def _file(self, name: str) -> ParquetFile:
        if name not in self._files:
            self._folder.mkdir(parents=True, exist_ok=True)
            schema = event_schema() if name == EVENTS else gauge_schema()
            self._files[name] = ParquetFile(self._temporary(name), schema, _RISING, _BOUNDED)
        return self._files[name]

    def _temporary(self, name: str) -> Path:
        return self._folder / f".{name}.partial"


class HeldSink:
    """Holds the rows of a short run in memory, and writes those of a longer one to the files of `ParquetSink`.

    To write and read the files of a run of ten rows takes as long as to simulate, verify and measure it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: ParquetSink | None = None
        self._held: dict[str, list[pa.RecordBatch]] = {EVENTS: [], GAUGES: []}

    def write_events(self, block: pa.RecordBatch) -> None:
        self._write(EVENTS, block)

    def write_gauges(self, block: pa.RecordBatch) -> None:
        self._write(GAUGES, block)

    def rows(self, name: str) -> Path | pa.Table:
        """The rows of `EVENTS` or `GAUGES` after the run: a table, or a file if there are many."""
        if self._files is not None:
            return self._folder / name
        schema = event_schema() if name == EVENTS else gauge_schema()
        return pa.Table.from_batches(self._held[name], schema)

    def file(self, name: str) -> Path:
        """The rows of `EVENTS` or `GAUGES` after the run, as a file."""
        if self._files is None:
            self._spill()
            self.close()
        return self._folder / name

    def close(self) -> None:
        if self._files is not None:
            self._files.close()

    def abandon(self) -> None:
        if self._files is not None:
            self._files.abandon()

    def delete(self) -> None:
        """Forget the rows, and delete the folder if it was written."""
        self._held = {EVENTS: [], GAUGES: []}
        if self._files is not None:
            shutil.rmtree(self._folder)

    def _write(self, name: str, block: pa.RecordBatch) -> None:
        self._held[name].append(block)
        held = (block.num_rows for blocks in self._held.values() for block in blocks)
        if self._files is not None or sum(held) > HELD_ROWS:
            self._spill()

    def _spill(self) -> None:
        self._files = self._files or ParquetSink(self._folder)
        for block in self._held[EVENTS]:
            self._files.write_events(block)
        for block in self._held[GAUGES]:
            self._files.write_gauges(block)
        self._held = {EVENTS: [], GAUGES: []}


class TableSink:
    """Keeps all rows in memory, for small runs and tests."""

    def __init__(self) -> None:
        self._events: list[pa.RecordBatch] = []
        self._gauges: list[pa.RecordBatch] = []

    def write_events(self, block: pa.RecordBatch) -> None:
        self._events.append(block)

    def write_gauges(self, block: pa.RecordBatch) -> None:
        self._gauges.append(block)

    def events(self) -> pa.Table:
        return pa.Table.from_batches(self._events, event_schema()).unify_dictionaries()

    def gauges(self) -> pa.Table:
        return pa.Table.from_batches(self._gauges, gauge_schema()).unify_dictionaries()


class TwoSinks:
    """Gives every block to two sinks."""

    def __init__(self, first: Sink, second: Sink) -> None:
        self._sinks = (first, second)

    def write_events(self, block: pa.RecordBatch) -> None:
        for sink in self._sinks:
            sink.write_events(block)

    def write_gauges(self, block: pa.RecordBatch) -> None:
        for sink in self._sinks:
            sink.write_gauges(block)


class NoSink:
    """Drops all rows, for benchmarks."""

    def write_events(self, block: pa.RecordBatch) -> None:
        """Drops the block."""

    def write_gauges(self, block: pa.RecordBatch) -> None:
        """Drops the block."""
