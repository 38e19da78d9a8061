"""Reads CSV with a header, leniently: a row that cannot be used is rejected and counted, the others are read.

The columns are node, kind, message, and a clock if there is one (`{"a": 1}` or `a:1 b:2`). Other names are
found if they are usual or given with `--columns`.
"""

import csv
from collections.abc import Iterable, Iterator

from precede.core.errors import BadInput
from precede.files.lines import BadRow, data_lines
from precede.witness.foreign.events import Context, Event, Item, Lines, counted, event_of_fields, places


def read_csv_rows(lines: Lines, context: Context) -> Iterator[Item]:
    """Yield the events of a CSV file."""
    rows = data_lines(lines)
    number, line = next(rows, (0, ""))
    separator = max(",;\t|", key=line.count)
    header = [cell.strip() for cell in _cells(line, separator) or []]
    column_places = places(header, context.columns)
    for ours in ("node", "kind"):
        if ours not in column_places:
            there = ", ".join(header)[:200]
            raise BadInput(
                f"{context.counts.file}:{number}: no column {ours!r} (there are: {there}; --columns)"
            )
    for at, text in rows:
        yield from counted(at, context.counts, _event, text, separator, header, context)


def _event(line: str, separator: str, header: list[str], context: Context) -> Iterable[Event]:
    cells = _cells(line, separator)
    if cells is None or len(cells) != len(header):
        raise BadRow("another number of cells than the header has")
    return [event_of_fields(dict(zip(header, map(str.strip, cells), strict=True)), context.columns)]


def _cells(line: str, separator: str) -> list[str] | None:
    try:
        return next(csv.reader([line], delimiter=separator), None)
    except csv.Error:
        return None
