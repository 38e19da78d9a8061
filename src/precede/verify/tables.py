"""Parquet files, Arrow tables and pandas frames as logs. Needs pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from precede.core.errors import BadInput
from precede.verify.logs import LARGE_ROWS, Columns, Log
from precede.verify.partitions import Piece

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


class ParquetLog(Log):
    """One Parquet file or several, read a piece at a time and only the columns that are wanted."""

    def __init__(self, files: Sequence[tuple[Piece, Any]], name: str) -> None:
        self.files = files
        self.name = name
        self.names = _columns(*files[0])
        rows = sum(file.metadata.num_rows for _, file in files)
        if rows == 0:
            raise BadInput(f"{self.name}: is empty (no rows)")
        self.expected = rows
        self.large = rows >= LARGE_ROWS
        for piece, file in files[1:]:
            if _columns(piece, file) != self.names:
                raise BadInput(f"{piece.path}: other columns than in {files[0][0].path}")

    def place(self, row: int) -> str:
        for piece, file in self.files:
            if row <= file.metadata.num_rows:
                return f"{piece.path}, row {row}"
            row -= file.metadata.num_rows
        return f"{self.name}, row {row}"

    def read(self, wanted: Sequence[str]) -> Iterator[Columns]:
        for batch in self.batches(wanted):
            yield batch.to_pydict(), batch.num_rows

    def batches(self, wanted: Sequence[str]) -> Iterator[Any]:
        """The same as Arrow record batches."""
        for piece, file in self.files:
            written = [name for name in wanted if name in file.schema_arrow.names]
            try:
                for batch in file.iter_batches(ROWS_AT_ONCE, columns=written, use_threads=False):
                    yield _with_named(_times_as_numbers(batch), piece.named, wanted)
            except (pa.ArrowException, OSError, ValueError) as error:
                raise BadInput(f"{piece.path}: cannot be read: {_line(error)}") from None


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
    files = []
    for piece in pieces:
        path = piece.path
        try:
            file = pq.ParquetFile(path)
            file.schema_arrow  # noqa: B018 - a damaged footer may show only here
            if file.metadata.num_rows > max(FREE_ROWS, ROWS_PER_BYTE * path.stat().st_size):
                raise BadInput(f"{path}: claims {file.metadata.num_rows:,} rows in so few bytes; not read")
            files.append((piece, file))
        except (pa.ArrowException, OSError, ValueError) as error:
            raise BadInput(f"{path}: not a readable Parquet file: {_line(error)}") from None
    return ParquetLog(files, name or str(pieces[0].path))


def _columns(piece: Piece, file: Any) -> list[str]:
    written = file.schema_arrow.names
    return [*written, *sorted(name for name in piece.named if name not in written)]


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
