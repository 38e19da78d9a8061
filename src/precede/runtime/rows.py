"""The event log of a real node: the same rows that the simulator writes, kept so that a crash loses none.

With a store, rows are committed together with the changes they report: a delivery and its row are one
transaction. From time to time they are moved into a Parquet file, a segment. The rows of a killed node stay in
its store, where its next start, or `write_segment`, finds them. Without a store they are written to a Parquet
file when the node stops. A node needs Arrow only to write segments.
"""

import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

import msgspec

from precede.core.effects import Medium
from precede.core.errors import BadInput
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Instant
from precede.core.messages import Packet
from precede.eventlog.schema import BROADCAST, PACKET_RECEIVED, SENT
from precede.files.private import open_private, private_folder

Row: TypeAlias = tuple[Any, ...]
"""(kind, now), followed for a message by (source, incarnation, number, reason, destinations, deadline) and for
a packet by (kind of packet, peer or "", medium, sizes ...). Nodes are given by name."""

_SEGMENT_ROWS: Final = 50_000
_LARGEST_SIZE: Final = (1 << 31) - 1


class KeptRows:
    """The rows since the last commit, as plain data."""

    def __init__(self, name_of: Callable[[NodeId], str], packets: bool = True) -> None:
        self._name_of = name_of
        self._packets = packets
        self._rows: list[Row] = []
        self._encode = msgspec.msgpack.Encoder().encode

    def node_event(self, kind: int, now: Instant) -> None:
        self._rows.append((kind, now))

    def message(self, kind: int, now: Instant, id: MessageId, reason: str = "") -> None:
        self._rows.append((kind, now, self._name_of(id.source), id.incarnation, id.number, reason, None, None))

    def broadcast(
        self, now: Instant, id: MessageId, to: tuple[NodeId, ...] | None, deadline: Instant | None
    ) -> None:
        names = None if to is None else [self._name_of(node) for node in to]
        source = self._name_of(id.source)
        self._rows.append((BROADCAST, now, source, id.incarnation, id.number, "", names, deadline))

    def packet(self, kind: int, now: Instant, packet: Packet, peer: NodeId, over: Medium, wire: int) -> None:
        """Write a row about a packet of `wire` bytes on the wire, unless packets are not logged."""
        if self._packets:
            name = self._name_of(peer) if peer >= 0 else ""
            sizes = (packet.size_bytes, packet.control_bytes, packet.control_entries, packet.messages, wire)
            bounded = [min(size, _LARGEST_SIZE) for size in sizes]
            self._rows.append((kind, now, packet.kind, name, over, *bounded))

    def __len__(self) -> int:
        return len(self._rows)

    def taken(self) -> bytes:
        data = self._encode(self._rows)
        self._rows.clear()
        return data


class SegmentSource(Protocol):
    """The part of a store that holds rows of the event log."""

    def logged(self) -> list[tuple[int, bytes]]: ...

    def forget_log(self, place: int) -> None: ...

    def remember(self, name: str, value: int) -> None: ...

    def remembered(self, name: str, default: int) -> int: ...

    def commit(self) -> None: ...


class SegmentWriter:
    """Moves a member's rows from its store into files: whenever there are many, and every `seconds` if set."""

    def __init__(self, folder: Path, group: str, name: str, seconds: float | None) -> None:
        self.seconds = seconds
        self._folder = folder
        self._group = group
        self._name = name
        # Members that start together do not write together.
        self._due_at = time.monotonic() + (seconds or 0.0) * random.uniform(0.5, 1.0)
        try:
            private_folder(folder)
        except OSError as error:
            raise BadInput(f"{folder}: no folder for an event log: {error.strerror}") from error

    def time_is_due(self) -> bool:
        """Return whether `seconds` have passed since a file was due. If so, the time starts again."""
        if self.seconds is None or time.monotonic() <= self._due_at:
            return False
        self._due_at = time.monotonic() + self.seconds
        return True

    @staticmethod
    def rows_are_due(rows: int) -> bool:
        return rows > _SEGMENT_ROWS

    def write(self, store: SegmentSource) -> None:
        write_segment(store, self._folder, self._group, self._name)


def write_segment(store: SegmentSource, folder: Path, run_id: str, node: str) -> int:
    """Move the rows of a store into a new Parquet file and return how many there were.

    Its name has the incarnation, the first step and the number of rows. After a crash between writing the file
    and committing, the same file is written again, or a longer one under another name.
    """
    blocks = store.logged()
    rows = [row for _, data in blocks for row in msgspec.msgpack.decode(data)]
    if not rows:
        return 0
    first = store.remembered("steps", 0)
    write_rows(rows, folder, run_id, node, store.remembered("incarnation", 0), first)
    store.forget_log(blocks[-1][0])
    store.remember("steps", first + len(rows))
    store.commit()
    return len(rows)


def write_rows(rows: list[Row], folder: Path, run_id: str, node: str, incarnation: int, first: int) -> Path:
    """Write rows as one Parquet file, which appears in the folder complete, and return its path.

    `first` is the first row's step. Other files of this incarnation that begin with the same step are deleted.
    """
    import pyarrow.parquet as pq

    from precede.eventlog.recorder import Recorder
    from precede.eventlog.sinks import TableSink

    sink = TableSink()
    names = {node: 0}
    for row in rows:
        for name in _names_in(row):
            names.setdefault(name, len(names))
    recorder = Recorder(run_id, list(names), sink)
    recorder.continue_steps(0, first)
    process = recorder.process_of(0, incarnation)
    for row in rows:
        _replay(row, recorder, process, names)
    recorder.flush()
    private_folder(folder)
    prefix = f"events-{incarnation:05d}-{first:012d}"
    path = folder / f"{prefix}-{len(rows):06d}.parquet"
    temporary = folder / f".{path.name}.{os.getpid()}"
    temporary.unlink(missing_ok=True)
    with open_private(temporary) as file:
        pq.write_table(sink.events(), file, compression="zstd")
    os.replace(temporary, path)
    for shorter in folder.glob(f"{prefix}-*.parquet"):
        if shorter != path:
            shorter.unlink()
    return path


class _Sized:
    """The kind and the sizes of a packet whose content is gone."""

    __slots__ = ("control_bytes", "control_entries", "kind", "messages", "size_bytes")

    def __init__(self, kind: str, size: int, control: int, entries: int, messages: int) -> None:
        self.kind = kind
        self.size_bytes = size
        self.control_bytes = control
        self.control_entries = entries
        self.messages = messages


def _names_in(row: Row) -> list[str]:
    if len(row) == 2:
        return []
    if row[0] in (SENT, PACKET_RECEIVED):
        return [row[3]] if row[3] else []
    return [row[2], *(row[6] or ())]


def _replay(row: Row, recorder: Any, process: int, names: dict[str, int]) -> None:
    """Record a row again, with numbers in place of names."""
    kind, now = row[:2]
    if len(row) == 2:
        recorder.node_event(kind, process, now, now)
    elif kind in (SENT, PACKET_RECEIVED):
        packet = _Sized(row[2], *row[5:9])
        peer = names[row[3]] if row[3] else -1
        recorder.packet(kind, process, now, now, packet, peer, row[4], row[9])
    else:
        id = MessageId(names[row[2]], row[3], row[4])
        if kind == BROADCAST:
            to = None if row[6] is None else tuple(names[name] for name in row[6])
            recorder.broadcast(process, now, now, id, to, row[7])
        else:
            recorder.message(kind, process, now, now, id, row[5])
