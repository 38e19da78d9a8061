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

from collections import deque
from collections.abc import Sequence
from hashlib import blake2b
from random import Random
from typing import Any, Final

from mypy_extensions import mypyc_attr

from precede.protocols.drift2006.clock_table import NARROW, WIDE, Clock, ClockTable, Form, Packed
from precede.protocols.drift2006.packets import Chosen
from precede.protocols.floods.reliable_floods import Stream, StreamId
from precede.protocols.floods.virtual_flooding import Choice, Policy, choice

_MOST_HEARD: Final = 512
_NEVER: Final = b"\xff" * WIDE.size


class _Ahead:
    """A source whose freshest clock cannot be used yet."""

    __slots__ = ("best", "later")

    def __init__(self, best: int) -> None:
        self.best = best
        self.later: dict[int, int] = {}


@mypyc_attr(allow_interpreted_subclasses=True)
class Seen:
    """One column per source whose clock counts. `limit` None: the whole table travels."""

    def __init__(self, random: Random, limit: int | None, policy: Policy, two_entries: bool) -> None:
        self.columns: tuple[StreamId, ...] = ()
        self.index: dict[StreamId, int] = {}
        self.layout = 0
        self.heard: deque[bytes] = deque(maxlen=_MOST_HEARD)
        self.plain = False
        self.plain_layout: int | None = None
        self.place = slice(0, 0)
        self.need = _NEVER
        self.ripe = False
        self.watched = -1
        self._blocker = 0
        self.limit = limit
        self._places: list[slice] = []
        self.table = ClockTable(())
        self._streams: list[Stream[Any]] = []
        self.ahead: dict[int, _Ahead] = {}
        self._two_entries = two_entries
        self._layouts: dict[int, tuple[tuple[StreamId, ...], Form]] = {}
        self._label = (0, 0)
        self._choice: Choice[StreamId] | None = None if limit is None else choice(policy, random)

    def set_columns(self, streams: Sequence[Stream[Any]], clocks: Sequence[Clock]) -> None:
        """A new set of sources, with a clock for each; what is known of those that stay is kept."""
        self.settle()
        kept = {id: (self.table.get(column), self.ahead.get(column)) for id, column in self.index.items()}
        self._streams = list(streams)
        self.columns = tuple(stream.id for stream in streams)
        self.index = {id: column for column, id in enumerate(self.columns)}
        for id in kept:
            if id not in self.index and self._choice is not None:
                self._choice.forget(id)
        self.ahead = {self.index[id]: late for id, (_, late) in kept.items() if late and id in self.index}
        beginnings = zip(self.columns, clocks, strict=True)
        self._make_table([kept[id][0] if id in kept else clock for id, clock in beginnings])
        if self._choice is not None:
            for id in self.columns:
                if id not in kept:
                    self._choice.changed(id)

    def label(self, group: int, view: int) -> None:
        """The layout names group, view and columns in one: one comparison says that all three are the same."""
        self.settle()
        self._label = group, view
        self._places = [self.table.form.place_of(column) for column in range(self.table.width)]
        for form in (NARROW, WIDE):
            layout = fingerprint(group, view, self.columns, form)
            self._layouts[layout] = self.columns, form
            if form is self.table.form:
                self.layout = layout
                self.plain_layout = layout if self.plain and group >= 0 else None

    def _make_table(self, clocks: Sequence[Clock]) -> None:
        """Narrow as long as everything fits; once wide, wide for good."""
        narrow = self.table.form is NARROW and all(map(NARROW.fits, clocks))
        self.table = ClockTable(clocks, NARROW if narrow else WIDE)
        self.label(*self._label)

    def _raise(self, column: int, number: int, timestamp: int) -> bool:
        table = self.table
        if timestamp >= table.end or number >= table.number_end:
            self.settle()
            table = self.table = ClockTable(table.clocks(), WIDE)
            self.label(*self._label)
        return table.raise_to(column, number, timestamp)

    # -- learning ----------------------------------------------------------------------------------------

    def advance(self, column: int, number: int, timestamp: int) -> None:
        """A message is in hand, with all before it: its own timestamp is an entry too (the repair D2)."""
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
        """The same, and this node's own clock with it."""
        table = self.table
        if self._choice is None and not self.ahead and own_timestamp < table.end and number < table.number_end:
            table.raise_two(column, number, timestamp, own, own_number, own_timestamp)
        else:
            self.advance(column, number, timestamp)
            self.advance(own, own_number, own_timestamp)

    def hear(self, theirs: Any, layout: int) -> bool:
        """A whole table; True when it may have brought what the first pending message waits for."""
        if layout != self.layout:
            columns, form = self.columns_of(layout)
            if not columns or len(columns) * form.size != len(theirs):
                return False
            return self._merge_other(columns, form.unpack(theirs))
        self.heard.append(theirs)
        if theirs[self.place] >= self.need:
            self.ripe = True
        return self.ripe

    def settle(self) -> bool:
        """Merge what was heard; True when there was news."""
        self.ripe = False
        if not self.heard:
            return False
        table, heard = self.table, self.heard
        before = table.packed
        if self.ahead:
            news = self._merge_one_by_one(heard)
        else:
            news, numbers = table.merge(heard)
            if numbers:
                after, table.packed = table.packed, before
                news = self._merge_one_by_one(heard)
                assert table.packed == after
        heard.clear()
        return news

    def _merge_one_by_one(self, heard: Sequence[bytes]) -> bool:
        """With an eye on entries that speak of messages which are not in hand."""
        table = self.table
        news = False
        for theirs in reversed(heard):
            packed = table.read(theirs)
            if self.ahead and self._use_older(packed):
                news = True
            before = table.packed
            changed, numbers = table.merge((theirs,))
            news = news or changed
            if numbers:
                for column in table.columns_of(numbers):
                    self._number_rose(column, *table.entry(before, column))
        return news

    def _merge_other(self, columns: Sequence[StreamId], clocks: Sequence[Clock]) -> bool:
        """A table with columns this node had earlier, or of another form."""
        chosen = zip(columns, clocks, strict=True)
        return self.merge_chosen([(*id, number, timestamp) for id, (number, timestamp) in chosen])

    def merge_chosen(self, chosen: Sequence[Chosen]) -> bool:
        """Single entries as heard."""
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
        """The freshest entry speaks of a later message than <number, timestamp> did, the one before it."""
        received = self._streams[column].received
        late = self.ahead.get(column)
        if self.table.get(column)[0] <= received:
            return
        if late is None:
            self.ahead[column] = _Ahead(timestamp)
        elif not self._two_entries:
            late.later[number] = max(late.later.get(number, 0), timestamp)

    def _use_older(self, packed: Packed) -> bool:
        """Of a source that is ahead, an entry that is not the freshest can still be the one to use."""
        news = False
        for column, late in self.ahead.items():
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
        late = self.ahead.get(column)
        return self.table.timestamp(column) if late is None else late.best

    def waits(self, timestamp: int) -> bool:
        """Is some source's clock too low for a message with this timestamp? Then that column is watched.

        From then on a table that is heard is `ripe` when it has the timestamp in that column. A source that
        kept us waiting before is watched first: it is likely to be the last to be heard of again.
        """
        if self.heard:
            self.settle()
        self.ripe = False
        table = self.table
        below = table.below(timestamp)
        if below:
            column = self._blocker
            if column >= table.width or not table.stands_in(below, column):
                column = self._blocker = table.first_of(below)
        else:
            column = next((column for column, late in self.ahead.items() if late.best < timestamp), -1)
        self.watched = column
        if column < 0:
            self.need = _NEVER
            return False
        self.place = self._places[column]
        self.need = table.form.lowest_with(timestamp)
        return True

    def rest(self) -> None:
        """Nothing is pending: no table is ripe."""
        self.ripe = False
        self.need = _NEVER

    def all_lacking(self, timestamp: int) -> list[StreamId]:
        """Every source that keeps a message with this timestamp from being safe."""
        self.settle()
        return [id for column, id in enumerate(self.columns) if self.known(column) < timestamp]

    def rumours(self) -> list[tuple[Stream[Any], int]]:
        """Streams of which a message is known to exist that is not in hand, with its number."""
        return [(self._streams[column], self.table.get(column)[0]) for column in self.ahead]

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

    def columns_of(self, layout: int) -> tuple[tuple[StreamId, ...], Form]:
        """What a layout means, if this node has ever had it."""
        return self._layouts.get(layout, ((), NARROW))

    def clock_of(self, id: StreamId) -> Clock:
        return self.table.get(self.index[id])

    def entries(self) -> int:
        """How many entries this node keeps."""
        return len(self.columns) + len(self.ahead) + sum(len(late.later) for late in self.ahead.values())


def fingerprint(group: int, view: int, columns: Sequence[StreamId], form: Form) -> int:
    """A short name for a set of columns in a view of a group, the same at every node."""
    text = ",".join([f"{group}/{view}/{form.bits}", *(f"{source}.{serial}" for source, serial in columns)])
    return int.from_bytes(blake2b(text.encode(), digest_size=6).digest(), "big")
