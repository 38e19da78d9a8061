"""Opens logs: CSV, JSON lines, Parquet, a run's directory, Arrow and pandas tables, rows as mappings.

Text is read with the standard library, row by row and in bounded memory: the length of a line and the growth of
a compressed file are limited. Parquet and tables need pyarrow. A text file whose last row is cut off is read up
to that row, and `truncated` says so. Any other row that cannot be read raises BadInput, in one line that names
the file, the row and the cause.
"""

import csv
import gzip
import io
import sys
import zlib
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from precede.core.errors import BadInput
from precede.files.inputs import Counted, EmptyLines, Unpacked, open_regular
from precede.witness.reading.partitions import Piece, pieces_in
from precede.witness.reading.streams import LineStream

Columns: TypeAlias = tuple[Mapping[str, Sequence[Any]], int]
"""Some rows: their columns by name, and the number of rows."""

BATCH: Final = 8192
LARGE_ROWS: Final = 100_000
LARGE_TEXT_BYTES: Final = 6_000_000
MAX_LINE: Final = 1 << 24
_CELLS_AT_ONCE: Final = 1 << 20
_LOOK_AHEAD: Final = 1000
_PARQUET: Final = b"PAR1"
_NULL_WORDS: Final = ("<NA>", "NaT")
_GZIP: Final = b"\x1f\x8b"
OPTIONAL: Final = ("incarnation", "message_incarnation", "destinations", "deadline_us", "clock_us")


class Log(ABC):
    """A log that is open for reading.

    `name` appears in error messages, `names` are its columns. `promised` is the order that run.json promises,
    `members` are those that it lists for agreement. `truncated` describes where the log is cut off. `large`
    logs are read with numpy and numba; `expected` is the number of rows, as far as it is known.
    `broadcasts_elsewhere` and `deadlines_elsewhere`: when this log is a part of a larger one, the whole has
    broadcasts or deadlines. `known_gaps` are the gaps of the whole log (node, incarnation, last and next step),
    when this log has only a part of the rows of some processes.
    """

    name: str
    names: Sequence[str]
    promised: str | None = None
    members: tuple[str, ...] = ()
    truncated: str | None = None
    large = False
    expected = 1 << 16
    broadcasts_elsewhere = False
    deadlines_elsewhere = False
    known_gaps: Sequence[tuple[str, int, int | None, int]] | None = None

    @abstractmethod
    def read(self, names: Sequence[str]) -> Iterator[Columns]:
        """Yield the columns with these names, some rows at a time, as Python values; an empty cell is None."""

    def place(self, row: int) -> str:
        """Return where a row (from 1) is in the file, for an error message."""
        return f"{self.name}, row {row}"

    def has_values(self, column: str) -> bool:
        """Return whether the log has this column; for JSON lines that is certain only after reading all."""
        return column in self.names


def open_log(source: Any) -> Log:
    """Open a path, `-` (standard input), a run's directory, a table, or rows as mappings."""
    if isinstance(source, Log):
        return source
    if isinstance(source, (str, PathLike)):
        return _open_path(str(source))
    if hasattr(source, "to_arrow"):
        source = source.to_arrow()
    if _from(source, "pandas", "pyarrow"):
        from precede.witness.reading.tables import table_log

        return table_log(source)
    if isinstance(source, Iterable) and not isinstance(source, (bytes, Mapping)):
        return RowsLog(source)
    raise BadInput(f"a {type(source).__name__} is not a log: give a path, a table, or rows as mappings")


class TextLog(Log):
    """A log in lines of text (CSV, JSON lines), whose last line may be cut off."""

    def __init__(self, name: str, stream: Any, large: bool) -> None:
        self.name = name
        self.large = large
        self.stream = stream
        self.line = 0
        self.cut = False
        self._lines = self._read_lines()

    def _read_lines(self) -> Iterator[str]:
        text = io.TextIOWrapper(self.stream, encoding="utf-8-sig", newline="")
        empty = EmptyLines(self.name)
        try:
            while line := text.readline(MAX_LINE + 1):
                self.line += 1
                if len(line) > MAX_LINE:
                    raise BadInput(f"{self.name}, line {self.line}: more than {MAX_LINE:,} characters")
                self.cut = not line.endswith(("\n", "\r"))
                if line.isspace():
                    empty.add(self.line)
                yield line
        except UnicodeDecodeError as error:
            raise BadInput(f"{self.name}, line {self.line + 1}: not UTF-8 text ({error.reason})") from None
        except EOFError:
            self.cut = True
            self.truncated = f"{self.name} is truncated after line {self.line}: the gzip stream ends too early"
        except (zlib.error, gzip.BadGzipFile) as error:
            raise BadInput(f"{self.name}, after line {self.line}: damaged gzip data ({error})") from None
        except csv.Error as error:
            raise BadInput(f"{self.name}, line {self.line}: {error}") from None

    def _last_row_cut(self, row: int) -> None:
        self.truncated = f"{self.place(row)}: the last row is cut, so the log is truncated"


class CsvLog(TextLog):
    """A CSV file with a header; the separator is a comma, semicolon, tab or bar."""

    def __init__(self, name: str, stream: Any, large: bool) -> None:
        super().__init__(name, stream, large)
        header = next((line for line in self._lines if line.strip()), None)
        if header is None:
            raise BadInput(f"{name}: is empty")
        self._separator = separator = max(",;\t|", key=header.count)
        self._offsets: list[tuple[int, int]] = []
        self._count = 0
        self._reader = csv.reader(self._chain(header), delimiter=separator)
        try:
            self.names = [cell.strip() for cell in next(self._reader)]
        except csv.Error as error:
            raise BadInput(f"{name}, line {self.line}: {error}") from None
        if len(set(self.names)) < len(self.names):
            doubled = next(column for column, count in Counter(self.names).items() if count > 1)
            raise BadInput(f"{name}: column {doubled[:40]!r} occurs twice")

    def _chain(self, header: str) -> Iterator[str]:
        yield header
        yield from self._lines

    def place(self, row: int) -> str:
        index = bisect_right(self._offsets, (row, sys.maxsize)) - 1
        line = row + self._offsets[index][1] if index >= 0 else row + 1
        return f"{self.name}, row {row} (line {line})"

    def read(self, names: Sequence[str]) -> Iterator[Columns]:
        places = [self.names.index(name) for name in names]
        rows: list[list[str]] = []
        most = max(1, min(BATCH, _CELLS_AT_ONCE // len(self.names)))
        for row in self._rows():
            rows.append(row)
            if len(rows) == most:
                yield _transpose(rows, names, places)
                rows = []
        if rows:
            yield _transpose(rows, names, places)

    def text_batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Yield the regular blocks of a large file as Arrow text batches; `read` gives the rows after them."""
        from precede.witness.reading.csv_blocks import batches

        if not isinstance(self.stream, LineStream):
            return
        for batch, rows in batches(self.stream, self.names, names, self._separator):
            if not self._offsets:
                self._offsets.append((1, self.line))
            self._count += rows
            self.line += rows
            yield batch

    def _rows(self) -> Iterator[list[str]]:
        width, count = len(self.names), self._count
        if isinstance(self.stream, LineStream):
            self.stream.by_line = False
        while True:
            try:
                row = next(self._reader, None)
            except csv.Error as error:
                raise BadInput(f"{self.name}, line {self.line}: {error}") from None
            if row is None:
                return
            if not row:
                continue
            count += 1
            offset = self.line - count
            if not self._offsets or self._offsets[-1][1] != offset:
                self._offsets.append((count, offset))
            if len(row) == width:
                yield row
            elif self.cut and len(row) < width:
                self._last_row_cut(count)
                return
            else:
                raise BadInput(f"{self.place(count)}: {len(row)} cells, but the header has {width}")


class JsonLog(TextLog):
    """A file with one JSON object per line. Fields may differ from row to row; a missing one is null."""

    def __init__(self, name: str, stream: Any, large: bool) -> None:
        super().__init__(name, stream, large)
        self._count = 0
        self._offsets: list[tuple[int, int]] = []
        self._decoder = msgspec.json.Decoder(dict[str, Any])
        self._ahead: list[dict[str, Any]] = []
        self._source = self._objects()
        keys: dict[str, None] = {}
        for row in self._source:
            self._ahead.append(row)
            keys.update(dict.fromkeys(row))
            if len(self._ahead) == _LOOK_AHEAD:
                break
        if not self._ahead and self.truncated is None:
            raise BadInput(f"{name}: is empty")
        self._fields = set(keys)
        self.names = [*keys, *(column for column in OPTIONAL if column not in keys)]

    def has_values(self, column: str) -> bool:
        return column in self._fields

    def _objects(self) -> Iterator[dict[str, Any]]:
        for line in self._lines:
            if not line.strip():
                continue
            self._count += 1
            try:
                yield self._decoder.decode(line)
            except RecursionError:
                raise BadInput(
                    f"{self.name}, row {self._count} (line {self.line}): nested too deeply"
                ) from None
            except msgspec.DecodeError as error:
                if self.cut:
                    self._last_row_cut(self._count)
                    return
                cause = str(error).removesuffix(" - at `$`")
                raise BadInput(f"{self.name}, row {self._count} (line {self.line}): {cause}") from None

    def read(self, names: Sequence[str]) -> Iterator[Columns]:
        rows, self._ahead = self._ahead, []
        while rows:
            for row in rows:
                self._fields.update(row)
            yield {name: [_cell(row.get(name)) for row in rows] for name in names}, len(rows)
            rows = list(islice(self._source, BATCH))


class RowsLog(Log):
    """A log in memory, each row a mapping."""

    def __init__(self, rows: Iterable[Any]) -> None:
        self.name = "the log"
        self.rows: list[Mapping[str, Any]] = list(rows)
        for number, row in enumerate(self.rows, 1):
            if not isinstance(row, Mapping):
                raise BadInput(f"{self.place(number)}: a {type(row).__name__} is not a row (give mappings)")
        if not self.rows:
            raise BadInput(f"{self.name}: is empty")
        self.names = list(dict.fromkeys(name for row in self.rows for name in row))
        self.large = len(self.rows) >= LARGE_ROWS

    def read(self, names: Sequence[str]) -> Iterator[Columns]:
        for first in range(0, len(self.rows), BATCH):
            rows = self.rows[first : first + BATCH]
            yield {name: [_cell(row.get(name)) for row in rows] for name in names}, len(rows)


def _open_path(path: str) -> Log:
    try:
        if path == "-":
            return _open_stream("standard input", sys.stdin.buffer, large=False)
        where = Path(path)
        if where.is_dir():
            return _open_directory(where)
        stream = open_regular(where)
        if stream.peek(4)[:4] == _PARQUET:
            stream.close()
            from precede.witness.reading.tables import parquet_log

            return parquet_log([Piece(where)])
        return _open_stream(path, stream, where.stat().st_size >= LARGE_TEXT_BYTES)
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}") from None


def _open_stream(name: str, stream: Any, large: bool) -> Log:
    if stream.peek(2)[:2] == _GZIP:
        packed = Counted(stream)
        unpacked = gzip.GzipFile(fileobj=io.BufferedReader(packed))
        stream = io.BufferedReader(Unpacked(name, packed, unpacked))
    try:
        head = stream.peek(4096)[:4096]
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BadInput(f"{name}: damaged gzip data ({error})") from None
    if name.endswith(".parquet"):
        raise BadInput(f"{name}: not a Parquet file (it is empty, cut or something else)")
    if not head.strip():
        raise BadInput(f"{name}: is empty")
    if b"\x00" in head:
        raise BadInput(f"{name}: neither CSV, JSON lines nor Parquet")
    first = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if first == b"[":
        raise BadInput(f"{name}: a JSON array; write one object per line (JSON lines)")
    if first == b"{":
        return JsonLog(name, stream, large)
    return CsvLog(name, LineStream(stream) if large else stream, large)


def _open_directory(where: Path) -> Log:
    """Open a run (events.parquet, and run.json with the order it promises) or a folder of Parquet files."""
    from precede.witness.reading.tables import parquet_log

    if (where / "events.parquet").is_file():
        log = parquet_log([Piece(where / "events.parquet")])
        log.promised = read_promise(where / "run.json")
        log.members = read_members(where / "run.json")
        return log
    pieces = pieces_in(where)
    if not pieces:
        raise BadInput(f"{where}: no events.parquet, nor any other Parquet file, in this directory")
    return parquet_log(pieces, str(where))


def read_promise(path: Path) -> str | None:
    """Return the order that run.json promises; None without a file or an order in it."""
    order = _describe(path).get("order")
    return order if isinstance(order, str) else None


def read_members(path: Path) -> tuple[str, ...]:
    """Read the members that run.json lists, for the check of agreement; empty without a list."""
    members = _describe(path).get("members", ())
    if not isinstance(members, (list, tuple)) or not all(isinstance(name, str) for name in members):
        raise BadInput(f"{path}: members: expected a list of names, got {members!r}")
    return tuple(members)


def _describe(path: Path) -> dict[str, Any]:
    """Read run.json as a dictionary; it is empty without the file. Raises BadInput if it is no JSON object."""
    if not path.is_file():
        return {}
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise BadInput(f"{path}: {error}") from None


def _transpose(rows: list[list[str]], names: Sequence[str], places: Sequence[int]) -> Columns:
    return {name: [row[place] or None for row in rows] for name, place in zip(names, places, strict=True)}, len(
        rows
    )


def _cell(value: Any) -> Any:
    """Return a cell as a Python value: None if empty, NaN, NA or NaT; a list for a numpy array."""
    if value is None or type(value) is int or type(value) is str:
        return None if value == "" else value
    if _from(value, "numpy", "pandas"):
        value = value.tolist() if hasattr(value, "tolist") else None if str(value) in _NULL_WORDS else value
    return None if value == "" or value != value else value  # noqa: PLR0124 - only NaN differs from itself


def _from(value: Any, *packages: str) -> bool:
    return type(value).__module__.partition(".")[0] in packages
