"""Measures that routing protocols are compared by: delivery ratio, hops.

A message is expected at its destinations or, without destinations, at every other node that was up at some
instant between the broadcast and the deadline (without one: the end of the log). The *delivery ratio* is the
share of these pairs of a message and a node that were delivered; `delivery_ratio_within_T` counts deliveries of
an age of at most T, so these measures together are the distribution function of the age, over all expected
deliveries. A message at a node has made one *hop* more than at the node that sent it the first copy.
"""

from typing import Any, Final

import numpy as np
import pyarrow as pa

from precede.core.instants import parse_duration
from precede.eventlog.arrays import integer_array
from precede.eventlog.schema import CRASHED, LEFT, PACKET_RECEIVED, RECEIVED, STARTED
from precede.measures.columns import Codes, Growing, Integers, Names, read_integers
from precede.measures.pairs import RowsByPair
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

    def add(self, kind: Codes, node: Integers, at: Integers) -> None:
        rows = np.flatnonzero((kind == STARTED) | (kind == CRASHED) | (kind == LEFT))
        changes = zip(node[rows].tolist(), at[rows].tolist(), (kind[rows] == STARTED).tolist(), strict=True)
        for one, instant, started in changes:
            self._rows.setdefault(one, []).append((instant, started))

    def intervals(self, node: int) -> list[tuple[int, int]]:
        """Return when a node was up, as pairs of begin and end; a node without rows was always up."""
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
        self.deadlines.add(read_integers(batch, "deadline_us", NO_DEADLINE)[rows])
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
    for node in nodes:
        present = np.zeros(born.size, np.bool_)
        for begin, end in presence.intervals(node):
            present |= (born < end) & (begin <= until)
        expected += int(np.count_nonzero(present & (source != node)))
    return expected


def ratios_within(ages: Integers, expected: int) -> Measures:
    sorted_ages = np.sort(ages)
    return {
        f"delivery_ratio_within_{name}": ratio(int(np.searchsorted(sorted_ages, age, "right")), expected)
        for name, age in WITHIN.items()
    }


class Hops:
    """Finds which node sent each first copy: the sender of the last packet with messages before its row.

    A driver writes the row of a packet and those of its messages one after the other. Where a batch shows that,
    the sender is known at once; else it is searched for by the steps of the node, in the whole log.
    """

    def __init__(self) -> None:
        self._packets, self._packet_steps = Growing(), Growing()
        self._senders = Growing()
        self._places, self._receptions, self._steps = Growing(), Growing(), Growing()
        self._count = 0

    def add(self, batch: pa.RecordBatch, kind: Codes, process: Integers, peer: Codes, count: Integers) -> None:
        """Add the rows of a batch. Packets without messages are ignored; `count` is how many they have."""
        received = np.flatnonzero(kind == RECEIVED)
        packets = np.flatnonzero((kind == PACKET_RECEIVED) & (count > 0))
        step = read_integers(batch, "step")
        self._packets.add((process[packets] << 32) | (peer[packets].astype(np.int64) + 1))
        self._packet_steps.add(step[packets])
        if not received.size:
            return
        senders = np.full(received.size, -1, np.int64)
        known = np.zeros(received.size, np.bool_)
        if packets.size:
            last = np.searchsorted(packets, received) - 1
            packet = packets[last]
            # rows before `begins[k]` are of another process than row k, or not the steps directly before it
            follows = (process[1:] == process[:-1]) & (step[1:] == step[:-1] + 1)
            places = np.arange(kind.size)
            places[1:][follows] = 0
            begins = np.maximum.accumulate(places)
            known = (last >= 0) & (begins[received] <= packet)
            senders[known] = peer[packet[known]]
        self._senders.add(senders)
        unknown = received[~known]
        self._places.add(self._count + np.flatnonzero(~known))
        self._receptions.add(process[unknown])
        self._steps.add(step[unknown])
        self._count += received.size

    def senders(self) -> Integers:
        """Return the node that sent each received message, in the order of the `received` rows; -1 if unknown.

        Call it once, because it empties what was collected.
        """
        packets, packet_steps = self._packets.take(), self._packet_steps.take()
        senders, places = self._senders.take(), self._places.take()
        receptions, steps = self._receptions.take(), self._steps.take()
        if not places.size or not packets.size:
            return senders
        process = packets >> 32
        order = np.lexsort((packet_steps, process))
        width = 1 + max(int(packet_steps.max()), int(steps.max()))
        keys = process[order] * width + packet_steps[order]
        place = np.searchsorted(keys, receptions * width + steps) - 1
        same = (place >= 0) & (process[order][place] == receptions)
        senders[places] = np.where(same, (packets[order][place] & 0xFFFFFFFF) - 1, -1)
        return senders


def hops_of(node: Integers, message: Integers, sender: Integers, source: Integers) -> Integers:
    """Return the number of hops of each reception; 0 if its path is not known.

    `source` is the node that broadcast each message. A reception points to the reception at its sender; the
    pointers are followed for all of them at once, twice as far in each round.
    """
    if not node.size:
        return np.empty(0, np.int64)
    parent = RowsByPair(node, message).find(sender, message)
    found = parent >= 0
    at_source = sender == source
    hops = np.where(at_source, 1, np.where(found, 1, 0))
    done = at_source | ~found
    known = at_source.copy()
    next_one = np.where(done, np.arange(node.size), parent)
    for _ in range(40):
        open_ = np.flatnonzero(~done)
        if not open_.size:
            break
        further = next_one[open_]
        hops[open_] += hops[further]
        known[open_] = known[further]
        done_now = done[further]
        next_one[open_] = next_one[further]
        done[open_[done_now]] = True
    return np.where(known & done, hops, 0)
