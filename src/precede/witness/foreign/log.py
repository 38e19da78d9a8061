"""Opens a file or a folder of a foreign format as a log: `precede verify LOG --as shiviz`.

Rows are in the order of the file. A folder is read file by file; a node's rows are expected in one of them.
Lines that cannot be used are rejected and counted: rows may be missing then, so an order that is not violated
is unknown.
"""

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from precede.core.errors import BadInput
from precede.files.lines import opened
from precede.files.rejects import Reject, RowCounts
from precede.witness.foreign.clocks import Agreement, Clocks
from precede.witness.foreign.csv_rows import read_csv_rows
from precede.witness.foreign.etcd_watch import read_etcd_watch
from precede.witness.foreign.events import SYNONYMS, Context, Converter, Item
from precede.witness.foreign.shiviz import read_govector, read_shiviz
from precede.witness.foreign.vector_clock_lines import read_vector_clock_lines
from precede.witness.reading.column_names import BROADCAST, DELIVERED, Layout, read_kinds, read_mapping
from precede.witness.reading.logs import BATCH, LARGE_TEXT_BYTES, Columns, Log
from precede.witness.verdict import Duplicates, Order, Verdict
from precede.witness.verify import verify_layout

MOST_FILES: Final = 10_000
_WORDS: Final = {"broadcast": BROADCAST, "delivered": DELIVERED, "deliver": DELIVERED}


class Format(Struct, frozen=True):
    """A foreign format: its converter, the order that is checked by default, and the options that it has."""

    convert: Converter
    order: Order = "causal"
    options: tuple[str, ...] = ()


FORMATS: Final[dict[str, Format]] = {
    "shiviz": Format(read_shiviz, options=("pattern",)),
    "govector": Format(read_govector, options=("pattern",)),
    "etcd-watch": Format(read_etcd_watch, order="total"),
    "jsonl-vector-clock": Format(read_vector_clock_lines, options=("columns",)),
    "csv": Format(read_csv_rows, options=("columns",)),
}


def find_format(name: str) -> Format:
    """Return a format by its name, or the user's converter `module:function`. Raise BadInput for others."""
    if name in FORMATS:
        return FORMATS[name]
    module, colon, function = name.partition(":")
    if not colon:
        names = ", ".join((*FORMATS, "mobiclique"))
        raise BadInput(f"--as {name}: no such format (the formats are: {names}, or module:function)")
    try:
        convert: Converter = getattr(import_module(module), function)
    except (ImportError, AttributeError, ValueError, SyntaxError) as error:
        raise BadInput(f"--as {name}: {error}") from None
    return Format(convert, options=("columns", "pattern"))


class ForeignLog(Log):
    """The files of one foreign format as one log. `counts` and `clocks` are complete when it has been read."""

    names = ("node", "kind", "message")

    def __init__(
        self, path: str, format: str, columns: Mapping[str, str], pattern: str | None, kinds: Mapping[str, int]
    ) -> None:
        self.name = path
        self.format = find_format(format)
        for option, given in (("columns", columns), ("pattern", pattern)):
            if given and option not in self.format.options:
                raise BadInput(f"--{option}: not an option of `--as {format}`")
        self.files = _files(Path(path))
        self.large = sum(file.stat().st_size for file in self.files) >= LARGE_TEXT_BYTES
        self.counts = RowCounts(path, format)
        self.clocks = Clocks([word for word, kind in kinds.items() if kind == BROADCAST])
        self._columns, self._pattern = columns, pattern
        self._lines, self._begins = array("Q"), [0]

    def place(self, row: int) -> str:
        file = bisect_right(self._begins, row - 1) - 1
        return f"{self.files[file]}:{self._lines[row - 1]}" if row <= len(self._lines) else self.name

    def read(self, names: Sequence[str]) -> Iterator[Columns]:
        rows: list[tuple[str, str, str | None]] = []
        for file in self.files:
            for item in self._items(file):
                if isinstance(item, Reject):
                    self._reject(item)
                    continue
                line, event = item
                self._lines.append(line)
                rows.append((event.node, event.kind, event.message))
                self.clocks.add(event)
                if len(rows) == BATCH:
                    yield _columns(rows, names)
                    rows = []
            self._begins.append(len(self._lines))
        self.counts.check()
        if rows:
            yield _columns(rows, names)

    def _items(self, file: Path) -> Iterator[Item]:
        context = Context(self.counts, file.name.split(".")[0] or file.name, self._columns, self._pattern)
        with opened(file) as lines:
            yield from self.format.convert(lines, context)

    def _reject(self, reject: Reject) -> None:
        self.counts.check_rejects()
        if self.truncated is None:
            first = f"the first: line {reject.line}, {reject.reason}"
            self.truncated = f"{self.name}: lines were rejected, so rows may be missing ({first})"


class ForeignVerdict(Struct, frozen=True):
    """The verdict about a foreign log, the counts of its rows, and how its clocks agree with them."""

    verdict: Verdict
    counts: RowCounts
    agreement: Agreement | None


def verify_foreign(
    path: str,
    format: str,
    order: Order | None = None,
    *,
    columns: str | None = None,
    pattern: str | None = None,
    kinds: str | None = None,
    duplicates: Duplicates = "forbid",
    progress: Callable[[int], None] | None = None,
) -> ForeignVerdict:
    """Verify a log of another system. Raise BadInput if it cannot be read."""
    mapping = read_mapping(columns, "--columns", tuple(SYNONYMS))
    words = read_kinds(kinds) if kinds else _WORDS
    log = ForeignLog(path, format, mapping, pattern, words)
    layout = Layout({name: name for name in log.names}, (), words)
    chosen = log.format.order if order is None else order
    verdict, histories = verify_layout(log, layout, chosen, duplicates=duplicates, progress=progress)
    return ForeignVerdict(verdict, log.counts, log.clocks.compare(histories))


def _files(path: Path) -> list[Path]:
    """Return the files of a log: itself, or all files of a folder and its folders, without hidden ones."""
    if not path.is_dir():
        if not path.exists():
            raise BadInput(f"{path}: No such file or directory")
        return [path]
    files = []
    for file in path.rglob("*"):
        if file.is_file() and not any(part.startswith(".") for part in file.relative_to(path).parts):
            files.append(file)
            if len(files) > MOST_FILES:
                raise BadInput(f"{path}: more than {MOST_FILES:,} files")
    if not files:
        raise BadInput(f"{path}: no files in this folder")
    return sorted(files)


def _columns(rows: list[tuple[str, str, str | None]], names: Sequence[str]) -> Columns:
    by_name: dict[str, list[Any]] = dict(zip(ForeignLog.names, map(list, zip(*rows, strict=True)), strict=True))
    return {name: by_name[name] for name in names}, len(rows)
