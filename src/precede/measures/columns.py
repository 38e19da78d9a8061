"""Arrow batches of a log as numpy columns, with one integer code per name.

Names may be dictionary-encoded, as this project writes them, or plain strings. Codes are assigned in the order
of appearance and hold for the whole log, although every batch has its own dictionary.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from precede.core.errors import BadInput

Integers: TypeAlias = "np.ndarray[Any, np.dtype[np.integer[Any]]]"
Source: TypeAlias = "Path | Iterable[pa.RecordBatch]"
"""A log: the path of a Parquet file, or Arrow batches in any order."""
Flags: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"

BATCH_ROWS = 1 << 17
_PLAIN: Final = ("int32", "int64")
_SPAN: Final = 1 << 16
_FEW_BITS: Final = 8
"""A bitmap is unpacked unless it has at least so many bits for each bit that is read."""


def spans(size: int, length: int = _SPAN) -> Iterator[slice]:
    """Cut a long column into spans, so that intermediate results stay in the processor's cache.

    Whole columns as intermediate results took a third of the time of `precede simulate` with 1.5 million
    receptions: the operating system clears every new page.
    """
    return (slice(begin, min(begin + length, size)) for begin in range(0, size, length))


def batches_of(source: Source, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the requested columns of a log, batch by batch; a column that the log does not have is left out.

    Raise `BadInput` if a file cannot be read as Parquet.
    """
    if isinstance(source, Path):
        yield from _file_batches(source, columns)
    else:
        for batch in source:
            yield batch.select([name for name in columns if name in batch.schema.names])


def _file_batches(path: Path, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    try:
        metadata = pq.read_metadata(path)
        schema = metadata.schema.to_arrow_schema()
        present = [name for name in columns if name in schema.names]
        texts = [name for name in present if pa.types.is_string(schema.field(name).type)]
        with pq.ParquetFile(path, metadata=metadata, read_dictionary=texts) as file:
            # threads pay from some batches on: they cost a tiny log more than reading it
            yield from file.iter_batches(
                BATCH_ROWS, columns=present, use_threads=metadata.num_rows > BATCH_ROWS
            )
    except (OSError, pa.ArrowInvalid) as error:
        raise BadInput(f"{path}: not a readable Parquet file ({error})") from error


def joined(size: int, parts: Iterable[Integers]) -> Integers:
    """Join the parts of a column, which has at most so many rows."""
    column: Integers = np.empty(size, np.int64)
    end = 0
    for part in parts:
        column[end : end + part.size] = part
        end += part.size
    return column[:end]


class Names:
    """The codes of the names in one column, the same in all batches; the code of null is -1."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        self.codes: dict[str, int] = {name: code for code, name in enumerate(names)}
        self._dictionary: pa.Array | None = None
        self._table: Integers = np.empty(0, np.int32)
        self._in_order = False  # is the code of each name its place in the dictionary?

    def read(self, batch: pa.RecordBatch, column: str, rows: Integers | None = None) -> Integers:
        """Return a batch's column, or some rows of it, as codes; -1 if the batch lacks it.

        New names get the next codes.
        """
        if column not in batch.schema.names:
            return np.full(batch.num_rows if rows is None else rows.size, -1, np.int32)
        array = batch.column(column)
        if not pa.types.is_dictionary(array.type):
            array = array.dictionary_encode()
        if self._dictionary is None or not _is_same(self._dictionary, array.dictionary):
            self._dictionary = array.dictionary
            self._table = self._codes_of(array.dictionary)
            self._in_order = bool((self._table[:-1] == np.arange(self._table.size - 1)).all())
        places = integers(array.indices, -1, rows)
        return places.astype(np.int32, copy=False) if self._in_order else np.asarray(self._table.take(places))

    def _codes_of(self, dictionary: pa.Array) -> Integers:
        """Return the code of each name in a dictionary, and -1 as the last element."""
        texts = dictionary if pa.types.is_string(dictionary.type) else dictionary.cast(pa.string())
        names = texts.to_pylist()
        table = np.empty(len(names) + 1, np.int32)
        table[-1] = -1
        for position, name in enumerate(names):
            table[position] = self.codes.setdefault(name, len(self.codes))
        return table

    def names(self) -> list[str]:
        return list(self.codes)


def _is_same(one: pa.Array, other: pa.Array) -> bool:
    """Return whether two arrays share their memory. The blocks of one recorder share the names of nodes."""
    if len(one) != len(other) or one.type != other.type or one.offset != other.offset:
        return False
    addresses = [[buffer and buffer.address for buffer in array.buffers()] for array in (one, other)]
    return addresses[0] == addresses[1]


def read_integers(
    batch: pa.RecordBatch, column: str, missing: int = 0, rows: Integers | None = None
) -> Integers:
    """Return a batch's column of integers, or some rows of it; a null or an absent column is `missing`."""
    if column not in batch.schema.names:
        return np.full(batch.num_rows if rows is None else rows.size, missing, np.int64)
    return integers(batch.column(column), missing, rows).astype(np.int64, copy=False)


def integers(array: pa.Array, missing: int, rows: Integers | None = None) -> Integers:
    """Return an Arrow array of integers, or some rows of it; nulls become `missing`."""
    if str(array.type) in _PLAIN:  # without Arrow's own functions, which load pandas (`eventlog.arrays`)
        present, data = array.buffers()
        all_rows = slice(array.offset, array.offset + len(array))
        plain = np.frombuffer(data, str(array.type))[all_rows] if len(array) else np.empty(0, np.int64)
        values = plain if rows is None else plain.take(rows)
        if not array.null_count:
            return values
        bitmap = np.frombuffer(present, np.uint8)
        if rows is None or len(array) < _FEW_BITS * rows.size:
            bits = np.unpackbits(bitmap, bitorder="little")[all_rows]
            known = (bits if rows is None else bits.take(rows)).view(np.bool_)
        else:
            places = rows + array.offset
            known = (bitmap.take(places >> 3) >> (places & 7).astype(np.uint8) & 1).view(np.bool_)
        return values if known.all() else np.where(known, values, values.dtype.type(missing))
    if array.null_count:
        array = array.fill_null(missing)
    all_values: Integers = array.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return all_values if rows is None else all_values[rows]


def table_integers(table: pa.Table, column: str) -> Integers:
    return integers(table[column].combine_chunks(), 0).astype(np.int64, copy=False)


def table_codes(table: pa.Table, column: str) -> Integers:
    """Return the codes of a dictionary column, -1 for null; kinds and numbered nodes keep their own order."""
    codes = integers(table[column].unify_dictionaries().combine_chunks().indices, -1)
    return codes.astype(np.int64, copy=False)


class Growing:
    """Integers that are collected batch by batch and joined once."""

    def __init__(self, dtype: type[np.integer[Any]] = np.int64) -> None:
        self.parts: list[Integers] = []
        self._dtype = dtype

    def add(self, values: Integers) -> None:
        if values.size:
            self.parts.append(values)

    def joined(self) -> Integers:
        return np.concatenate([np.empty(0, self._dtype), *self.parts])

    def take(self) -> Integers:
        """Return all integers as one array, and empty the collection, part by part to save memory."""
        joined: Integers = np.empty(sum(part.size for part in self.parts), self._dtype)
        end = joined.size
        while self.parts:
            part = self.parts.pop()
            joined[end - part.size : end] = part
            end -= part.size
        return joined
