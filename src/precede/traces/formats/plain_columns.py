"""Parses blocks of tables by column with pyarrow: a tenth of the time of reading them row by row.

A block is parsed only where that gives the same values as the row reader: plain lines (`NumberedLines`), all of
one width, single blanks if blanks separate the fields, names that need no change, numbers in the usual
spelling. Else the reader reads its lines one by one, and names line and cause of every mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

from precede.core.instants import SECOND
from precede.files import lines as files
from precede.files.lines import BadRow, NumberedLines, name_of
from precede.traces.intervals import Ints
from precede.traces.lines import MAX_SECONDS, MOST_METRES

Floats: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"
ROWS_BETWEEN: Final = 10_000
"""So many lines are read one by one before the next block is tried."""
_Rows = TypeVar("_Rows")
MOST_COLUMNS: Final = 256
"""A parser by column needs memory for every column, also for those of a file that is nothing but commas."""


class NameColumn(NamedTuple):
    """A column of names: the different ones, and the place of each row's name among them."""

    names: list[str]
    codes: Ints

    def each(self) -> Iterator[str]:
        """Return an iterator over the name of every row."""
        return map(self.names.__getitem__, self.codes.tolist())


class PlainBlock(NamedTuple):
    """The columns of some lines: names, then numbers. `first` is the number of the first line."""

    first: int
    names: list[NameColumn]
    numbers: list[Floats]
    data: bytes

    @property
    def rows(self) -> int:
        return len(self.names[0].codes)

    @property
    def lines(self) -> range:
        return range(self.first, self.first + self.rows)


class PlainBlocks(Generic[_Rows]):
    """Takes blocks from the lines of a file. `names` and `numbers` are the places of our columns.

    `rows_of` returns the reader's rows of a block; None or False if the reader has to look at every line.
    `separator` is a comma or a blank (`blank_in`). If lines have quotes, `table` returns those lines of a block
    that form a table, without quotes; None if the block is irregular.
    """

    def __init__(
        self,
        lines: object,
        width: int,
        names: Sequence[int],
        numbers: Sequence[int],
        rows_of: Callable[[PlainBlock], _Rows | None],
        separator: str = ",",
        table: Callable[[bytes], bytes | None] | None = None,
    ) -> None:
        places = {*names, *numbers}
        is_usual = len(places) == len(names) + len(numbers) and max(places) < width <= MOST_COLUMNS
        self._lines = lines if isinstance(lines, NumberedLines) and is_usual else None
        self._width, self._names, self._numbers = width, names, numbers
        self._rows_of, self._separator, self._table = rows_of, separator, table
        self._next_line = 0
        self._bytes = files.PLAIN_BYTES

    def after(self, line: int) -> Iterator[_Rows]:
        """Return the rows of the regular blocks that follow a line. Most calls try none (`ROWS_BETWEEN`)."""
        return iter(()) if self._lines is None or line < self._next_line else self._blocks(self._lines, line)

    def _blocks(self, lines: NumberedLines, line: int) -> Iterator[_Rows]:
        """Take block after block. One bad line makes a block irregular, so smaller ones are tried then."""
        least = 2 * files.LEAST_PLAIN_BYTES
        while True:
            self._next_line = line + ROWS_BETWEEN
            taken = lines.plain_block(self._bytes, quotes=self._table is not None)
            rows = None
            if taken is not None:
                first, data = taken
                rows = self._rows_in(first, data)
                if not rows:
                    lines.put_back(data)
            if rows:
                yield rows
                line = first + data.count(b"\n") - 1
                self._bytes = min(2 * self._bytes, files.PLAIN_BYTES)
            elif self._bytes > least:
                self._bytes = max(self._bytes // 4, least)
            else:
                return

    def _rows_in(self, first: int, data: bytes) -> _Rows | None:
        table = data if self._table is None else self._table(data)
        columns = None if table is None else self._parsed(table)
        return None if columns is None else self._rows_of(PlainBlock(first, *columns, data))

    def _parsed(self, block: bytes) -> tuple[list[NameColumn], list[Floats]] | None:
        import pyarrow as pa
        import pyarrow.csv as pacsv

        if self._separator != "," and not _has_single_blanks(block, self._separator.encode()):
            return None
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
                pacsv.ParseOptions(delimiter=self._separator, quote_char=False, ignore_empty_lines=False),
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


def blank_in(text: str) -> str:
    """Return the blank that separates the words of a line."""
    return "\t" if "\t" in text else " "


def _has_single_blanks(block: bytes, blank: bytes) -> bool:
    """Does one such blank separate all words, and is there no other blank or control character?"""
    is_blank = np.frombuffer(block, np.uint8) <= ord(" ")
    return (
        len(block) > 0
        and not is_blank[0]
        and not (is_blank[1:] & is_blank[:-1]).any()
        and np.count_nonzero(is_blank) == block.count(blank) + block.count(b"\n")
    )


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


def are_coordinates(*columns: Floats) -> bool:
    """Are all of these numbers within the range of `lines.coordinate`?"""
    return all(bool((np.abs(column) <= MOST_METRES).all()) for column in columns)
