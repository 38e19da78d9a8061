"""Seen: what a DRIFT node knows of the sources' clocks (drift2006, sections 4.1, 4.2 and 4.4).

An entry <q, sn, ts> says: after its message sn, the clock of q stood at ts, so its message sn+1 will be later
than ts. It may be used once every message of q up to sn is in hand. Per source the freshest entry travels and
lies in a `ClockTable`. Only while that one is ahead of what is in hand (a clock has overtaken a message) older
entries matter: the best one that may be used already, and, in the full form, those for the messages in between.
The two-entry form of section 4.4 keeps the former and forgets the latter.

Tables that are heard are merged when it matters: before a table is sent, and when one of them may have brought
what the first pending message waits for, which one comparison of eight bytes tells. The last one is merged
first, because neighbours hear each other: it usually contains what the earlier ones would bring.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from random import Random
from typing import Any, Final

from precede.protocols.clock_table import (
    COLUMN_BYTES,
    Clock,
    ClockTable,
    lowest_with,
    place_of,
    read_table,
    unpack_clocks,
)
from precede.protocols.drift_packets import Chosen
from precede.protocols.floods import Stream, StreamId
from precede.protocols.virtual_flooding import Choice, choice

MOST_HEARD: Final = 16
_NEVER: Final = b"\xff" * COLUMN_BYTES


class _Ahead:
    """A source whose freshest clock cannot be used yet."""

    __slots__ = ("best", "later")

    def __init__(self, best: int) -> None:
        self.best = best
        self.later: dict[int, int] = {}


class Seen:
    """One column per source whose clock counts. `limit` None: the whole table travels."""

    def __init__(self, random: Random, limit: int | None, policy: str, two_entries: bool) -> None:
        self.columns: tuple[StreamId, ...] = ()
        self.index: dict[StreamId, int] = {}
        self.layout = 0
        self.heard: list[bytes] = []
        self.place = slice(0, COLUMN_BYTES)
        self.need = _NEVER
        self.ripe = False
        self.limit = limit
        self.table = ClockTable(())
        self._streams: list[Stream[Any]] = []
        self._ahead: dict[int, _Ahead] = {}
        self._two_entries = two_entries
        self._layouts: dict[int, tuple[StreamId, ...]] = {}
        self._label = (0, 0)
        self._choice: Choice[StreamId] | None = None if limit is None else choice(policy, random)

    def set_columns(self, streams: Sequence[Stream[Any]], clocks: Sequence[Clock]) -> None:
        """A new set of sources, with a clock for each; what is known of those that stay is kept."""
        self.settle()
        kept = {id: (self.table.get(column), self._ahead.get(column)) for id, column in self.index.items()}
        self._streams = list(streams)
        self.columns = tuple(stream.id for stream in streams)
        self.index = {id: column for column, id in enumerate(self.columns)}
        self.label(*self._label)
        for id in kept:
            if id not in self.index and self._choice is not None:
                self._choice.forget(id)
        self._ahead = {self.index[id]: late for id, (_, late) in kept.items() if late and id in self.index}
        beginnings = zip(self.columns, clocks, strict=True)
        self.table = ClockTable([kept[id][0] if id in kept else clock for id, clock in beginnings])
        if self._choice is not None:
            for id in self.columns:
                if id not in kept:
                    self._choice.changed(id)

    def label(self, group: int, view: int) -> None:
        """The layout names group, view and columns in one: one comparison says that all three are the same."""
        self.settle()
        self._label = group, view
        self.layout = fingerprint(group, view, self.columns)
        self._layouts[self.layout] = self.columns

    # -- learning ----------------------------------------------------------------------------------------

    def advance(self, column: int, number: int, timestamp: int) -> None:
        """A message is in hand, with all before it: its own timestamp is an entry too (the repair D2)."""
        if self.table.raise_to(column, number, timestamp) and self._choice is not None:
            self._choice.changed(self.columns[column])
        late = self._ahead.get(column)
        if late is not None:
            received = self._streams[column].received
            late.best = max(late.best, timestamp)
            for early in [early for early in late.later if early <= received]:
                late.best = max(late.best, late.later.pop(early))
            if self.table.get(column)[0] <= received:
                del self._ahead[column]

    def hear(self, theirs: bytes, layout: int) -> bool:
        """A whole table; True when it may have brought what the first pending message waits for."""
        if layout != self.layout:
            columns = self._layouts.get(layout)
            if columns is None or len(columns) * COLUMN_BYTES != len(theirs):
                return False
            return self._merge_other(columns, theirs)
        self.heard.append(theirs)
        if theirs[self.place] >= self.need or len(self.heard) >= MOST_HEARD:
            self.ripe = True
        return self.ripe

    def settle(self) -> bool:
        """Merge what was heard; True when there was news."""
        self.ripe = False
        if not self.heard:
            return False
        heard, self.heard = self.heard, []
        heard.reverse()
        news = False
        width = COLUMN_BYTES * self.table.width
        for table in heard:
            if len(table) == width:
                news = self._merge_table(read_table(table)) or news
        return news

    def _merge_table(self, theirs: int) -> bool:
        table = self.table
        news = bool(self._ahead) and self._use_older(theirs)
        where = table.risen(theirs)
        if not where:
            return news
        before = table.packed
        numbers = table.take(theirs, where)
        if numbers:
            for column in table.columns_of(numbers):
                self._number_rose(column, *table.entry(before, column))
        return True

    def _merge_other(self, columns: Sequence[StreamId], theirs: bytes) -> bool:
        """A table with columns this node had earlier."""
        chosen = zip(columns, unpack_clocks(theirs), strict=True)
        return self.merge_chosen([(*id, number, timestamp) for id, (number, timestamp) in chosen])

    def merge_chosen(self, chosen: Sequence[Chosen]) -> bool:
        """Single entries as heard."""
        news = False
        for source, life, number, timestamp in chosen:
            column = self.index.get((source, life))
            if column is not None and self._take(column, number, timestamp):
                news = True
        return news

    def _take(self, column: int, number: int, timestamp: int) -> bool:
        before_number, before = self.table.get(column)
        if timestamp > before:
            self.table.raise_to(column, number, timestamp)
            if self._choice is not None:
                self._choice.changed(self.columns[column])
            if number != before_number:
                self._number_rose(column, before_number, before)
            return True
        late = self._ahead.get(column)
        return late is not None and self._use_entry(column, late, number, timestamp)

    def _number_rose(self, column: int, number: int, timestamp: int) -> None:
        """The freshest entry speaks of a later message than <number, timestamp> did, the one before it."""
        received = self._streams[column].received
        late = self._ahead.get(column)
        if self.table.get(column)[0] <= received:
            return
        if late is None:
            self._ahead[column] = _Ahead(timestamp)
        elif not self._two_entries:
            late.later[number] = max(late.later.get(number, 0), timestamp)

    def _use_older(self, packed: int) -> bool:
        """Of a source that is ahead, an entry that is not the freshest can still be the one to use."""
        news = False
        for column, late in self._ahead.items():
            if self._use_entry(column, late, *self.table.entry(packed, column)):
                news = True
        return news

    def _use_entry(self, column: int, late: _Ahead, number: int, timestamp: int) -> bool:
        if number <= self._streams[column].received:
            if timestamp > late.best:
                late.best = timestamp
                return True
        elif not self._two_entries and number < self.table.get(column)[0]:
            late.later[number] = max(late.later.get(number, 0), timestamp)
        return False

    # -- asking ------------------------------------------------------------------------------------------

    def known(self, column: int) -> int:
        """The timestamp below which nothing of this source can come any more, by what was merged."""
        late = self._ahead.get(column)
        return self.table.timestamp(column) if late is None else late.best

    def lacking(self, timestamp: int) -> int:
        """A column that keeps a message with this timestamp from being safe; -1 when there is none."""
        self.settle()
        below = self.table.below(timestamp)
        if below:
            return self.table.first_of(below)
        for column, late in self._ahead.items():
            if late.best < timestamp:
                return column
        return -1

    def watch(self, column: int, timestamp: int) -> None:
        """From now on a table is `ripe` when it has this timestamp in this column (-1: in none)."""
        self.ripe = False
        self.place = place_of(max(column, 0))
        self.need = lowest_with(timestamp) if column >= 0 else _NEVER

    def all_lacking(self, timestamp: int) -> list[StreamId]:
        """Every source that keeps a message with this timestamp from being safe."""
        self.settle()
        return [id for column, id in enumerate(self.columns) if self.known(column) < timestamp]

    @property
    def any_ahead(self) -> bool:
        return bool(self._ahead)

    def rumours(self) -> list[tuple[Stream[Any], int]]:
        """Streams of which a message is known to exist that is not in hand, with its number."""
        return [(self._streams[column], self.table.get(column)[0]) for column in self._ahead]

    # -- telling -----------------------------------------------------------------------------------------

    def whole_table(self) -> bytes:
        """What travels when nothing limits it."""
        self.settle()
        return self.table.to_bytes()

    def chosen(self) -> tuple[Chosen, ...]:
        """What travels under a limit."""
        assert self._choice is not None
        assert self.limit is not None
        return tuple((*id, *self.table.get(self.index[id])) for id in self._choice.choose(self.limit))

    def clock_of(self, id: StreamId) -> Clock:
        return self.table.get(self.index[id])

    def entries(self) -> int:
        """How many entries this node keeps."""
        return len(self.columns) + len(self._ahead) + sum(len(late.later) for late in self._ahead.values())


def fingerprint(group: int, view: int, columns: Sequence[StreamId]) -> int:
    """A short name for a set of columns in a view of a group, the same at every node."""
    text = ",".join([f"{group}/{view}", *(f"{source}.{life}" for source, life in columns)])
    return int.from_bytes(blake2b(text.encode(), digest_size=6).digest(), "big")
