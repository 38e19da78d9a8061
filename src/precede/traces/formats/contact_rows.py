"""Contacts from rows in any order: how they are cleaned, held in memory, merged and sorted.

Rows with a = b, rows that end before they start and rows without length are rejected. `at_least` extends a row
that is shorter: a scan that saw a device once has no length of its own. Rows of one pair that overlap are
merged (`union`), or the one that begins later is rejected (`first`). Rows that touch are merged in both cases.
"""

from array import array
from collections.abc import Iterator
from typing import Final, Literal, TypeAlias

import numpy as np
from msgspec import Struct

from precede.core.errors import BadInput
from precede.core.instants import Duration, Instant, format_duration
from precede.core.natural_order import natural
from precede.files.lines import BadRow, name_of
from precede.traces.formats.plain_columns import PlainBlock, instants_of
from precede.traces.intervals import Intervals, Ints, merge_contacts
from precede.traces.lines import instant
from precede.traces.records import ContactRow, Nodes, Row, Summary

MAX_ROWS: Final = 50_000_000
Overlap: TypeAlias = Literal["union", "first"]


class Cleaning(Struct, frozen=True):
    """How rows that overlap are treated, and the least length of a contact (0: rows keep their length)."""

    overlap: Overlap = "union"
    at_least: Duration = 0


class ContactRows:
    """The contacts of one file, as arrays of numbers. Counts rows as kept or rejected."""

    def __init__(self, summary: Summary, cleaning: Cleaning | None = None) -> None:
        self._summary = summary
        self._cleaning = Cleaning() if cleaning is None else cleaning
        self._ids: dict[str, int] = {}
        self._nodes = Nodes(summary)
        self._columns = (array("i"), array("i"), array("q"), array("q"), array("q"))

    def add(self, line: int, a: str, b: str, start: str, end: str) -> None:
        """Add a row. Raises BadRow if it cannot be used, and BadInput if there are too many."""
        for name in (a, b):
            if name not in self._ids:
                name_of(name)
        begins, ends = instant(start), instant(end)
        if a == b:
            raise BadRow(f"a node in contact with itself: {a}")
        if ends < begins:
            raise BadRow("ends before it starts")
        if ends - begins < self._cleaning.at_least:
            ends = begins + self._cleaning.at_least
            self._summary.note(f"contacts extended to {format_duration(self._cleaning.at_least)}")
        if ends == begins:
            raise BadRow("contact without length")
        self._hold(line, a, b, begins, ends)

    def _hold(self, line: int, a: str, b: str, start: Instant, end: Instant) -> None:
        self._summary.rows_kept += 1
        ids, (ones, others, starts, ends, lines) = self._ids, self._columns
        for name in (a, b):
            if name not in ids:
                self._nodes.add(name)
                ids[name] = len(ids)
        ones.append(ids[a])
        others.append(ids[b])
        starts.append(start)
        ends.append(end)
        lines.append(line)
        if len(self._columns[0]) > MAX_ROWS:
            raise BadInput(f"{self._summary.file}: more than {MAX_ROWS:,} contacts; split the file by time")

    def add_block(self, block: PlainBlock) -> bool:
        """Add the rows of a block at once; add none and return False if one of them would be rejected."""
        begins, ends = map(instants_of, block.numbers)
        if begins is None or ends is None or len(self._columns[0]) + block.rows > MAX_ROWS:
            return False
        names = dict.fromkeys(name for column in block.names for name in column.names)
        places = {name: place for place, name in enumerate(names)}
        one, other = (
            np.array([places[name] for name in column.names], np.int64)[column.codes] for column in block.names
        )
        at_least = self._cleaning.at_least
        is_wrong = (one == other) | (ends < begins) | ((ends == begins) & (at_least == 0))
        if is_wrong.any():
            return False
        short = ends - begins < at_least
        if short.any():
            ends = np.where(short, begins + at_least, ends)
            self._summary.note(f"contacts extended to {format_duration(at_least)}", int(short.sum()))
        for name in names:
            if name not in self._ids:
                self._nodes.add(name)
                self._ids[name] = len(self._ids)
        ids = np.array([self._ids[name] for name in names], np.int32)
        lines = np.arange(block.first, block.first + block.rows)
        for held, column in zip(self._columns, (ids[one], ids[other], begins, ends, lines), strict=True):
            held.frombytes(column.tobytes())
        self._summary.rows_read += block.rows
        self._summary.rows_kept += block.rows
        return True

    def finish(self) -> Iterator[Row]:
        """Yield rejects of rows that overlap others, then the contacts, sorted by pair in natural order."""
        names, rows, line = self._sorted()
        if self._cleaning.overlap == "first":
            later = _later_overlaps(rows, line)
            for number in sorted(line[later].tolist()):
                self._summary.rows_kept -= 1
                yield self._summary.reject(number, "overlaps an earlier contact of its pair")
            rows = Intervals(*(column[~later] for column in rows))
        for row in zip(*(column.tolist() for column in self._merged(rows)), strict=True):
            yield ContactRow(names[row[0]], names[row[1]], row[2], row[3])

    def merged(self) -> tuple[list[str], Intervals]:
        """Return the names in natural order, and the contacts of `union`, sorted, with the places of names."""
        names, rows, _ = self._sorted()
        return names, self._merged(rows)

    def _sorted(self) -> tuple[list[str], Intervals, Ints]:
        """Return the names in natural order, the rows with the places of names, and the line of each row."""
        names = sorted(self._ids, key=natural)
        rank = np.empty(len(names), dtype=np.int64)
        for place, name in enumerate(names):
            rank[self._ids[name]] = place
        one, other = (rank[np.array(column, dtype=np.int64)] for column in self._columns[:2])
        start, end, line = (np.array(column, dtype=np.int64) for column in self._columns[2:])
        return names, Intervals(np.minimum(one, other), np.maximum(one, other), start, end), line

    def _merged(self, rows: Intervals) -> Intervals:
        merged = merge_contacts([rows])
        if len(merged.a) < len(rows.a):
            met = "touch" if self._cleaning.overlap == "first" else "overlap or touch"
            self._summary.note(f"contacts merged into another that they {met}", len(rows.a) - len(merged.a))
        return merged


def _later_overlaps(rows: Intervals, line: Ints) -> Ints:
    """Return a mask of the rows that begin before the end of an earlier row of their pair that is kept."""
    later = np.zeros(len(line), dtype=bool)
    pair, until = (-1, -1), 0
    for index in np.lexsort((line, rows.start_us, rows.b, rows.a)).tolist():
        here = int(rows.a[index]), int(rows.b[index])
        if here == pair and rows.start_us[index] < until:
            later[index] = True
        else:
            pair, until = here, int(rows.end_us[index])
    return later
