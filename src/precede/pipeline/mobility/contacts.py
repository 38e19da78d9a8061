"""Contacts of a trace for a radio range: the exact kernel on slices of time, merged (DESIGN section 5).

A slice is one task: it reads the segments that overlap it, runs the compiled kernel and writes its pieces; a
contact that crosses a cut comes in two pieces that abut, and the merge joins them. A piece depends on the two
segments alone and never on the cut, so any number of slices and workers gives the same file, byte for byte.
A slice that is done is not done again after a kill.
"""

from __future__ import annotations

import os
import shutil
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
from precede.lake.jobs import Job, Lake
from precede.lake.schemas import CONTACTS, SEGMENTS
from precede.pipeline.sessions.tasks import cores, spread
from precede.traces.intervals import Intervals, merge_contacts
from precede.traces.kernel import Segments, cut_time, find_contacts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALL: Final = 100_000
"""Segments that this process sweeps sooner than a session starts."""

_PIECES: Final = pa.schema(
    [("a", pa.int32()), ("b", pa.int32()), ("start_us", pa.int64()), ("end_us", pa.int64())]
)
_SEGMENTS_A_SLICE: Final = 100_000
_PIECES_A_MERGE: Final = 4_000_000
_ROWS_A_GROUP: Final = 1 << 17


class ContactsFound(Struct, frozen=True, kw_only=True):
    """What came out."""

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
    progress: Callable[[int, int], None] | None = None,
) -> ContactsFound:
    """All contacts of a trace within a range, into the lake's `contacts`."""
    path = _find_segments(lake, trace)
    if not (np.isfinite(range_m) and range_m > 0):
        raise BadInput(f"--range {range_m}: a positive number of metres is wanted")
    names, instants = _survey(path)
    count = slices or max(-(-len(instants.t0_us) // _SEGMENTS_A_SLICE), 4 * cores(session))
    cuts = cut_time(instants, count)
    unit = contacts_unit(trace, range_m)
    with lake.job(f"contacts-{unit}").hold() as job:
        known = _finished(job, lake, unit, path)
        if known is not None:
            return known
        sweep = _Slice(path, names, range_m, cuts, _pieces_folder(job, path, cuts))
        spread(session, sweep, len(cuts), _watch(sweep, progress))
        found = ContactsFound(
            trace=trace,
            range_m=range_m,
            nodes=len(names),
            segments=len(instants.t0_us),
            slices=len(cuts),
            contacts=job.write("contacts", unit, _merged(sweep, trace, range_m)),
            file=str(lake.path("contacts", unit)),
        )
        job.mark(unit, {"state": _state(path), "found": found})
        shutil.rmtree(sweep.folder)
    return found


def count_segments(lake: Lake, trace: str) -> int:
    """How many segments a trace has."""
    return int(pq.read_metadata(_find_segments(lake, trace)).num_rows)


def contacts_unit(trace: str, range_m: float) -> str:
    """The unit of `contacts` that holds a trace's contacts for a range.

    >>> contacts_unit("bus", 100.0), contacts_unit("bus", 0.5)
    ('bus@100m', 'bus@0.5m')
    """
    return f"{trace}@{range_m:.12g}m"


def contacts_of(lake: Lake, trace: str) -> list[str]:
    """Every unit of `contacts` that was computed from a trace's movement."""
    return [unit for unit in lake.units("contacts") if unit.rpartition("@")[0] == trace]


class _Slice:
    """One slice of time as one piece of work."""

    def __init__(
        self,
        path: Path,
        names: Sequence[str],
        range_m: float,
        cuts: Sequence[tuple[Instant, Instant]],
        folder: Path,
    ) -> None:
        self.path, self.names, self.range_m, self.cuts, self.folder = path, names, range_m, cuts, folder

    def __call__(self, number: int) -> int:
        """Write the pieces of a slice, unless an earlier attempt has; how many there are."""
        target = self.file(number)
        if not target.is_file():
            begin, end = self.cuts[number]
            found = find_contacts(self._read(begin, end), self.range_m, begin, end)
            temporary = target.with_name(f"_{number}-{os.getpid()}.partial")
            pq.write_table(_piece_table(found), temporary, compression="zstd", row_group_size=_ROWS_A_GROUP)
            temporary.replace(target)
        return int(pq.read_metadata(target).num_rows)

    def file(self, number: int) -> Path:
        return self.folder / f"{number}.parquet"

    def _read(self, begin: Instant, end: Instant) -> Segments:
        """The segments that overlap a slice, with nodes as their places among the names."""
        columns = SEGMENTS.names()[1:]
        wanted = (pc.field("t1_us") > begin) & (pc.field("t0_us") < end)
        table = pq.read_table(self.path, columns=columns, filters=wanted, read_dictionary=["node"])
        return segments_of(table, self.names)


def segments_of(table: pa.Table, names: Sequence[str]) -> Segments:
    """Rows of `segments` as the kernel takes them; a node is its place among `names`."""
    node = table["node"].cast(pa.string())
    codes = pc.index_in(node, value_set=pa.array(names, pa.string())).to_numpy().astype(np.int64)
    numbers: list[Any] = [table[name].to_numpy() for name in SEGMENTS.names()[2:]]
    return Segments(codes, *numbers)


def _find_segments(lake: Lake, trace: str) -> Path:
    if lake.has("segments", trace):
        return lake.path("segments", trace)
    if lake.has("contacts", trace):
        raise BadInput(f"trace {trace!r} says who met, not who moved: its contacts are in the lake already")
    known = ", ".join(lake.units("segments")) or "none"
    raise BadInput(f"no trace {trace!r} in {lake.root} (traces with movement: {known})")


def _survey(path: Path) -> tuple[list[str], Segments]:
    """Who moves, in natural order, and when: the instants of all segments, no places."""
    names: set[str] = set()
    begins, ends = [], []
    with pq.ParquetFile(path, read_dictionary=["node"]) as file:
        for batch in file.iter_batches(_ROWS_A_GROUP, columns=["node", "t0_us", "t1_us"]):
            names.update(batch.column("node").unique().to_pylist())
            begins.append(batch.column("t0_us").to_numpy())
            ends.append(batch.column("t1_us").to_numpy())
    none = np.empty(0, np.int64)
    t0, t1 = np.concatenate([none, *begins]), np.concatenate([none, *ends])
    nowhere = np.empty(0, np.float64)
    return sorted(names, key=natural), Segments(none, t0, nowhere, nowhere, t1, nowhere, nowhere)


def _state(path: Path) -> list[int]:
    """What tells a file from what it was before."""
    found = path.stat()
    return [found.st_size, found.st_mtime_ns]


def _finished(job: Job, lake: Lake, unit: str, path: Path) -> ContactsFound | None:
    """What an earlier call found, if the contacts are there and the segments are still the same."""
    if not job.is_marked(unit) or not lake.has("contacts", unit):
        return None
    told = job.told(unit)
    return msgspec.convert(told["found"], ContactsFound) if told["state"] == _state(path) else None


def _pieces_folder(job: Job, path: Path, cuts: Sequence[tuple[Instant, Instant]]) -> Path:
    """Where the pieces of this trace, as it stands now, cut like this, are kept while the job lasts."""
    digest = blake2b(repr((_state(path), cuts)).encode(), digest_size=6).hexdigest()
    folder = job.folder / f"pieces-{digest}"
    folder.mkdir(exist_ok=True)
    return folder


def _watch(sweep: _Slice, progress: Callable[[int, int], None] | None) -> Callable[[], None] | None:
    if progress is None:
        return None

    def watch() -> None:
        progress(sum(1 for _ in sweep.folder.glob("*.parquet")), len(sweep.cuts))

    return watch


def _piece_table(found: Intervals) -> pa.Table:
    columns = [pa.array(column, field.type) for column, field in zip(found, _PIECES, strict=True)]
    return pa.table(columns, schema=_PIECES)


def _merged(sweep: _Slice, trace: str, range_m: float) -> Iterator[pa.RecordBatch]:
    """Pieces joined across the cuts, sorted by pair and time; a share of the pairs at a time."""
    files = [sweep.file(number) for number in range(len(sweep.cuts))]
    names = pa.array(sweep.names, pa.string())
    for low, high in _shares(files, len(sweep.names)):
        wanted = (pc.field("a") >= low) & (pc.field("a") < high)
        tables = [pq.read_table(file, filters=wanted) for file in files]
        parts = [Intervals(*(t[name].to_numpy().astype(np.int64) for name in _PIECES.names)) for t in tables]
        found = merge_contacts(parts)
        rows = len(found.a)
        columns = [
            pa.repeat(trace, rows),
            names.take(pa.array(found.a)),
            names.take(pa.array(found.b)),
            pa.array(found.start_us),
            pa.array(found.end_us),
            pa.repeat(pa.scalar(range_m, pa.float64()), rows),
        ]
        yield from pa.table(columns, schema=CONTACTS.arrow()).to_batches(_ROWS_A_GROUP)


def _shares(files: Sequence[Path], nodes: int) -> list[tuple[int, int]]:
    """Ranges of `a` whose pieces fit in memory together."""
    pieces = np.zeros(nodes, np.int64)
    for file in files:
        pieces += np.bincount(pq.read_table(file, columns=["a"])["a"].to_numpy(), minlength=nodes)
    shares, low, held = [], 0, 0
    for node in range(nodes):
        if held and held + pieces[node] > _PIECES_A_MERGE:
            shares.append((low, node))
            low, held = node, 0
        held += int(pieces[node])
    return [*shares, (low, nodes)]
