"""The measures of one run, from its event log in one pass.

A latency is of one message at one node other than its source, in world time: *transit* from the broadcast to
the first copy received, *wait* from there to the delivery, *age* from the broadcast to the delivery. A node's
own messages are counted apart (`own_deliveries`, `own_age_us_...`). Another incarnation of a node is another
process: its receptions and deliveries are paired among themselves. Packets are counted at the sender: one
transmission is one packet, however many nodes receive it.

Receptions and deliveries take 40 bytes each, received packets with messages 16; other packets take none.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from precede.core.errors import BadInput
from precede.core.instants import Instant
from precede.eventlog.schema import (
    BROADCAST,
    CRASHED,
    DELIVERED,
    DISCARDED,
    KINDS,
    LEFT,
    OBSERVED,
    PACKET_RECEIVED,
    RECEIVED,
    SENT,
    STARTED,
)
from precede.measures.columns import Codes, Growing, Integers, Names, Source, batches_of, read_integers
from precede.measures.delivery import Addressed, Hops, Presence, expected_pairs, hops_of
from precede.measures.statistics import Measures, summarise

COLUMNS: Final = (
    "node",
    "incarnation",
    "step",
    "at_us",
    "kind",
    "message_source",
    "message_incarnation",
    "message_number",
    "destinations",
    "deadline_us",
    "peer",
    "medium",
    "packet_kind",
    "packet_bytes",
    "wire_bytes",
    "control_bytes",
    "control_entries",
    "messages_in_packet",
    "reason",
)
_NEEDED: Final = ("node", "at_us", "kind", "message_source", "message_number")
PACKET_SIZES: Final = ("packet_bytes", "wire_bytes", "control_bytes", "control_entries", "messages_in_packet")


class Window(NamedTuple):
    """The part of a run to measure: messages broadcast and packets sent in [begin, end) of world time."""

    begin: Instant = 0
    end: Instant = 2**62


def measure_events(source: Source, window: Window | None = None) -> Measures:
    """Return every measure of one run's event log, as one flat mapping."""
    events = EventMeasures(window)
    for batch in batches_of(source, COLUMNS):
        events.add(batch)
    return events.measures()


class _Processes:
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


class _Instants:
    """The process, message and instant of all rows of one kind."""

    def __init__(self) -> None:
        self.process, self.source, self.number, self.at = Growing(), Growing(), Growing(), Growing()

    def add(self, rows: Integers, process: Integers, source: Integers, number: Integers, at: Integers) -> None:
        # a process and a source are codes far below 2**31, kept in one number
        self.process.add((process[rows] << 32) | source[rows])
        self.number.add(number[rows])
        self.at.add(at[rows])


class _Table(NamedTuple):
    """Rows of one kind. `message` is the index of the broadcast, or -1.

    `place` numbers the rows of this kind. `own` says whether the node is the message's source.
    """

    place: Integers
    process: Integers
    message: Integers
    at: Integers
    own: np.ndarray[tuple[int], np.dtype[np.bool_]]


class _Broadcasts:
    """The broadcast messages of a run, and a search for them by source and number."""

    def __init__(self, kept: _Instants, window: Window | None) -> None:
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

    def resolve(self, kept: _Instants, windowed: bool) -> _Table:
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
        return _Table(place, process, message, at, own)

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

    def since(self, table: _Table, own: bool) -> Integers:
        """Return the time from the broadcast to each row.

        The rows are about a node's own messages or, if not `own`, about those of others.
        """
        rows = (table.own == own) & (table.message >= 0)
        return np.asarray(table.at[rows] - self.at[table.message[rows]])


class EventMeasures:
    """Measures one run from its event log, batch by batch."""

    def __init__(self, window: Window | None = None) -> None:
        self.window = window
        self.process_codes = _Processes()
        self.processes: set[int] = set()
        self.kinds, self.reasons = Names(KINDS), Names()
        self.packet_kinds, self.media = Names(), Names(("radio", "wired"))
        self.counts: Counter[str] = Counter()
        self.sums: Counter[str] = Counter()
        self.instants = {kind: _Instants() for kind in (BROADCAST, RECEIVED, DELIVERED, DISCARDED)}
        self.observed: dict[int, _Instants] = {}
        self.discard_reasons = Growing()
        self.presence, self.addressed, self.hops = Presence(), Addressed(), Hops()
        self.end_us = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Add a batch of rows; batches may come in any order."""
        for name in _NEEDED:
            if name not in batch.schema.names:
                raise BadInput(f"not an event log: no column {name!r}")
        if not batch.num_rows:
            return
        kind = self.kinds.read(batch, "kind")
        if len(self.kinds.codes) > len(KINDS):
            raise BadInput(f"not an event log: unknown kind {self.kinds.names()[-1]!r}")
        at = read_integers(batch, "at_us")
        self.end_us = max(self.end_us, int(at.max()))
        process = self.process_codes.read(batch, "node", "incarnation")
        self.processes.update(np.flatnonzero(np.bincount(process)).tolist())
        for code in (STARTED, CRASHED, LEFT):
            self.counts[KINDS[code]] += int(np.count_nonzero(kind == code))
        self.presence.add(kind, self.process_codes.names.read(batch, "node").astype(np.int64), at)
        self.addressed.add(batch, np.flatnonzero(kind == BROADCAST))
        self.hops.add(batch, kind, process, self.process_codes.names)
        self._add_packets(batch, kind, at)
        self._add_instants(batch, kind, process, at)

    def _add_packets(self, batch: pa.RecordBatch, kind: Codes, at: Integers) -> None:
        sent, received = kind == SENT, kind == PACKET_RECEIVED
        if self.window is not None:
            inside = (at >= self.window.begin) & (at < self.window.end)
            sent, received = sent & inside, received & inside
        self.counts["packets_received"] += int(np.count_nonzero(received))
        rows = np.flatnonzero(sent)
        self.counts["packets"] += rows.size
        if not rows.size:
            return
        packets = batch.take(pa.array(rows))
        sizes = {name: read_integers(packets, name) for name in PACKET_SIZES}
        for name, values in sizes.items():
            self.sums[name] += int(values.sum())
        for names, column, plural in (
            (self.packet_kinds, "packet_kind", "packets_{}"),
            (self.media, "medium", "packets_over_{}"),
        ):
            codes = names.read(packets, column)
            per_code = np.bincount(codes[codes >= 0], minlength=len(names.codes))
            per_bytes = np.bincount(codes[codes >= 0], sizes["packet_bytes"][codes >= 0], len(names.codes))
            for name, code in names.codes.items():
                self.counts[plural.format(name)] += int(per_code[code])
                self.sums[plural.format(name)] += int(per_bytes[code])

    def _add_instants(self, batch: pa.RecordBatch, kind: Codes, process: Integers, at: Integers) -> None:
        source = self.process_codes.read(batch, "message_source", "message_incarnation")
        number = read_integers(batch, "message_number")
        for code, kept in self.instants.items():
            kept.add(np.flatnonzero(kind == code), process, source, number, at)
        if not np.any((kind == DISCARDED) | (kind == OBSERVED)):
            return
        reason = self.reasons.read(batch, "reason").astype(np.int64)
        self.discard_reasons.add(reason[kind == DISCARDED])
        seen = np.flatnonzero(kind == OBSERVED)
        for name in np.unique(reason[seen]):
            rows = seen[reason[seen] == name]
            self.observed.setdefault(int(name), _Instants()).add(rows, process, source, number, at)

    def measures(self) -> Measures:
        """Return the measures of all batches added; call it once."""
        windowed = self.window is not None
        broadcasts = _Broadcasts(self.instants[BROADCAST], self.window)
        received = broadcasts.resolve(self.instants[RECEIVED], windowed)
        delivered = broadcasts.resolve(self.instants[DELIVERED], windowed)
        own = int(np.count_nonzero(delivered.own))
        pairs = list(self.process_codes.codes)
        nodes = sorted({pairs[process] >> 32 for process in self.processes})
        measures: Measures = {
            "nodes": len(nodes),
            "end_us": self.end_us,
            **{name: self.counts[name] for name in ("started", "crashed", "left")},
            "broadcasts": broadcasts.rows,
            "receptions": received.at.size,
            "deliveries": delivered.at.size,
            "own_deliveries": own,
        }
        measures |= self._discards(broadcasts, windowed)
        receptions = received.at.size
        measures["delivered_of_received_share"] = _ratio(delivered.at.size - own, receptions)
        expired = measures["expired"]
        assert expired is not None
        measures["expired_share"] = _ratio(expired, receptions)
        node_of = np.array([pair >> 32 for pair in pairs], np.int64)
        measures |= self._routing(broadcasts, received, delivered, nodes, node_of)
        measures |= summarise("transit_us", broadcasts.since(received, own=False))
        measures |= summarise("wait_us", _waits(received, delivered, broadcasts.keys.size))
        measures |= summarise("age_us", broadcasts.since(delivered, own=False))
        measures |= summarise("own_age_us", broadcasts.since(delivered, own=True))
        measures |= self._observations(broadcasts, windowed)
        return measures | self._packets()

    def _routing(
        self, broadcasts: _Broadcasts, received: _Table, delivered: _Table, nodes: list[int], node_of: Integers
    ) -> Measures:
        """Return the measures by which routing protocols are compared (`delivery.py`)."""
        deadlines, destinations = (
            kept.take()[broadcasts.first] for kept in (self.addressed.deadlines, self.addressed.counts)
        )
        until = np.minimum(deadlines, self.end_us)
        source = node_of[broadcasts.source] if broadcasts.keys.size else broadcasts.source
        chosen = broadcasts.measured
        expected = expected_pairs(
            broadcasts.at[chosen], until[chosen], source[chosen], destinations[chosen], nodes, self.presence
        )
        width = broadcasts.keys.size
        rows = (delivered.message >= 0) & ~delivered.own
        pairs = np.unique(node_of[delivered.process[rows]] * width + delivered.message[rows])
        pairs = pairs[pairs // max(width, 1) != source[pairs % max(width, 1)]] if width else pairs
        measures: Measures = {"expected_deliveries": expected, "delivery_ratio": _ratio(pairs.size, expected)}
        if self.counts["packets_received"]:
            measures["relayed"] = self.hops.relayed
            measures["overhead_ratio"] = _ratio(self.hops.relayed - pairs.size, pairs.size)
        sender = self.hops.senders()[received.place]
        known = received.message >= 0
        at_node, message = node_of[received.process[known]], received.message[known]
        hops = hops_of(at_node, message, sender[known], source[message])
        counted = (hops > 0) & np.isin(at_node * width + message, pairs)
        return measures | summarise("hop_count", hops[counted])

    def _discards(self, broadcasts: _Broadcasts, windowed: bool) -> Measures:
        """Count the discards, in all and by reason; `expired` counts those that expired while pending."""
        kept = self.instants[DISCARDED]
        reason = self.discard_reasons.take()
        if windowed:
            joined, number = kept.process.take(), kept.number.take()
            message = broadcasts.find(joined & 0xFFFFFFFF, number)
            reason = reason[(message >= 0) & np.append(broadcasts.measured, False)[message]]
        per_reason = np.bincount(reason[reason >= 0], minlength=len(self.reasons.codes))
        by_name = {name: int(per_reason[code]) for name, code in self.reasons.codes.items()}
        return {
            "expired": by_name.get("expired_pending", 0),
            "discarded": reason.size,
            **{f"discarded_{name}": count for name, count in sorted(by_name.items()) if count},
        }

    def _observations(self, broadcasts: _Broadcasts, windowed: bool) -> Measures:
        """Count the `observed` rows by name, and summarise their ages.

        They say when another rule would have delivered, as TOF (total order by flooding) in a run of DRIFT.
        """
        measures: Measures = {}
        names = self.reasons.names()
        for code in sorted(self.observed, key=lambda code: names[code] if code >= 0 else ""):
            table = broadcasts.resolve(self.observed[code], windowed)
            name = names[code] if code >= 0 else "unnamed"
            measures[f"observed_{name}"] = table.at.size
            measures |= summarise(f"observed_{name}_age_us", broadcasts.since(table, own=False))
            measures |= summarise(f"observed_{name}_own_age_us", broadcasts.since(table, own=True))
        return measures

    def _packets(self) -> Measures:
        packets = self.counts["packets"]
        measures: Measures = {"packets": packets, "packets_received": self.counts["packets_received"]}
        for name in PACKET_SIZES:
            measures[name] = self.sums[name]
            measures[f"{name}_mean"] = _ratio(self.sums[name], packets)
        measures["control_bytes_share"] = _ratio(self.sums["control_bytes"], self.sums["packet_bytes"])
        for plural in sorted(self.sums):
            if plural.startswith("packets_") and self.counts[plural]:
                measures[plural] = self.counts[plural]
                measures[f"{plural}_bytes"] = self.sums[plural]
        return measures


def _waits(received: _Table, delivered: _Table, messages: int) -> Integers:
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


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None
