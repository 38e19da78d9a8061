"""A contact list as a value: who is called what, who meets whom when, and who is there when.

Scenario files and the contact network of the simulator start from it; generators and readers end in it.
Node ids are 0 .. n-1 in the natural order of the names, so the order of rows in a file does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from precede.core.errors import BadInput
from precede.core.instants import Instant
from precede.core.natural_order import natural
from precede.traces.formats.contact_csv import read_contact_csv, read_presence_csv
from precede.traces.formats.one import read_one_events
from precede.traces.intervals import Intervals, Ints, merge_contacts
from precede.traces.lines import data_lines, opened
from precede.traces.records import ContactRow, Reject, Row, Summary, check


@dataclass(frozen=True, eq=False)
class Presence:
    """When nodes are there: intervals sorted by (node, enter); of one node none overlap or abut."""

    node: Ints
    enter_us: Ints
    leave_us: Ints


@dataclass(frozen=True, eq=False)
class ContactList:
    """Contacts `a < b` sorted by (a, b, start), of one pair none overlapping; ids are places in `names`.

    `presence` None means that everybody is always there; else every contact lies within the presence of both.
    """

    names: tuple[str, ...]
    a: Ints
    b: Ints
    start_us: Ints
    end_us: Ints
    presence: Presence | None = None

    def __len__(self) -> int:
        return len(self.a)

    @property
    def nodes(self) -> int:
        """How many nodes there are; some may have no contact."""
        return len(self.names)

    def span(self) -> tuple[Instant, Instant]:
        """From the first to the last instant at which anything is known to begin or end."""
        begins, ends = [self.start_us], [self.end_us]
        if self.presence is not None:
            begins.append(self.presence.enter_us)
            ends.append(self.presence.leave_us)
        if not sum(map(len, begins)):
            return 0, 0
        return int(np.concatenate(begins).min()), int(np.concatenate(ends).max())

    def since(self, begin: Instant) -> ContactList:
        """The same with time counted from `begin`."""
        there = self.presence
        if there is not None:
            there = Presence(there.node, there.enter_us - begin, there.leave_us - begin)
        return ContactList(self.names, self.a, self.b, self.start_us - begin, self.end_us - begin, there)

    def rows(self) -> Iterator[ContactRow]:
        """Contacts by name, in order."""
        for a, b, start, end in zip(
            self.a.tolist(), self.b.tolist(), self.start_us.tolist(), self.end_us.tolist(), strict=True
        ):
            yield ContactRow(self.names[a], self.names[b], start, end)

    def presence_rows(self) -> Iterator[tuple[str, Instant, Instant]]:
        """(name, enter, leave) in order; nothing when everybody is always there."""
        if self.presence is not None:
            columns = (self.presence.node, self.presence.enter_us, self.presence.leave_us)
            for node, enter, leave in zip(*(column.tolist() for column in columns), strict=True):
                yield self.names[node], enter, leave


@dataclass(frozen=True, eq=False)
class ReadContacts:
    """A contact list with what was not used of its files."""

    contacts: ContactList
    rejects: tuple[Reject, ...]
    summaries: tuple[Summary, ...]


def contact_list(
    rows: Iterable[tuple[str, str, Instant, Instant]],
    presence: Iterable[tuple[str, Instant, Instant]] | None = None,
) -> ContactList:
    """Of rows by name, in any order: overlapping and abutting intervals are merged, contacts cut to presence.

    With `presence` given, a contact of a node that is not in it is an error.
    """
    met = list(rows)
    there = None if presence is None else list(presence)
    names = sorted({n for row in met for n in row[:2]} | {row[0] for row in there or ()}, key=natural)
    ids = {name: place for place, name in enumerate(names)}
    for first, second, start, end in met:
        if first == second:
            raise BadInput(f"a node in contact with itself: {first}")
        if end < start:
            raise BadInput(f"the contact of {first} and {second} ends before it starts")
    a = np.array([ids[row[0]] for row in met], dtype=np.int64)
    b = np.array([ids[row[1]] for row in met], dtype=np.int64)
    starts, ends = (np.array([row[side] for row in met], dtype=np.int64) for side in (2, 3))
    merged = merge_contacts([Intervals(np.minimum(a, b), np.maximum(a, b), starts, ends)])
    return of_intervals(names, merged, None if there is None else presence_of(there, names))


def of_intervals(names: Sequence[str], found: Intervals, presence: Presence | None = None) -> ContactList:
    """A contact list of what the kernel found; contacts are cut to presence where it is given."""
    if presence is not None:
        absent = np.setdiff1d(np.concatenate((found.a, found.b)), presence.node)
        if len(absent):
            raise BadInput(f"node {names[int(absent[0])]} has contacts, but it is not said when it is there")
        found = _cut(found, presence)
    return ContactList(tuple(names), found.a, found.b, found.start_us, found.end_us, presence)


def presence_of(rows: Iterable[tuple[str, Instant, Instant]], names: Sequence[str]) -> Presence:
    """Presence of named nodes, joined where intervals of one node overlap or abut."""
    ids = {name: place for place, name in enumerate(names)}
    joined: list[list[int]] = []
    for node, enter, leave in sorted((ids[name], enter, leave) for name, enter, leave in rows):
        if joined and joined[-1][0] == node and joined[-1][2] >= enter:
            joined[-1][2] = max(joined[-1][2], leave)
        else:
            joined.append([node, enter, leave])
    columns = np.array(joined, dtype=np.int64).reshape(-1, 3).T
    return Presence(*(np.ascontiguousarray(column) for column in columns))


def read_contacts(path: str | Path, nodes: str | Path | None = None) -> ReadContacts:
    """A contact list from a file: CSV `a,b,start,end` or The ONE's `CONN` lines, told apart by the first line.

    `nodes` is a CSV of `node,enter,leave`. Both may be gzipped.
    """
    rejects: list[Reject] = []
    contacts: list[ContactRow] = []
    with opened(path) as lines:
        content = data_lines(lines)
        first = next(content, None)
        conn = first is not None and len(first[1].split()) > 1 and first[1].split()[1].upper() in ("CONN", "C")
        summary = Summary(file=Path(path).name, format="one" if conn else "contacts")
        everything = chain([] if first is None else [first], content)
        rows: Iterator[Row] = (read_one_events if conn else read_contact_csv)(everything, summary)
        for row in rows:
            if isinstance(row, ContactRow):
                contacts.append(row)
            elif isinstance(row, Reject):
                rejects.append(row)
    summary.contacts = len(contacts)
    check(summary)
    if nodes is None:
        return ReadContacts(contact_list(contacts), tuple(rejects), (summary,))
    presence, unread, said = read_presence(nodes)
    return ReadContacts(contact_list(contacts, presence), (*rejects, *unread), (summary, said))


def read_presence(path: str | Path) -> tuple[list[tuple[str, Instant, Instant]], list[Reject], Summary]:
    """`node,enter,leave` in seconds, gzipped or not: the rows, the rejects, the summary."""
    summary = Summary(file=Path(path).name, format="nodes")
    kept: list[tuple[str, Instant, Instant]] = []
    rejects: list[Reject] = []
    with opened(path) as lines:
        for row in read_presence_csv(lines, summary):
            if isinstance(row, Reject):
                rejects.append(row)
            else:
                kept.append(row)
    check(summary)
    return kept, rejects, summary


def _cut(found: Intervals, presence: Presence) -> Intervals:
    """Contacts while both nodes are there."""
    for side in (0, 1):
        node = found[side]
        first = np.searchsorted(presence.node, node, side="left")
        count = np.searchsorted(presence.node, node, side="right") - first
        row = np.repeat(np.arange(len(node)), count)
        offset = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
        at = np.repeat(first, count) + offset
        start = np.maximum(found.start_us[row], presence.enter_us[at])
        end = np.minimum(found.end_us[row], presence.leave_us[at])
        kept = start < end
        found = Intervals(found.a[row][kept], found.b[row][kept], start[kept], end[kept])
    return merge_contacts([found])
