"""Reads contacts (`a,b,start,end` in seconds) and presence (`node,enter,leave`) in CSV, with or without header.

Rows with a = b, rows that end before they start and rows without length are rejected. Intervals of one pair
that overlap or touch are merged and counted. Rows may be in any order; they are held in arrays, up to
`MAX_ROWS`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import numpy as np

from precede.core.errors import BadInput
from precede.core.natural_order import natural
from precede.traces.intervals import Intervals, merge_contacts
from precede.traces.lines import BadRow, data_lines, fields_of_csv, instant, name_of
from precede.traces.records import ContactRow, Nodes, Reject, Row, Summary

MAX_ROWS: Final = 50_000_000
_COLUMNS: Final = ("a", "b", "start", "end")


def read_contact_csv(
    lines: Iterable[tuple[int, str]], summary: Summary, columns: Mapping[str, str] | None = None
) -> Iterator[Row]:
    """Yields the rejects, then the merged contacts, sorted. `columns` maps our names to the header's."""
    held = _Held(summary)
    nodes = Nodes(summary)
    places: tuple[int, ...] = (0, 1, 2, 3)
    first = True
    for line, text in data_lines(lines):
        values = fields_of_csv(text)
        if first:
            first = False
            header = _header(values, columns, summary, line)
            if header:
                places = header
                continue
        summary.rows_read += 1
        try:
            if len(values) <= max(places):
                raise BadRow("too few fields")
            a, b = name_of(values[places[0]]), name_of(values[places[1]])
            start, end = instant(values[places[2]]), instant(values[places[3]])
            if a == b:
                raise BadRow(f"a node in contact with itself: {a}")
            if end < start:
                raise BadRow("ends before it starts")
            if end == start:
                raise BadRow("contact without length")
        except BadRow as error:
            yield summary.reject(line, str(error))
            continue
        summary.rows_kept += 1
        nodes.add(a)
        nodes.add(b)
        held.add(a, b, start, end)
    yield from held.merged()


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
    """Return the indices of our four columns if this line is a header that has them, else None.

    If the caller names the columns, the line must be a header: raises BadInput for an absent column.
    """
    lowered = [value.lower() for value in values]
    expected = [(columns or {}).get(name, name).lower() for name in _COLUMNS]
    if all(name in lowered for name in expected):
        return tuple(lowered.index(name) for name in expected)
    if columns:
        absent = next(name for name in expected if name not in lowered)
        raise BadInput(f"{summary.file}:{line}: no column {absent!r} in the header")
    return None


class _Held:
    """Contacts in memory, as arrays of numbers."""

    def __init__(self, summary: Summary) -> None:
        self._summary = summary
        self._ids: dict[str, int] = {}
        self._columns = (array("i"), array("i"), array("q"), array("q"))

    def add(self, a: str, b: str, start: int, end: int) -> None:
        """Add a contact; raises BadInput if there are too many."""
        i, j = self._ids.setdefault(a, len(self._ids)), self._ids.setdefault(b, len(self._ids))
        for column, value in zip(self._columns, (i, j, start, end), strict=True):
            column.append(value)
        if len(self._columns[0]) > MAX_ROWS:
            raise BadInput(f"{self._summary.file}: more than {MAX_ROWS:,} contacts; split the file by time")

    def merged(self) -> Iterator[ContactRow]:
        """The contacts, merged and sorted by pair in natural order."""
        names = sorted(self._ids, key=natural)
        rank = np.empty(len(names), dtype=np.int64)
        for place, name in enumerate(names):
            rank[self._ids[name]] = place
        a, b = (rank[np.array(column, dtype=np.int64)] for column in self._columns[:2])
        start, end = (np.array(column, dtype=np.int64) for column in self._columns[2:])
        merged = merge_contacts([Intervals(np.minimum(a, b), np.maximum(a, b), start, end)])
        if len(merged.a) < len(a):
            self._summary.note(
                "contacts merged into another that they overlap or touch", len(a) - len(merged.a)
            )
        for row in zip(*merged, strict=True):
            yield ContactRow(names[row[0]], names[row[1]], int(row[2]), int(row[3]))
