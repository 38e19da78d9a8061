"""Where the units of tables lie in a lake, and the one reader of them.

A table is a folder of Parquet files. One unit of it (a trace, a run, a sweep) is a file, or some rows of a file
that a task packed with other units:

    LAKE/<table>/<unit>~<digest>.parquet     one unit of a table, or several (`precede.lake.commits` says which)
    LAKE/<table>/<unit>.parquet              a file of another program, read as it is
    LAKE/messages/<trace>.csv                the workload that came with a trace
    LAKE/exhibits/<reproduction>/            tables and figures of a reproduction
    LAKE/_commits/<kind>/                    commit records
    LAKE/_jobs/<job>/                        files of jobs that run or were killed

Folders and files whose names begin with `_` are no tables; Spark, pandas and DuckDB skip them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from precede.core.errors import BadInput
from precede.lake.commits import KINDS, Commits, Damaged, Fact, Index, Place, Span, read_index
from precede.lake.integrity import fetched, verified
from precede.lake.schemas import TABLES
from precede.lake.storage import Storage
from precede.lake.versions import upgraded

if TYPE_CHECKING:
    from precede.lake.jobs import Job

DEFAULT_LAKE: Final = "lake"
ROWS_A_GROUP: Final = 1 << 17
"""Rows in one row group of every Parquet file of a lake."""

_UNIT: Final = re.compile(r"[^\W_][\w.+@=-]*")


class Lake:
    """The tables at one location, a folder or a URL, that the driver and every worker reach."""

    def __init__(self, location: str | Path = DEFAULT_LAKE) -> None:
        self.storage = Storage(location)
        self.location = self.storage.location
        self.commits = Commits(self.storage)
        self._kept: dict[tuple[str, ...], Index] | None = None

    def __reduce__(self) -> tuple[type[Lake], tuple[str]]:
        return Lake, (self.location,)

    def __repr__(self) -> str:
        return f"Lake({self.location!r})"

    @property
    def root(self) -> Path:
        """The folder of the lake. Raises BadInput if it is no folder of this machine."""
        if self.storage.local is None:
            raise BadInput(f"the lake {self.location} is no folder of this machine")
        return self.storage.local

    def snapshot(self) -> Lake:
        """Return a lake that reads the commit records once, so that it always shows the same state."""
        lake = Lake(self.location)
        lake.commits = self.commits
        lake._kept = {}
        return lake

    def index(self, *kinds: str) -> Index:
        if self._kept is None:
            return read_index(self.commits, kinds)
        if kinds not in self._kept:
            self._kept[kinds] = read_index(self.commits, kinds)
        return self._kept[kinds]

    def facts(self, kind: str) -> dict[str, Fact]:
        return self.index(kind).facts

    def fact(self, kind: str, unit: str) -> Any:
        """What commits of this kind (traces, runs, …) record about a unit besides its files, as plain data.

        None if they record nothing.
        """
        fact = self.facts(kind).get(unit)
        return None if fact is None else msgspec.json.decode(fact.raw)

    def units(self, table: str) -> list[str]:
        """The names of all units of a table, sorted. Raises Damaged if a commit record is."""
        index = self.index(*KINDS[table])
        if index.damaged:
            raise Damaged(f"{self.location}/{index.damaged[0].path}: is damaged (its digest does not match)")
        return sorted({*index.places.get(table, {}), *self._foreign(table)})

    def place(self, table: str, unit: str) -> Place | None:
        index = self.index(*KINDS[table])
        place = index.places.get(table, {}).get(check_unit(unit))
        if place is None and index.damaged:
            raise Damaged(f"{self.location}/{index.damaged[0].path}: is damaged (its digest does not match)")
        return place

    def has(self, table: str, unit: str) -> bool:
        return self.place(table, unit) is not None or self.storage.size(foreign_path(table, unit)) is not None

    def is_intact(self, table: str, unit: str) -> bool:
        """Does the table have this unit, with an undamaged file (in an object store: of the right size)?"""
        try:
            place = self.place(table, unit)
            if place is None or self.storage.local is None:
                size = self.storage.size(foreign_path(table, unit) if place is None else place.file.path)
                return size is not None and (place is None or size == place.file.size)
            return verified(self.storage, place.file).is_file()
        except (Damaged, FileNotFoundError):
            return False

    def path(self, table: str, unit: str) -> Path:
        """The file of a unit, in a lake that is a folder; for no unit, where another program would put it."""
        return self.root / self._file_path(table, unit)

    def where(self, table: str, unit: str) -> str:
        return f"{self.location}/{self._file_path(table, unit)}"

    def file(self, table: str, unit: str) -> tuple[Path, Span | None]:
        """Return a file of this machine with the unit, and its rows in it; None means all rows.

        Raises Damaged if the file is not what its commit record says, or is missing.
        """
        place = self.place(table, unit)
        for attempt in range(2):
            if place is None:
                break
            try:
                return verified(self.storage, place.file), None if place.is_whole else place.span
            except FileNotFoundError:
                # another driver may have replaced the unit after its record was read
                fresh = Lake(self.location).place(table, unit)
                if attempt or fresh == place:
                    raise Damaged(
                        f"{self.location}/{place.file.path}: missing: it has a commit record"
                    ) from None
                place = fresh
        path = foreign_path(table, unit)
        if self.storage.local is None:
            return fetched(self.storage, path), None
        return self.root / path, None

    @contextmanager
    def extracted(self, table: str, unit: str) -> Iterator[Path]:
        """Yield a Parquet file that has the rows of one unit and no others."""
        path, span = self.file(table, unit)
        if span is None:
            yield path
            return
        with self.storage.workspace("_jobs") as folder:
            pq.write_table(_rows_of(path, span), folder / f"{unit}.parquet", compression="zstd")
            yield folder / f"{unit}.parquet"

    def read(
        self,
        table: str,
        unit: str,
        columns: Sequence[str] | None = None,
        filters: Any = None,
        dictionaries: Sequence[str] = (),
    ) -> pa.Table:
        """Return the rows of one unit that satisfy `filters`, an Arrow expression, as an Arrow table."""
        path, span = self.file(table, unit)
        names = None if columns is None else list(columns)
        if span is None:
            table = pq.read_table(path, columns=names, filters=filters, read_dictionary=list(dictionaries))
            return upgraded(table, path, dictionaries)
        if filters is None:
            return _rows_of(path, span, names, dictionaries)
        rows = _rows_of(path, span, None, dictionaries)
        chosen = rows.filter(pq.filters_to_expression(filters) if isinstance(filters, list) else filters)
        return chosen if names is None else chosen.select(names)

    def batches(
        self, table: str, unit: str, columns: Sequence[str], dictionaries: Sequence[str] = ()
    ) -> Iterator[pa.RecordBatch]:
        """The rows of one unit in batches, for units that are larger than memory."""
        path, span = self.file(table, unit)
        if span is not None:
            yield from _rows_of(path, span, list(columns), dictionaries).to_batches(ROWS_A_GROUP)
            return
        with pq.ParquetFile(path, read_dictionary=list(dictionaries)) as file:
            for batch in file.iter_batches(ROWS_A_GROUP, columns=list(columns)):
                yield upgraded(batch, path, dictionaries)

    def rows(self, table: str) -> list[dict[str, Any]]:
        return [row for unit in self.units(table) for row in self.read(table, unit).to_pylist()]

    def count(self, table: str, unit: str) -> int:
        """The number of rows of one unit, which is compared with its commit record first."""
        path, span = self.file(table, unit)
        return span.rows if span is not None else int(pq.read_metadata(path).num_rows)

    def state(self, table: str, unit: str) -> list[str]:
        """What changes when a unit is replaced: the digest of its file; for a foreign file, size and time."""
        place = self.place(table, unit)
        if place is not None:
            return [place.file.digest]
        status = self.file(table, unit)[0].stat()
        return [str(status.st_size), str(status.st_mtime_ns)]

    def messages(self, trace: str) -> str | None:
        """The path or URL of the CSV file with the messages that came with a trace; None if there are none."""
        path = f"messages/{check_unit(trace)}.csv"
        return f"{self.location}/{path}" if self.storage.size(path) is not None else None

    def exhibits(self, reproduction: str) -> str:
        """The folder with the exhibits of one reproduction (`prs1997-quick`), relative to the lake."""
        return f"exhibits/{check_unit(reproduction)}"

    def exhibit_files(self, reproduction: str) -> list[Path]:
        """The files of all exhibits of reproductions whose names begin so, on this machine."""
        paths = [
            path for path, _ in self.storage.walk("exhibits") if path.split("/")[1].startswith(reproduction)
        ]
        return [
            fetched(self.storage, path) if self.storage.local is None else self.root / path for path in paths
        ]

    def job(self, name: str) -> Job:
        """Return a new attempt at the job of that name; nothing is written."""
        from precede.lake.jobs import Job

        return Job(self, name)

    def _foreign(self, table: str) -> list[str]:
        """The units in files that other programs put into the table's folder."""
        names = [entry.name for entry in self.storage.entries(table) if entry.name.endswith(".parquet")]
        return [name.removesuffix(".parquet") for name in names if "~" not in name and _UNIT.match(name)]

    def _file_path(self, table: str, unit: str) -> str:
        place = self.place(table, unit)
        return foreign_path(table, unit) if place is None else place.file.path


def _rows_of(
    path: Path, span: Span, columns: list[str] | None = None, dictionaries: Sequence[str] = ()
) -> pa.Table:
    """Read some rows of a Parquet file, and decode only the row groups that have them."""
    with pq.ParquetFile(path, read_dictionary=list(dictionaries)) as file:
        begin, groups, skipped = 0, [], 0
        for group in range(file.num_row_groups):
            end = begin + file.metadata.row_group(group).num_rows
            if end <= span.first:
                skipped = end
            elif begin < span.first + span.rows:
                groups.append(group)
            begin = end
        table = file.read_row_groups(groups, columns=columns).slice(span.first - skipped, span.rows)
        return upgraded(table, path, dictionaries)


def foreign_path(table: str, unit: str) -> str:
    """The path of a unit that another program put into a table's folder."""
    assert table in TABLES, table
    return f"{table}/{check_unit(unit)}.parquet"


def check_unit(name: str) -> str:
    """Return the name if it can name a file, else raise BadInput.

    A name has letters, digits and `. + @ = - _`, and begins with a letter or digit.
    """
    if not _UNIT.fullmatch(name) or len(name.encode()) > 200:
        raise BadInput(f"not a name: {name!r} (letters, digits and .+@=-_, beginning with a letter or digit)")
    return name


def contacts_unit(trace: str, range_m: float) -> str:
    """Return the unit of `contacts` that holds a trace's contacts for a radio range.

    >>> contacts_unit("bus", 100.0), contacts_unit("bus", 0.5)
    ('bus@100m', 'bus@0.5m')
    """
    return f"{trace}@{range_m:.12g}m"


def trace_of(unit: str) -> str:
    """Return the trace that a unit of `contacts` or `segments` belongs to.

    >>> trace_of("bus@100m"), trace_of("bus")
    ('bus', 'bus')
    """
    return unit.rpartition("@")[0] or unit
