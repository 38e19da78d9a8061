"""The rows about messages of one run: broadcasts, and the rows of one kind resolved to their broadcasts."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from precede.core.instants import Instant, parse_duration
from precede.measures.columns import Flags, Growing, Integers, Names, read_integers
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


class Processes:
    """One code for each pair of a node and an incarnation."""

    def __init__(self) -> None:
        self.names = Names()
        self.codes: dict[int, int] = {}

    def read(self, batch: pa.RecordBatch, name: str, incarnation: str) -> Integers:
        """Return the process codes of a batch, from its columns of node names and incarnations."""
        return self.read_both(batch, name, incarnation)[1]

    def read_both(self, batch: pa.RecordBatch, name: str, incarnation: str) -> tuple[Integers, Integers]:
        """Return the codes of the names of nodes, and the process codes."""
        named = self.names.read(batch, name).astype(np.int64)
        number = read_integers(batch, incarnation)
        if number.any():
            pairs, inverse = np.unique((named << 32) | number, return_inverse=True)
        else:
            names = np.flatnonzero(np.bincount(named + 1)) - 1
            place = np.zeros(len(self.names.codes) + 1, np.int64)
            place[names] = np.arange(names.size)
            pairs, inverse = names << 32, place[named]
        table = [self.codes.setdefault(int(pair), len(self.codes)) for pair in pairs]
        return named, np.asarray(np.array(table, np.int64)[inverse])


class Collected:
    """The process, message and instant of all rows of one kind."""

    def __init__(self) -> None:
        self.process, self.source, self.number, self.at = Growing(), Growing(), Growing(), Growing()

    def add(self, rows: Integers, process: Integers, source: Integers, number: Integers, at: Integers) -> None:
        # a process and a source are codes far below 2**31, kept in one number
        self.process.add((process[rows] << 32) | source[rows])
        self.number.add(number[rows])
        self.at.add(at[rows])


class MessageRows(NamedTuple):
    """Rows of one kind: `message` is the index of the broadcast, or -1; `own`: this node broadcast it."""

    place: Integers
    process: Integers
    message: Integers
    at: Integers
    own: Flags

    def chosen(self, rows: Flags) -> MessageRows:
        return MessageRows(
            self.place[rows], self.process[rows], self.message[rows], self.at[rows], self.own[rows]
        )


class Broadcasts:
    """The broadcast messages of a run, by their birth, and a search for them by source and number."""

    def __init__(self, kept: Collected, window: Window | None) -> None:
        joined, number, at = kept.process.take(), kept.number.take(), kept.at.take()
        source = joined & 0xFFFFFFFF
        self.numbers = np.unique(number)
        self.width = max(1, self.numbers.size)
        key = source * self.width + np.searchsorted(self.numbers, number)
        self.keys, first = np.unique(key, return_index=True)
        by_birth = np.argsort(at[first], kind="stable")
        self._index = np.empty(first.size, np.int64)
        self._index[by_birth] = np.arange(first.size)
        first = first[by_birth]
        self._table = self._tabulate(source[first], number[first])
        self.first, self.at = first, at[first]
        self.measured = np.ones(self.keys.size, np.bool_)
        if window is not None:
            self.measured = (self.at >= window.begin) & (self.at < window.end)
        self.source = source[first]
        self.rows = number.size if window is None else int(np.count_nonzero(self.measured))

    def resolve(self, kept: Collected, windowed: bool) -> MessageRows:
        """Find the messages of collected rows. With a window, only rows of measured messages are returned."""
        joined, number, at = kept.process.take(), kept.number.take(), kept.at.take()
        process, source = joined >> 32, joined & 0xFFFFFFFF
        own = process == source
        message = self.find(source, number)
        place = np.arange(at.size)
        if windowed:
            inside = (message >= 0) & self.measured[message] if self.keys.size else message >= 0
            place, process, message = place[inside], process[inside], message[inside]
            at, own = at[inside], own[inside]
        return MessageRows(place, process, message, at, own)

    def find(self, source: Integers, number: Integers) -> Integers:
        """Return the index of each message among the broadcasts; -1 if it was not broadcast."""
        if not self.keys.size:
            return np.full(number.size, -1, np.int64)
        sources, numbers = self._table.shape
        if sources:
            inside = (source < sources) & (number < numbers)
            if inside.all():
                return np.asarray(self._table[source, number])
            return np.where(inside, self._table[source * inside, number * inside], -1)
        rank = np.searchsorted(self.numbers, number)
        rank[rank == self.width] = 0
        key = source * self.width + rank
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

    def since(self, table: MessageRows, own: bool) -> Integers:
        """Return the time from the broadcast to each row about a node's `own` messages, or about others'."""
        rows = (table.own == own) & (table.message >= 0)
        return np.asarray(table.at[rows] - self.at[table.message[rows]])


class FirstCopies:
    """When each process received each message first."""

    def __init__(self, received: MessageRows) -> None:
        known = received if (received.message >= 0).all() else received.chosen(received.message >= 0)
        self._at = known.at
        self._rows = RowsByPair(known.process, known.message)

    def waits(self, table: MessageRows) -> Integers:
        """Return the time since the first copy, for each row about a message that its node has received."""
        if not self._at.size or not table.at.size:
            return np.empty(0, np.int64)
        rows = (table.message >= 0) & ~table.own
        first = self._rows.find(table.process[rows], table.message[rows])
        paired = first >= 0
        if paired.all():
            return np.asarray(table.at[rows] - self._at[first])
        return np.asarray(table.at[rows][paired] - self._at[first[paired]])
