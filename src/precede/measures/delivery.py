"""Measures that routing protocols are compared by: the delivery ratio.

A message is expected at its destinations or, without destinations, at every other node that was up at some
instant between the broadcast and the deadline (without one: the end of the log). The *delivery ratio* is the
share of these pairs of a message and a node that were delivered; `delivery_ratio_within_T` counts deliveries of
an age of at most T, so these measures together are the distribution function of the age, over all expected
deliveries.
"""

from typing import Any, Final

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


class Presence:
    """When each node was up, from the rows `started`, `crashed` and `left`."""

    def __init__(self) -> None:
        self._rows: dict[int, list[tuple[int, bool]]] = {}
        self._intervals: dict[int, list[tuple[int, int]]] = {}

    def add(self, kind: Integers, node: Integers, at: Integers) -> None:
        """Add rows of these three kinds."""
        self._intervals.clear()
        changes = zip(node.tolist(), at.tolist(), (kind == STARTED).tolist(), strict=True)
        for one, instant, started in changes:
            self._rows.setdefault(one, []).append((instant, started))

    def intervals(self, node: int) -> list[tuple[int, int]]:
        """Return when a node was up, as pairs of begin and end; a node without rows was always up."""
        if node not in self._intervals:
            self._intervals[node] = self._find_intervals(node)
        return self._intervals[node]

    def _find_intervals(self, node: int) -> list[tuple[int, int]]:
        intervals: list[tuple[int, int]] = []
        since: int | None = None
        rows = sorted(self._rows.get(node, ()))
        for at, started in rows:
            if started:
                since = at if since is None else since
            elif since is not None:
                intervals.append((since, at))
                since = None
        if since is not None or not rows:
            intervals.append((since or 0, NO_DEADLINE))
        return intervals


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
    stays = {node: presence.intervals(node) for node in nodes}
    one_each = {node: stay[0] for node, stay in stays.items() if len(stay) == 1}
    if one_each and (born <= until).all():
        begin, end = np.array(list(one_each.values()), np.int64).T
        expected += int(np.searchsorted(np.sort(born), end, "left").sum())
        expected -= int(np.searchsorted(np.sort(until), begin, "left").sum())
        known = 1 + max([*nodes, int(source.max(initial=0))])
        enter, leave = np.full((2, known), np.iinfo(np.int64).min)  # of a node with other stays: never there
        enter[list(one_each)], leave[list(one_each)] = begin, end
        expected -= int(np.count_nonzero((born < leave[source]) & (enter[source] <= until)))
        stays = {node: stay for node, stay in stays.items() if node not in one_each}
    for node, intervals in stays.items():
        present = np.zeros(born.size, np.bool_)
        for first, last in intervals:
            present |= (born < last) & (first <= until)
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
