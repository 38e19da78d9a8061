"""Which file of a lake holds which unit of which table, and the one reader of these files.

A table is a folder, and one unit of it (a trace, a run, a sweep) is one Parquet file:

    LAKE/<table>/<unit>.parquet          one unit of a table
    LAKE/messages/<trace>.csv            the workload that came with a trace
    LAKE/exhibits/<reproduction>/        tables and figures of a reproduction
    LAKE/_commits/<table>/<unit>.json    size, rows and digest of a unit's file (`precede.lake.integrity`)
    LAKE/_jobs/<job>/                    scratch and done marks (`precede.lake.jobs`)

Folders and files whose names begin with `_` are no tables; Spark, pandas and DuckDB skip them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from precede.core.errors import BadInput
from precede.lake.integrity import Damaged, check_file, commit_path
from precede.lake.schemas import TABLES

if TYPE_CHECKING:
    from precede.lake.jobs import Job

DEFAULT_LAKE: Final = "lake"
ROWS_A_GROUP: Final = 1 << 17
"""Rows in one row group of every Parquet file of a lake."""

_UNIT: Final = re.compile(r"[^\W_][\w.+@=-]*")


class Lake:
    """A folder of tables that the driver and every worker reach under the same path.

    A unit is the part of a table that one job writes: one file for a trace, a run or a sweep.
    """

    def __init__(self, location: str | Path = DEFAULT_LAKE) -> None:
        self.root = local_path(str(location)).absolute()

    def __reduce__(self) -> tuple[type[Lake], tuple[str]]:
        return Lake, (str(self.root),)

    def __repr__(self) -> str:
        return f"Lake({str(self.root)!r})"

    def path(self, table: str, unit: str) -> Path:
        """Return the file of one unit of a table, whether it exists or not."""
        assert table in TABLES, table
        return self.root / table / f"{check_unit(unit)}.parquet"

    def checked(self, table: str, unit: str) -> Path:
        """Compare a unit's file with its commit record and return its path. Raises Damaged if it differs."""
        path = self.path(table, unit)
        if path.is_file():
            check_file(path)
        return path

    def is_intact(self, table: str, unit: str) -> bool:
        """Does the table have this unit, and is its file undamaged?"""
        try:
            return self.checked(table, unit).is_file()
        except Damaged:
            return False

    def units(self, table: str) -> list[str]:
        """Return the names of all units of a table, sorted."""
        assert table in TABLES, table
        return sorted(path.stem for path in (self.root / table).glob("*.parquet") if _UNIT.match(path.name))

    def has(self, table: str, unit: str) -> bool:
        """Does the table have this unit?"""
        return self.path(table, unit).is_file()

    def read(
        self,
        table: str,
        unit: str,
        columns: Sequence[str] | None = None,
        filters: Any = None,
        dictionaries: Sequence[str] = (),
    ) -> pa.Table:
        """Return one unit of a table as an Arrow table.

        `columns` are the columns to read, `filters` is an Arrow expression that rows must satisfy, and
        `dictionaries` are the columns to read as dictionaries of their distinct values.
        """
        names = None if columns is None else list(columns)
        return pq.read_table(
            self.checked(table, unit), columns=names, filters=filters, read_dictionary=list(dictionaries)
        )

    def batches(
        self, table: str, unit: str, columns: Sequence[str], dictionaries: Sequence[str] = ()
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one unit in batches, for units that are larger than memory."""
        with pq.ParquetFile(self.checked(table, unit), read_dictionary=list(dictionaries)) as file:
            yield from file.iter_batches(ROWS_A_GROUP, columns=list(columns))

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Return all rows of a small table, unit by unit, as dictionaries."""
        return [row for unit in self.units(table) for row in self.read(table, unit).to_pylist()]

    def count(self, table: str, unit: str) -> int:
        """Return the number of rows of one unit, from the file's footer."""
        return int(pq.read_metadata(self.checked(table, unit)).num_rows)

    def state(self, table: str, unit: str) -> list[int]:
        """Return size and modification time of a unit's file. They change when the unit is replaced."""
        stat = self.path(table, unit).stat()
        return [stat.st_size, stat.st_mtime_ns]

    def remove(self, table: str, unit: str) -> None:
        """Delete one unit of a table, if it exists."""
        path = self.path(table, unit)
        path.unlink(missing_ok=True)
        commit_path(path).unlink(missing_ok=True)

    def workload(self, trace: str) -> Path:
        """Return the CSV file with the messages that came with a trace; a trace may have none."""
        return self.root / "messages" / f"{check_unit(trace)}.csv"

    def exhibits(self, reproduction: str) -> Path:
        """Return the folder with the tables and figures of one reproduction (`prs1997-quick`)."""
        return self.root / "exhibits" / check_unit(reproduction)

    def exhibits_of(self, paper: str) -> list[Path]:
        """Return the exhibit folders of all reproductions of a paper."""
        return sorted(folder for folder in (self.root / "exhibits").glob("*") if folder.name.startswith(paper))

    def job(self, name: str) -> Job:
        """Return the job of that name, whether it was started or not; nothing is written."""
        from precede.lake.jobs import Job

        return Job(self, name)


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


def local_path(location: str) -> Path:
    """Return the path that a path or a `file:` URL means.

    Raises BadInput for any other URL: a lake needs an atomic rename, so it is a folder.
    """
    parts = urlsplit(location)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    if re.fullmatch(r"[a-z][a-z0-9+.-]+", parts.scheme) and "://" in location:
        raise BadInput(f"--lake {location!r}: a lake that jobs write to is a folder (mounted on every worker)")
    return Path(location)
