"""Parquet files, Arrow tables and pandas frames as logs. Needs pyarrow."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from precede.core.errors import BadInput
from precede.eventlog.python_values import python_values
from precede.witness.reading.logs import LARGE_ROWS, Columns, Log
from precede.witness.reading.partitions import Piece

ROWS_AT_ONCE: Final = 1 << 16
FREE_ROWS: Final = 10_000_000
ROWS_PER_BYTE: Final = 20
"""The most rows per byte of a file with more than `FREE_ROWS` rows. Dense logs have about one."""


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

    def read(self, names: Sequence[str]) -> Iterator[Columns]:
        for batch in self.batches(names):
            yield _columns(batch)

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Yield the rows as Arrow record batches with these columns. It can be called several times."""
        for batch in self.table.select(list(names)).to_batches(max_chunksize=ROWS_AT_ONCE):
            yield _times_as_numbers(batch)


class File(Struct, frozen=True):
    """The columns and rows of a Parquet file, from its footer."""

    piece: Piece
    written: list[str]
    texts: frozenset[str]
    group_rows: tuple[int, ...]

    @property
    def rows(self) -> int:
        return sum(self.group_rows)

    @property
    def names(self) -> list[str]:
        """The columns of the file, then those of its folder names."""
        return [*self.written, *sorted(name for name in self.piece.named if name not in self.written)]


class ParquetLog(Log):
    """One Parquet file or many, read in batches, only the requested columns; one file is open at a time."""

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
                raise BadInput(f"{file.piece.path}: the columns differ from those of {files[0].piece.path}")

    def place(self, row: int) -> str:
        for file in self.files:
            if row <= file.rows:
                return f"{file.piece.path}, row {row}"
            row -= file.rows
        return f"{self.name}, row {row}"

    def read(self, names: Sequence[str]) -> Iterator[Columns]:
        for batch in self.batches(names):
            yield _columns(batch)

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Yield the rows as Arrow record batches with these columns. It can be called several times."""
        for file in self.files:
            yield from read_row_groups(file, range(len(file.group_rows)), names)


def table_log(source: Any) -> Log:
    """Return the log in an Arrow table, record batch or reader, or in a pandas frame."""
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


def read_row_groups(file: File, groups: Sequence[int], names: Sequence[str]) -> Iterator[Any]:
    """Yield the rows of some row groups of a file as Arrow record batches with these columns."""
    path, written = file.piece.path, [name for name in names if name in file.written]
    texts = [name for name in written if name in file.texts]
    try:
        with pq.ParquetFile(path, read_dictionary=texts, page_checksum_verification=True) as opened:
            for batch in opened.iter_batches(ROWS_AT_ONCE, list(groups), written, use_threads=False):
                yield _with_named(_times_as_numbers(batch), file.piece.named, names)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise BadInput(f"{path}: cannot be read: {_line(error)}") from None


def parquet_log(pieces: Sequence[Piece], name: str | None = None) -> ParquetLog:
    """Open Parquet files that have the same columns as one log, which error messages call `name`."""
    return ParquetLog([open_file(piece) for piece in pieces], name or str(pieces[0].path))


def open_file(piece: Piece) -> File:
    """Read the footer of a Parquet file. Raises BadInput if it is damaged or claims too many rows."""
    path = piece.path
    try:
        with pq.ParquetFile(path) as opened:
            schema = opened.schema_arrow  # a damaged footer may show only here
            metadata = opened.metadata
            rows = tuple(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
        most = max(FREE_ROWS, ROWS_PER_BYTE * path.stat().st_size)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise BadInput(f"{path}: not a readable Parquet file: {_line(error)}") from None
    if metadata.num_rows > most:
        raise BadInput(f"{path}: claims {metadata.num_rows:,} rows, too many for its size; not read")
    texts = frozenset(field.name for field in schema if pa.types.is_string(field.type))
    return File(piece, schema.names, texts, rows)


def _columns(batch: Any) -> Columns:
    values = [python_values(column) for column in batch.columns]
    return dict(zip(batch.schema.names, values, strict=True)), batch.num_rows


def _with_named(batch: Any, named: Mapping[str, str | None], names: Sequence[str]) -> Any:
    """Return a batch with the columns of its folder names, the same value in every row."""
    if batch.num_columns == len(names):
        return batch
    in_file = dict(zip(batch.schema.names, batch.columns, strict=True))
    columns = [
        in_file[name] if name in in_file else pa.repeat(pa.scalar(named[name], pa.string()), len(batch))
        for name in names
    ]
    return pa.RecordBatch.from_arrays(columns, names=list(names))


def _times_as_numbers(batch: Any) -> Any:
    """Replace instants and dates by the integers that store them, so that they can order rows."""
    if not any(pa.types.is_temporal(field.type) for field in batch.schema):
        return batch
    return pa.RecordBatch.from_arrays([as_number(column) for column in batch.columns], names=batch.schema.names)


def as_number(column: Any) -> Any:
    """A column of instants or dates as the integers that store them; any other column as it is."""
    if not pa.types.is_temporal(column.type):
        return column
    width = pa.int32() if column.type.bit_width == 32 else pa.int64()
    return column.cast(width).cast(pa.int64())


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())
