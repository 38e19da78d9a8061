"""Hops: a message at a node has made one hop more than at the node that sent it the first copy."""

from typing import Final

import numpy as np
import pyarrow as pa

from precede.core.compiling import is_compiled
from precede.eventlog import rows as packed_rows
from precede.measures.columns import Growing, Integers, read_integers, spans
from precede.measures.pairs import RowsByPair

_UNKNOWN: Final = -1
_AT_SOURCE: Final = -2
_OPEN: Final = -(1 << 31)
_FAR: Final = -(1 << 30)
"""Hops of a row that is not counted yet, and of one whose path is not known (with the hops behind it)."""
_SHORT_SPAN: Final = 1 << 12
"""Few rows of a short span follow from another row of it, so it takes few turns to count them."""


class Hops:
    """Finds which node sent each first copy: the sender of the last packet with messages before its row.

    A driver writes the row of a packet and those of its messages one after the other. Where a batch shows that,
    the sender is known at once; else it is searched for by the steps of the node, in the whole log.
    """

    def __init__(self) -> None:
        self._packets, self._packet_steps = Growing(), Growing()
        self._senders = Growing(np.int32)
        self._places, self._receptions, self._steps = Growing(), Growing(), Growing()
        self._count = 0

    def add(
        self, batch: pa.RecordBatch, process: Integers, received: Integers, packets: Integers, peer: Integers
    ) -> None:
        """Add the rows of a batch: its `received` rows, and those of received packets with messages.

        `peer` is the sender of each of these packets.
        """
        step = read_integers(batch, "step")
        self._packets.add((process[packets].astype(np.int64) << 32) | (peer.astype(np.int64) + 1))
        self._packet_steps.add(step[packets])
        if not received.size:
            return
        last = _last_before(received, packets)
        packet = packets.take(last) if packets.size else received
        # no row in between may be of another node, and none may lack, lest it be the row of another packet
        begins = (process[1:] != process[:-1]) | (step[1:] != step[:-1] + 1)
        stretch = np.cumsum(np.append(False, begins), dtype=np.int32)
        known = (last >= 0) & (stretch.take(packet) == stretch.take(received))
        if known.all():
            senders = peer.take(last)
        else:
            senders = np.full(received.size, -1, np.int32)
            senders[known] = peer[last[known]]
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


def _last_before(rows: Integers, marks: Integers) -> Integers:
    """Return for each row the place of the last mark up to it, or -1. Both are sorted, and marks are fewer."""
    ends = np.append(np.searchsorted(rows, marks), rows.size)
    return np.repeat(np.arange(-1, marks.size), np.diff(ends, prepend=0))


def hops_of(
    rows: RowsByPair, node: Integers, message: Integers, sender: Integers, source: Integers
) -> Integers:
    """Return the number of hops of each reception; 0 if its path is not known.

    `rows` finds the reception of a message at a node. `source` is the node that broadcast each message.
    `sender` is used up: the rows that the receptions follow from are written over it.
    """
    for span in spans(node.size):
        at_sender = rows.find(sender[span], message[span])
        sender[span] = np.where(sender[span] == source.take(message[span]), _AT_SOURCE, at_sender)
    return _count(sender)


def _count(parents: Integers) -> Integers:
    """Return the length of the path from each row to a row at the source; 0 if there is none."""
    if is_compiled(packed_rows):  # then `librt` is there
        from precede.measures.machine_paths import lengths_of

        lengths = lengths_of(parents.astype(np.int32, copy=False).tobytes())
        if lengths is not None:
            return np.frombuffer(lengths, np.int32)
    return _count_by_span(parents)


def _count_by_span(parents: Integers) -> Integers:
    """Count as `_count` does, rows of any order, compiled or not.

    A log has the reception at the sender before those that follow from it. Then one span of rows after the
    other is enough; else all rows are one span.
    """
    hops = np.full(parents.size + 2, _OPEN, np.int32)
    hops[_AT_SOURCE], hops[_UNKNOWN] = 0, _FAR
    is_ordered = all((parents[span] < np.arange(span.start, span.stop)).all() for span in spans(parents.size))
    for span in spans(parents.size, _SHORT_SPAN) if is_ordered else [slice(0, parents.size)]:
        rows, parent = np.arange(span.start, span.stop), parents[span]
        while rows.size:
            before = hops.take(parent)
            counted = before != _OPEN
            if not counted.any():
                hops[rows] = _FAR  # these point at each other
                break
            hops[rows[counted]] = before[counted] + 1
            rows, parent = rows[~counted], parent[~counted]
    counts = hops[:-2]
    return np.maximum(counts, 0, out=counts)
