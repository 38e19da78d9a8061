"""Seen: the clocks of the sources as a DRIFT node knows them (drift2006, sections 4.1, 4.2 and 4.4).

An entry <q, sn, ts> means: after its message sn, the clock of q was ts, so its message sn+1 will be later than
ts. The entry is usable once every message of q up to sn is here. Packets carry the freshest entry of each
source, which is kept in a `ClockTable`. Older entries matter only while the freshest one is not usable (a clock
has overtaken a message): then the node keeps the best usable entry, and in the full form also those for the
messages in between. The two-entry form of section 4.4 keeps the former only.

Tables of received packets are merged late: before a table is sent, and when one of them may have the clock that
the first pending message waits for, which one comparison of a few bytes tells. The last table is merged first:
neighbours receive the same packets, so it usually contains everything that the earlier ones have.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from random import Random
from typing import Any, Final

from mypy_extensions import i64, mypyc_attr

from precede.core.compiling import is_compiled
from precede.protocols.drift2006 import clock_table
from precede.protocols.drift2006.clock_table import HIGHEST, NARROW, WIDE, Clock, ClockTable, Form
from precede.protocols.drift2006.packets import Chosen
from precede.protocols.floods.stream import Stream, StreamId
from precede.protocols.floods.virtual_flooding import Choice, Policy, choice

_MOST_UNMERGED: Final = 512


class _Ahead:
    """Older entries of a source, while its freshest is not usable: the `best` usable one, and `later` ones."""

    __slots__ = ("best", "later")

    def __init__(self, best: int) -> None:
        self.best = best
        self.later: dict[int, int] = {}


@mypyc_attr(allow_interpreted_subclasses=True)
class Seen:
    """The clocks of all sources, one column per source. `limit` None: packets carry the whole table.

    `columns`, `index`: the sources in their order, and the column of each. `layout`: a hash of group, view and
    columns. `plain_layout`: `layout` if `DriftNode.receive` may use its fast path (`plain`), else -1.
    `unmerged`: received tables that are not merged yet. `ahead`: sources whose freshest entry is not usable, by
    column.
    `watched`: the column for which the first pending message waits. `_place`, `_need`: the byte where that
    column begins in a received table, and the value that it must reach. `ripe`: a table in `unmerged` reaches
    it.
    """

    def __init__(self, random: Random, limit: int | None, policy: Policy, two_entries: bool) -> None:
        self.columns: tuple[StreamId, ...] = ()
        self.index: dict[StreamId, int] = {}
        self.layout = 0
        self.unmerged: list[bytes] = []
        self.plain = False
        self.plain_layout = -1
        self._place: i64 = 0
        self._need: i64 = HIGHEST
        self.ripe = False
        self.watched = -1
        self._last_watched = 0
        self.limit = limit
        self.table = new_table(())
        self._streams: list[Stream[Any]] = []
        self.ahead: dict[int, _Ahead] = {}
        self._two_entries = two_entries
        self._layouts: dict[int, tuple[tuple[StreamId, ...], Form]] = {}
        self._label = (0, 0)
        self._choice: Choice[StreamId] | None = None if limit is None else choice(policy, random)

    def set_columns(self, streams: Sequence[Stream[Any]], clocks: Sequence[Clock]) -> None:
        """Replace the set of sources. `clocks` has one entry per source; only new sources begin with it."""
        self.settle()
        kept = {id: (self.table.get(column), self.ahead.get(column)) for id, column in self.index.items()}
        self._streams = list(streams)
        self.columns, self.index = index_of(tuple([stream.id for stream in streams]))
        for id in kept:
            if id not in self.index and self._choice is not None:
                self._choice.forget(id)
        self.ahead = {self.index[id]: late for id, (_, late) in kept.items() if late and id in self.index}
        first_clocks = zip(self.columns, clocks, strict=True)
        self._make_table([kept[id][0] if id in kept else clock for id, clock in first_clocks])
        if self._choice is not None:
            for id in self.columns:
                if id not in kept:
                    self._choice.changed(id)

    def label(self, group: int, view: int) -> None:
        """Compute the layout, a hash of group, view and columns: equal layouts mean equal columns."""
        self.settle()
        self._label = group, view
        for form in (NARROW, WIDE):
            layout = layout_of(group, view, self.columns, form)
            self._layouts[layout] = self.columns, form
            if form is self.table.form:
                self.layout = layout
                self.plain_layout = layout if self.plain and group >= 0 else -1

    def _make_table(self, clocks: Sequence[Clock]) -> None:
        """Make a table of these clocks: wide if it was wide before or if a clock needs it, else narrow."""
        narrow = self.table.form is NARROW and all(map(NARROW.fits, clocks))
        self.table = new_table(clocks, NARROW if narrow else WIDE, self.table.version + 1)
        self.label(*self._label)

    def _raise(self, column: int, number: int, timestamp: int) -> bool:
        """Raise a column to an entry; False if that is not fresher. The table is widened if need be."""
        table = self.table
        if timestamp >= table.end or number >= table.number_end:
            self.settle()
            table = self.table = new_table(table.clocks(), WIDE, table.version + 1)
            self.label(*self._label)
        return table.raise_to(column, number, timestamp)

    # -- learning ----------------------------------------------------------------------------------------

    def advance(self, column: int, number: int, timestamp: int) -> None:
        """Record that all messages up to `number` are here; the last one's timestamp is an entry too (D2)."""
        rose = self._raise(column, number, timestamp)
        if rose and self._choice is not None:
            self._choice.changed(self.columns[column])
        if self.ahead and (late := self.ahead.get(column)) is not None:
            received = self._streams[column].received
            late.best = max(late.best, timestamp)
            for early in [early for early in late.later if early <= received]:
                late.best = max(late.best, late.later.pop(early))
            if self.table.get(column)[0] <= received:
                del self.ahead[column]

    def advance_two(
        self, column: int, number: int, timestamp: int, own: int, own_number: int, own_timestamp: int
    ) -> None:
        """Do `advance` for a message of another source, and for this node's own clock."""
        table = self.table
        if self._choice is None and not self.ahead and own_timestamp < table.end and number < table.number_end:
            table.raise_to(column, number, timestamp)
            table.raise_to(own, own_number, own_timestamp)
        else:
            self.advance(column, number, timestamp)
            self.advance(own, own_number, own_timestamp)

    def receive_table(self, table: Any, layout: int) -> bool:
        """Keep a received table, to merge it later. True if it may have the clock that a message waits for.

        A table of an earlier layout is merged at once (True: a clock rose), one of an unknown layout ignored.
        """
        if layout != self.layout:
            columns, form = self.columns_of(layout)
            if not columns or len(columns) * form.size != len(table):
                return False
            return self._merge_other(columns, form.unpack(table))
        if self.keep(table):
            self.ripe = True
        return self.ripe

    def keep(self, table: bytes) -> bool:
        """Keep a table of the present layout. True if it has the clock that the first message waits for.

        The oldest table is dropped if there are many. A table of the wrong size, which is forged, is ignored.
        """
        if len(table) != self.table.table_bytes:
            return False
        unmerged = self.unmerged
        unmerged.append(table)
        if len(unmerged) > _MOST_UNMERGED:
            del unmerged[0]
        form, place = self.table.form, self._place
        return place + form.size <= len(table) and form.column(table, place) >= self._need

    def settle(self) -> bool:
        """Merge the received tables; True when a clock rose."""
        self.ripe = False
        tables = self.unmerged
        if not tables:
            return False
        news = None if self.ahead else self.table.merge(tables)
        if news is None:
            news = self._merge_one_by_one(tables)
        tables.clear()
        return news

    def _merge_one_by_one(self, tables: Sequence[bytes]) -> bool:
        """Merge tables one at a time. Returns True if a clock rose.

        Where the freshest entry of a source is not usable yet, the older entries that it replaces are kept.
        """
        table = self.table
        news = False
        for received in reversed(tables):
            if self.ahead and self._use_older(received):
                news = True
            version = table.version
            for column, (number, timestamp) in table.merge_one(received):
                self._number_rose(column, number, timestamp)
            news = news or table.version != version
        return news

    def _merge_other(self, columns: Sequence[StreamId], clocks: Sequence[Clock]) -> bool:
        """Merge a table of another form, or with columns that this node had earlier; True if it had news."""
        entries = zip(columns, clocks, strict=True)
        return self.merge_chosen([(*id, number, timestamp) for id, (number, timestamp) in entries])

    def merge_chosen(self, chosen: Sequence[Chosen]) -> bool:
        news = False
        for source, serial, number, timestamp in chosen:
            column = self.index.get((source, serial))
            if column is not None and self._take(column, number, timestamp):
                news = True
        return news

    def _take(self, column: int, number: int, timestamp: int) -> bool:
        before_number, before = self.table.get(column)
        if timestamp > before:
            self._raise(column, number, timestamp)
            if self._choice is not None:
                self._choice.changed(self.columns[column])
            if number != before_number:
                self._number_rose(column, before_number, before)
            return True
        late = self.ahead.get(column)
        return late is not None and self._use_entry(column, late, number, timestamp)

    def _number_rose(self, column: int, number: int, timestamp: int) -> None:
        """Keep the entry <number, timestamp>, which a fresher one of a later message replaced, if it is needed.

        It is needed while the fresher one is not usable: as the best usable entry if there is none, else for
        later. With two entries at most, nothing is kept for later.
        """
        received = self._streams[column].received
        late = self.ahead.get(column)
        if self.table.get(column)[0] <= received:
            return
        if late is None:
            self.ahead[column] = _Ahead(timestamp)
        elif not self._two_entries:
            late.later[number] = max(late.later.get(number, 0), timestamp)

    def _use_older(self, table: bytes) -> bool:
        """Use the entries of a table for sources whose freshest entry is not usable; True when one was news."""
        news = False
        for column, late in self.ahead.items():
            if self._use_entry(column, late, *self.table.form.clock_in(table, column)):
                news = True
        return news

    def _use_entry(self, column: int, late: _Ahead, number: int, timestamp: int) -> bool:
        """Use an entry that is not the freshest: as the best usable one (then True), or keep it for later."""
        if number <= self._streams[column].received:
            if timestamp > late.best:
                late.best = timestamp
                return True
        elif not self._two_entries and number < self.table.get(column)[0]:
            late.later[number] = max(late.later.get(number, 0), timestamp)
        return False

    # -- reading -----------------------------------------------------------------------------------------

    def usable_timestamp(self, column: int) -> int:
        """Return the clock of a source by its best usable entry: no message at or below it can still come."""
        late = self.ahead.get(column)
        return self.table.timestamp(column) if late is None else late.best

    def blocks(self, timestamp: int) -> bool:
        """Is some source's clock too low for a message with this timestamp? Then that column is watched.

        From then on a received table is `ripe` when it has the timestamp in that column. The column watched
        last is tried first: a source that was late once is likely to be late again.
        """
        if self.unmerged:
            self.settle()
        self.ripe = False
        table = self.table
        column = table.first_below(timestamp, self._last_watched)
        if column >= 0:
            self._last_watched = column
        else:
            column = next((column for column, late in self.ahead.items() if late.best < timestamp), -1)
        self.watched = column
        if column < 0:
            self._need = HIGHEST
            return False
        self._place = table.form.size * column
        self._need = table.form.lowest_with(timestamp)
        return True

    def stop_watching(self) -> None:
        self.ripe = False
        self._need = HIGHEST

    def all_lacking(self, timestamp: int) -> list[StreamId]:
        self.settle()
        return [id for column, id in enumerate(self.columns) if self.usable_timestamp(column) < timestamp]

    def missing(self) -> list[tuple[Stream[Any], int]]:
        return [(self._streams[column], self.table.get(column)[0]) for column in self.ahead]

    # -- sending -----------------------------------------------------------------------------------------

    def whole_table(self) -> bytes:
        self.settle()
        return self.table.to_bytes()

    def chosen(self) -> tuple[Chosen, ...]:
        assert self._choice is not None
        assert self.limit is not None
        return tuple((*id, *self.table.get(self.index[id])) for id in self._choice.choose(self.limit))

    def columns_of(self, layout: int) -> tuple[tuple[StreamId, ...], Form]:
        """Return columns and form of a layout that this node has had; no columns for an unknown layout."""
        return self._layouts.get(layout, ((), NARROW))

    def clock_of(self, id: StreamId) -> Clock:
        return self.table.get(self.index[id])

    def entries(self) -> int:
        entries = len(self.columns)
        if self.ahead:
            entries += len(self.ahead) + sum([len(late.later) for late in self.ahead.values()])
        return entries


@lru_cache(maxsize=8)
def index_of(columns: tuple[StreamId, ...]) -> tuple[tuple[StreamId, ...], dict[StreamId, int]]:
    """Return these columns and the place of each. The nodes of a world share them; nobody changes them."""
    return columns, {id: column for column, id in enumerate(columns)}


@lru_cache(maxsize=16)
def layout_of(group: int, view: int, columns: tuple[StreamId, ...], form: Form) -> int:
    """Return the `fingerprint` of the columns of a node. All nodes of a world have the same."""
    return fingerprint(group, view, columns, form)


def fingerprint(group: int, view: int, columns: Sequence[StreamId], form: Form) -> int:
    """Return the layout of a table: a hash of group, view, columns and form, the same at every node."""
    text = ",".join([f"{group}/{view}/{form.bits}", *(f"{source}.{serial}" for source, serial in columns)])
    return int.from_bytes(blake2b(text.encode(), digest_size=6).digest(), "big")


def new_table(clocks: Sequence[Clock], form: Form = NARROW, version: int = 0) -> ClockTable:
    """Return a table of clocks: in machine words where the package is compiled, else in one integer."""
    if not is_compiled(clock_table):
        return ClockTable(clocks, form, version)
    from precede.protocols.drift2006.fast.machine_clock_table import MachineClockTable

    return MachineClockTable(clocks, form, version)
