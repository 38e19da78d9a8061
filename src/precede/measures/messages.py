"""The rows about messages of one run: broadcasts, and the rows of one kind resolved to their broadcasts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from precede.core.instants import Instant, parse_duration
from precede.measures.columns import Flags, Growing, Integers, Names, integers, joined, read_integers, spans
from precede.measures.pairs import RowsByPair

_MOST_MESSAGES: Final = 1 << 22
"""The most combinations of a source and a number for which messages are looked up in a table."""


class Window(NamedTuple):
    """The part of a run to measure: messages broadcast and packets sent in [begin, end) of world time."""

    begin: Instant = 0
    end: Instant = 2**62

    @classmethod
    def of_run(cls, warmup: str | None, cooldown: str | None, end: Instant) -> Window | None:
        """Return the window that the durations of a scenario leave of a run; None if they leave all of it.

        >>> Window.of_run("1s", None, 5_000_000)
        Window(begin=1000000, end=5000000)
        """
        if not warmup and not cooldown:
            return None
        return cls(parse_duration(warmup or "0s"), end - parse_duration(cooldown or "0s"))

    def has(self, at: Integers) -> Flags:
        """Return which of these instants are in the window."""
        return (at >= self.begin) & (at < self.end)


class Processes:
    """One code for each pair of a node and an incarnation."""

    def __init__(self) -> None:
        self.names = Names()
        self.codes: dict[int, int] = {}
        self._first_processes = np.empty(0, np.int32)  # by the code of a name: the process of incarnation 0
        self._is_alike = True  # is the code of each first incarnation that of the name?

    def read(
        self, batch: pa.RecordBatch, name: str, incarnation: str, rows: Integers | None = None
    ) -> tuple[Integers, Integers]:
        """Return the codes of the names of nodes and those of the processes, of a batch or of some rows."""
        named: Integers = self.names.read(batch, name, rows)
        if named.min(initial=0) < 0 or (
            incarnation in batch.schema.names and integers(batch.column(incarnation), 0, rows).any()
        ):
            number = read_integers(batch, incarnation, 0, rows)
            pairs, inverse = np.unique((named.astype(np.int64) << 32) | number, return_inverse=True)
            table = [self.codes.setdefault(int(pair), len(self.codes)) for pair in pairs]
            return named, np.asarray(np.array(table, np.int32)[inverse])
        known = self._first_processes.size
        if known < len(self.names.codes):
            unseen = range(known, len(self.names.codes))
            codes = [self.codes.setdefault(node << 32, len(self.codes)) for node in unseen]
            self._first_processes = np.concatenate((self._first_processes, np.array(codes, np.int32)))
            self._is_alike = bool((self._first_processes == np.arange(self._first_processes.size)).all())
        return named, named if self._is_alike else self._first_processes.take(named)

    def one_incarnation_each(self) -> bool:
        """Return whether no node had two incarnations."""
        return len({pair >> 32 for pair in self.codes}) == len(self.codes)


_SMALL: Final = np.iinfo(np.int32)


class Collected:
    """The process, message and instant of all rows of one kind, mostly in 20 bytes a row."""

    def __init__(self) -> None:
        self.process, self.source = Growing(np.int32), Growing(np.int32)
        self.number, self.at = Growing(), Growing()

    def add(self, process: Integers, source: Integers, number: Integers, at: Integers) -> None:
        """Add the rows of a block. They are copied: parts of longer columns would keep all of these."""
        self.process.add(process.copy())
        self.source.add(source.copy())
        is_small = number.min(initial=0) >= _SMALL.min and number.max(initial=0) <= _SMALL.max
        self.number.add(number.astype(np.int32 if is_small else np.int64))
        self.at.add(at.copy())

    def columns(self) -> list[Integers]:
        """Return process, source, number and instant of all rows."""
        return [kept.joined() for kept in (self.process, self.source, self.number, self.at)]

    def messages(self) -> Iterator[tuple[Integers, Integers, Integers]]:
        """Yield process, source and number of the rows, batch by batch, and forget source and number.

        To join the two columns took a tenth of the time of the measures.
        """
        sources, numbers = self.source.parts, self.number.parts
        self.source.parts, self.number.parts = [], []
        yield from zip(self.process.parts, sources, numbers, strict=True)


class MessageRows(NamedTuple):
    """Rows of one kind: `message` is the index of the broadcast, or -1; `own`: this node broadcast it.

    `place` is where these rows were among all rows of the kind; None if they are all of them.
    """

    place: Integers | None
    process: Integers
    message: Integers
    at: Integers
    own: Flags

    def chosen(self, rows: Flags) -> MessageRows:
        place = np.flatnonzero(rows) if self.place is None else self.place[rows]
        return MessageRows(place, self.process[rows], self.message[rows], self.at[rows], self.own[rows])

    def others(self) -> Iterator[tuple[Integers, Integers, Integers]]:
        """Yield process, message and instant of the rows about others' messages that are known, in parts."""
        for span in spans(self.at.size):
            process, message, at = self.process[span], self.message[span], self.at[span]
            rows = (message >= 0) & ~self.own[span]
            yield (process, message, at) if rows.all() else (process[rows], message[rows], at[rows])


def first_of_each(values: Integers) -> Integers:
    """Return where each different value stands first, by ascending values. `numpy.unique` loads `numpy.ma`."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    return np.asarray(order[np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: values.size])])


class Broadcasts:
    """The broadcast messages of a run, by their birth, and a search for them by source and number."""

    def __init__(self, kept: Collected, window: Window | None) -> None:
        source, number, at = kept.source.take().astype(np.int64), kept.number.take(), kept.at.take()
        self.numbers = number[first_of_each(number)]
        self.width = max(1, self.numbers.size)
        key = source * self.width + np.searchsorted(self.numbers, number)
        first = first_of_each(key)
        self.keys = key[first]
        by_birth = np.argsort(at[first], kind="stable")
        self._index = np.empty(first.size, np.int64)
        self._index[by_birth] = np.arange(first.size)
        first = first[by_birth]
        self._table = self._tabulate(source[first], number[first])
        self.first, self.at = first, at[first]
        self.measured = np.ones(self.keys.size, np.bool_)
        if window is not None:
            self.measured = window.has(self.at)
        self.source = source[first]
        self.rows = number.size if window is None else int(np.count_nonzero(self.measured))

    def resolve(self, kept: Collected, windowed: bool) -> MessageRows:
        """Find the messages of collected rows. With a window, only rows of measured messages are returned."""
        messages = Growing(np.int32)
        own: list[Flags] = [np.empty(0, np.bool_)]
        for process, source, number in kept.messages():
            messages.add(self.find(source, number))
            own.append(process == source)
        message = messages.take()
        rows = MessageRows(None, kept.process.take(), message, kept.at.take(), np.concatenate(own))
        if not windowed:
            return rows
        return rows.chosen((message >= 0) & self.measured[message] if self.keys.size else message >= 0)

    def find(self, source: Integers, number: Integers) -> Integers:
        """Return the index of each message among the broadcasts; -1 if it was not broadcast."""
        if not self.keys.size:
            return np.full(number.size, -1, np.int64)
        sources, numbers = self._table.shape
        if sources:
            inside = (source < sources) & (number < numbers)
            if inside.all():
                return np.asarray(self._table.ravel().take(source * np.int64(numbers) + number))
            return np.where(inside, self._table[source * inside, number * inside], -1)
        rank = np.searchsorted(self.numbers, number)
        rank[rank == self.width] = 0
        key = source.astype(np.int64) * self.width + rank
        place = np.searchsorted(self.keys, key)
        place[place == self.keys.size] = 0
        is_known = (self.keys[place] == key) & (self.numbers[rank] == number)
        return np.where(is_known, self._index[place], -1)

    def _tabulate(self, source: Integers, number: Integers) -> Integers:
        """Return a table of the messages by source and number; an empty one if it would be large."""
        sources, numbers = (int(part.max()) + 1 if part.size else 0 for part in (source, number))
        if sources * numbers > _MOST_MESSAGES or (number < 0).any():
            return np.empty((0, 0), np.int64)
        table = np.full((sources, numbers), -1, np.int64)
        table[source, number] = np.arange(self.keys.size)
        return table

    def since(self, table: MessageRows) -> Integers:
        """Return the time from the broadcast to each row about others' messages that are known.

        It is written over the instants of the table: a second column of this length takes longer than the sums.
        """
        end = 0
        for _, message, at in table.others():
            table.at[end : end + at.size] = at - self.at.take(message)
            end += at.size
        return table.at[:end]

    def since_own(self, table: MessageRows) -> Integers:
        """Return the time from the broadcast to each row about a message of the node itself."""
        rows = table.own & (table.message >= 0)
        return np.asarray(table.at[rows] - self.at[table.message[rows]])


class Deliveries:
    """The rows of deliveries, which mostly repeat those of receptions.

    While every block delivers the others' messages that it receives, at once and in order (`at_once`), only the
    rows about own messages are kept, with their places. The other rows are made from the receptions if needed.
    """

    def __init__(self, at_once: bool) -> None:
        self.at_once = at_once
        self._kept = Collected()
        self._is_own: list[Flags] = [np.empty(0, np.bool_)]

    def add(self, delivered: Sequence[Integers], received: Sequence[Integers], before: Collected) -> None:
        """Add the rows of a block: process, source, number and instant of deliveries and of receptions.

        `before` has the receptions of earlier blocks.
        """
        if self.at_once:
            is_own = delivered[0] == delivered[1]
            others = [column[~is_own] for column in delivered]
            if all(map(np.array_equal, others, received)):
                self._is_own.append(is_own)
                self._kept.add(*(column[is_own] for column in delivered))
                return
            columns = self._unfolded(self._kept.columns(), before.columns())
            self.at_once, self._kept = False, Collected()
            self._kept.add(*columns)
        self._kept.add(*delivered)

    def kept(self, broadcasts: Broadcasts, windowed: bool) -> MessageRows:
        """Return the rows about own messages if `at_once`, else all."""
        return broadcasts.resolve(self._kept, windowed)

    def unfolded(self, own: MessageRows, received: MessageRows) -> MessageRows:
        """Return all rows, if `at_once`, from those about own messages and the receptions."""
        return MessageRows(None, *self._unfolded(own[1:], received[1:]))

    def _unfolded(self, own: Sequence[Any], others: Sequence[Any]) -> list[Any]:
        is_own = np.concatenate(self._is_own)
        columns = []
        for own_part, other_part in zip(own, others, strict=True):
            column = np.empty(is_own.size, other_part.dtype)
            column[is_own], column[~is_own] = own_part, other_part
            columns.append(column)
        return columns


class FirstCopies:
    """When each process received each message first. `rows` finds the row of a reception."""

    def __init__(self, received: MessageRows) -> None:
        self._is_complete = bool((received.message >= 0).all())
        known = received if self._is_complete else received.chosen(received.message >= 0)
        self._known = known
        self.rows = RowsByPair(known.process, known.message)

    def are_complete(self) -> bool:
        """Return whether all receptions are of broadcast messages, and each process received each once."""
        return self._is_complete and self.rows.are_unique()

    def waits(self, table: MessageRows) -> Integers:
        """Return the time since the first copy, for each row about a message that its node has received."""
        if not self._known.at.size or not table.at.size:
            return np.empty(0, np.int64)
        waits = self.waits_in_order(table)
        return joined(table.at.size, self._waits(table)) if waits is None else waits

    def waits_in_order(self, table: MessageRows) -> Integers | None:
        """Return the waits if the rows about others' messages are of all receptions, in their order, else None.

        Then they need no search. It is so if every message is delivered as soon as it is received.
        """
        known = self._known
        if not self._is_complete:
            return None
        waits: Integers = np.empty(known.at.size, np.int64)
        end = 0
        for process, message, at in table.others():
            rows = slice(end, end + at.size)
            end += at.size
            if end > waits.size or (known.process[rows] != process).any():
                return None
            if (known.message[rows] != message).any():
                return None
            waits[rows] = at - known.at[rows]
        return waits if end == waits.size else None

    def _waits(self, table: MessageRows) -> Iterator[Integers]:
        for process, message, at in table.others():
            first = self.rows.find(process, message)
            paired = first >= 0
            yield at[paired] - self._known.at[first[paired]]
