"""Sinks for blocks of rows: Parquet files, Arrow tables in memory, or none."""

import os
import shutil
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from precede.eventlog.recorder import Sink
from precede.eventlog.schema import FILE_VERSION, VERSION_KEY, event_schema, gauge_schema

EVENTS: Final = "events.parquet"
GAUGES: Final = "gauges.parquet"
HELD_ROWS: Final = 5_000
"""A run of more rows is written to files: rows in memory take about 170 bytes each."""
GROUP_ROWS: Final = 1 << 18
_RISING: Final = ("step", "at_us", "clock_us")
_FEW_VALUES: Final = (
    "incarnation",
    "message_incarnation",
    "message_number",
    "messages_in_packet",
    "packet_bytes",
    "control_bytes",
    "control_entries",
)
"""How columns are encoded: differences of `_RISING` ones, dictionaries for names and `_FEW_VALUES`.

With row groups of `GROUP_ROWS` and statistics for two columns only, a row takes 0.58 of the time and 0.66 of
the bytes that it takes with Arrow's defaults and groups of 65,536 rows (pedestrians, 5 min).
"""
_LONG_PAGES: Final[dict[str, Any]] = (
    {"max_rows_per_page": 4 * GROUP_ROWS}
    if "max_rows_per_page" in pq.ParquetWriter.__init__.__code__.co_varnames
    else {}
)
"""A page per column of a group. The versions of Arrow that have this option begin a page every 20,000 rows.

Rows then take 0.81 of the time and 0.79 of the bytes, and reading takes half the time (pedestrians, 20 min).
"""


class ParquetSink:
    """Writes `events.parquet` and `gauges.parquet` in a folder, under temporary names until `close`.

    No file is created before the first rows are written: a run that fails at its start leaves nothing behind.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._blocks: list[pa.RecordBatch] = []
        self._rows = 0

    def write_events(self, block: pa.RecordBatch) -> None:
        """Keep a block until there are enough rows for a row group."""
        self._blocks.append(block)
        self._rows += block.num_rows
        if self._rows >= GROUP_ROWS:
            self._write_group()

    def _write_group(self) -> None:
        if self._blocks:
            group = pa.Table.from_batches(self._blocks).unify_dictionaries()
            self._writer(EVENTS).write_table(group, self._rows)
        self._blocks, self._rows = [], 0

    def write_gauges(self, block: pa.RecordBatch) -> None:
        self._writer(GAUGES).write_batch(block)

    def close(self) -> None:
        """Completes both files and gives them their names."""
        self._write_group()
        for name in (EVENTS, GAUGES):
            self._writer(name).add_key_value_metadata({VERSION_KEY: str(FILE_VERSION).encode()})
            self._writer(name).close()
        for name in (EVENTS, GAUGES):
            os.replace(self._temporary(name), self._folder / name)

    def abandon(self) -> None:
        for name, writer in self._writers.items():
            writer.close()
            self._temporary(name).unlink(missing_ok=True)

    def _writer(self, name: str) -> pq.ParquetWriter:
        if name not in self._writers:
            self._folder.mkdir(parents=True, exist_ok=True)
            schema = event_schema() if name == EVENTS else gauge_schema()
            names = [field.name for field in schema if pa.types.is_dictionary(field.type)]
            numbers = [field.name for field in schema if not pa.types.is_dictionary(field.type)]
            self._writers[name] = pq.ParquetWriter(
                self._temporary(name),
                schema,
                compression="zstd",
                compression_level=1,
                use_dictionary=names + [column for column in numbers if column in _FEW_VALUES],
                column_encoding={column: "DELTA_BINARY_PACKED" for column in numbers if column in _RISING},
                write_statistics=["run_id", "at_us"],
                write_page_checksum=True,
                store_schema=False,  # else readers make dictionaries of names that are text in other tables
                sorting_columns=[pq.SortingColumn(schema.get_field_index("at_us"))],
                **_LONG_PAGES,
            )
        return self._writers[name]

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
