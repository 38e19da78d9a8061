"""The last step from rows to histories: messages get their numbers, deliveries their messages, groups their own
history (see `arrays.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
    name_message,
)
from precede.witness.reading import kernels
from precede.witness.reading.encode import Array

if TYPE_CHECKING:
    from precede.witness.reading.arrays import ArrayBuilder, Grouped


class Irregular(Exception):
    """The log is not as a recorder writes it."""


class Assembly:
    """All groups at once; `histories` cuts them apart."""

    def __init__(self, builder: ArrayBuilder, rows: Grouped) -> None:
        self.builder = builder
        self.rows = rows
        self.numbered = builder.layout.numbered
        self.events = np.full(len(rows.source), GHOST, np.int32)
        self.ghosts = 0
        if builder.deliveries_only:
            self._messages_from_deliveries()
        else:
            self._messages_from_broadcasts()
        self._tell_messages()

    def _messages_from_broadcasts(self) -> None:
        rows, count = self.rows, self.builder.broadcasts
        self.base = np.zeros(len(rows.start), np.int32)
        self.source, self.number = np.empty(count, np.int32), np.empty(count, np.int64)
        self.position, self.told = np.empty(count, np.int32), np.empty(count, np.int32)
        contiguous = np.ones(len(rows.start), np.uint8)
        wrong = kernels.number_messages(
            *(rows.start, rows.source, rows.number, self.numbered, self.events, self.base),
            *(self.source, self.number, self.position, self.told, contiguous),
        )
        if wrong >= 0:
            self._complain_about_number(int(wrong))
        if self.numbered:
            place = self.builder.process_place
            self.ghosts = kernels.find_numbered(
                rows.start, rows.source, rows.number, place, self.events, self.base, self.number, contiguous
            )
        else:
            ids = self._ids_of_groups()
            self.ghosts = kernels.find_labelled(rows.source, ids, self._message_of(ids), self.events)

    def _ids_of_groups(self) -> Array:
        """The opaque ids of rows; where there are groups, the same id in another group is another one."""
        group = self._group_numbers()
        if not len(group) or group.max() == 0:
            return self.rows.number
        of_row = np.repeat(group.astype(np.int64), np.diff(self.rows.start))
        labels = len(self.builder.labels.names)
        return np.unique(of_row * labels + self.rows.number, return_inverse=True)[1]

    def _message_of(self, ids: Array) -> Array:
        """For every opaque id the message that has it, or -1."""
        index = np.full(ids.max(initial=0) + 1, -1, np.int32)
        named = ids[self.position]
        index[named] = np.arange(len(named), dtype=np.int32)
        again = np.flatnonzero(index[named] != np.arange(len(named)))
        if len(again):
            self._complain_about_label(int(again[0]), int(index[named[again[0]]]))
        return index

    def _group_numbers(self) -> Array:
        """Every process's group, numbered in the order of the processes."""
        groups = self.builder.process_group[self.builder.order]
        if not len(groups):
            return groups
        return np.concatenate(([0], np.cumsum(groups[1:] != groups[:-1])))

    def _messages_from_deliveries(self) -> None:
        """Without broadcasts: what was delivered exists. Sources order it by number; opaque ids have none."""
        rows, builder = self.rows, self.builder
        if self.numbered:
            source = builder.process_place[rows.source].astype(np.int64)
        else:
            # One nameless source for each group, behind its processes, could order nothing: use the first.
            firsts = np.flatnonzero(np.diff(self._group_numbers(), prepend=-1))
            source = np.repeat(firsts[self._group_numbers()], np.diff(rows.start)).astype(np.int64)
        numbers, codes = np.unique(rows.number, return_inverse=True)
        keys, message = np.unique(source * len(numbers) + codes, return_inverse=True)
        self.source = (keys // len(numbers)).astype(np.int32)
        self.number = numbers[keys % len(numbers)]
        self.position = np.full(len(keys), -1, np.int32)
        self.told = np.empty(0, np.int32)
        self.events[:] = 2 * message + 1
        self.base = np.searchsorted(self.source, np.arange(len(rows.start))).astype(np.int32)

    def _tell_messages(self) -> None:
        """Deadlines and destinations came in the order of the broadcasts: put them in that of the messages."""
        builder = self.builder
        self.deadline = np.full(len(self.source), NEVER, np.int64)
        if builder.deadlines:
            self.deadline = np.concatenate(builder.deadlines)[self.told]
        self.addressed: Array | None = None
        if "destinations" not in builder.layout.columns:
            return
        if not builder.addressed:
            self.addressed = np.zeros(len(self.source), np.uint8)
            self.address_start = np.zeros(len(self.source) + 1, np.int64)
            self.addresses = np.empty(0, np.int32)
            return
        self.addressed = np.concatenate(builder.addressed).astype(np.uint8)[self.told]
        counts = np.concatenate(builder.address_counts)
        codes = np.concatenate(builder.addresses)
        begin = np.cumsum(counts) - counts
        counts, begin = counts[self.told], begin[self.told]
        self.address_start = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
        moved = np.arange(self.address_start[-1]) - np.repeat(self.address_start[:-1] - begin, counts)
        self.addresses = codes[moved]
        kernels.sort_addresses(self.address_start, self.addresses)

    def histories(self) -> list[History]:
        """One for each group."""
        group = self._group_numbers()
        if not len(group):
            return []
        cuts = np.flatnonzero(np.diff(group, prepend=-1)).tolist()
        return [self._history(p, q) for p, q in zip(cuts, [*cuts[1:], len(group)], strict=True)]

    def _history(self, p: int, q: int) -> History:
        """Processes p up to q, with everything counted from their beginning."""
        builder, rows = self.builder, self.rows
        e, f = int(rows.start[p]), int(rows.start[q])
        m, n = int(self.base[p]), int(self.base[q])
        codes = builder.order[p:q]
        names = builder.group_of(int(builder.process_group[codes[0]]))
        events = self.events[e:f]
        if m:
            events = np.where(events >= 0, events - 2 * m, events)
        gaps = [Gap(gap.process - p, gap.last, gap.next) for gap in rows.gaps if p <= gap.process < q]
        history = History(
            group=tuple(zip(builder.layout.by, names, strict=True)),
            nodes=builder.names.names,
            node_of=builder.process_node[codes],
            incarnation=builder.process_life[codes],
            start=rows.start[p : q + 1] - e,
            events=events,
            steps=rows.step[e:f],
            source=self.source[m:n] - p,
            base=self.base[p : q + 1] - m,
            position=np.where(self.position[m:n] >= 0, self.position[m:n] - e, -1).astype(np.int32),
            number=self.number[m:n],
            labels=None if self.numbered else builder.labels.names,
            deliveries=int(np.count_nonzero(rows.source[e:f] >= 0)),
            gaps=gaps,
            deadline=self.deadline[m:n],
            clock=rows.clock[e:f],
            clock_missing=not builder.without_clock.isdisjoint(codes.tolist()),
        )
        if self.addressed is not None:
            history.addressed = self.addressed[m:n]
            history.address_start = self.address_start[m : n + 1] - self.address_start[m]
            history.addresses = self.addresses[self.address_start[m] : self.address_start[n]]
        if self.ghosts:
            self._prove_ghosts(history, p, e, f)
        return history

    def _prove_ghosts(self, history: History, p: int, e: int, f: int) -> None:
        """Deliveries without a broadcast that no missing row can explain."""
        builder, rows = self.builder, self.rows
        places = e + np.flatnonzero(self.events[e:f] == GHOST)
        hidden: list[int] = []
        if self.numbered:
            absent = builder.process_place[rows.source[places]] < 0
            sources = builder.process_place[rows.source[places]] - p
            sources[absent] = ABSENT
            node, life = builder.process_node, builder.process_life
            lost = np.unique(rows.source[places][absent]).tolist()
            hidden = [code for code in lost if history.may_hide(int(node[code]), int(life[code]))]
        else:
            sources = np.full(len(places), ANYONE)
        proven = places[~np.isin(sources, list(history.unreliable(builder.log.truncated is not None)))]
        if hidden:
            proven = proven[~np.isin(rows.source[proven], hidden)]
        history.ghost_count = len(proven)
        for place in proven[:GHOSTS_KEPT].tolist():
            process = history.process_of(place - e)
            history.ghosts.append(Ghost(process, int(rows.step[place]), self._ghost_name(place)))

    def _ghost_name(self, place: int) -> str:
        builder, number = self.builder, int(self.rows.number[place])
        if not self.numbered:
            return builder.labels.names[number]
        code = int(self.rows.source[place])
        node = builder.names.names[int(builder.process_node[code])]
        return name_message(node, int(builder.process_life[code]), number)

    def _complain_about_number(self, e: int) -> None:
        rows, builder = self.rows, self.builder
        if rows.row is None:
            raise Irregular
        p = int(np.searchsorted(rows.start, e, side="right")) - 1
        code = int(builder.order[p])
        before = np.flatnonzero(rows.source[rows.start[p] : e] < -1) + int(rows.start[p])
        number = int(rows.number[e])
        same = before[rows.number[before] == number]
        name = builder.names.names[int(builder.process_node[code])]
        life = int(builder.process_life[code])
        if len(same):
            one, other = sorted((int(rows.row[same[0]]), int(rows.row[e])))
            raise BadInput(
                f"{builder.place(other)}: message {name_message(name, life, number)} is broadcast again "
                f"(first in row {one})"
            )
        who = f"{name} (incarnation {life})" if life else name
        raise BadInput(
            f"{builder.place(int(rows.row[e]))}: node {who} broadcasts number {number} after "
            f"{int(rows.number[before[-1]])}, but numbers ascend with step (if they are only names: "
            "--columns message=…)"
        )

    def _complain_about_label(self, one: int, other: int) -> Any:
        rows = self.rows
        if rows.row is None:
            raise Irregular
        first, again = sorted((int(rows.row[self.position[one]]), int(rows.row[self.position[other]])))
        name = self.builder.labels.names[int(self.number[one])]
        raise BadInput(f"{self.builder.place(again)}: message {name} is broadcast again (first in row {first})")
