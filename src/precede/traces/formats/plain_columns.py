"""Parses blocks of CSV by column with pyarrow: a tenth of the time of reading them row by row.

A block is parsed only where that gives the same values as the row reader: plain lines (`NumberedLines`), all of
one width, names that need no change, numbers in the usual spelling. Else the reader reads its lines one by
one, and names line and cause of every mistake.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from precede.core.instants import SECOND
from precede.files.lines import BadRow, NumberedLines, name_of
from precede.traces.intervals import Ints
from precede.traces.lines import MAX_SECONDS

Floats: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"
ROWS_BETWEEN: Final = 10_000
"""So many lines are read one by one before the next block is tried."""
MOST_COLUMNS: Final = 256
"""A parser by column needs memory for every column, also for those of a file that is nothing but commas."""


class NameColumn(NamedTuple):
    """A column of names: the different ones, and the place of each row's name among them."""

    names: list[str]
    codes: Ints


class PlainBlock(NamedTuple):
    """The columns of some lines: names, then numbers. `first` is the number of the first line."""

    first: int
    names: list[NameColumn]
    numbers: list[Floats]
    data: bytes

    @property
    def rows(self) -> int:
        return len(self.names[0].codes)


class PlainBlocks:
    """Takes blocks from the lines of a file. `names` and `numbers` are the places of our columns."""

    def __init__(self, lines: object, width: int, names: Sequence[int], numbers: Sequence[int]) -> None:
        is_usual = len({*names, *numbers}) == len(names) + len(numbers) and width <= MOST_COLUMNS
        self._lines = lines if isinstance(lines, NumberedLines) and is_usual else None
        self._width, self._names, self._numbers = width, names, numbers
        self._next_line = 0

    def after(self, line: int) -> Iterator[PlainBlock]:
        """Yield blocks that follow a line, as long as they are plain. Put back a block that is not used."""
        if self._lines is None or line < self._next_line:
            return
        self._next_line = line + ROWS_BETWEEN
        while taken := self._lines.plain_block():
            self._next_line = taken[0] + ROWS_BETWEEN
            columns = self._parsed(taken[1])
            if columns is None:
                self._lines.put_back(taken[1])
                return
            yield PlainBlock(taken[0], *columns, taken[1])

    def put_back(self, block: PlainBlock) -> None:
        assert self._lines is not None
        self._lines.put_back(block.data)

    def _parsed(self, block: bytes) -> tuple[list[NameColumn], list[Floats]] | None:
        import pyarrow as pa
        import pyarrow.csv as pacsv

        name_type = pa.dictionary(pa.int32(), pa.string())
        kinds = {f"f{place}": name_type for place in self._names}
        kinds |= {f"f{place}": pa.float64() for place in self._numbers}
        try:
            table = pacsv.read_csv(
                pa.BufferReader(block),
                pacsv.ReadOptions(
                    use_threads=False,
                    block_size=len(block),
                    column_names=[f"f{place}" for place in range(self._width)],
                ),
                pacsv.ParseOptions(quote_char=False, ignore_empty_lines=False),
                pacsv.ConvertOptions(column_types=kinds, include_columns=list(kinds), null_values=[]),
            )
        except pa.ArrowInvalid:
            return None
        if table.num_rows != block.count(b"\n"):
            return None
        columns = [table[name].combine_chunks() for name in kinds]
        columns = [column.chunk(0) if isinstance(column, pa.ChunkedArray) else column for column in columns]
        names = [_names(column) for column in columns[: len(self._names)]]
        numbers = [_values(column, np.float64) for column in columns[len(self._names) :]]
        if any(name is None for name in names) or not all(np.isfinite(each).all() for each in numbers):
            return None
        return [name for name in names if name is not None], numbers


def _names(column: Any) -> NameColumn | None:
    """Return a column of names; None if a name needs a change or cannot be used."""
    names = column.dictionary.to_pylist()
    try:
        if all(name_of(name) == name.strip() for name in names):
            return NameColumn(names, _values(column.indices, np.int32).astype(np.int64))
    except BadRow:
        pass
    return None


def _values(column: Any, kind: type) -> Any:
    """Return the numbers of an Arrow array; its own method loads pandas."""
    assert not column.null_count
    return np.frombuffer(column.buffers()[1], kind)[column.offset : column.offset + len(column)]


def instants_of(seconds: Floats) -> Ints | None:
    """Return numbers of seconds as instants, as `lines.instant` does; None if one is out of range."""
    if (np.abs(seconds) > MAX_SECONDS).any():
        return None
    return np.rint(seconds * SECOND).astype(np.int64)
