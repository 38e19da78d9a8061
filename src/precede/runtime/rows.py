"""The event log of a real node: the simulator's rows, kept so that a crash loses none that matter.

With a store, rows are committed together with what they report (a delivery and its row are one transaction) and
moved into Parquet segments now and then; a node that is killed leaves its rows in the store, where its next
life, or anybody, finds them (`write_segment`). Without a store they go to a Parquet file at the end. A node
needs no Arrow to keep its rows, only to write segments.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

import msgspec

from precede.core.effects import Medium
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Instant
from precede.core.messages import Packet
from precede.eventlog.schema import BROADCAST, PACKET_RECEIVED, SENT

Row: TypeAlias = tuple[Any, ...]
"""(kind, now), and then for a message (source, incarnation, number, reason, destinations, deadline), for a
packet (kind of packet, peer or "", medium, sizes ...). Nodes by name."""

SEGMENT_ROWS: Final = 50_000
_LARGEST_SIZE: Final = (1 << 31) - 1


class Rows(Protocol):
    """What a driver tells about."""

    def node_event(self, kind: int, now: Instant) -> None: ...

    def message(self, kind: int, now: Instant, id: MessageId, reason: str = "") -> None: ...

    def broadcast(
        self, now: Instant, id: MessageId, to: tuple[NodeId, ...] | None, deadline: Instant | None
    ) -> None: ...

    def packet(
        self, kind: int, now: Instant, packet: Packet, peer: NodeId, over: Medium, wire: int
    ) -> None: ...


class KeptRows:
    """Rows since the last commit, as plain data."""

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
        if self._packets:
            name = self._name_of(peer) if peer >= 0 else ""
            sizes = (packet.size_bytes, packet.control_bytes, packet.control_entries, packet.messages, wire)
            bounded = [min(size, _LARGEST_SIZE) for size in sizes]
            self._rows.append((kind, now, packet.kind, name, over, *bounded))

    def __len__(self) -> int:
        return len(self._rows)

    def taken(self) -> bytes:
        """All of them as bytes, and none are left here."""
        data = self._encode(self._rows)
        self._rows.clear()
        return data


class SegmentSource(Protocol):
    """A store with rows in it."""

    def logged(self) -> list[tuple[int, bytes]]: ...

    def forget_log(self, place: int) -> None: ...

    def remember(self, name: str, value: int) -> None: ...

    def remembered(self, name: str, default: int) -> int: ...

    def commit(self) -> None: ...


def write_segment(store: SegmentSource, folder: Path, run_id: str, node: str) -> int:
    """Rows out of the store into one more Parquet file; how many.

    A file is named for the life, its first step and how many rows it has: after a crash between the file and
    the commit the same file is written again, or a longer one takes its place under another name, for whoever
    watches the folder reads a name once.
    """
    blobs = store.logged()
    rows = [row for _, data in blobs for row in msgspec.msgpack.decode(data)]
    if not rows:
        return 0
    first = store.remembered("steps", 0)
    write_rows(rows, folder, run_id, node, store.remembered("incarnation", 0), first)
    store.forget_log(blobs[-1][0])
    store.remember("steps", first + len(rows))
    store.commit()
    return len(rows)


def write_rows(rows: list[Row], folder: Path, run_id: str, node: str, life: int, first: int) -> Path:
    """One Parquet file, which appears whole."""
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
    process = recorder.process_of(0, life)
    for row in rows:
        _replay(row, recorder, process, names)
    recorder.flush()
    folder.mkdir(parents=True, exist_ok=True)
    begin = f"events-{life:05d}-{first:012d}"
    path = folder / f"{begin}-{len(rows):06d}.parquet"
    temporary = folder / f".{path.name}.{os.getpid()}"
    pq.write_table(sink.events(), temporary, compression="zstd")
    os.replace(temporary, path)
    for shorter in folder.glob(f"{begin}-*.parquet"):
        if shorter != path:
            shorter.unlink()
    return path


class _Sized:
    """A packet of which only the numbers are left."""

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
