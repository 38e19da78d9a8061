"""The narrow shuffle: rows become a few packed blobs before Spark moves them.

A blob has the rows of one block that belong to one bucket of orders, with small integers for names and numbers.
Spark moves some blobs of 0.1 to 1 MB instead of millions of rows; it neither decodes nor sorts a row. Rows of
files never enter the JVM at all: tasks read row groups with Arrow.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from precede.lake.integrity import check_file
from precede.pipeline.sessions.tasks import settle_worker
from precede.witness.reading.encode import Array, Pairs
from precede.witness.reading.partitions import Piece
from precede.witness.reading.tables import as_number, open_file, read_row_groups

BLOB_DDL: Final = "bucket int, serial bigint, groups binary, rows binary"
"""A blob as a row: its bucket, its place in the log, the orders in it, and the packed rows of these orders."""

GROUP: Final = "precede_group"
ROWS: Final = "precede_rows"
ROWS_A_BLOCK: Final = 1 << 20
_BLOCKS_A_TASK: Final = 1 << 20
_MOST_BUCKETS: Final = 1 << 16
_SMALLER: Final = (pa.int8(), pa.int16(), pa.int32())


class Unit(Struct, frozen=True):
    """Some consecutive row groups of one file."""

    piece: Piece
    groups: tuple[int, ...]
    rows: int


class Packer:
    """Divides a block of rows into one blob for each bucket.

    `by` are the columns that identify an order, `names` the columns to keep. The bucket of an order is a hash
    of its values, so all tasks agree on it. Within a bucket rows keep their order.
    """

    def __init__(self, by: Sequence[str], names: Sequence[str], buckets: int) -> None:
        self.by, self.buckets = tuple(by), min(buckets, _MOST_BUCKETS)
        self.names = [name for name in names if name not in by]

    def pack(self, block: pa.Table, serial: int) -> Iterator[pa.RecordBatch]:
        """Yield the blobs of a block as rows of `BLOB_DDL`."""
        groups, codes = self._groups(block)
        hashed = np.array([bucket_of(key, self.buckets) for key in _keys(groups)], np.uint16)
        by_bucket = np.argsort(hashed, kind="stable")
        groups = groups.take(pa.array(by_bucket)).append_column(
            ROWS, pa.array(np.bincount(codes, minlength=len(by_bucket))[by_bucket])
        )
        renumbered = np.empty(len(by_bucket), np.int32)
        renumbered[by_bucket] = np.arange(len(by_bucket), dtype=np.int32)
        order = np.argsort(hashed[codes], kind="stable")
        codes = renumbered[codes[order]]
        columns = {name: _taken(shrink(as_number(block[name])), order) for name in self.names}
        buckets, first_group = np.unique(hashed[by_bucket], return_index=True)
        ends = np.append(first_group[1:], len(by_bucket))
        row = 0
        for bucket, low, high in zip(buckets.tolist(), first_group.tolist(), ends.tolist(), strict=True):
            of_bucket = groups.slice(low, high - low)
            count = int(pc.sum(of_bucket[ROWS]).as_py())
            here = {name: column.slice(row, count) for name, column in columns.items()}
            here[GROUP] = shrink(pa.array(codes[row : row + count] - low))
            row += count
            yield _blob_row(bucket, serial, of_bucket, pa.RecordBatch.from_pydict(here))

    def _groups(self, block: pa.Table) -> tuple[pa.Table, Array]:
        """The distinct orders of a block, and the index of each row's order."""
        encoded = [_encoded(block[name]) for name in self.by]
        indices = [column.indices.to_numpy() for column in encoded]
        codes = indices[0]
        places = [np.arange(len(encoded[0].dictionary))]
        for column in indices[1:]:
            pairs = Pairs()
            codes = pairs.column(codes, column)
            before = pairs.first()
            places = [*(place[before] for place in places), pairs.second()]
        values = [
            column.dictionary.take(pa.array(place)) for column, place in zip(encoded, places, strict=True)
        ]
        return pa.table(values, names=list(self.by)), codes


class PackFiles:
    """Reads its share of a log's row groups in a Spark task, and yields blobs. It is called with numbers."""

    def __init__(self, shares: Sequence[Unit], packer: Packer, names: Sequence[str]) -> None:
        self.shares, self.packer, self.names = shares, packer, names

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for numbers in batches:
            for number in numbers.column(0).to_pylist():
                unit = self.shares[number]
                if unit.groups[0] == 0:  # one task checks the file for all
                    check_file(unit.piece.path.absolute())
                file = open_file(unit.piece)
                blocks = joined_blocks(read_row_groups(file, unit.groups, self.names))
                for block_number, block in enumerate(blocks):
                    yield from self.packer.pack(block, number * _BLOCKS_A_TASK + block_number)
        settle_worker()


class PackFrame:
    """Packs the rows of a DataFrame's partition in a Spark task, and yields blobs."""

    def __init__(self, packer: Packer) -> None:
        self.packer = packer

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        first = (0 if context is None else context.partitionId()) * _BLOCKS_A_TASK
        for number, block in enumerate(joined_blocks(_small(batch) for batch in batches)):
            yield from self.packer.pack(block, first + number)
        settle_worker()


def divide(pieces: Sequence[Piece], rows_a_task: int) -> list[Unit]:
    """Divide files into units of whole row groups, of about this many rows."""
    units = []
    for piece in pieces:
        counts = open_file(piece).group_rows
        begin, rows = 0, 0
        for group, count in enumerate(counts):
            rows += count
            if rows >= rows_a_task or group == len(counts) - 1:
                units.append(Unit(piece, tuple(range(begin, group + 1)), rows))
                begin, rows = group + 1, 0
    return units


def shrink(column: Any) -> Any:
    """A column of integers or of a dictionary with the smallest integers that hold it; others as they are."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pa.DictionaryArray):
        return pa.DictionaryArray.from_arrays(shrink(column.indices), column.dictionary)
    if _is_text(column):
        return shrink(column.dictionary_encode())
    if not pa.types.is_integer(column.type):
        return column
    bounds = pc.min_max(column)
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    for smaller in _SMALLER:
        limit = 1 << (smaller.bit_width - 1)
        if low is None or -limit <= low <= high < limit:
            return column.cast(smaller)
    return column


def _is_text(column: Any) -> bool:
    return bool(pa.types.is_string(column.type) or pa.types.is_large_string(column.type))


def _taken(column: Any, order: Array) -> Any:
    if isinstance(column, pa.DictionaryArray):
        return pa.DictionaryArray.from_arrays(_taken(column.indices, order), column.dictionary)
    if column.null_count or not pa.types.is_integer(column.type):
        return column.take(pa.array(order))
    return pa.array(column.to_numpy()[order])


def _encoded(column: Any) -> Any:
    """A column as a dictionary array without null indices; a null is an entry of the dictionary."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pa.DictionaryArray):
        if not column.null_count:
            return column
        column = column.dictionary_decode()
    if pa.types.is_null(column.type):
        column = column.cast(pa.string())
    return column.dictionary_encode(null_encoding="encode")


def bucket_of(key: Sequence[str], buckets: int) -> int:
    return crc32("\0".join(key).encode()) % buckets


def _keys(groups: pa.Table) -> list[tuple[str, ...]]:
    """Return the values of each order as text, so that their hash does not depend on the width of integers."""
    texts = [pc.fill_null(pc.cast(column, pa.string()), "").to_pylist() for column in groups.columns]
    return list(zip(*texts, strict=True))


def joined_blocks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        if held and (rows >= ROWS_A_BLOCK or batch.schema != held[0].schema):
            yield _joined(held)
            held, rows = [], 0
        held.append(batch)
        rows += batch.num_rows
    if held:
        yield _joined(held)


def _joined(batches: Sequence[pa.RecordBatch]) -> pa.Table:
    return pa.Table.from_batches(batches).unify_dictionaries().combine_chunks()


def _small(batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = [column.dictionary_encode() if _is_text(column) else column for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _blob_row(bucket: int, serial: int, groups: pa.Table, rows: pa.RecordBatch) -> pa.RecordBatch:
    columns = [
        pa.array([bucket], pa.int32()),
        pa.array([serial], pa.int64()),
        pa.array([_written(groups.to_batches())], pa.binary()),
        pa.array([_written([rows])], pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, names=["bucket", "serial", "groups", "rows"])


def _written(batches: Sequence[pa.RecordBatch]) -> bytes:
    """Batches as an Arrow stream. Spark compresses what it moves, so the stream is not compressed."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue())
