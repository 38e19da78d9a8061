"""The files of one large order in a scratch folder: its rows by bucket of nodes, and the pasts of messages."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from precede.lake.integrity import check_file
from precede.pipeline.judging.buckets import BlobLog
from precede.pipeline.judging.packing import Packer, Unit, bucket_of, joined_blocks
from precede.witness.checks.engine import Turns
from precede.witness.checks.numba_engine import NumbaEngine
from precede.witness.checks.pasts import direct
from precede.witness.history import History
from precede.witness.reading.column_names import BROADCAST, DELIVERED, Layout
from precede.witness.reading.encode import Array
from precede.witness.reading.tables import open_file, read_row_groups

_PRESENT: Final = "precede_present"
"""The kind of a row that only says that a process has rows."""


class PackByNode:
    """Stage 1: packs the rows of a unit by node, and keeps its broadcasts apart. `spread` calls it by unit."""

    def __init__(self, units: Sequence[Unit], layout: Layout, buckets: int, scratch: Path) -> None:
        self.units, self.layout, self.buckets, self.scratch = units, layout, buckets, scratch

    def __call__(self, number: int) -> dict[str, Any]:
        unit, names = self.units[number], self.layout.names_to_read()
        if unit.groups[0] == 0:  # one task checks the file for all
            check_file(unit.piece.path.absolute())
        packer = Packer([self.layout.columns["node"]], names, self.buckets)
        (word,) = (word for word, kind in self.layout.kinds.items() if kind == BROADCAST)
        buckets, broadcasts = [], []
        with pa.OSFile(str(self.scratch / f"rows-{number}"), "wb") as file:
            writer = None
            for block in joined_blocks(read_row_groups(open_file(unit.piece), unit.groups, names)):
                for blob in packer.pack(block, number):
                    writer = writer or pa.ipc.new_file(file, blob.schema)
                    writer.write_batch(blob)
                    buckets.append(blob["bucket"][0].as_py())
                kind = pc.cast(block[self.layout.columns["kind"]], pa.string())
                broadcasts.append(_decoded(block.filter(pc.equal(kind, word))))
            if writer is not None:
                writer.close()
        table = pa.concat_tables(broadcasts)
        write_table(self.scratch / f"broadcasts-{number}", table)
        return {"buckets": buckets, "broadcasts": table.num_rows}


class Bucketed:
    """The rows of a log by bucket of nodes, as `PackByNode` wrote them; `packed` lists the buckets by file."""

    def __init__(self, scratch: Path, layout: Layout, packed: Sequence[Sequence[int]], buckets: int) -> None:
        self.scratch, self.layout, self.packed, self.buckets = scratch, layout, packed, buckets

    def log(self, bucket: int) -> BlobLog | None:
        """Return the rows of a bucket's nodes as a log; None if it has none."""
        log = BlobLog([self.layout.columns["node"]])
        for number, buckets in enumerate(self.packed):
            if bucket in buckets:
                reader = pa.ipc.open_file(pa.memory_map(str(self.scratch / f"rows-{number}")))
                for place, other in enumerate(buckets):
                    if other == bucket:
                        blob = reader.get_batch(place)
                        log.add(*(blob.column(name)[0].as_buffer() for name in ("groups", "rows")))
        return log if log.expected else None

    def add_foreign(self, log: BlobLog, bucket: int, batches: Iterable[pa.RecordBatch]) -> None:
        """Add those of some rows to a bucket's log that belong to nodes of other buckets."""
        for batch in batches:
            encoded = pc.cast(batch.column(self.layout.columns["node"]), pa.string()).dictionary_encode()
            foreign = [bucket_of((name,), self.buckets) != bucket for name in encoded.dictionary.to_pylist()]
            mask = np.array(foreign, np.bool_)[encoded.indices.to_numpy(zero_copy_only=False)]
            log.add_rows(batch.filter(pa.array(mask)))

    def own(self, history: History, bucket: int) -> list[int]:
        """Return the processes of a history that are nodes of a bucket."""
        is_own = [bucket_of((name,), self.buckets) == bucket for name in history.nodes]
        return [p for p in range(history.processes) if is_own[int(history.node_of[p])]]

    def broadcasts(self) -> Iterator[pa.RecordBatch]:
        """Yield the broadcast rows of the whole log, in its order."""
        for number in range(len(self.packed)):
            yield from read_table(self.scratch / f"broadcasts-{number}").to_batches()

    def reduced(self) -> Iterator[pa.RecordBatch]:
        """Yield all broadcasts, and before each the deliveries of its direct predecessors, node by node."""
        yield from read_table(self.scratch / "reduced").to_batches()

    def presence(self, processes: Sequence[tuple[str, int]]) -> pa.RecordBatch:
        """Return a row for each process that says no more than that the process has rows."""
        nodes, incarnations = zip(*processes, strict=True)
        columns = {"node": pa.array(nodes), "incarnation": pa.array(incarnations, pa.int32())}
        columns["step"] = pa.array(np.full(len(nodes), np.iinfo(np.int64).max - 1))
        columns["kind"] = pa.array([_PRESENT] * len(nodes))
        return _with_names(self.layout, columns, len(nodes)).combine_chunks().to_batches()[0]

    def save(self, bucket: int, events: Array, steps: Array) -> None:
        np.save(self.scratch / f"events-{bucket}.npy", events)
        np.save(self.scratch / f"steps-{bucket}.npy", steps)

    def stored(self, name: str, source: Sequence[Any]) -> Array:
        """Return the stored events or steps of one source, mapped from its bucket's file."""
        _, _, bucket, first, count, _ = source
        values: Array = np.load(self.scratch / f"{name}-{bucket}.npy", mmap_mode="r", allow_pickle=False)
        return values[first : first + count]


def find_pasts(parts: Bucketed, sources: Sequence[Any]) -> bool:
    """Write the direct predecessors of all messages to the scratch folder. Return False if there is a ring.

    A source is: node, incarnation, bucket, first row in the bucket's file, number of rows, number of messages.
    """
    start = np.cumsum([0, *(source[4] for source in sources)]).astype(np.int32)
    base = np.cumsum([0, *(source[5] for source in sources)]).astype(np.int32)
    events = np.empty(start[-1], np.int32)
    for p, source in enumerate(sources):
        events[start[p] : start[p + 1]] = parts.stored("events", source)
    source_of = np.repeat(np.arange(len(sources), dtype=np.int32), np.diff(base))
    history = _bare_history(start, events, source_of, base)
    turns = Turns(NumbaEngine(), history, np.zeros(len(events), np.uint8))
    if turns.broken:
        return False
    rank = np.int16 if np.diff(base).max(initial=0) < 1 << 15 else np.int32
    pasts = np.memmap(parts.scratch / "pasts", rank, "w+", shape=(len(source_of), len(sources)))
    keep = np.zeros(len(events), np.uint8)
    direct(start, events, source_of, base, (turns.who, turns.until, turns.count), pasts, keep)
    kept = np.flatnonzero(keep)  # few rows: a mask over all of them would take more memory than the rows
    kept = kept[(events[kept] & 1) == 1]
    message = events[kept] >> 1
    del pasts, keep, events, history, turns  # before the rows are built, which also take memory
    write_table(parts.scratch / "reduced", _reduced(parts, sources, kept, message, start, source_of))
    return True


def _reduced(
    parts: Bucketed, sources: Sequence[Any], kept: Array, message: Array, start: Array, source_of: Array
) -> pa.Table:
    """Return all broadcasts and the chosen deliveries, by source and step, as rows of the log."""
    columns = parts.layout.columns
    index = {(source[0], source[1]): p for p, source in enumerate(sources)}
    table = pa.Table.from_batches(list(parts.broadcasts()))
    nodes = pc.cast(table[columns["node"]], pa.string())
    incarnations = [0] * len(table)
    if "incarnation" in columns:
        incarnations = pc.fill_null(pc.cast(table[columns["incarnation"]], pa.int32()), 0).to_pylist()
    of_broadcast = np.array([index[key] for key in zip(nodes.to_pylist(), incarnations, strict=True)])
    broadcast_step = pc.cast(table[columns["step"]], pa.int64()).to_numpy()
    order = np.lexsort((broadcast_step, of_broadcast))
    of_broadcast, broadcast_step = of_broadcast[order], broadcast_step[order]
    place = table.schema.get_field_index(columns["node"])
    table = table.set_column(place, columns["node"], nodes).take(pa.array(order))
    names = pa.array([source[0] for source in sources])
    lives = np.array([source[1] for source in sources], np.int32)
    of_kept = np.searchsorted(start, kept, side="right") - 1
    step = np.empty(len(kept), np.int64)
    for p in np.unique(of_kept):
        own = of_kept == p
        step[own] = parts.stored("steps", sources[p])[kept[own] - start[p]]
    (word,) = (word for word, kind in parts.layout.kinds.items() if kind == DELIVERED)
    chosen: dict[str, Any] = {
        "node": names.take(pa.array(of_kept)),
        "incarnation": pa.array(lives[of_kept]),
        "step": pa.array(step),
        "kind": pa.array([word]).take(pa.array(np.zeros(len(kept), np.int64))),
        "message_source": names.take(pa.array(source_of[message])),
        "message_incarnation": pa.array(lives[source_of[message]]),
        "clock_us": pa.array(np.zeros(len(kept), np.int64)),
    }
    for name in ("message_number", "message"):
        if name in columns:
            chosen[name] = table[columns[name]].take(pa.array(message))
    edges = _with_names(parts.layout, chosen, len(kept))
    both = pa.concat_tables([table, edges], promote_options="permissive")
    steps, owners = np.concatenate((broadcast_step, step)), np.concatenate((of_broadcast, of_kept))
    return both.take(pa.array(np.lexsort((steps, owners))))


def _with_names(layout: Layout, ours: dict[str, Any], count: int) -> pa.Table:
    """Return columns under the log's own names; those that are not given are null."""
    return pa.table({theirs: ours.get(name, pa.nulls(count)) for name, theirs in layout.columns.items()})


def _bare_history(start: Array, events: Array, source: Array, base: Array) -> History:
    """Return a history that has what a schedule needs."""
    nothing: list[int] = []
    return History(
        group=(),
        nodes=(),
        node_of=nothing,
        incarnation=nothing,
        start=start,
        events=events,
        steps=nothing,
        source=source,
        base=base,
        position=nothing,
        number=nothing,
        labels=None,
        deliveries=0,
        gaps=[],
    )


def _decoded(table: pa.Table) -> pa.Table:
    columns = [
        column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for column in table.columns
    ]
    return pa.table(columns, names=table.column_names)


def write_table(path: Path, table: pa.Table) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def read_table(path: Path) -> pa.Table:
    return pa.ipc.open_file(pa.memory_map(str(path))).read_all()
