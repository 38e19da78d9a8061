"""An event log as it streams by: Arrow batches of any encoding into numpy columns with one code per name.

Batches come from a Parquet file or from anybody's iterator. A log of this project writes names as
dictionaries; one that passed through another tool has plain strings: both are read. Codes are given in order of
appearance and hold for the whole log, though every batch brings its own dictionary.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from precede.core.errors import BadInput

Integers: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
Source: TypeAlias = "Path | Iterable[pa.RecordBatch]"
"""A Parquet file by its path, or Arrow batches of one log in any order."""

Codes: TypeAlias = "np.ndarray[Any, np.dtype[np.int32]]"

BATCH_ROWS = 1 << 17


def batches_of(source: Source, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The wanted columns, in batches of bounded size; optional ones may be missing."""
    if isinstance(source, Path):
        yield from _file_batches(source, columns)
    else:
        for batch in source:
            yield batch.select([name for name in columns if name in batch.schema.names])


def _file_batches(path: Path, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    try:
        with pq.ParquetFile(path) as file:
            present = [name for name in columns if name in file.schema_arrow.names]
            yield from file.iter_batches(BATCH_ROWS, columns=present)
    except (OSError, pa.ArrowInvalid) as error:
        raise BadInput(f"{path}: not a Parquet file that can be read ({error})") from error


class Names:
    """One column of names, with codes that hold from batch to batch; -1 is null."""

    def __init__(self, known: Sequence[str] = ()) -> None:
        self.codes: dict[str, int] = {name: code for code, name in enumerate(known)}

    def read(self, batch: pa.RecordBatch, column: str) -> Codes:
        """The column as codes; all -1 when the batch does not have it."""
        if column not in batch.schema.names:
            return np.full(batch.num_rows, -1, np.int32)
        array = batch.column(column)
        if not pa.types.is_dictionary(array.type):
            array = array.dictionary_encode()
        names = array.dictionary.cast(pa.string()).to_pylist()
        table = np.empty(len(names) + 1, np.int32)
        table[-1] = -1
        for position, name in enumerate(names):
            table[position] = self.codes.setdefault(name, len(self.codes))
        return np.asarray(table[integers(array.indices, -1)])

    def names(self) -> list[str]:
        return list(self.codes)


def read_integers(batch: pa.RecordBatch, column: str, missing: int = 0) -> Integers:
    """A column of whole numbers, nulls and an absent column as `missing`."""
    if column not in batch.schema.names:
        return np.full(batch.num_rows, missing, np.int64)
    return integers(batch.column(column), missing)


def integers(array: pa.Array, missing: int) -> Integers:
    """An Arrow array of whole numbers as int64."""
    if array.null_count:
        array = pc.fill_null(array, missing)
    found: Integers = array.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return found


class Growing:
    """Whole numbers gathered batch by batch and joined once."""

    def __init__(self) -> None:
        self.parts: list[Integers] = []

    def add(self, values: Integers) -> None:
        if values.size:
            self.parts.append(values)

    def take(self) -> Integers:
        """Everything gathered; the parts are given back as they are copied."""
        joined = np.empty(sum(part.size for part in self.parts), np.int64)
        end = joined.size
        while self.parts:
            part = self.parts.pop()
            joined[end - part.size : end] = part
            end -= part.size
        return joined
