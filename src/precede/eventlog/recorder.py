"""From an input and its effects to rows: what both drivers write, at a tenth of a microsecond a row.

Rows are packed into one byte buffer of 32-byte units and turned into Arrow in blocks (DESIGN section 4 and the
speed notes: a Python object per row would cost more than the protocols). A message row is one unit; a packet
row is two, the second marked by CONTINUED where the kind stands. `step` is derived when a block is closed, so
nodes and drivers never count. Memory does not grow with the number of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from precede.core.compiling import is_compiled
from precede.core.effects import MEDIUM_NAMES, Medium
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Instant
from precede.core.messages import Packet
from precede.eventlog import rows
from precede.eventlog.rows import CONTINUED, UNIT, Rows
from precede.eventlog.schema import (
    BROADCAST,
    KINDS,
    PACKET_RECEIVED,
    SENT,
    event_schema,
    gauge_schema,
)

BLOCK_BYTES: Final = 2 * 1024 * 1024

_UNIT_FIELDS: Final = np.dtype(
    [
        ("at", "<i8"),
        ("process", "<i4"),
        ("source", "<i4"),
        ("number", "<u4"),
        ("incarnation", "<u2"),
        ("kind", "u1"),
        ("small", "u1"),
        ("clock", "<i8"),
    ]
)


Integers: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"


class Sink(Protocol):
    """Where blocks of rows go: a Parquet file, a list in memory, a growing segment."""

    def write_events(self, block: pa.RecordBatch) -> None: ...

    def write_gauges(self, block: pa.RecordBatch) -> None: ...


class Codes(dict[str, int]):
    """Numbers for the kinds of packet of one run, given out as they are met."""

    def __missing__(self, name: str) -> int:
        code = self[name] = _new_code(self, 65535, "packet kinds")
        return code


class Recorder:
    """Writes the rows of one run. `process` numbers come from `process_of`, one per life of a node."""

    def __init__(self, run_id: str, names: Sequence[str], sink: Sink, packets_received: bool = True) -> None:
        self.run_id = run_id
        self.sink = sink
        self.packets_received = packets_received
        self.rows = 0
        self.units: Rows = new_rows()
        self._names = list(names)
        self._dictionary = pa.array(self._names, pa.string())
        self._process_node: list[int] = []
        self._process_life: list[int] = []
        self._reasons: dict[str, int] = {"": 0}
        self.packet_kinds = Codes()
        self._extras: list[tuple[int, tuple[NodeId, ...] | None, Instant | None]] = []
        self._steps = np.zeros(len(self._names), np.int64)
        self._gauges: list[tuple[int, Instant, str, int, int]] = []
        self._schema = event_schema()

    def process_of(self, node: NodeId, incarnation: int) -> int:
        """The number of one life of a node."""
        self._process_node.append(node)
        self._process_life.append(incarnation)
        return len(self._process_node) - 1

    def add_name(self, name: str) -> NodeId:
        """One more node, met while running; its row number."""
        self._names.append(name)
        self._dictionary = pa.array(self._names, pa.string())
        self._steps = np.append(self._steps, 0)
        return len(self._names) - 1

    def continue_steps(self, node: NodeId, step: int) -> None:
        """A node whose earlier rows are elsewhere: its next row has this step."""
        self._steps[node] = step

    def life(self, kind: int, process: int, at: Instant, clock: Instant) -> None:
        """started, crashed, left."""
        self.units.life(kind, process, at, clock)

    def message(
        self, kind: int, process: int, at: Instant, clock: Instant, id: MessageId, reason: str = ""
    ) -> None:
        """received, delivered, discarded (with reason), observed (with the observation's name)."""
        code = self._reasons.get(reason)
        if code is None:
            code = self._reasons[reason] = _new_code(self._reasons, 255, "reasons")
        self.units.message(kind, code, process, at, clock, id)

    def broadcast(
        self,
        process: int,
        at: Instant,
        clock: Instant,
        id: MessageId,
        destinations: tuple[NodeId, ...] | None,
        deadline: Instant | None,
    ) -> None:
        """A message has its id; destinations and deadline stand in this row only."""
        if destinations is not None or deadline is not None:
            self._extras.append((self.units.size() // UNIT, destinations, deadline))
        self.message(BROADCAST, process, at, clock, id)

    def packet(
        self,
        kind: int,
        process: int,
        at: Instant,
        clock: Instant,
        packet: Packet,
        peer: NodeId,
        over: Medium,
        wire_bytes: int = -1,
    ) -> None:
        """sent, packet_received. A negative peer is nobody in particular; negative wire bytes are unknown."""
        code = self.packet_kinds[packet.kind]
        self.units.packet(kind, code, process, at, clock, packet, peer, over, wire_bytes)

    def gauge(self, node: NodeId, at: Instant, name: str, value: int, peak: int) -> None:
        """One of a node's `sizes()` at one instant."""
        self._gauges.append((node, at, name, value, peak))
        if len(self._gauges) >= 50_000:
            self._flush_gauges()

    def flush_if_full(self) -> None:
        """Close the block once it is large enough; call it now and then."""
        if self.units.size() >= BLOCK_BYTES:
            self.flush()

    def flush(self) -> None:
        """Close the block: units to columns to the sink."""
        if self.units.size():
            self.sink.write_events(self._block(np.frombuffer(self.units.take(), _UNIT_FIELDS)))
            self._extras.clear()
        self._flush_gauges()

    def _block(self, units: Integers) -> pa.RecordBatch:
        places = np.flatnonzero(units["kind"] != CONTINUED)
        rows = _taken(units, places) if len(places) < len(units) else units
        kind = np.ascontiguousarray(rows["kind"])
        node = np.asarray(self._process_node, np.int32)[rows["process"]]
        life = np.asarray(self._process_life, np.int32)[rows["process"]]
        about_packet = (kind == SENT) | (kind == PACKET_RECEIVED)
        about_message = ~about_packet & (rows["source"] >= 0)
        self.rows += len(rows)
        columns = {
            "run_id": self._constant(len(rows)),
            "node": pa.DictionaryArray.from_arrays(pa.array(node), self._dictionary),
            "incarnation": pa.array(life),
            "step": pa.array(self._count_steps(node)),
            "at_us": pa.array(np.ascontiguousarray(rows["at"])),
            "clock_us": pa.array(np.ascontiguousarray(rows["clock"])),
            "kind": pa.DictionaryArray.from_arrays(pa.array(kind.astype(np.int32)), pa.array(KINDS)),
            **self._message_columns(rows, about_message),
            **self._packet_columns(rows, units, places, about_packet),
            **self._extra_columns(places, len(rows)),
        }
        return pa.record_batch([columns[name] for name in self._schema.names], schema=self._schema)

    def _count_steps(self, node: Integers) -> Integers:
        """Each node's own counter, continued from block to block."""
        small = node.astype(np.uint16) if len(self._names) < 65536 else node
        order = np.argsort(small, kind="stable")
        ordered = node[order]
        first = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
        counts = np.diff(np.r_[first, len(ordered)])
        steps = np.empty(len(node), np.int64)
        steps[order] = np.arange(len(node)) + np.repeat(self._steps[ordered[first]] - first, counts)
        self._steps[ordered[first]] += counts
        return steps

    def _message_columns(self, rows: Any, about: Any) -> dict[str, pa.Array]:
        reasoned = about & (rows["small"] > 0)
        present, known = _bits(about), _bits(reasoned)
        return {
            "message_source": self._named(rows["source"], present),
            "message_incarnation": _masked(pa.int32(), rows["incarnation"], present),
            "message_number": _masked(pa.int64(), rows["number"], present),
            "reason": _coded(rows["small"], list(self._reasons), known),
        }

    def _packet_columns(self, rows: Any, units: Any, places: Any, about: Any) -> dict[str, pa.Array]:
        names = ("packet_bytes", "wire_bytes", "control_bytes", "control_entries", "messages_in_packet")
        if not about.any():
            empty = {name: pa.nulls(len(rows), self._schema.field(name).type) for name in names}
            return empty | {
                name: pa.nulls(len(rows), self._schema.field(name).type)
                for name in ("peer", "medium", "packet_kind")
            }
        more = _taken(units, np.minimum(places + 1, len(units) - 1))
        present = _bits(about)
        return {
            "peer": self._named(rows["source"], _bits(about & (rows["source"] >= 0))),
            "medium": _coded(rows["small"], list(MEDIUM_NAMES), present),
            "packet_kind": _coded(rows["incarnation"], list(self.packet_kinds), present),
            "packet_bytes": _masked(pa.int64(), rows["number"], present),
            "wire_bytes": _masked(pa.int64(), more["source"], _bits(about & (more["source"] >= 0))),
            "control_bytes": _masked(pa.int64(), more["at"], present),
            "control_entries": _masked(pa.int64(), more["number"], present),
            "messages_in_packet": _masked(pa.int32(), more["process"], present),
        }

    def _extra_columns(self, places: Any, count: int) -> dict[str, pa.Array]:
        if not self._extras:
            return {
                "destinations": pa.nulls(count, pa.list_(pa.string())),
                "deadline_us": pa.nulls(count, pa.int64()),
            }
        at_row = np.searchsorted(places, [place for place, _, _ in self._extras]).tolist()
        destinations: list[list[str] | None] = [None] * count
        deadlines: list[int | None] = [None] * count
        for row, (_, nodes, deadline) in zip(at_row, self._extras, strict=True):
            if nodes is not None:
                destinations[row] = [self._names[node] for node in nodes]
            deadlines[row] = deadline
        return {
            "destinations": pa.array(destinations, pa.list_(pa.string())),
            "deadline_us": pa.array(deadlines, pa.int64()),
        }

    def _named(self, node: Any, present: pa.Buffer) -> pa.Array:
        return pa.DictionaryArray.from_arrays(_masked(pa.int32(), node, present), self._dictionary, safe=False)

    def _constant(self, count: int) -> pa.Array:
        return pa.DictionaryArray.from_arrays(
            pa.array(np.zeros(count, np.int32)), pa.array([self.run_id], pa.string())
        )

    def _flush_gauges(self) -> None:
        if not self._gauges:
            return
        node, at, name, value, peak = zip(*self._gauges, strict=True)
        names = list(dict.fromkeys(name))
        number = {text: place for place, text in enumerate(names)}
        columns = [
            self._constant(len(node)),
            pa.DictionaryArray.from_arrays(pa.array(node, pa.int32()), self._dictionary),
            pa.array(at, pa.int64()),
            pa.DictionaryArray.from_arrays(
                pa.array([number[text] for text in name], pa.int32()), pa.array(names)
            ),
            pa.array(value, pa.int64()),
            pa.array(peak, pa.int64()),
        ]
        self.sink.write_gauges(pa.record_batch(columns, schema=gauge_schema()))
        self._gauges.clear()


def _new_code(known: dict[str, int], most: int, what: str) -> int:
    if len(known) > most:
        raise ValueError(f"more than {most} different {what} in one run")
    return len(known)


def _taken(units: Integers, places: Integers) -> Integers:
    """Some units, copied whole: numpy picks records field by field otherwise, at fifty times the cost."""
    return units.view("V32").take(places).view(_UNIT_FIELDS)


def _bits(present: Any) -> pa.Buffer:
    """Which values are there, as Arrow keeps it; shared by all columns that are there together."""
    return pa.py_buffer(np.packbits(present, bitorder="little"))


def _masked(kind: pa.DataType, values: Any, present: pa.Buffer) -> pa.Array:
    data = np.ascontiguousarray(values, dtype=kind.to_pandas_dtype())
    return pa.Array.from_buffers(kind, len(data), [present, pa.py_buffer(data)])


def _coded(code: Any, names: list[str], present: pa.Buffer) -> pa.Array:
    return pa.DictionaryArray.from_arrays(
        _masked(pa.int32(), code, present), pa.array(names, pa.string()), safe=False
    )


def new_rows() -> Rows:
    """Machine words where the package was compiled."""
    if not is_compiled(rows):
        return rows.Rows()
    from precede.eventlog.machine_rows import MachineRows

    return MachineRows()
