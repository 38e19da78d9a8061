"""From rows to histories with numpy and compiled loops: large logs, in about fifty bytes a row.

Names become small numbers as they are read; a row that is neither a broadcast nor a delivery leaves nothing but
its step, checked in passing. That quick reading expects what a recorder writes: each process's rows in their
order. Where a log is otherwise, or contradicts itself, it is read carefully: every row is kept with its place,
sorted, and a complaint can name its row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
from msgspec import Struct

from precede.core.errors import BadInput
from precede.core.natural_order import natural
from precede.witness.history import NEVER, Gap, History
from precede.witness.reading import kernels
from precede.witness.reading.assembly import Assembly, Irregular
from precede.witness.reading.column_names import BROADCAST, DELIVERED, OTHER, Layout
from precede.witness.reading.encode import (
    NO_NAME,
    Array,
    Names,
    Pairs,
    arrow_column,
    demand,
    dictionary_of,
    first_missing,
    integers,
)
from precede.witness.reading.kernels import NO_MESSAGE, UNSEEN
from precede.witness.reading.logs import Log
from precede.witness.reading.plain import destinations, text

_WORDS_SHOWN: Final = 8
_INT32: Final = (1 << 31) - 1


class Kept:
    """The rows that were kept, one column each, with room for a known or growing number of them."""

    def __init__(self, room: int, timed: bool) -> None:
        self.filled = 0
        self.timed = timed
        self.whole: Any = np.int32
        self._allocate(max(room, 1))

    def _allocate(self, room: int) -> None:
        self.process = np.empty(room, np.int32)
        self.step = np.empty(room, self.whole)
        self.source = np.empty(room, np.int32)
        self.number = np.empty(room, self.whole)
        self.clock = np.empty(room if self.timed else 0, np.int64)

    def make_room(self, more: int) -> None:
        if self.filled + more <= len(self.process):
            return
        old = self.columns()
        self._allocate(max(self.filled + more, 2 * len(self.process)))
        for new, values in zip(self.columns(), old, strict=True):
            new[:] = values

    def make_fit(self, *columns: Array) -> None:
        """Steps and numbers are kept in 32 bits until one does not fit: that halves the memory."""
        if self.whole is np.int32 and any(
            column.max(initial=0) > _INT32 or column.min(initial=0) < -_INT32 for column in columns
        ):
            self.whole = np.int64
            self.step, self.number = self.step.astype(np.int64), self.number.astype(np.int64)

    def columns(self) -> tuple[Array, Array, Array, Array, Array]:
        filled = self.filled
        return (
            self.process[:filled],
            self.step[:filled],
            self.source[:filled],
            self.number[:filled],
            self.clock[: filled if self.timed else 0],
        )


class Grouped(Struct):
    """Broadcasts and deliveries, process by process and by step. `row` is there after a careful reading."""

    start: Array
    step: Array
    source: Array
    number: Array
    clock: Array
    row: Array | None
    gaps: list[Gap]


class ArrayBuilder:
    """Takes Arrow batches, checks every value, and gives one history per group."""

    def __init__(self, layout: Layout, log: Log, counted: bool) -> None:
        self.layout = layout
        self.log = log
        self.place = log.place
        self.counted = counted and not layout.row_order
        self.timed = "clock_us" in layout.columns
        self.has_deadline = log.deadlines_elsewhere
        self.other_kinds: dict[str, None] = {}
        self._begin(careful=False)

    def _begin(self, careful: bool) -> None:
        self.careful = careful
        self.rows = 0
        self.broadcasts = 0
        self.names, self.labels, self.group_names = Names(), Names(), [Names() for _ in self.layout.by]
        self.groups = [Pairs() for _ in self.layout.by[1:]]
        self.group_nodes, self.processes = Pairs(), Pairs()
        self.simple = True
        self.kept = Kept(self.log.expected, self.timed)
        self.row_of: list[Array] = []
        self.first_step, self.last_step = np.empty(0, np.int64), np.empty(0, np.int64)
        self.gap_last, self.gap_next = np.empty(0, np.int64), np.empty(0, np.int64)
        self.deadlines: list[Array] = []
        self.addressed: list[Array] = []
        self.address_counts: list[Array] = []
        self.addresses: list[Array] = []
        self.without_clock: set[int] = set()

    @property
    def deliveries_only(self) -> bool:
        """Does the log, all of it, know no broadcasts?"""
        return self.broadcasts == 0 and not self.log.broadcasts_elsewhere

    def read(self, progress: Callable[[int], None] | None) -> list[History]:
        """Read the whole log."""
        reread = hasattr(self.log, "batches")
        if reread:
            try:
                self._read_all(progress)
                return self._finish()
            except Irregular:
                pass
        self._begin(careful=True)
        self._read_all(progress)
        return self._finish()

    def _read_all(self, progress: Callable[[int], None] | None) -> None:
        for batch in self._batches():
            self._take(batch)
            if progress is not None:
                progress(self.rows)

    def _batches(self) -> Iterator[Any]:
        wanted = self.layout.wanted()
        if hasattr(self.log, "batches"):
            yield from self.log.batches(wanted)
            return
        for columns, _ in self.log.read(wanted):
            roles = {theirs: ours for ours, theirs in self.layout.columns.items()}
            arrays = [
                arrow_column(columns[name], roles.get(name, name), self.rows + 1, self.place) for name in wanted
            ]
            yield pa.RecordBatch.from_arrays(arrays, list(wanted))

    # One batch.

    def _take(self, batch: Any) -> None:
        count, first_row = batch.num_rows, self.rows + 1
        if count == 0:
            return
        everywhere = np.ones(count, np.bool_)
        kind = self._kinds(batch, first_row, everywhere)
        node = self._names("node", batch, first_row, everywhere)
        life = self._lives("incarnation", batch, first_row)
        group = self._group(batch, first_row, everywhere)
        if self.layout.row_order:
            step = np.arange(first_row, first_row + count, dtype=np.int64)
        else:
            step, missing = self._integers("step", batch, first_row)
            demand(first_missing(missing, everywhere), first_row, "step", self.place)
        source, source_life, number = self._messages(batch, first_row, kind, node, life)
        process, source_process = self._processes(group, node, life, source, source_life)
        clock = self._clock(batch, first_row, kind, process)
        self._keep(process, step, kind, source_process, number, clock, first_row)
        self._keep_broadcasts(batch, np.flatnonzero(kind == BROADCAST), first_row)
        self.rows += count

    def _kinds(self, batch: Any, first_row: int, everywhere: Array) -> Array:
        constant = self.layout.constant_kind
        if constant is not None:
            return np.full(batch.num_rows, constant, np.uint8)
        encoded = dictionary_of(batch.column(self.layout.columns["kind"]))
        words = encoded.dictionary.to_pylist()
        codes = np.zeros(len(words) + 1, np.uint8)
        absent = np.zeros(len(words) + 1, np.bool_)
        absent[-1] = True
        for at, word in enumerate(words):
            if word is None or word == "":
                absent[at] = True
                continue
            written = text(word, first_row, "kind", self.place)
            codes[at] = self.layout.kinds.get(written, OTHER)
            if codes[at] == OTHER and len(self.other_kinds) < _WORDS_SHOWN:
                self.other_kinds[written] = None
        indices = encoded.indices.fill_null(len(words)).to_numpy(zero_copy_only=False)
        if encoded.indices.null_count or absent[:-1].any():
            demand(first_missing(absent[indices], everywhere), first_row, "kind", self.place)
        found: Array = codes[indices]
        return found

    def _names(self, title: str, batch: Any, first_row: int, needed: Array) -> Array:
        column = batch.column(self.layout.columns[title])
        codes = self.names.column(column, first_row, title, self.place)
        self._demand_names(codes, first_row, title, needed)
        return codes

    def _demand_names(self, codes: Array, first_row: int, title: str, needed: Array) -> None:
        if codes.min(initial=0) == NO_NAME:
            demand(first_missing(codes == NO_NAME, needed), first_row, title, self.place)

    def _integers(self, title: str, batch: Any, first_row: int) -> tuple[Array, Array | None]:
        return integers(batch.column(self.layout.columns[title]), first_row, title, self.place)

    def _lives(self, title: str, batch: Any, first_row: int) -> Array | None:
        """Incarnations, or None when all of them are the first."""
        if title not in self.layout.columns:
            return None
        lives, _ = self._integers(title, batch, first_row)
        if not lives.any():
            return None
        if abs(lives).max() > _INT32:
            row = first_row + int(np.argmax(abs(lives) > _INT32))
            raise BadInput(f"{self.place(row)}: {title} is too large: {lives[row - first_row]}")
        return lives.astype(np.int32)

    def _group(self, batch: Any, first_row: int, everywhere: Array) -> Array | None:
        """Which independent order each row belongs to, or None while there is but one."""
        codes: Array | None = None
        for at, name in enumerate(self.layout.by):
            column = self.group_names[at].column(batch.column(name), first_row, name, self.place)
            self._demand_names(column, first_row, "a column of --by", everywhere)
            codes = column if codes is None else self.groups[at - 1].column(codes, column)
        return None if codes is None or not codes.any() else codes

    def _messages(
        self, batch: Any, first_row: int, kind: Array, node: Array, life: Array | None
    ) -> tuple[Array, Array | None, Array]:
        """Source, its incarnation and number of each row's message; for opaque ids the number is the id's."""
        about = kind != OTHER
        if not self.layout.numbered:
            column = batch.column(self.layout.columns["message"])
            labels = self.labels.column(column, first_row, "message", self.place)
            self._demand_names(labels, first_row, "message", about)
            return node, life, labels.astype(np.int64)
        column = batch.column(self.layout.columns["message_source"])
        source = self.names.column(column, first_row, "message_source", self.place)
        self._demand_names(source, first_row, "message_source", kind == DELIVERED)
        if source.min() == NO_NAME:
            source = np.where(source == NO_NAME, node, source)
        number, missing = self._integers("message_number", batch, first_row)
        demand(first_missing(missing, about), first_row, "message_number", self.place)
        lives = self._lives("message_incarnation", batch, first_row)
        if "message_incarnation" in self.layout.columns and life is not None:
            lives = self._own_lives(batch, first_row, kind, life, lives)
        elif life is not None:
            lives = np.where(kind == BROADCAST, life, np.int32(0))
        return source, lives, number

    def _own_lives(
        self, batch: Any, first_row: int, kind: Array, life: Array, lives: Array | None
    ) -> Array | None:
        """A broadcast row that leaves its message's incarnation out means its own."""
        _, missing = self._integers("message_incarnation", batch, first_row)
        if missing is None:
            return lives
        given = np.zeros(len(life), np.int32) if lives is None else lives
        return np.where(missing & (kind == BROADCAST), life, given)

    def _processes(
        self, group: Array | None, node: Array, life: Array | None, source: Array, source_life: Array | None
    ) -> tuple[Array, Array]:
        """The processes of rows and of their messages' sources: nodes, until groups or incarnations come."""
        if self.simple and group is None and life is None and source_life is None:
            return node, source
        if self.simple:
            self.simple = False
            known = np.arange(len(self.names.names), dtype=np.int32)
            nought = np.zeros(len(known), np.int32)
            self.processes.column(self.group_nodes.column(nought, known), nought)
        nothing = np.zeros(len(node), np.int32)
        groups = nothing if group is None else group
        mine = self.processes.column(self.group_nodes.column(groups, node), nothing if life is None else life)
        theirs = self.processes.column(
            self.group_nodes.column(groups, source), nothing if source_life is None else source_life
        )
        return mine, theirs

    def _clock(self, batch: Any, first_row: int, kind: Array, process: Array) -> Array:
        """Local times; the processes that delivered without one are noted."""
        if not self.timed:
            return np.empty(0, np.int64)
        clock, missing = self._integers("clock_us", batch, first_row)
        if missing is not None:
            self.without_clock.update(np.unique(process[missing & (kind == DELIVERED)]).tolist())
        return clock

    def _keep(
        self,
        process: Array,
        step: Array,
        kind: Array,
        source: Array,
        number: Array,
        clock: Array,
        first_row: int,
    ) -> None:
        kept = self.kept
        kept.make_room(len(process))
        kept.make_fit(step, number)
        self._make_process_room()
        if self.careful:
            self._keep_carefully(process, step, kind, source, number, clock, first_row)
            return
        filled, self.broadcasts = kernels.take_rows(
            *(process, step, kind, source, number, clock, self.layout.numbered),
            *(self.first_step, self.last_step, self.gap_last, self.gap_next),
            *(kept.process, kept.step, kept.source, kept.number, kept.clock, kept.filled, self.broadcasts),
        )
        if filled < 0:
            raise Irregular
        kept.filled = filled

    def _keep_carefully(
        self,
        process: Array,
        step: Array,
        kind: Array,
        source: Array,
        number: Array,
        clock: Array,
        first_row: int,
    ) -> None:
        """Keep every row, whatever it is."""
        born = kind == BROADCAST
        if self.layout.numbered and (source != process)[born].any():
            at = int(np.flatnonzero(born & (source != process))[0])
            who, named = self._process_name(int(process[at])), self._process_name(int(source[at]))
            raise BadInput(
                f"{self.place(first_row + at)}: node {who} broadcasts a message whose source is {named}"
            )
        kept = self.kept
        here = slice(kept.filled, kept.filled + len(process))
        numbers = np.cumsum(born) - 1 + self.broadcasts
        kept.process[here], kept.step[here], kept.number[here] = process, step, number
        kept.source[here] = np.where(born, -2 - numbers, np.where(kind == OTHER, NO_MESSAGE, source))
        if self.timed:
            kept.clock[here] = clock
        self.row_of.append(np.arange(first_row, first_row + len(process), dtype=np.int64))
        self.broadcasts += int(born.sum())
        kept.filled += len(process)

    def _make_process_room(self) -> None:
        count = len(self.names.names) if self.simple else self.processes.count
        if count > len(self.last_step):
            more = np.full(max(count, 64), UNSEEN, np.int64)
            for name in ("first_step", "last_step", "gap_last", "gap_next"):
                setattr(self, name, np.concatenate((getattr(self, name), more)))

    def _keep_broadcasts(self, batch: Any, places: Array, first_row: int) -> None:
        """What only broadcast rows say: deadline and destinations, in the order in which they come."""
        columns = self.layout.columns
        if not len(places):
            return
        if "deadline_us" in columns:
            column = batch.column(columns["deadline_us"]).take(pa.array(places))
            deadlines, missing = integers(column, first_row, "deadline_us", self.place)
            if missing is not None:
                deadlines = np.where(missing, NEVER, deadlines)
            self.has_deadline = self.has_deadline or missing is None or not missing.all()
            self.deadlines.append(deadlines)
        if "destinations" in columns:
            column = batch.column(columns["destinations"]).take(pa.array(places))
            self._keep_destinations(column, places, first_row)

    def _keep_destinations(self, column: Any, places: Array, first_row: int) -> None:
        if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
            given = column.is_valid().to_numpy(zero_copy_only=False)
            counts = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
            codes = self.names.column(column.flatten(), first_row, "destinations", self.place)
        else:
            lists = [
                destinations(value, first_row + int(at), self.place)
                for value, at in zip(column.to_pylist(), places, strict=True)
            ]
            given = np.array([one is not None for one in lists], np.bool_)
            counts = np.array([len(one or ()) for one in lists], np.int64)
            codes = np.array([self.names.code(name) for one in lists for name in one or ()], np.int32)
        self.addressed.append(given)
        self.address_counts.append(counts)
        self.addresses.append(codes)

    # All of them.

    def _finish(self) -> list[History]:
        if self.rows == 0:
            return []
        self._settle_processes()
        return Assembly(self, self._grouped_carefully() if self.careful else self._grouped()).histories()

    def _settle_processes(self) -> None:
        """Every process that has rows, in the natural order of group, node and incarnation."""
        count = len(self.names.names)
        if self.simple:
            self.process_node = np.arange(count, dtype=np.int32)
            self.process_group = np.zeros(count, np.int32)
            self.process_life = np.zeros(count, np.int32)
        else:
            group_node = self.processes.first()
            self.process_group = self.group_nodes.first()[group_node]
            self.process_node = self.group_nodes.second()[group_node]
            self.process_life = self.processes.second()
        present = np.zeros(len(self.process_node), np.bool_)
        if self.careful:
            present[np.unique(self.kept.columns()[0])] = True
        else:
            present[:] = self.last_step[: len(present)] != UNSEEN
        if self.deliveries_only and self.layout.numbered:
            sources = self.kept.columns()[2]
            present[np.unique(sources[sources >= 0])] = True
        keys = {code: self._sort_key(code) for code in np.flatnonzero(present).tolist()}
        self.order = np.array(sorted(keys, key=keys.__getitem__), np.int32)
        self.process_place = np.full(len(present), -1, np.int32)
        self.process_place[self.order] = np.arange(len(self.order), dtype=np.int32)

    def _sort_key(self, process: int) -> Any:
        group = tuple(natural(name) for name in self.group_of(int(self.process_group[process])))
        node = self.names.names[int(self.process_node[process])]
        return group, natural(node), int(self.process_life[process])

    def group_of(self, group: int) -> tuple[str, ...]:
        """The values of the columns that name an independent order."""
        if not self.layout.by:
            return ()
        parts: list[str] = []
        for names, pairs in zip(self.group_names[:0:-1], self.groups[::-1], strict=True):
            parts.append(names.names[int(pairs.second()[group])])
            group = int(pairs.first()[group])
        return (self.group_names[0].names[group], *reversed(parts))

    def _process_name(self, process: int) -> str:
        if self.simple:
            return self.names.names[process]
        life = int(self.processes.second()[process])
        node = self.names.names[int(self.group_nodes.second()[self.processes.first()[process]])]
        return f"{node} (incarnation {life})" if life else node

    def _grouped(self) -> Grouped:
        """The kept rows process by process: they came in order, so one counting pass does it."""
        process, step, source, number, clock = self.kept.columns()
        counts = np.bincount(process, minlength=len(self.process_place))[self.order]
        start = np.zeros(len(self.order) + 1, np.int32)
        np.cumsum(counts, out=start[1:])
        rows = len(process)
        to = Grouped(
            start=start,
            step=np.empty(rows, step.dtype),
            source=np.empty(rows, np.int32),
            number=np.empty(rows, number.dtype),
            clock=np.empty(len(clock), np.int64),
            row=None,
            gaps=self._gaps(),
        )
        kernels.group_rows(
            *(process, self.process_place, start[:-1].copy(), step, source, number, clock),
            *(to.step, to.source, to.number, to.clock),
        )
        self.kept = Kept(0, timed=False)
        return to

    def _gaps(self) -> list[Gap]:
        """Where each process's steps first jump."""
        gaps: list[Gap] = []
        if not self.counted:
            return gaps
        for place, code in enumerate(self.order.tolist()):
            first = int(self.first_step[code])
            if first == UNSEEN:
                continue
            if first > 1 and first - 1 != self._end_of_life_before(place):
                gaps.append(Gap(place, None, first))
            elif self.gap_next[code] != UNSEEN:
                gaps.append(Gap(place, int(self.gap_last[code]), int(self.gap_next[code])))
        return gaps

    def _end_of_life_before(self, place: int) -> int | None:
        """The last step of the same node's incarnation before this one: steps may continue from there."""
        if place == 0:
            return None
        before, code = int(self.order[place - 1]), int(self.order[place])
        same = (
            self.process_node[before] == self.process_node[code]
            and self.process_group[before] == self.process_group[code]
        )
        return int(self.last_step[before]) if same else None

    def _grouped_carefully(self) -> Grouped:
        """The kept rows sorted by process and step, checked, and then without those that are no messages."""
        process, step, source, number, clock = self.kept.columns()
        place = self.process_place[process]
        order = np.lexsort((step, place))
        place, step, source, number = place[order], step[order], source[order], number[order]
        row = np.concatenate(self.row_of)[order]
        same = place[1:] == place[:-1]
        doubled = np.flatnonzero(same & (step[1:] == step[:-1]))
        if len(doubled):
            at = doubled[np.argmin(row[doubled + 1])]
            one, other = sorted((int(row[at]), int(row[at + 1])))
            who = self._process_name(int(self.order[place[at]]))
            raise BadInput(f"{self.place(other)}: step {step[at]} of node {who} is there twice (row {one})")
        self._note_steps(place, step, same)
        keep = source != NO_MESSAGE
        start = np.zeros(len(self.order) + 1, np.int32)
        np.cumsum(np.bincount(place[keep], minlength=len(self.order)), out=start[1:])
        clock = clock[order][keep] if self.timed else clock
        return Grouped(start, step[keep], source[keep], number[keep], clock, row[keep], self._gaps())

    def _note_steps(self, place: Array, step: Array, same: Array) -> None:
        """What the quick reading notes in passing: first and last steps, and where they first jump."""
        begin = np.flatnonzero(np.concatenate(([True], ~same)))
        end = np.concatenate((begin[1:], [len(step)])) - 1
        codes = self.order[place[begin]]
        self.first_step[codes], self.last_step[codes] = step[begin], step[end]
        jumps = np.flatnonzero(same & (step[1:] != step[:-1] + 1))[::-1]
        self.gap_last[self.order[place[jumps]]] = step[jumps]
        self.gap_next[self.order[place[jumps]]] = step[jumps + 1]
