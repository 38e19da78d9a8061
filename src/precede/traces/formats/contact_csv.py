"""Reads contacts (`a,b,start,end` in seconds) and presence (`node,enter,leave`) in CSV, with or without header.

Rows may be in any order; `contact_rows` says which are rejected and which are merged.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from precede.core.errors import BadInput
from precede.files.lines import BadRow, data_lines, fields_of_csv, name_of
from precede.files.rejects import Reject
from precede.traces.formats.contact_rows import Cleaning, ContactRows
from precede.traces.formats.plain_columns import PlainBlocks
from precede.traces.lines import instant
from precede.traces.records import Nodes, Row, Summary

_COLUMNS: Final = ("a", "b", "start", "end")


def read_contact_csv(
    lines: Iterable[tuple[int, str]],
    summary: Summary,
    columns: Mapping[str, str] | None = None,
    cleaning: Cleaning | None = None,
) -> Iterator[Row]:
    """Yields the rejects, then the contacts, sorted. `columns` maps our names to the header's."""
    contacts = ContactRows(summary, cleaning)
    yield from add_contact_csv(lines, summary, contacts, columns)
    yield from contacts.finish()


def add_contact_csv(
    lines: Iterable[tuple[int, str]],
    summary: Summary,
    contacts: ContactRows,
    columns: Mapping[str, str] | None = None,
) -> Iterator[Reject]:
    """Adds the rows of a file to `contacts`, and yields the rejects."""
    a, b, start, end = 0, 1, 2, 3
    most = 3
    blocks = None
    for line, text in data_lines(lines):
        values = fields_of_csv(text)
        if blocks is None:
            header = _header(values, columns, summary, line)
            a, b, start, end = header or (a, b, start, end)
            most = max(a, b, start, end)
            blocks = PlainBlocks(lines, len(values), (a, b), (start, end), contacts.add_block)
            if header:
                continue
        summary.rows_read += 1
        try:
            if len(values) <= most:
                raise BadRow("too few fields")
            contacts.add(line, values[a], values[b], values[start], values[end])
        except BadRow as error:
            yield summary.reject(line, str(error))
        for _ in blocks.after(line):
            pass  # the rows are added


def read_presence_csv(
    lines: Iterable[tuple[int, str]], summary: Summary
) -> Iterator[tuple[str, int, int] | Reject]:
    """Yields rows of `node,enter,leave` in seconds, and rejects. A node may have several rows."""
    nodes = Nodes(summary)
    for line, text in data_lines(lines):
        values = fields_of_csv(text)
        if summary.rows_read == 0 and [v.lower() for v in values[:3]] == ["node", "enter", "leave"]:
            continue
        summary.rows_read += 1
        try:
            if len(values) < 3:
                raise BadRow("too few fields")
            name, enter, leave = name_of(values[0]), instant(values[1]), instant(values[2])
            if leave < enter:
                raise BadRow("leaves before it enters")
        except BadRow as error:
            yield summary.reject(line, str(error))
            continue
        summary.rows_kept += 1
        nodes.add(name)
        yield name, enter, leave


def _header(
    values: list[str], columns: Mapping[str, str] | None, summary: Summary, line: int
) -> tuple[int, ...] | None:
    """Return the indices of our four columns if this line is a header that has them, else None."""
    lowered = [value.lower() for value in values]
    expected = [(columns or {}).get(name, name).lower() for name in _COLUMNS]
    if all(name in lowered for name in expected):
        return tuple(lowered.index(name) for name in expected)
    if columns:
        absent = next(name for name in expected if name not in lowered)
        raise BadInput(f"{summary.file}:{line}: no column {absent!r} in the header")
    return None
