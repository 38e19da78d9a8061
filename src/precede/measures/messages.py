"""The rows about messages of one run: broadcasts, and the rows of one kind resolved to their broadcasts."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from precede.core.instants import Instant, parse_duration
from precede.measures.columns import Growing, Integers, Names, read_integers

Flags: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"


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
        return np.asarray(np.array(table, np.int64)[inverse])


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
    """The broadcast messages of a run, and a search for them by source and number."""

    def __init__(self, kept: Collected, window: Window | None) -> None:
        joined, number, at = kept.process.take(), kept.number.take(), kept.at.take()
        source = joined & 0xFFFFFFFF
        self.numbers = np.unique(number)
        self.width = max(1, self.numbers.size)
        key = source * self.width + np.searchsorted(self.numbers, number)
        self.keys, first = np.unique(key, return_index=True)
        self.first, self.at = first, at[first]
        self.measured = np.ones(self.keys.size, np.bool_)
        if window is not None:
            self.measured = (self.at >= window.begin) & (self.at < window.end)
        self.source = self.keys // self.width
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
        rank = np.searchsorted(self.numbers, number)
        rank[rank == self.width] = 0
        key = source * self.width + rank
        place = np.searchsorted(self.keys, key)
        place[place == self.keys.size] = 0
        is_known = (self.keys[place] == key) & (self.numbers[rank] == number)
        return np.where(is_known, place, -1)

    def since(self, table: MessageRows, own: bool) -> Integers:
        """Return the time from the broadcast to each row about a node's `own` messages, or about others'."""
        rows = (table.own == own) & (table.message >= 0)
        return np.asarray(table.at[rows] - self.at[table.message[rows]])


def waits(received: MessageRows, delivered: MessageRows, messages: int) -> Integers:
    """Return the time from the first copy to the delivery, for each delivery of a received message."""
    if not received.at.size or not delivered.at.size or not messages:
        return np.empty(0, np.int64)
    is_known = received.message >= 0
    keys = received.process[is_known] * messages + received.message[is_known]
    order = np.argsort(keys, kind="stable")
    keys, at = keys[order], received.at[is_known][order]
    rows = (delivered.message >= 0) & ~delivered.own
    deliveries = delivered.process[rows] * messages + delivered.message[rows]
    place = np.searchsorted(keys, deliveries)
    place[place == keys.size] = 0
    paired = keys[place] == deliveries if keys.size else np.zeros(deliveries.size, np.bool_)
    return np.asarray(delivered.at[rows][paired] - at[place[paired]])
