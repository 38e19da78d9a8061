"""Builds the histories of a large log: numbers the messages and finds the message of each delivery."""

from collections.abc import Collection
from typing import NoReturn

import numpy as np

from precede.core.errors import BadInput
from precede.witness.history import (
    ABSENT,
    ANYONE,
    GHOST,
    GHOSTS_KEPT,
    NEVER,
    Gap,
    Ghost,
    History,
    Ungathered,
    name_message,
)
from precede.witness.reading import kernels
from precede.witness.reading.encode import Array, Names
from precede.witness.reading.processes import ProcessTable
from precede.witness.reading.row_store import Grouped, Irregular
from precede.witness.reading.values import Place


class BroadcastColumns:
    """The columns that only broadcast rows have, in the order of the log: deadlines and destinations."""

    def __init__(self, has_destinations: bool) -> None:
        self.has_destinations = has_destinations
        self.deadlines: list[Array] = []
        self.addressed: list[Array] = []
        self.address_counts: list[Array] = []
        self.addresses: list[Array] = []


class Assembly:
    """The messages and rows of all groups (independent orders); `histories` divides them by group.

    `broadcasts` is the number of broadcast rows, None when the whole log has only deliveries. `labels` are the
    log's own message ids, None when messages are named by source and number.
    """

    def __init__(
        self,
        *,
        processes: ProcessTable,
        rows: Grouped,
        broadcasts: int | None,
        columns: BroadcastColumns,
        labels: Names | None,
        place: Place,
    ) -> None:
        self.processes = processes
        self.rows = rows
        self.labels = labels
        self.place = place
        self.events = np.full(len(rows.source), GHOST, np.int32)
        self.ghosts = 0
        if broadcasts is None:
            self._messages_from_deliveries()
        else:
            self._messages_from_broadcasts(broadcasts)
        self._order_columns(columns)

    def _messages_from_broadcasts(self, count: int) -> None:
        """Number the broadcast messages and find the message of each delivery."""
        rows, numbered = self.rows, self.labels is None
        self.base = np.zeros(len(rows.start), np.int32)
        self.source, self.number = np.empty(count, np.int32), np.empty(count, np.int64)
        self.position, self.arrival = np.empty(count, np.int32), np.empty(count, np.int32)
        contiguous = np.ones(len(rows.start), np.uint8)
        wrong = kernels.number_messages(
            *(rows.start, rows.source, rows.number, numbered, self.events, self.base),
            *(self.source, self.number, self.position, self.arrival, contiguous),
        )
        if wrong >= 0:
            self._reject_number(int(wrong))
        if numbered:
            place = self.processes.place
            self.ghosts = kernels.find_numbered(
                rows.start, rows.source, rows.number, place, self.events, self.base, self.number, contiguous
            )
        else:
            ids = self._ids()
            self.ghosts = kernels.find_labelled(rows.source, ids, self._message_of(ids), self.events)

    def _ids(self) -> Array:
        """Return the opaque id of each row as an integer; the same id in two groups gets two integers."""
        assert self.labels is not None
        group = self.processes.group_numbers()
        if not len(group) or group.max() == 0:
            return self.rows.number
        of_row = np.repeat(group.astype(np.int64), np.diff(self.rows.start))
        return np.unique(of_row * len(self.labels.names) + self.rows.number, return_inverse=True)[1]

    def _message_of(self, ids: Array) -> Array:
        """Return the message of each opaque id, or -1 if that id was never broadcast."""
        index = np.full(ids.max(initial=0) + 1, -1, np.int32)
        named = ids[self.position]
        index[named] = np.arange(len(named), dtype=np.int32)
        again = np.flatnonzero(index[named] != np.arange(len(named)))
        if len(again):
            self._reject_label(int(again[0]), int(index[named[again[0]]]))
        return index

    def _messages_from_deliveries(self) -> None:
        """Number the messages of a log without broadcast rows: those that were delivered, by source and number.

        Opaque ids have no source. Their order of broadcasting is unknown and not used, so the first process of
        the group stands for the source.
        """
        rows = self.rows
        if self.labels is None:
            source = self.processes.place[rows.source].astype(np.int64)
        else:
            groups = self.processes.group_numbers()
            firsts = np.flatnonzero(np.diff(groups, prepend=-1))
            source = np.repeat(firsts[groups], np.diff(rows.start)).astype(np.int64)
        numbers, codes = np.unique(rows.number, return_inverse=True)
        keys, message = np.unique(source * len(numbers) + codes, return_inverse=True)
        self.source = (keys // len(numbers)).astype(np.int32)
        self.number = numbers[keys % len(numbers)]
        self.position = np.full(len(keys), -1, np.int32)
        self.arrival = np.empty(0, np.int32)
        self.events[:] = 2 * message + 1
        self.base = np.searchsorted(self.source, np.arange(len(rows.start))).astype(np.int32)

    def _order_columns(self, columns: BroadcastColumns) -> None:
        """Bring deadlines and destinations from the order of the log into the order of the messages."""
        self.deadline = np.full(len(self.source), NEVER, np.int64)
        if columns.deadlines:
            self.deadline = np.concatenate(columns.deadlines)[self.arrival]
        self.addressed: Array | None = None
        if not columns.has_destinations:
            return
        if not columns.addressed:
            self.addressed = np.zeros(len(self.source), np.uint8)
            self.address_start = np.zeros(len(self.source) + 1, np.int64)
            self.addresses = np.empty(0, np.int32)
            return
        self.addressed = np.concatenate(columns.addressed).astype(np.uint8)[self.arrival]
        counts = np.concatenate(columns.address_counts)
        codes = np.concatenate(columns.addresses)
        begin = np.cumsum(counts) - counts
        counts, begin = counts[self.arrival], begin[self.arrival]
        self.address_start = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
        moved = np.arange(self.address_start[-1]) - np.repeat(self.address_start[:-1] - begin, counts)
        self.addresses = codes[moved]
        kernels.sort_addresses(self.address_start, self.addresses)

    def histories(self, truncated: bool, without_clock: Collection[int]) -> list[History]:
        """Return one history per group. `without_clock`: processes with a delivery without a local time."""
        group = self.processes.group_numbers()
        if not len(group):
            return []
        cuts = np.flatnonzero(np.diff(group, prepend=-1)).tolist()
        histories = []
        for p, q in zip(cuts, [*cuts[1:], len(group)], strict=True):
            history = self._history(p, q)
            codes = self.processes.order[p:q].tolist()
            history.clock_missing = any(code in without_clock for code in codes)
            if self.ghosts:
                self._prove_ghosts(history, p, q, truncated)
            histories.append(history)
        return histories

    def _history(self, p: int, q: int) -> History:
        """Return the history of processes p to q - 1; rows, processes and messages are renumbered from 0."""
        table, rows = self.processes, self.rows
        e, f = int(rows.start[p]), int(rows.start[q])
        m, n = int(self.base[p]), int(self.base[q])
        codes = table.order[p:q]
        values = table.group_values(int(table.group[codes[0]]))
        events = self.events[e:f]
        if m:
            events = np.where(events >= 0, events - 2 * m, events)
        gaps = [Gap(gap.process - p, gap.last, gap.next) for gap in rows.gaps if p <= gap.process < q]
        history = History(
            group=tuple(zip(table.by, values, strict=True)),
            nodes=table.nodes.names,
            node_of=table.node[codes],
            incarnation=table.incarnation[codes],
            start=rows.start[p : q + 1] - e,
            events=events,
            steps=rows.step[e:f],
            source=self.source[m:n] - p,
            base=self.base[p : q + 1] - m,
            position=np.where(self.position[m:n] >= 0, self.position[m:n] - e, -1).astype(np.int32),
            number=self.number[m:n],
            labels=None if self.labels is None else self.labels.names,
            deliveries=int(np.count_nonzero(rows.source[e:f] >= 0)),
            gaps=gaps,
            deadline=self.deadline[m:n],
            clock=rows.clock[e:f],
        )
        if self.addressed is not None:
            history.addressed = self.addressed[m:n]
            history.address_start = self.address_start[m : n + 1] - self.address_start[m]
            history.addresses = self.addresses[self.address_start[m] : self.address_start[n]]
        return history

    def _prove_ghosts(self, history: History, p: int, q: int, truncated: bool) -> None:
        """Add to a history its deliveries without a broadcast that no missing row can explain."""
        table, rows = self.processes, self.rows
        e, f = int(rows.start[p]), int(rows.start[q])
        places = e + np.flatnonzero(self.events[e:f] == GHOST)
        perhaps_missing: list[int] = []
        if self.labels is None:
            absent = table.place[rows.source[places]] < 0
            sources = table.place[rows.source[places]] - p
            sources[absent] = ABSENT
            without_rows = np.unique(rows.source[places][absent]).tolist()
            perhaps_missing = [
                code
                for code in without_rows
                if history.may_be_missing(int(table.node[code]), int(table.incarnation[code]))
            ]
        else:
            sources = np.full(len(places), ANYONE)
        proven = places[~np.isin(sources, list(history.unreliable(truncated)))]
        if perhaps_missing:
            proven = proven[~np.isin(rows.source[proven], perhaps_missing)]
        if self.labels is None:
            proven = self._set_ungathered_aside(history, p, q, proven)
        history.ghost_count = len(proven)
        history.ghosts += [self._ghost(history, p, place) for place in proven[:GHOSTS_KEPT].tolist()]

    def _set_ungathered_aside(self, history: History, p: int, q: int, places: Array) -> Array:
        """Return the ghosts (deliveries without a broadcast) whose source has rows; note the rest by source."""
        table, rows = self.processes, self.rows
        gathered = np.isin(table.node[rows.source[places]], table.node[table.order[p:q]])
        others = places[~gathered]
        nodes = table.node[rows.source[others]]
        for node in dict.fromkeys(nodes.tolist()):
            theirs = others[nodes == node]
            first = [self._ghost(history, p, place) for place in theirs[:GHOSTS_KEPT].tolist()]
            history.ungathered[table.nodes.names[node]] = Ungathered(first, len(theirs))
        return places[gathered]

    def _ghost(self, history: History, p: int, place: int) -> Ghost:
        process = history.process_of(place - int(self.rows.start[p]))
        return Ghost(process, int(self.rows.step[place]), self._ghost_name(place))

    def _ghost_name(self, place: int) -> str:
        number = int(self.rows.number[place])
        if self.labels is not None:
            return self.labels.names[number]
        return self._message_name(int(self.rows.source[place]), number)

    def _message_name(self, process: int, number: int) -> str:
        table = self.processes
        return name_message(
            table.nodes.names[int(table.node[process])], int(table.incarnation[process]), number
        )

    def _reject_number(self, e: int) -> NoReturn:
        """Raise BadInput for a number that does not ascend; Irregular if the row's place is unknown."""
        rows = self.rows
        if rows.row is None:
            raise Irregular
        p = int(np.searchsorted(rows.start, e, side="right")) - 1
        code = int(self.processes.order[p])
        before = np.flatnonzero(rows.source[rows.start[p] : e] < -1) + int(rows.start[p])
        number = int(rows.number[e])
        same = before[rows.number[before] == number]
        if len(same):
            one, other = sorted((int(rows.row[same[0]]), int(rows.row[e])))
            name = self._message_name(code, number)
            raise BadInput(f"{self.place(other)}: message {name} is broadcast again (first in row {one})")
        node = self.processes.name(code)
        raise BadInput(
            f"{self.place(int(rows.row[e]))}: node {node} broadcasts number {number} after "
            f"{int(rows.number[before[-1]])}, but numbers ascend with step (if they are only names: "
            "--columns message=…)"
        )

    def _reject_label(self, one: int, other: int) -> NoReturn:
        """Raise BadInput for two broadcasts of one opaque id; Irregular if the rows' places are unknown."""
        rows = self.rows
        assert self.labels is not None
        if rows.row is None:
            raise Irregular
        first, again = sorted((int(rows.row[self.position[one]]), int(rows.row[self.position[other]])))
        name = self.labels.names[int(self.number[one])]
        raise BadInput(f"{self.place(again)}: message {name} is broadcast again (first in row {first})")
