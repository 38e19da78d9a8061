"""Measures that routing protocols are compared by: the delivery ratio.

A message is expected at its destinations or, without destinations, at every other node that was up at some
instant between the broadcast and the deadline (without one: the end of the log). The *delivery ratio* is the
share of these pairs of a message and a node that were delivered; `delivery_ratio_within_T` counts deliveries of
an age of at most T, so these measures together are the distribution function of the age, over all expected
deliveries.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from precede.core.instants import parse_duration
from precede.eventlog.arrays import integer_array
from precede.eventlog.schema import STARTED
from precede.measures.columns import Growing, Integers, Names, read_integers, spans
from precede.measures.statistics import Measures, ratio

NO_DEADLINE: Final = 2**62
WITHIN: Final = {
    name: parse_duration(name)
    for name in ("1s", "10s", "1min", "5min", "10min", "20min", "1h", "2h", "5h", "12h", "24h")
}
"""The ages at which the distribution of the age is measured, by the names that the measures have."""
Marks = np.ndarray[Any, np.dtype[np.bool_]]


class Stays(NamedTuple):
    """When nodes were up, from `begin` to `end`: sorted by node, then by time."""

    node: Integers
    begin: Integers
    end: Integers


class Presence:
    """When each node was up, from the rows `started`, `crashed` and `left`."""

    def __init__(self) -> None:
        self._nodes, self._instants, self._starts = Growing(), Growing(), Growing()

    def add(self, kind: Integers, node: Integers, at: Integers) -> None:
        """Add rows of these three kinds."""
        self._nodes.add(node)
        self._instants.add(at)
        self._starts.add((kind == STARTED).astype(np.int64))

    def stays(self, nodes: Sequence[int]) -> Stays:
        """Return when these nodes, and those with rows, were up; a node without rows was always up."""
        node, at, starts = self._nodes.joined(), self._instants.joined(), self._starts.joined()
        order = np.lexsort((starts, at, node))
        node, at, starts = node[order], at[order], starts[order] != 0
        follows = np.append(False, node[1:] == node[:-1])[: node.size]
        was_up = follows & np.append(False, starts[:-1])[: node.size]
        begins = starts & ~was_up
        closes = ~starts & was_up
        end = np.full(np.count_nonzero(begins), NO_DEADLINE, np.int64)  # if it is up after its last row
        end[np.cumsum(begins)[closes] - 1] = at[closes]
        always = sorted(set(nodes) - set(node.tolist()))
        of_stays = np.append(node[begins], np.array(always, np.int64))
        begin = np.append(at[begins], np.zeros(len(always), np.int64))
        end = np.append(end, np.full(len(always), NO_DEADLINE, np.int64))
        order = np.argsort(of_stays, kind="stable")
        return Stays(of_stays[order], begin[order], end[order])


class Addressed:
    """Collects each broadcast's deadline and its number of destinations besides the source (-1: all nodes)."""

    def __init__(self) -> None:
        self.names = Names()
        self.deadlines = Growing()
        self.counts = Growing()

    def add(self, batch: pa.RecordBatch, rows: Integers) -> None:
        if not rows.size:
            return
        self.deadlines.add(read_integers(batch, "deadline_us", NO_DEADLINE, rows))
        counts = np.full(rows.size, -1, np.int64)
        if "destinations" in batch.schema.names and batch["destinations"].null_count < batch.num_rows:
            broadcasts = batch.take(integer_array(rows))
            sources = broadcasts["message_source"].cast(pa.string()).to_pylist()
            for place, names in enumerate(broadcasts["destinations"].to_pylist()):
                if names is not None:
                    counts[place] = len({*names} - {sources[place]})
        self.counts.add(counts)


def expected_pairs(
    born: Integers,
    until: Integers,
    source: Integers,
    destinations: Integers,
    nodes: list[int],
    presence: Presence,
) -> int:
    """Count the pairs of a message and a node at which it is expected (the module says where)."""
    expected = int(destinations[destinations >= 0].sum())
    rows = destinations < 0
    born, until, source = born[rows], until[rows], source[rows]
    stays = presence.stays(nodes)
    counts = np.bincount(stays.node, minlength=1 + int(source.max(initial=0)))
    is_only = counts[stays.node] == 1
    if is_only.any() and (born <= until).all():
        node, begin, end = (column[is_only] for column in stays)
        expected += int(np.searchsorted(np.sort(born), end, "left").sum())
        expected -= int(np.searchsorted(np.sort(until), begin, "left").sum())
        enter, leave = np.full((2, counts.size), np.iinfo(np.int64).min)  # never there, if it has other stays
        enter[node], leave[node] = begin, end
        expected -= int(np.count_nonzero((born < leave[source]) & (enter[source] <= until)))
        stays = Stays(*(column[~is_only] for column in stays))
    for node in dict.fromkeys(stays.node.tolist()):
        present = np.zeros(born.size, np.bool_)
        for stay in np.flatnonzero(stays.node == node):
            present |= (born < stays.end[stay]) & (stays.begin[stay] <= until)
        expected += int(np.count_nonzero(present & (source != node)))
    return expected


def ratios_within(ages: Integers, expected: int) -> Measures:
    """Return the share of the expected deliveries within each age of `WITHIN`; counting needs no sort."""
    counts = dict.fromkeys(WITHIN, 0)
    for span in spans(ages.size):
        part = ages[span]
        for name, age in WITHIN.items():
            counts[name] += int(np.count_nonzero(part <= age))
    return {f"delivery_ratio_within_{name}": ratio(count, expected) for name, count in counts.items()}
