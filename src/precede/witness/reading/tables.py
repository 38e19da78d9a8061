"""Parquet files, Arrow tables and pandas frames as logs. Needs pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from precede.core.errors import BadInput
from precede.witness.reading.logs import LARGE_ROWS, Columns, Log
from precede.witness.reading.partitions import Piece

ROWS_AT_ONCE: Final = 1 << 18
FREE_ROWS: Final = 10_000_000
ROWS_PER_BYTE: Final = 20
"""How many rows a file may claim for each of its bytes, once past `FREE_ROWS`. (Dense logs have about one.)"""


class TableLog(Log):
    """A table in memory."""

    def __init__(self, table: Any) -> None:
        self.name = "the table"
        self.table = table
        self.names = table.column_names
        if table.num_rows == 0:
            raise BadInput(f"{self.name}: is empty (no rows)")
        self.expected = table.num_rows
        self.large = self.expected >= LARGE_ROWS

    def read(self, wanted: Sequence[str]) -> Iterator[Columns]:
        for batch in self.batches(wanted):
            yield batch.to_pydict(), batch.num_rows

    def batches(self, wanted: Sequence[str]) -> Iterator[Any]:
        """The same as Arrow record batches."""
        for batch in self.table.select(list(wanted)).to_batches(max_chunksize=ROWS_AT_ONCE):
            yield _times_as_numbers(batch)


class File(Struct, frozen=True):
    """What is known of a Parquet file that is not open."""

    piece: Piece
    written: list[str]
    rows: int

    @property
    def names(self) -> list[str]:
        """Its columns, and those that its folders name."""
        return [*self.written, *sorted(name for name in self.piece.named if name not in self.written)]


class ParquetLog(Log):
    """One Parquet file or many, read a piece at a time and only the columns that are wanted; one is open."""

    def __init__(self, files: Sequence[File], name: str) -> None:
        self.files = files
        self.name = name
        self.names = files[0].names
        rows = sum(file.rows for file in files)
        if rows == 0:
            raise BadInput(f"{self.name}: is empty (no rows)")
        self.expected = rows
        self.large = rows >= LARGE_ROWS
        for file in files[1:]:
            if file.names != self.names:
                raise BadInput(f"{file.piece.path}: other columns than in {files[0].piece.path}")

    def place(self, row: int) -> str:
        for file in self.files:
            if row <= file.rows:
                return f"{file.piece.path}, row {row}"
            row -= file.rows
        return f"{self.name}, row {row}"

    def read(self, wanted: Sequence[str]) -> Iterator[Columns]:
        for batch in self.batches(wanted):
            yield batch.to_pydict(), batch.num_rows

    def batches(self, wanted: Sequence[str]) -> Iterator[Any]:
        """The same as Arrow record batches."""
        for file in self.files:
            written = [name for name in wanted if name in file.written]
            try:
                with pq.ParquetFile(file.piece.path) as opened:
                    for batch in opened.iter_batches(ROWS_AT_ONCE, columns=written, use_threads=False):
                        yield _with_named(_times_as_numbers(batch), file.piece.named, wanted)
            except (pa.ArrowException, OSError, ValueError) as error:
                raise BadInput(f"{file.piece.path}: cannot be read: {_line(error)}") from None


def table_log(source: Any) -> Log:
    """A log in an Arrow table, record batch or reader, or in a pandas frame."""
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    elif isinstance(source, pa.RecordBatchReader):
        source = source.read_all()
    elif not isinstance(source, pa.Table):
        try:
            source = pa.Table.from_pandas(source, preserve_index=False)
        except (pa.ArrowException, TypeError, ValueError, AttributeError) as error:
            raise BadInput(f"a {type(source).__name__} cannot be read as a table: {_line(error)}") from None
    return TableLog(source)


def parquet_log(pieces: Sequence[Piece], name: str | None = None) -> ParquetLog:
    """A log in Parquet files that share their columns; by name a folder, or the one file."""
    return ParquetLog([_file(piece) for piece in pieces], name or str(pieces[0].path))


def _file(piece: Piece) -> File:
    path = piece.path
    try:
        with pq.ParquetFile(path) as opened:
            written = opened.schema_arrow.names  # a damaged footer may show only here
            rows = opened.metadata.num_rows
        most = max(FREE_ROWS, ROWS_PER_BYTE * path.stat().st_size)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise BadInput(f"{path}: not a readable Parquet file: {_line(error)}") from None
    if rows > most:
        raise BadInput(f"{path}: claims {rows:,} rows in so few bytes; not read")
    return File(piece, written, rows)


def _with_named(batch: Any, named: Mapping[str, str | None], wanted: Sequence[str]) -> Any:
    """A batch with what its folders name, every row the same."""
    if batch.num_columns == len(wanted):
        return batch
    there = dict(zip(batch.schema.names, batch.columns, strict=True))
    columns = [
        there[name] if name in there else pa.repeat(pa.scalar(named[name], pa.string()), len(batch))
        for name in wanted
    ]
    return pa.RecordBatch.from_arrays(columns, names=list(wanted))


def _times_as_numbers(batch: Any) -> Any:
    """Instants and dates as the numbers they are kept as: they can order rows."""
    if not any(pa.types.is_temporal(field.type) for field in batch.schema):
        return batch
    columns = [_as_number(column) if pa.types.is_temporal(column.type) else column for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _as_number(column: Any) -> Any:
    width = pa.int32() if column.type.bit_width == 32 else pa.int64()
    return column.cast(width).cast(pa.int64())


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())
