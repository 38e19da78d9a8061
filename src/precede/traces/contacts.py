"""A contact list as a value: names of nodes, contacts of pairs, presence of nodes.

Readers and generators produce it; scenarios and the contact network of the simulator use it. Node ids are
0 .. n-1 in the natural order of the names, so the order of rows in a file does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from precede.core.errors import BadInput
from precede.core.instants import Instant
from precede.core.natural_order import natural
from precede.files.lines import data_lines, opened
from precede.files.rejects import Reject
from precede.traces.formats.contact_csv import add_contact_csv, read_presence_csv
from precede.traces.formats.contact_rows import ContactRows
from precede.traces.formats.one import read_one_events
from precede.traces.intervals import Intervals, Ints, merge_contacts
from precede.traces.records import ContactRow, Summary


@dataclass(frozen=True, eq=False)
class Presence:
    """Intervals in which nodes are present, sorted by (node, enter); a node's neither overlap nor touch."""

    node: Ints
    enter_us: Ints
    leave_us: Ints


@dataclass(frozen=True, eq=False)
class ContactList:
    """Contacts with `a < b`, sorted by (a, b, start); those of one pair do not overlap. Ids index `names`.

    If `presence` is None, all nodes are always present; else every contact lies within the presence of both.
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
        return len(self.names)

    def span(self) -> tuple[Instant, Instant]:
        """Return the first and the last instant at which a contact or a presence begins or ends."""
        begins, ends = [self.start_us], [self.end_us]
        if self.presence is not None:
            begins.append(self.presence.enter_us)
            ends.append(self.presence.leave_us)
        if not sum(map(len, begins)):
            return 0, 0
        return int(np.concatenate(begins).min()), int(np.concatenate(ends).max())

    def since(self, begin: Instant) -> ContactList:
        shifted = self.presence
        if shifted is not None:
            shifted = Presence(shifted.node, shifted.enter_us - begin, shifted.leave_us - begin)
        return ContactList(self.names, self.a, self.b, self.start_us - begin, self.end_us - begin, shifted)

    def rows(self) -> Iterator[ContactRow]:
        for a, b, start, end in zip(
            self.a.tolist(), self.b.tolist(), self.start_us.tolist(), self.end_us.tolist(), strict=True
        ):
            yield ContactRow(self.names[a], self.names[b], start, end)

    def presence_rows(self) -> Iterator[tuple[str, Instant, Instant]]:
        """Yield the presence as (name, enter, leave), in order; nothing if all nodes are always present."""
        if self.presence is not None:
            columns = (self.presence.node, self.presence.enter_us, self.presence.leave_us)
            for node, enter, leave in zip(*(column.tolist() for column in columns), strict=True):
                yield self.names[node], enter, leave


@dataclass(frozen=True, eq=False)
class ReadContacts:
    """A contact list with the rejects and summaries of its files."""

    contacts: ContactList
    rejects: tuple[Reject, ...]
    summaries: tuple[Summary, ...]


def contact_list(
    rows: Iterable[tuple[str, str, Instant, Instant]],
    presence: Iterable[tuple[str, Instant, Instant]] | None = None,
) -> ContactList:
    """Make a contact list from rows with names, in any order, merged by pair and cut to `presence`.

    Raises BadInput for a contact with itself, one that ends before it starts, or a node without presence.
    """
    met = list(rows)
    present = None if presence is None else list(presence)
    names = sorted({n for row in met for n in row[:2]} | {row[0] for row in present or ()}, key=natural)
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
    return of_intervals(names, merged, None if present is None else presence_of(present, names))


def of_intervals(names: Sequence[str], contacts: Intervals, presence: Presence | None = None) -> ContactList:
    """Make a contact list from the kernel's result, cut to the `presence` of nodes if that is given."""
    if presence is not None:
        is_absent = np.zeros(len(names), np.bool_)
        is_absent[contacts.a] = is_absent[contacts.b] = True
        is_absent[presence.node] = False
        if is_absent.any():
            raise BadInput(f"node {names[int(np.argmax(is_absent))]} has contacts, but no presence")
        contacts = _cut(contacts, presence)
    return ContactList(tuple(names), *contacts, presence)


def presence_of(rows: Iterable[tuple[str, Instant, Instant]], names: Sequence[str]) -> Presence:
    """Return presence from rows with names; intervals of one node that overlap or touch are joined."""
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
    """Read a contact list from a file, plain or gzipped: CSV rows `a,b,start,end` or The ONE's `CONN` lines.

    `nodes` is a CSV file of `node,enter,leave`. Raises BadInput if a file has no usable row.
    """
    with opened(path) as lines:
        first = next(data_lines(lines), (0, ""))[1].split()
    is_one = len(first) > 1 and first[1].upper() in ("CONN", "C")
    summary = Summary(file=Path(path).name, format="one" if is_one else "contacts")
    with opened(path) as lines:
        if is_one:
            rows = list(read_one_events(lines, summary, lines))
            rejects = [row for row in rows if isinstance(row, Reject)]
            met = contact_list(row for row in rows if isinstance(row, ContactRow))
        else:
            contacts = ContactRows(summary)
            rejects = list(add_contact_csv(lines, summary, contacts))
            met = of_intervals(*contacts.merged())
    summary.contacts = len(met)
    summary.check()
    if nodes is None:
        return ReadContacts(met, tuple(rejects), (summary,))
    presence, presence_rejects, presence_summary = read_presence(nodes)
    rejects += presence_rejects
    return ReadContacts(_within(met, presence), tuple(rejects), (summary, presence_summary))


def _within(contacts: ContactList, presence: Sequence[tuple[str, Instant, Instant]]) -> ContactList:
    """Return a contact list cut to the presence of its nodes, with the nodes that meet nobody."""
    names = sorted(dict.fromkeys([*contacts.names, *(row[0] for row in presence)]), key=natural)
    ids = {name: place for place, name in enumerate(names)}
    place = np.array([ids[name] for name in contacts.names], dtype=np.int64)
    met = Intervals(place[contacts.a], place[contacts.b], contacts.start_us, contacts.end_us)
    return of_intervals(names, met, presence_of(presence, names))


def read_presence(path: str | Path) -> tuple[list[tuple[str, Instant, Instant]], list[Reject], Summary]:
    summary = Summary(file=Path(path).name, format="nodes")
    kept: list[tuple[str, Instant, Instant]] = []
    rejects: list[Reject] = []
    with opened(path) as lines:
        for row in read_presence_csv(lines, summary):
            if isinstance(row, Reject):
                rejects.append(row)
            else:
                kept.append(row)
    summary.check()
    return kept, rejects, summary


def _cut(contacts: Intervals, presence: Presence) -> Intervals:
    """Return the parts of contacts in which both nodes are present."""
    for side in (0, 1):
        node = contacts[side]
        first = np.searchsorted(presence.node, node, side="left")
        count = np.searchsorted(presence.node, node, side="right") - first
        row = np.repeat(np.arange(len(node)), count)
        offset = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
        at = np.repeat(first, count) + offset
        start = np.maximum(contacts.start_us[row], presence.enter_us[at])
        end = np.minimum(contacts.end_us[row], presence.leave_us[at])
        kept = start < end
        contacts = Intervals(contacts.a[row][kept], contacts.b[row][kept], start[kept], end[kept])
    return merge_contacts([contacts])
