"""The numbers of one run from its event log (DESIGN sections 4 and 5), in one pass.

A latency belongs to a message at a node that is not its source: *transit* is broadcast to first copy in hand,
*wait* first copy to delivered, *age* broadcast to delivered, all in world time; where everything is delivered,
age = transit + wait. A node's own messages are counted apart (`own_deliveries`, `own_age_us_...`). A restart
without saved state is another process: its receptions and deliveries pair among themselves. Packets are counted
where they are sent: one transmission is one packet, however many hear it.

Packets pass by in constant memory; what a latency needs is kept, 24 bytes for each reception and delivery.
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
from precede.measures.statistics import Measures, summarise

_COLUMNS: Final = (
    "node",
    "incarnation",
    "at_us",
    "kind",
    "message_source",
    "message_incarnation",
    "message_number",
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
    """What is measured: messages broadcast, and packets sent, in [begin, end) of world time."""

    begin: Instant = 0
    end: Instant = 2**62


def measure_events(source: Source, window: Window | None = None) -> Measures:
    """Every measure of one run's event log, as one flat mapping."""
    log = _Log(window)
    for batch in batches_of(source, _COLUMNS):
        log.take(batch)
    return log.measures()


class _Lives:
    """One code for each (name, incarnation): a process as the witness sees it."""

    def __init__(self) -> None:
        self.names = Names()
        self.codes: dict[int, int] = {}

    def read(self, batch: pa.RecordBatch, name: str, incarnation: str) -> Integers:
        named = self.names.read(batch, name).astype(np.int64)
        number = read_integers(batch, incarnation)
        if number.any():
            found, inverse = np.unique((named << 32) | number, return_inverse=True)
        else:
            found = np.flatnonzero(np.bincount(named + 1)) - 1
            place = np.zeros(len(self.names.codes) + 1, np.int64)
            place[found] = np.arange(found.size)
            found, inverse = found << 32, place[named]
        table = [self.codes.setdefault(int(life), len(self.codes)) for life in found]
        return np.asarray(np.array(table, np.int64)[inverse])


class _Instants:
    """Rows of one kind that a latency needs: which process, which message, when."""

    def __init__(self) -> None:
        self.process, self.source, self.number, self.at = Growing(), Growing(), Growing(), Growing()

    def add(self, rows: Integers, process: Integers, source: Integers, number: Integers, at: Integers) -> None:
        # a process and a source are codes far below 2**31, kept in one number
        self.process.add((process[rows] << 32) | source[rows])
        self.number.add(number[rows])
        self.at.add(at[rows])


class _Table(NamedTuple):
    """Rows of one kind, resolved: process, message (index among the broadcasts, -1 unknown), instant."""

    process: Integers
    message: Integers
    at: Integers
    own: np.ndarray[tuple[int], np.dtype[np.bool_]]


class _Broadcasts:
    """The messages of a run, found by source and number."""

    def __init__(self, kept: _Instants, window: Window | None) -> None:
        joined, number, at = kept.process.take(), kept.number.take(), kept.at.take()
        source = joined & 0xFFFFFFFF
        self.numbers = np.unique(number)
        self.width = max(1, self.numbers.size)
        key = source * self.width + np.searchsorted(self.numbers, number)
        self.keys, first = np.unique(key, return_index=True)
        self.at = at[first]
        self.measured = np.ones(self.keys.size, np.bool_)
        if window is not None:
            self.measured = (self.at >= window.begin) & (self.at < window.end)
        self.rows = number.size if window is None else int(np.count_nonzero(self.measured))

    def resolve(self, kept: _Instants, windowed: bool) -> _Table:
        """Rows with the index of their message; under a window only rows of measured messages."""
        joined, number, at = kept.process.take(), kept.number.take(), kept.at.take()
        process, source = joined >> 32, joined & 0xFFFFFFFF
        own = process == source
        message = self._find(source, number)
        if windowed:
            inside = (message >= 0) & self.measured[message] if self.keys.size else message >= 0
            process, message, at, own = process[inside], message[inside], at[inside], own[inside]
        return _Table(process, message, at, own)

    def _find(self, source: Integers, number: Integers) -> Integers:
        if not self.keys.size:
            return np.full(number.size, -1, np.int64)
        rank = np.searchsorted(self.numbers, number)
        rank[rank == self.width] = 0
        key = source * self.width + rank
        place = np.searchsorted(self.keys, key)
        place[place == self.keys.size] = 0
        known = (self.keys[place] == key) & (self.numbers[rank] == number)
        return np.where(known, place, -1)

    def since(self, table: _Table, own: bool) -> Integers:
        """Broadcast to each row's instant, for rows of known messages that are, or are not, the node's own."""
        rows = (table.own == own) & (table.message >= 0)
        return np.asarray(table.at[rows] - self.at[table.message[rows]])


class _Log:
    """What is kept of the batches that passed by."""

    def __init__(self, window: Window | None) -> None:
        self.window = window
        self.lives = _Lives()
        self.processes: set[int] = set()
        self.kinds, self.reasons = Names(KINDS), Names()
        self.packet_kinds, self.media = Names(), Names(("radio", "wired"))
        self.counts: Counter[str] = Counter()
        self.sums: Counter[str] = Counter()
        self.instants = {kind: _Instants() for kind in (BROADCAST, RECEIVED, DELIVERED, DISCARDED)}
        self.observed: dict[int, _Instants] = {}
        self.discard_reasons = Growing()
        self.end_us = 0

    def take(self, batch: pa.RecordBatch) -> None:
        """One batch of rows, in any order."""
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
        process = self.lives.read(batch, "node", "incarnation")
        self.processes.update(np.flatnonzero(np.bincount(process)).tolist())
        for code in (STARTED, CRASHED, LEFT):
            self.counts[KINDS[code]] += int(np.count_nonzero(kind == code))
        self._take_packets(batch, kind, at)
        self._take_instants(batch, kind, process, at)

    def _take_packets(self, batch: pa.RecordBatch, kind: Codes, at: Integers) -> None:
        sent, heard = kind == SENT, kind == PACKET_RECEIVED
        if self.window is not None:
            inside = (at >= self.window.begin) & (at < self.window.end)
            sent, heard = sent & inside, heard & inside
        self.counts["packets_received"] += int(np.count_nonzero(heard))
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

    def _take_instants(self, batch: pa.RecordBatch, kind: Codes, process: Integers, at: Integers) -> None:
        source = self.lives.read(batch, "message_source", "message_incarnation")
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
        """Close the log: resolve, pair, summarise."""
        windowed = self.window is not None
        broadcasts = _Broadcasts(self.instants[BROADCAST], self.window)
        received = broadcasts.resolve(self.instants[RECEIVED], windowed)
        delivered = broadcasts.resolve(self.instants[DELIVERED], windowed)
        own = int(np.count_nonzero(delivered.own))
        lives = list(self.lives.codes)
        nodes = len({lives[process] >> 32 for process in self.processes})
        found: Measures = {
            "nodes": nodes,
            "end_us": self.end_us,
            **{name: self.counts[name] for name in ("started", "crashed", "left")},
            "broadcasts": broadcasts.rows,
            "receptions": received.at.size,
            "deliveries": delivered.at.size,
            "own_deliveries": own,
        }
        found |= self._discards(broadcasts, windowed)
        receptions = received.at.size
        found["delivered_share"] = _ratio(delivered.at.size - own, receptions)
        expired = found["expired"]
        assert expired is not None
        found["expired_share"] = _ratio(expired, receptions)
        found |= summarise("transit_us", broadcasts.since(received, own=False))
        found |= summarise("wait_us", _waits(received, delivered, broadcasts.keys.size))
        found |= summarise("age_us", broadcasts.since(delivered, own=False))
        found |= summarise("own_age_us", broadcasts.since(delivered, own=True))
        found |= self._observations(broadcasts, windowed)
        return found | self._packets()

    def _discards(self, broadcasts: _Broadcasts, windowed: bool) -> Measures:
        """All discards and how many for each reason; `expired` is those that expired while pending."""
        kept = self.instants[DISCARDED]
        reason = self.discard_reasons.take()
        if windowed:
            joined, number = kept.process.take(), kept.number.take()
            message = broadcasts._find(joined & 0xFFFFFFFF, number)
            reason = reason[(message >= 0) & np.append(broadcasts.measured, False)[message]]
        per_reason = np.bincount(reason[reason >= 0], minlength=len(self.reasons.codes))
        by_name = {name: int(per_reason[code]) for name, code in self.reasons.codes.items()}
        return {
            "expired": by_name.get("expired_pending", 0),
            "discarded": reason.size,
            **{f"discarded_{name}": count for name, count in sorted(by_name.items()) if count},
        }

    def _observations(self, broadcasts: _Broadcasts, windowed: bool) -> Measures:
        """Instants that another rule would have delivered at, named by the protocol."""
        found: Measures = {}
        names = self.reasons.names()
        for code in sorted(self.observed, key=lambda code: names[code] if code >= 0 else ""):
            table = broadcasts.resolve(self.observed[code], windowed)
            name = names[code] if code >= 0 else "unnamed"
            found[f"observed_{name}"] = table.at.size
            found |= summarise(f"observed_{name}_age_us", broadcasts.since(table, own=False))
            found |= summarise(f"observed_{name}_own_age_us", broadcasts.since(table, own=True))
        return found

    def _packets(self) -> Measures:
        packets = self.counts["packets"]
        found: Measures = {"packets": packets, "packets_received": self.counts["packets_received"]}
        for name in PACKET_SIZES:
            found[name] = self.sums[name]
            found[f"{name}_mean"] = _ratio(self.sums[name], packets)
        found["control_bytes_share"] = _ratio(self.sums["control_bytes"], self.sums["packet_bytes"])
        for plural in sorted(self.sums):
            if plural.startswith("packets_") and self.counts[plural]:
                found[plural] = self.counts[plural]
                found[f"{plural}_bytes"] = self.sums[plural]
        return found


def _waits(received: _Table, delivered: _Table, messages: int) -> Integers:
    """First copy to delivery, for each delivery whose process had a first copy in hand."""
    if not received.at.size or not delivered.at.size or not messages:
        return np.empty(0, np.int64)
    known = received.message >= 0
    keys = received.process[known] * messages + received.message[known]
    order = np.argsort(keys, kind="stable")
    keys, at = keys[order], received.at[known][order]
    rows = (delivered.message >= 0) & ~delivered.own
    wanted = delivered.process[rows] * messages + delivered.message[rows]
    place = np.searchsorted(keys, wanted)
    place[place == keys.size] = 0
    paired = keys[place] == wanted if keys.size else np.zeros(wanted.size, np.bool_)
    return np.asarray(delivered.at[rows][paired] - at[place[paired]])


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None
