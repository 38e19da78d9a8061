"""The measures of one run, from its event log in one pass.

A latency is of one message at one node other than its source, in world time: *transit* from the broadcast to
the first copy received, *wait* from there to the delivery, *age* from the broadcast to the delivery. A node's
own messages are counted apart (`own_deliveries`, `own_age_us_...`). Another incarnation of a node is another
process: its receptions and deliveries are paired among themselves. Packets are counted at the sender: one
transmission is one packet, however many nodes receive it.

Receptions take 24 bytes each, deliveries that did not follow at once 20, received packets with messages 16;
other packets take none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from precede.core.errors import BadInput
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
from precede.measures.columns import Growing, Integers, Names, Source, batches_of, read_integers, spans
from precede.measures.copies import Transfers, measure_discarded
from precede.measures.delivery import Addressed, Presence, expected_pairs, ratios_within
from precede.measures.energy import Energy, measure_energy
from precede.measures.hops import Hops, hops_of
from precede.measures.messages import (
    Broadcasts,
    Collected,
    Deliveries,
    FirstCopies,
    MessageRows,
    Processes,
    Window,
)
from precede.measures.pairs import RowsByPair
from precede.measures.statistics import STATISTICS, Measures, ratio, summarise

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
MEDIA: Final = ("radio", "wired")
RADIO: Final = 0
PACKET_SIZES: Final = ("packet_bytes", "wire_bytes", "control_bytes", "control_entries", "messages_in_packet")


def measure_events(source: Source, window: Window | None = None, energy: Energy | None = None) -> Measures:
    events = EventMeasures(window, energy)
    for batch in batches_of(source, COLUMNS):
        events.add(batch)
    return events.measures()


class EventMeasures:
    """Measures one run from its event log, batch by batch."""

    def __init__(self, window: Window | None = None, energy: Energy | None = None) -> None:
        self.window, self.energy = window, energy or Energy()
        self.process_codes = Processes()
        self.processes: set[int] = set()
        self.kinds, self.reasons = Names(KINDS), Names()
        self.packet_kinds, self.media = Names(), Names(MEDIA)
        self.counts: Counter[str] = Counter()
        self.sums: Counter[str] = Counter()
        self.instants = {kind: Collected() for kind in (BROADCAST, RECEIVED, DISCARDED)}
        self.deliveries = Deliveries(at_once=window is None)
        self.observed: dict[int, Collected] = {}
        self.discard_reasons = Growing()
        self.presence, self.addressed, self.hops = Presence(), Addressed(), Hops()
        self.transfers = Transfers(window)
        self.end_us = 0
        self.samples: dict[str, Integers] = {}
        """After `measures()`: the ages and hops of deliveries elsewhere, and the buffer times of copies."""

    def add(self, batch: pa.RecordBatch) -> None:
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
        node, process = self.process_codes.read(batch, "node", "incarnation")
        has_rows = np.zeros(len(self.process_codes.codes), np.bool_)
        has_rows[process] = True
        self.processes.update(np.flatnonzero(has_rows).tolist())
        small = kind.astype(np.int8)
        rows = [np.flatnonzero(small == code) for code in range(len(KINDS))]
        for code in (STARTED, CRASHED, LEFT):
            self.counts[KINDS[code]] += rows[code].size
        changes = np.sort(np.concatenate((rows[STARTED], rows[CRASHED], rows[LEFT])))
        self.presence.add(kind[changes], node[changes], at[changes])
        self.addressed.add(batch, rows[BROADCAST])
        self._add_received_packets(batch, rows[RECEIVED], rows[PACKET_RECEIVED], process, at)
        self._add_sent_packets(batch, rows[SENT], at)
        born, received, delivered, discarded = self._instants(
            batch, [rows[code] for code in (BROADCAST, RECEIVED, DELIVERED, DISCARDED)], process, at
        )
        self.instants[BROADCAST].add(*born)
        self.deliveries.add(delivered, received, self.instants[RECEIVED])
        self.instants[RECEIVED].add(*received)
        self.instants[DISCARDED].add(*discarded)
        if rows[DISCARDED].size:
            self.discard_reasons.add(self.reasons.read(batch, "reason", rows[DISCARDED]))
        if rows[OBSERVED].size:
            reason = self.reasons.read(batch, "reason", rows[OBSERVED])
            for name in np.unique(reason):
                kept = self.observed.setdefault(int(name), Collected())
                kept.add(*self._instants(batch, [rows[OBSERVED][reason == name]], process, at)[0])

    def _add_received_packets(
        self, batch: pa.RecordBatch, received: Integers, rows: Integers, process: Integers, at: Integers
    ) -> None:
        """Add the rows of received packets, and find out which of them brought the messages received."""
        peer = self.process_codes.names.read(batch, "peer", rows)
        messages = read_integers(batch, "messages_in_packet", 0, rows)
        with_messages = messages > 0
        self.hops.add(batch, process, received, rows[with_messages], peer[with_messages])
        self.transfers.add_receptions(at[received])
        self.transfers.add_received(at[rows], messages)
        if self.window is not None:
            rows = rows[self.window.has(at[rows])]
        self.counts["packets_received"] += rows.size
        if rows.size:
            over_radio = self.media.read(batch, "medium", rows) == RADIO
            sizes = read_integers(batch, "packet_bytes", 0, rows)
            self.sums["received_over_radio"] += int(sizes[over_radio].sum())

    def _add_sent_packets(self, batch: pa.RecordBatch, rows: Integers, at: Integers) -> None:
        messages = read_integers(batch, "messages_in_packet", 0, rows)
        self.transfers.add_sent(at[rows], self.process_codes.names.read(batch, "peer", rows), messages)
        if self.window is not None:
            rows = rows[self.window.has(at[rows])]
        self.counts["packets"] += rows.size
        if not rows.size:
            return
        sizes = {name: read_integers(batch, name, 0, rows) for name in PACKET_SIZES}
        for name, values in sizes.items():
            self.sums[name] += int(values.sum())
        kinds, media = (
            self.packet_kinds.read(batch, "packet_kind", rows),
            self.media.read(batch, "medium", rows),
        )
        shape = (len(self.packet_kinds.codes) + 1, len(self.media.codes) + 1)  # the first is for null
        pairs = (kinds + 1) * shape[1] + (media + 1)
        packets = np.bincount(pairs, minlength=shape[0] * shape[1]).reshape(shape)
        of_bytes = np.bincount(pairs, sizes["packet_bytes"], shape[0] * shape[1]).reshape(shape)
        for names, plural, axis in ((self.packet_kinds, "packets_{}", 1), (self.media, "packets_over_{}", 0)):
            per_code, per_bytes = packets.sum(axis), of_bytes.sum(axis)
            for name, code in names.codes.items():
                self.counts[plural.format(name)] += int(per_code[code + 1])
                self.sums[plural.format(name)] += int(per_bytes[code + 1])

    def _instants(
        self, batch: pa.RecordBatch, groups: Sequence[Integers], process: Integers, at: Integers
    ) -> list[list[Integers]]:
        """Return process, source, number and instant of some groups of rows about messages, read together."""
        rows = np.concatenate(groups)
        source = self.process_codes.read(batch, "message_source", "message_incarnation", rows)[1]
        number = read_integers(batch, "message_number", 0, rows)
        columns = (process.take(rows), source, number, at.take(rows))
        ends = np.cumsum([group.size for group in groups]).tolist()
        return [
            [column[end - group.size : end] for column in columns]
            for group, end in zip(groups, ends, strict=True)
        ]

    def measures(self) -> Measures:
        """Return the measures of all batches added; call it once."""
        windowed = self.window is not None
        broadcasts = Broadcasts(self.instants[BROADCAST], self.window)
        received = broadcasts.resolve(self.instants[RECEIVED], windowed)
        copies = FirstCopies(received)
        delivered = self.deliveries.kept(broadcasts, windowed)
        own = int(np.count_nonzero(delivered.own))
        others = received.at.size if self.deliveries.at_once else delivered.at.size - own
        # was every message delivered when it was received, once?
        one_incarnation = self.process_codes.one_incarnation_each()
        at_once = self.deliveries.at_once and copies.are_complete() and one_incarnation
        if self.deliveries.at_once and not at_once:
            delivered = self.deliveries.unfolded(delivered, received)
        nodes = self._nodes()
        measures: Measures = {
            "nodes": len(nodes),
            "end_us": self.end_us,
            **{name: self.counts[name] for name in ("started", "crashed", "left")},
            "broadcasts": broadcasts.rows,
            "receptions": received.at.size,
            "deliveries": others + own,
            "own_deliveries": own,
        }
        measures |= self._discards(broadcasts, copies)
        receptions = received.at.size
        measures["delivered_of_received_share"] = ratio(others, receptions)
        expired = measures["expired"]
        assert expired is not None
        measures["expired_share"] = ratio(expired, receptions)
        waits = np.broadcast_to(np.int64(0), receptions) if at_once else copies.waits_in_order(delivered)
        paired = waits is not None and one_incarnation and copies.rows.are_unique()
        waits = copies.waits(delivered) if waits is None else waits
        own_ages = broadcasts.since_own(delivered)
        if not paired:
            measures |= self._routing(broadcasts, received, delivered, copies, None)
        transits = broadcasts.since(received)  # written over the instants, as are the ages
        ages = transits if at_once else broadcasts.since(delivered)
        if paired:
            measures |= self._routing(broadcasts, received, delivered, copies, ages)
        del copies, received  # the most memory is in use here
        measures |= (of_transits := summarise("transit_us", transits))
        measures |= summarise("wait_us", waits)
        if at_once:
            measures |= {f"age_us_{name}": of_transits[f"transit_us_{name}"] for name in STATISTICS}
        else:
            measures |= summarise("age_us", ages)
        measures |= summarise("own_age_us", own_ages)
        measures |= self._observations(broadcasts, windowed)
        measures |= self._packets()
        over_radio = self.sums["received_over_radio"] if self.transfers.receptions_logged else None
        return measures | measure_energy(
            self.energy,
            self.presence,
            nodes,
            self.window or Window(),
            self.end_us,
            self.sums["packets_over_radio"],
            over_radio,
        )

    def _nodes(self) -> list[int]:
        """Return the codes of all nodes that have rows."""
        pairs = list(self.process_codes.codes)
        return sorted({pairs[process] >> 32 for process in self.processes})

    def _discards(self, broadcasts: Broadcasts, copies: FirstCopies) -> Measures:
        discarded = broadcasts.resolve(self.instants[DISCARDED], self.window is not None)
        reason = self.discard_reasons.take()
        reason = reason if discarded.place is None else reason[discarded.place]
        measures, times = measure_discarded(discarded, reason, self.reasons.codes, copies, broadcasts)
        self.samples["buffer_time_us"] = times
        return measures

    def _routing(
        self,
        broadcasts: Broadcasts,
        received: MessageRows,
        delivered: MessageRows,
        copies: FirstCopies,
        ages: Integers | None,
    ) -> Measures:
        """Return the measures by which routing protocols are compared (`delivery.py`).

        `ages` are those of deliveries elsewhere if these are the receptions, in their order, and each node has
        one incarnation and received each message once.
        """
        node_of = np.array([pair >> 32 for pair in self.process_codes.codes], np.int64)
        deadlines, destinations = (
            kept.take()[broadcasts.first] for kept in (self.addressed.deadlines, self.addressed.counts)
        )
        until = np.minimum(deadlines, self.end_us)
        source = node_of[broadcasts.source] if broadcasts.keys.size else broadcasts.source
        chosen = broadcasts.measured
        expected = expected_pairs(
            broadcasts.at[chosen],
            until[chosen],
            source[chosen],
            destinations[chosen],
            self._nodes(),
            self.presence,
        )
        sender = self.hops.senders()
        sender = sender if received.place is None else sender[received.place]
        if ages is not None:
            process_of = np.full(len(self.process_codes.names.codes) + 1, -1, np.int32)
            process_of[node_of] = np.arange(node_of.size)
            for span in spans(sender.size):
                sender[span] = process_of.take(sender[span])
            self.samples["age_us"] = ages
            hops = hops_of(copies.rows, received.process, received.message, sender, broadcasts.source)
            counted = hops > 0
        else:
            rows = (delivered.message >= 0) & ~delivered.own
            at_node, message = node_of[delivered.process[rows]], delivered.message[rows]
            ages = delivered.at[rows] - broadcasts.at[message]
            elsewhere = at_node != source[message]
            if not elsewhere.all():
                at_node, message, ages = at_node[elsewhere], message[elsewhere], ages[elsewhere]
            pairs = RowsByPair(at_node, message)
            self.samples["age_us"] = ages if pairs.are_unique() else _least_ages(at_node, message, ages)
            known = received.message >= 0
            at_node, message = node_of[received.process[known]], received.message[known]
            hops = hops_of(RowsByPair(at_node, message), at_node, message, sender[known], source)
            counted = (hops > 0) & pairs.has(at_node, message)
        reached = self.samples["age_us"].size
        measures: Measures = {"expected_deliveries": expected, "delivery_ratio": ratio(reached, expected)}
        measures |= ratios_within(self.samples["age_us"], expected)
        measures |= self.transfers.measures(received.at.size, reached)
        self.samples["hop_count"] = hops = hops if counted.all() else hops[counted]
        return measures | summarise("hop_count", hops)

    def _observations(self, broadcasts: Broadcasts, windowed: bool) -> Measures:
        """Count the `observed` rows by name, and summarise their ages.

        They say when another rule would have delivered, as TOF (total order by flooding) in a run of DRIFT.
        """
        measures: Measures = {}
        names = self.reasons.names()
        for code in sorted(self.observed, key=lambda code: names[code] if code >= 0 else ""):
            table = broadcasts.resolve(self.observed[code], windowed)
            name = names[code] if code >= 0 else "unnamed"
            measures[f"observed_{name}"] = table.at.size
            own_ages = broadcasts.since_own(table)
            measures |= summarise(f"observed_{name}_age_us", broadcasts.since(table))
            measures |= summarise(f"observed_{name}_own_age_us", own_ages)
        return measures

    def _packets(self) -> Measures:
        packets = self.counts["packets"]
        measures: Measures = {"packets": packets, "packets_received": self.counts["packets_received"]}
        for name in PACKET_SIZES:
            measures[name] = self.sums[name]
            measures[f"{name}_mean"] = ratio(self.sums[name], packets)
        measures["payload_bytes"] = self.sums["packet_bytes"] - self.sums["control_bytes"]
        measures["control_bytes_share"] = ratio(self.sums["control_bytes"], self.sums["packet_bytes"])
        for plural in sorted(self.sums):
            if plural.startswith("packets_") and self.counts[plural]:
                measures[plural] = self.counts[plural]
                measures[f"{plural}_bytes"] = self.sums[plural]
        return measures


def _least_ages(node: Integers, message: Integers, ages: Integers) -> Integers:
    """Return the least age of each pair of a node and a message."""
    order = np.lexsort((ages, message, node))
    node, message = node[order], message[order]
    is_first = np.ones(order.size, np.bool_)
    is_first[1:] = (node[1:] != node[:-1]) | (message[1:] != message[:-1])
    return np.asarray(ages[order][is_first])
