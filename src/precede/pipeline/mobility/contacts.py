"""Contacts of a trace for a radio range: the exact kernel on slices of time.

A slice is one task. It reads the segments that overlap it, runs the numba kernel and writes *pieces* of
contacts. A contact that crosses the cut between two slices comes in two pieces that touch; the merge joins
them. A piece depends on its two segments only, not on the cuts, so any number of slices and workers gives the
same file, byte for byte. After a kill, finished slices are not computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import Struct

from precede.core.errors import BadInput
from precede.core.instants import Instant
from precede.core.natural_order import natural
from precede.core.settings import did_you_mean
from precede.lake.columns import indices
from precede.lake.commits import CONTACTS as COMPUTED
from precede.lake.integrity import fetched
from precede.lake.jobs import Job
from precede.lake.layout import ROWS_A_GROUP, Lake, contacts_unit
from precede.lake.schemas import CONTACTS, SEGMENTS
from precede.pipeline.sessions.tasks import Progress, spread
from precede.traces.intervals import Intervals, Segments, merge_contacts
from precede.traces.kernel import cut_time, find_contacts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK_PAYS_S: Final = 20.0
"""From this estimated CPU time on, a Spark session is worth its own cost of 12 to 24 CPU seconds."""

_S_A_SEGMENT: Final = 1e-6
_S_A_NEIGHBOUR: Final = 2e-7
"""CPU seconds for each segment and neighbour in range; random walks of up to 2,000 nodes took 0.24 us."""

_INSTANTS_SAMPLED: Final = 8
_S_A_TASK: Final = 2.0
_PIECES: Final = pa.schema(
    [("a", pa.int32()), ("b", pa.int32()), ("start_us", pa.int64()), ("end_us", pa.int64())]
)
_SEGMENTS_A_SLICE: Final = 1_000_000
_PIECES_A_MERGE: Final = 4_000_000


class ComputedContacts(Struct, frozen=True, kw_only=True):
    """A summary of the computed contacts, and the path or URL of the file that holds them."""

    trace: str
    range_m: float
    nodes: int
    segments: int
    slices: int
    contacts: int
    file: str


def compute_contacts(
    lake: Lake,
    trace: str,
    range_m: float,
    session: SparkSession | None = None,
    slices: int | None = None,
    progress: Progress | None = None,
) -> ComputedContacts:
    """Compute all contacts of a trace within a range, and write them to the lake's table `contacts`."""
    _check_segments(lake, trace)
    if not (np.isfinite(range_m) and range_m > 0):
        raise BadInput(f"--range {range_m}: expected a positive number of metres")
    names, instants = _survey(lake, trace)
    cuts = cut_time(instants, slices or _slice_count(lake, trace, range_m))
    unit = contacts_unit(trace, range_m)
    with lake.job(f"contacts-{unit}").hold() as job:
        earlier = _earlier_result(lake, unit, trace)
        if earlier is not None:
            return earlier
        state = lake.state("segments", trace)
        work = _Slices(job, trace, names, range_m, cuts, _pieces_folder(job, state, cuts))
        what = f"contacts {unit}: {len(cuts):,} slices of time"
        spread(session, what, work, len(cuts), _watch(work, progress))
        file = job.add_rows("contacts", unit, _merged(work))
        computed = ComputedContacts(
            trace=trace,
            range_m=range_m,
            nodes=len(names),
            segments=len(instants.t0_us),
            slices=len(cuts),
            contacts=file.rows,
            file=f"{lake.location}/{file.path}",
        )
        job.commit(COMPUTED, unit, [file], {unit: {"state": state, "computed": computed}})
        lake.storage.delete_folder(work.folder)
    return computed


def estimate_cpu_s(lake: Lake, trace: str, range_m: float) -> float:
    """Estimate the CPU seconds of a trace's contacts from its segments and the neighbours of a node."""
    _check_segments(lake, trace)
    segments = lake.count("segments", trace)
    _, instants = _survey(lake, trace)
    if not segments or not range_m > 0:
        return 0.0
    at = np.linspace(instants.t0_us.min(), instants.t1_us.max(), _INSTANTS_SAMPLED + 2)[1:-1].astype(np.int64)
    nodes = pairs = 0
    for instant in at.tolist():
        present = (pc.field("t0_us") <= instant) & (pc.field("t1_us") > instant)
        table = lake.read("segments", trace, ["x0", "y0"], present)
        squares = np.floor(np.column_stack([table["x0"].to_numpy(), table["y0"].to_numpy()]) / range_m)
        counts = np.unique(squares, axis=0, return_counts=True)[1]
        nodes += table.num_rows
        pairs += int((counts * (counts - 1)).sum())
    neighbours = np.pi * pairs / nodes if nodes else 0.0
    return float(segments * (_S_A_SEGMENT + _S_A_NEIGHBOUR * neighbours))


def _slice_count(lake: Lake, trace: str, range_m: float) -> int:
    """Return the number of slices, such that each has some seconds of work and not too many segments."""
    by_work = int(estimate_cpu_s(lake, trace, range_m) / _S_A_TASK)
    return max(by_work, lake.count("segments", trace) // _SEGMENTS_A_SLICE) + 1


class _Slices:
    """Computes a trace's contacts in slices of time. `spread` calls it with a slice; it writes one file."""

    def __init__(
        self,
        job: Job,
        trace: str,
        names: Sequence[str],
        range_m: float,
        cuts: Sequence[tuple[Instant, Instant]],
        folder: str,
    ) -> None:
        self.job, self.trace, self.names, self.range_m = job, trace, names, range_m
        self.cuts, self.folder = cuts, folder

    def __call__(self, number: int) -> None:
        """Write the pieces of a slice, unless an earlier attempt did."""
        target = f"{self.folder}/{number}.parquet"
        if self.job.storage.size(target) is not None:
            return
        begin, end = self.cuts[number]
        pieces = find_contacts(self._read(begin, end), self.range_m, begin, end)
        with self.job.workspace() as workspace:
            path = workspace / "pieces.parquet"
            pq.write_table(_piece_table(pieces), path, compression="zstd", row_group_size=ROWS_A_GROUP)
            self.job.storage.put_file(target, path)

    def file(self, number: int) -> Path:
        storage, path = self.job.storage, f"{self.folder}/{number}.parquet"
        return fetched(storage, path) if storage.local is None else storage.local / path

    def _read(self, begin: Instant, end: Instant) -> Segments:
        overlapping = (pc.field("t1_us") > begin) & (pc.field("t0_us") < end)
        columns = SEGMENTS.names()[1:]
        return segments_of(
            self.job.lake.read("segments", self.trace, columns, overlapping, dictionaries=["node"]), self.names
        )


def segments_of(table: pa.Table, names: Sequence[str]) -> Segments:
    """Return rows of `segments` as the kernel's arrays; a node is its index in `names`."""
    numbers: list[Any] = [table[name].to_numpy() for name in SEGMENTS.names()[2:]]
    return Segments(indices(table["node"], names), *numbers)


def _check_segments(lake: Lake, trace: str) -> None:
    if lake.has("segments", trace):
        return
    if lake.has("contacts", trace):
        raise BadInput(
            f"trace {trace!r} consists of meetings, not of movement: the lake already has its contacts"
        )
    traces = list(lake.units("segments"))
    known = ", ".join(traces) or "none"
    near = did_you_mean(trace, traces)
    raise BadInput(f"no trace {trace!r} in {lake.location} (traces with movement: {known}){near}")


def _survey(lake: Lake, trace: str) -> tuple[list[str], Segments]:
    """Read the nodes of a trace in natural order, and when each segment begins and ends (no coordinates)."""
    names: set[str] = set()
    begins, ends = [], []
    for batch in lake.batches("segments", trace, ["node", "t0_us", "t1_us"], dictionaries=["node"]):
        names.update(batch.column("node").unique().to_pylist())
        begins.append(batch.column("t0_us").to_numpy())
        ends.append(batch.column("t1_us").to_numpy())
    no_ints, no_floats = np.empty(0, np.int64), np.empty(0, np.float64)
    t0, t1 = np.concatenate([no_ints, *begins]), np.concatenate([no_ints, *ends])
    return sorted(names, key=natural), Segments(no_ints, t0, no_floats, no_floats, t1, no_floats, no_floats)


def _earlier_result(lake: Lake, unit: str, trace: str) -> ComputedContacts | None:
    """The result of an earlier call, if the contacts exist and the segments have not changed since."""
    record = lake.fact(COMPUTED, unit)
    if record is None or not lake.is_intact("contacts", unit):
        return None
    if record["state"] != lake.state("segments", trace):
        return None
    return msgspec.convert(record["computed"], ComputedContacts)


def _pieces_folder(job: Job, state: list[str], cuts: Sequence[tuple[Instant, Instant]]) -> str:
    """The folder of pieces, named by segments and cuts so that the next attempt finds them."""
    digest = blake2b(repr((state, cuts)).encode(), digest_size=6).hexdigest()
    return f"{job.folder}/pieces-{digest}"


def _watch(work: _Slices, progress: Progress | None) -> Callable[[], None] | None:
    """Return a function that reports how many slices are finished; None without a progress callback."""
    if progress is None:
        return None

    def watch() -> None:
        progress(len(work.job.storage.entries(work.folder)), len(work.cuts))

    return watch


def _piece_table(pieces: Intervals) -> pa.Table:
    columns = [pa.array(column, field.type) for column, field in zip(pieces, _PIECES, strict=True)]
    return pa.table(columns, schema=_PIECES)


def _merged(work: _Slices) -> Iterator[pa.RecordBatch]:
    """Yield all contacts, merged from the pieces, by pair and time; a share of the pairs is in memory."""
    names = pa.array(work.names, pa.string())
    for low, high in _shares(work):
        in_share = (pc.field("a") >= low) & (pc.field("a") < high)
        tables = [pq.read_table(work.file(number), filters=in_share) for number in range(len(work.cuts))]
        parts = [Intervals(*(t[name].to_numpy().astype(np.int64) for name in _PIECES.names)) for t in tables]
        contacts = merge_contacts(parts)
        rows = len(contacts.a)
        columns = [
            pa.repeat(work.trace, rows),
            names.take(pa.array(contacts.a)),
            names.take(pa.array(contacts.b)),
            pa.array(contacts.start_us),
            pa.array(contacts.end_us),
            pa.repeat(pa.scalar(work.range_m, pa.float64()), rows),
        ]
        yield from pa.table(columns, schema=CONTACTS.arrow()).to_batches(ROWS_A_GROUP)


def _shares(work: _Slices) -> list[tuple[int, int]]:
    """Divide the nodes into ranges, such that the pieces whose first node `a` is in one range fit in memory."""
    nodes = len(work.names)
    pieces = np.zeros(nodes, np.int64)
    for number in range(len(work.cuts)):
        first = pq.read_table(work.file(number), columns=["a"])["a"].to_numpy()
        pieces += np.bincount(first, minlength=nodes)
    shares, low, held = [], 0, 0
    for node in range(nodes):
        if held and held + pieces[node] > _PIECES_A_MERGE:
            shares.append((low, node))
            low, held = node, 0
        held += int(pieces[node])
    return [*shares, (low, nodes)]
