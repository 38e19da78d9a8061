"""The recorder: writes event log rows for both drivers, at about a tenth of a microsecond a row.

Rows are packed as numbers (`rows`) and turned into Arrow in blocks, because an object per row would cost more
than the protocols do. `step` is computed when a block is closed, so nodes and drivers never count. Memory does
not grow with the number of rows.
"""

from collections.abc import Sequence
from itertools import chain
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa

from precede.core.compiling import is_compiled
from precede.core.effects import MEDIUM_NAMES, Medium
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Instant
from precede.core.messages import Packet
from precede.core.peaks import Sample
from precede.eventlog import rows
from precede.eventlog.arrays import integer_array, named_array, text_array
from precede.eventlog.blocks import Block, Integers, block_of_columns, block_of_units
from precede.eventlog.rows import BLOCK_BYTES, MeasuredPacket, Rows
from precede.eventlog.schema import BROADCAST, KINDS, event_schema, gauge_schema
from precede.eventlog.steps import StepCounts

_ABOUT_PACKETS: Final = (
    "peer",
    "medium",
    "packet_kind",
    "packet_bytes",
    "wire_bytes",
    "control_bytes",
    "control_entries",
    "messages_in_packet",
)

_GAUGES: Final = 50_000
"""So many rows of gauges go to the sink at once."""


class Sink(Protocol):
    """Takes blocks of rows: a Parquet file, a list in memory, a folder of segments."""

    def write_events(self, block: pa.RecordBatch) -> None: ...

    def write_gauges(self, block: pa.RecordBatch) -> None: ...


class Codes(dict[str, int]):
    """Maps each packet kind of one run to its code. Looking up a new kind gives it the next code."""

    def __missing__(self, name: str) -> int:
        code = self[name] = _new_code(self, 65535, "packet kinds")
        return code


class Recorder:
    """Writes the rows of one run. A `process` number stands for one incarnation of a node (`process_of`)."""

    def __init__(self, run_id: str, names: Sequence[str], sink: Sink, packets_received: bool = True) -> None:
        self.run_id = run_id
        self.sink = sink
        self.packets_received = packets_received
        self.rows = 0
        self.units = new_rows()
        self._read = block_of_units if type(self.units) is Rows else block_of_columns
        self._names = list(names)
        self._dictionary = text_array(self._names)
        self._kinds = text_array(KINDS)
        self._run = text_array([run_id])
        self._process_node: list[int] = []
        self._process_incarnation: list[int] = []
        self._reasons: dict[str, int] = {"": 0}
        self.packet_kinds = Codes()
        self._extras: list[tuple[int, tuple[NodeId, ...] | None, Instant | None]] = []
        self._steps = new_step_counts(len(self._names))
        self._gauges: list[tuple[int, Instant, Sample]] = []
        self._gauge_rows = 0
        self._schema = event_schema()

    def process_of(self, node: NodeId, incarnation: int) -> int:
        """Assigns and returns a new process number, by which rows refer to this incarnation of a node."""
        self._process_node.append(node)
        self._process_incarnation.append(incarnation)
        return len(self._process_node) - 1

    def continue_steps(self, node: NodeId, step: int) -> None:
        """Sets the step of the node's next row, for a node whose earlier rows are in another log."""
        self._steps.continue_from(node, step)

    def node_event(self, kind: int, process: int, at: Instant, clock: Instant) -> None:
        self.units.node_event(kind, process, at, clock)

    def message(
        self, kind: int, process: int, at: Instant, clock: Instant, id: MessageId, reason: str = ""
    ) -> None:
        """Writes a row about a message. In an `observed` row, `reason` is the name of what was observed."""
        self.units.message(kind, self.reason_code(reason), process, at, clock, id)

    def reason_code(self, reason: str) -> int:
        """Returns the code of a reason in this run's rows. A new reason gets the next code."""
        code = self._reasons.get(reason)
        if code is None:
            code = self._reasons[reason] = _new_code(self._reasons, 255, "reasons")
        return code

    def broadcast(
        self,
        process: int,
        at: Instant,
        clock: Instant,
        id: MessageId,
        destinations: tuple[NodeId, ...] | None,
        deadline: Instant | None,
    ) -> None:
        """Writes a `broadcast` row; only this row has the message's destinations and deadline."""
        if destinations is not None or deadline is not None:
            self._extras.append((self.units.mark(), destinations, deadline))
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
        """Writes a `sent` or `packet_received` row. Peer -1: no single node; wire bytes -1: unknown."""
        measured = MeasuredPacket(packet, self.packet_kinds[packet.kind])
        self.units.packet(kind, process, at, clock, measured, peer, over, wire_bytes)

    def gauges(self, node: NodeId, at: Instant, sample: Sample) -> None:
        """Keep a node's sizes at one instant, with their peaks. Many at a time go to the sink."""
        if not sample.names:
            return
        self._gauges.append((node, at, sample))
        self._gauge_rows += len(sample.names)
        if self._gauge_rows >= _GAUGES:
            self._flush_gauges()

    def flush_if_full(self) -> None:
        """Writes the block to the sink once it is large enough; call it regularly."""
        if self.units.size() >= BLOCK_BYTES:
            self._flush_events()

    def flush(self) -> None:
        self._flush_events()
        self._flush_gauges()

    def _flush_events(self) -> None:
        if self.units.size():
            self.sink.write_events(self._batch(self._read(self.units.take())))
            self._extras.clear()

    def _batch(self, block: Block) -> pa.RecordBatch:
        count = len(block.at)
        node = np.asarray(self._process_node, np.int32).take(block.process)
        about_packet = np.zeros(count, np.bool_)
        about_packet[block.packets] = True
        self.rows += count
        columns = {
            "run_id": self._constant(count),
            "node": named_array(node, self._dictionary),
            "incarnation": integer_array(np.asarray(self._process_incarnation, np.int32).take(block.process)),
            "step": integer_array(self._steps.count(node)),
            "at_us": integer_array(block.at),
            "clock_us": integer_array(block.clock),
            "kind": named_array(block.kind, self._kinds),
            **self._message_columns(block, ~about_packet & (block.source >= 0)),
            **self._packet_columns(block, about_packet),
            **self._extra_columns(block),
        }
        return pa.record_batch([columns[name] for name in self._schema.names], schema=self._schema)

    def _message_columns(self, block: Block, about: Any) -> dict[str, pa.Array]:
        present, has_number = _bits(about), _bits(about & (block.small > 0))
        return {
            "message_source": self._named(block.source, present),
            "message_incarnation": integer_array(block.incarnation, present),
            "message_number": integer_array(block.number, present),
            "reason": named_array(block.small, text_array(list(self._reasons)), has_number),
        }

    def _packet_columns(self, block: Block, about: Any) -> dict[str, pa.Array]:
        count = len(about)
        if not len(block.packets):
            return {name: pa.nulls(count, self._schema.field(name).type) for name in _ABOUT_PACKETS}
        present = _bits(about)

        def spread(values: Integers) -> Integers:
            column = np.zeros(count, values.dtype)
            column[block.packets] = values
            return column

        wire_bytes = spread(block.wire_bytes)
        measured = spread(block.wire_bytes >= 0)
        return {
            "peer": self._named(block.source, _bits(about & (block.source >= 0))),
            "medium": named_array(block.small, text_array(list(MEDIUM_NAMES)), present),
            "packet_kind": named_array(block.incarnation, text_array(list(self.packet_kinds)), present),
            "packet_bytes": integer_array(block.number, present),
            "wire_bytes": integer_array(wire_bytes, _bits(measured)),
            "control_bytes": integer_array(spread(block.control_bytes), present),
            "control_entries": integer_array(spread(block.control_entries), present),
            "messages_in_packet": integer_array(spread(block.messages), present),
        }

    def _extra_columns(self, block: Block) -> dict[str, pa.Array]:
        count = len(block.at)
        if not self._extras:
            return {
                "destinations": pa.nulls(count, pa.list_(pa.string())),
                "deadline_us": pa.nulls(count, pa.int64()),
            }
        marks = [mark for mark, _, _ in self._extras]
        at_row = marks if block.places is None else np.searchsorted(block.places, marks).tolist()
        chosen: dict[int, list[str]] = {}
        deadlines, known = np.zeros(count, np.int64), np.zeros(count, np.bool_)
        for row, (_, nodes, deadline) in zip(at_row, self._extras, strict=True):
            if nodes is not None:
                chosen[row] = [self._names[node] for node in nodes]
            if deadline is not None:
                deadlines[row], known[row] = deadline, True
        kind = pa.list_(pa.string())
        return {
            "destinations": pa.array(map(chosen.get, range(count)), kind) if chosen else pa.nulls(count, kind),
            "deadline_us": integer_array(deadlines, _bits(known)),
        }

    def _named(self, node: Any, present: pa.Buffer) -> pa.Array:
        return named_array(node, self._dictionary, present)

    def _constant(self, count: int) -> pa.Array:
        return named_array(np.zeros(count, np.int32), self._run)

    def _flush_gauges(self) -> None:
        if not self._gauge_rows:
            return
        node, at, samples = zip(*self._gauges, strict=True)
        names, values, peaks = zip(*samples, strict=True)
        sizes = [len(each) for each in names]
        number: dict[str, int] = {}
        codes = [number.setdefault(name, len(number)) for name in chain.from_iterable(names)]
        columns = [
            self._constant(self._gauge_rows),
            named_array(np.repeat(np.array(node, np.int32), sizes), self._dictionary),
            integer_array(np.repeat(np.array(at, np.int64), sizes)),
            named_array(np.array(codes, np.int32), text_array(list(number))),
            integer_array(np.fromiter(chain.from_iterable(values), np.int64, self._gauge_rows)),
            integer_array(np.fromiter(chain.from_iterable(peaks), np.int64, self._gauge_rows)),
        ]
        self.sink.write_gauges(pa.record_batch(columns, schema=gauge_schema()))
        self._gauges.clear()
        self._gauge_rows = 0


def _new_code(codes: dict[str, int], most: int, noun: str) -> int:
    if len(codes) > most:
        raise ValueError(f"more than {most} different {noun} in one run")
    return len(codes)


def _bits(present: Any) -> pa.Buffer:
    """Packs truth values into the bitmap by which Arrow marks the rows of a column that have a value."""
    return pa.py_buffer(np.packbits(present, bitorder="little"))


def new_step_counts(nodes: int) -> StepCounts:
    """Return the counts of an empty log: `MachineStepCounts` where the package is compiled."""
    if not is_compiled(rows):
        return StepCounts(nodes)
    from precede.eventlog.machine_steps import MachineStepCounts

    return MachineStepCounts(nodes)


def new_rows() -> Rows:
    """Return an empty block of packed rows: `MachineRows` where the package is compiled, else `Rows`."""
    if not is_compiled(rows):
        return rows.Rows()
    from precede.eventlog.machine_rows import MachineRows

    return MachineRows()
