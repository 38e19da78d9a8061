"""Reads a large log into histories with numpy and numba, in about fifty bytes a row.

Names become small integers as batches are read. The first reading expects each process's rows in the order of
its steps, as a recorder writes them. A log that is not, or that contradicts itself, is read a second time: then
every row is stored and sorted, and an error message names its row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from precede.core.errors import BadInput
from precede.eventlog.python_values import null_mask, without_nulls
from precede.witness.history import NEVER, History
from precede.witness.reading.assembly import Assembly, BroadcastColumns
from precede.witness.reading.column_names import BROADCAST, DELIVERED, OTHER, Layout
from precede.witness.reading.encode import (
    NO_NAME,
    Array,
    Names,
    arrow_column,
    dictionary_of,
    first_missing,
    integers,
    require,
    take,
)
from precede.witness.reading.logs import Log
from precede.witness.reading.processes import ProcessTable
from precede.witness.reading.row_store import INT32, Batch, Irregular, RowStore
from precede.witness.reading.values import destinations, text

_WORDS_SHOWN: Final = 8


class ArrayBuilder:
    """Reads Arrow batches, checks every value, and builds one history per group (independent order)."""

    def __init__(self, layout: Layout, log: Log, counted: bool) -> None:
        self.layout = layout
        self.log = log
        self.place = log.place
        self.counted = counted and not layout.row_order
        self.timed = "clock_us" in layout.columns
        self.has_deadline = log.deadlines_elsewhere
        self.other_kinds: dict[str, None] = {}
        self._begin(sorting=False)

    def _begin(self, sorting: bool) -> None:
        self.rows = 0
        self.labels = Names()
        self.processes = ProcessTable(self.layout.by)
        self.store = RowStore(self.processes, self.log.expected, self.timed, self.layout.numbered, sorting)
        self.broadcasts = BroadcastColumns("destinations" in self.layout.columns)
        self.without_clock: set[int] = set()

    @property
    def deliveries_only(self) -> bool:
        """True when the whole log has no broadcast row."""
        return self.store.broadcasts == 0 and not self.log.broadcasts_elsewhere

    def read(self, progress: Callable[[int], None] | None) -> list[History]:
        """Read the whole log, a second time with sorting if its rows are not in order."""
        can_read_twice = hasattr(self.log, "batches")
        if can_read_twice:
            try:
                return self._read(progress)
            except Irregular:
                pass
        self._begin(sorting=True)
        return self._read(progress)

    def _read(self, progress: Callable[[int], None] | None) -> list[History]:
        for batch in self._batches():
            self._add(batch)
            if progress is not None:
                progress(self.rows)
        return self._histories()

    def _batches(self) -> Iterator[Any]:
        names = self.layout.names_to_read()
        if hasattr(self.log, "batches"):
            yield from self.log.batches(names)
            return
        if hasattr(self.log, "text_batches"):
            yield from self.log.text_batches(names)
        roles = {theirs: ours for ours, theirs in self.layout.columns.items()}
        for columns, _ in self.log.read(names):
            arrays = [
                arrow_column(columns[name], roles.get(name, name), self.rows + 1, self.place) for name in names
            ]
            yield pa.RecordBatch.from_arrays(arrays, list(names))

    def _histories(self) -> list[History]:
        if self.rows == 0:
            return []
        without_broadcasts = self.deliveries_only
        self.processes.settle(self.store.present(without_broadcasts and self.layout.numbered))
        rows = self.store.grouped(self.counted, self.place)
        if self.log.known_gaps is not None:
            rows.gaps = self.processes.gaps(self.log.known_gaps)
        assembly = Assembly(
            processes=self.processes,
            rows=rows,
            broadcasts=None if without_broadcasts else self.store.broadcasts,
            columns=self.broadcasts,
            labels=None if self.layout.numbered else self.labels,
            place=self.place,
        )
        return assembly.histories(self.log.truncated is not None, self.without_clock)

    def _add(self, batch: Any) -> None:
        count, first_row = batch.num_rows, self.rows + 1
        if count == 0:
            return
        everywhere = np.ones(count, np.bool_)
        kind = self._kinds(batch, first_row, everywhere)
        node = self._nodes("node", batch, first_row, everywhere)
        incarnation = self._incarnations("incarnation", batch, first_row)
        group = self._groups(batch, first_row, everywhere)
        if self.layout.row_order:
            step = np.arange(first_row, first_row + count, dtype=np.int64)
        else:
            step, missing = self._integers("step", batch, first_row)
            require(first_missing(missing, everywhere), first_row, "step", self.place)
        source, source_incarnation, number = self._messages(batch, first_row, kind, node, incarnation)
        process, source_process = self.processes.codes(group, node, incarnation, source, source_incarnation)
        clock = self._clock(batch, first_row, kind, process)
        self.store.add(Batch(first_row, process, step, kind, source_process, number, clock), self.place)
        self._add_broadcasts(batch, np.flatnonzero(kind == BROADCAST), first_row)
        self.rows += count

    def _kinds(self, batch: Any, first_row: int, everywhere: Array) -> Array:
        """Return BROADCAST, DELIVERED or OTHER for each row."""
        constant = self.layout.constant_kind
        if constant is not None:
            return np.full(batch.num_rows, constant, np.uint8)
        encoded = dictionary_of(batch.column(self.layout.columns["kind"]))
        words = encoded.dictionary.to_pylist()
        codes = np.zeros(len(words) + 1, np.uint8)
        is_missing = np.zeros(len(words) + 1, np.bool_)
        is_missing[-1] = True
        for at, word in enumerate(words):
            if word is None or word == "":
                is_missing[at] = True
                continue
            written = text(word, first_row, "kind", self.place)
            codes[at] = self.layout.kinds.get(written, OTHER)
            if codes[at] == OTHER and len(self.other_kinds) < _WORDS_SHOWN:
                self.other_kinds[written] = None
        indices = without_nulls(encoded.indices, len(words))
        if encoded.indices.null_count or is_missing[:-1].any():
            require(first_missing(is_missing[indices], everywhere), first_row, "kind", self.place)
        kinds: Array = codes[indices]
        return kinds

    def _nodes(self, title: str, batch: Any, first_row: int, needed: Array) -> Array:
        """Return a column of node names as codes. Where `needed` is True a name is required."""
        column = batch.column(self.layout.columns[title])
        codes = self.processes.nodes.column(column, first_row, title, self.place)
        self._require_names(codes, first_row, title, needed)
        return codes

    def _require_names(self, codes: Array, first_row: int, title: str, needed: Array) -> None:
        if codes.min(initial=0) == NO_NAME:
            require(first_missing(codes == NO_NAME, needed), first_row, title, self.place)

    def _integers(self, title: str, batch: Any, first_row: int) -> tuple[Array, Array | None]:
        return integers(batch.column(self.layout.columns[title]), first_row, title, self.place)

    def _incarnations(self, title: str, batch: Any, first_row: int) -> Array | None:
        """Return a column of incarnations, or None when all of them are 0."""
        if title not in self.layout.columns:
            return None
        column = batch.column(self.layout.columns[title])
        if pa.types.is_integer(column.type) and not without_nulls(column, 0).any():
            return None
        incarnations, _ = self._integers(title, batch, first_row)
        if not incarnations.any():
            return None
        too_large = abs(incarnations) > INT32
        if too_large.any():
            row = first_row + int(np.argmax(too_large))
            raise BadInput(f"{self.place(row)}: {title} is too large: {incarnations[row - first_row]}")
        return incarnations.astype(np.int32)

    def _groups(self, batch: Any, first_row: int, everywhere: Array) -> Array | None:
        """Return the code of the independent order of each row; None if all rows of the batch have code 0."""
        table = self.processes
        codes: Array | None = None
        for at, name in enumerate(self.layout.by):
            column = table.group_names[at].column(batch.column(name), first_row, name, self.place)
            self._require_names(column, first_row, "a column of --by", everywhere)
            codes = column if codes is None else table.groups[at - 1].column(codes, column)
        return None if codes is None or not codes.any() else codes

    def _messages(
        self, batch: Any, first_row: int, kind: Array, node: Array, incarnation: Array | None
    ) -> tuple[Array, Array | None, Array]:
        """Return the source of each row's message, the source's incarnation, and the number.

        For opaque ids the number is the code of the id, and the source is not known: it is the row's own node.
        """
        is_message = kind != OTHER
        if not self.layout.numbered:
            column = batch.column(self.layout.columns["message"])
            labels = self.labels.column(column, first_row, "message", self.place)
            self._require_names(labels, first_row, "message", is_message)
            return node, incarnation, labels.astype(np.int64)
        source = self._nodes("message_source", batch, first_row, kind == DELIVERED)
        if source.min() == NO_NAME:
            source = np.where(source == NO_NAME, node, source)
        number, missing = self._integers("message_number", batch, first_row)
        require(first_missing(missing, is_message), first_row, "message_number", self.place)
        return source, self._source_incarnations(batch, first_row, kind, incarnation), number

    def _source_incarnations(
        self, batch: Any, first_row: int, kind: Array, incarnation: Array | None
    ) -> Array | None:
        """Return the incarnation of each message's source; a broadcast row without one means its own."""
        written = self._incarnations("message_incarnation", batch, first_row)
        if incarnation is None:
            return written
        if "message_incarnation" not in self.layout.columns:
            return np.where(kind == BROADCAST, incarnation, np.int32(0))
        _, missing = self._integers("message_incarnation", batch, first_row)
        if missing is None:
            return written
        others = np.zeros(len(incarnation), np.int32) if written is None else written
        return np.where(missing & (kind == BROADCAST), incarnation, others)

    def _clock(self, batch: Any, first_row: int, kind: Array, process: Array) -> Array:
        """Return the local times of the rows; note the processes that have a delivery without one."""
        if not self.timed:
            return np.empty(0, np.int64)
        clock, missing = self._integers("clock_us", batch, first_row)
        if missing is not None:
            self.without_clock.update(np.unique(process[missing & (kind == DELIVERED)]).tolist())
        return clock

    def _add_broadcasts(self, batch: Any, places: Array, first_row: int) -> None:
        """Keep the deadlines and destinations of the broadcast rows, in the order of the log."""
        columns = self.layout.columns
        if not len(places):
            return
        if "deadline_us" in columns:
            column = take(batch.column(columns["deadline_us"]), places)
            deadlines, missing = integers(column, first_row, "deadline_us", self.place)
            if missing is not None:
                deadlines = np.where(missing, NEVER, deadlines)
            self.has_deadline = self.has_deadline or missing is None or not missing.all()
            self.broadcasts.deadlines.append(deadlines)
        if "destinations" in columns:
            column = take(batch.column(columns["destinations"]), places)
            self._add_destinations(column, places, first_row)

    def _add_destinations(self, column: Any, places: Array, first_row: int) -> None:
        names = self.processes.nodes
        if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
            missing = null_mask(column)
            addressed = np.ones(len(column), np.bool_) if missing is None else ~missing
            counts = without_nulls(column.value_lengths(), 0)
            codes = names.column(column.flatten(), first_row, "destinations", self.place)
        else:
            lists = [
                destinations(value, first_row + int(at), self.place)
                for value, at in zip(column.to_pylist(), places, strict=True)
            ]
            addressed = np.array([one is not None for one in lists], np.bool_)
            counts = np.array([len(one or ()) for one in lists], np.int64)
            codes = np.array([names.code(name) for one in lists for name in one or ()], np.int32)
        self.broadcasts.addressed.append(addressed)
        self.broadcasts.address_counts.append(counts)
        self.broadcasts.addresses.append(codes)
