"""Reading and writing the lake, which nothing else does: whole files or none (DESIGN section 5).

A table is a folder, and one unit of it (a trace, a run, a sweep) is one Parquet file. A file is written in the
scratch folder of its job and renamed when it is complete, so a reader sees the old one, then the new one, never
half of one; a killed job leaves scratch that no reader looks at and the next attempt removes. Folders and files
whose names begin with `_` are the jobs' own: Spark, pandas and DuckDB's `*.parquet` pass them by.

    LAKE/<table>/<unit>.parquet     LAKE/_jobs/<job>/{lock,scratch-*/,done/<unit>.json}
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from precede.core.errors import BadInput
from precede.lake.schemas import TABLES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DEFAULT_LAKE: Final = "lake"
ROWS_A_GROUP: Final = 1 << 17
_UNIT: Final = re.compile(r"[^\W_][\w.+@=-]*")
_GLOB: Final = re.compile(r"([\[\]{}*?\\])")


class Lake:
    """A folder of tables that the driver and every worker can reach under the same path."""

    def __init__(self, where: str | Path = DEFAULT_LAKE) -> None:
        self.root = _folder(str(where)).absolute()

    def __reduce__(self) -> tuple[type[Lake], tuple[str]]:
        return Lake, (str(self.root),)

    def __repr__(self) -> str:
        return f"Lake({str(self.root)!r})"

    def path(self, table: str, unit: str) -> Path:
        """The file of one unit of a table, there or not."""
        assert table in TABLES, table
        return self.root / table / f"{check_unit(unit)}.parquet"

    def units(self, table: str) -> list[str]:
        """Every unit a table has, in order."""
        return sorted(path.stem for path in (self.root / table).glob("*.parquet") if _UNIT.match(path.name))

    def has(self, table: str, unit: str) -> bool:
        return self.path(table, unit).is_file()

    def read(self, session: SparkSession, table: str, units: Sequence[str] | None = None) -> DataFrame:
        """A table, or some units of it, as a DataFrame of its declared schema; a missing file has no rows."""
        chosen = self.units(table) if units is None else [unit for unit in units if self.has(table, unit)]
        schema = TABLES[table].spark()
        if not chosen:
            return session.createDataFrame([], schema)
        if units is None:
            return session.read.schema(schema).parquet(for_spark(self.root / table))
        return session.read.schema(schema).parquet(*(for_spark(self.path(table, unit)) for unit in chosen))

    def job(self, name: str) -> Job:
        """The job of that name, begun or not."""
        return Job(self, name)


class Job:
    """One piece of work on a lake that can be killed at any instant and typed again."""

    def __init__(self, lake: Lake, name: str) -> None:
        self.lake = lake
        self.name = check_unit(name)
        self.folder = lake.root / "_jobs" / self.name
        self.done = self.folder / "done"
        # a name of its own, so that nothing a killed attempt left running can write where this one does
        self.scratch = self.folder / f"scratch-{secrets.token_hex(4)}"

    @contextmanager
    def hold(self) -> Iterator[Job]:
        """Be the only one at this job; what a killed attempt left half written is removed first."""
        nothing_before = not self.folder.exists()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = (self.folder / "lock").open("a+")
        except OSError as error:
            raise BadInput(f"the lake {self.lake.root} cannot be written: {error.strerror or error}") from error
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BadInput(f"{self.name!r} is being run by another process on {self.lake.root}") from None
            for left in self.folder.glob("scratch-*"):
                shutil.rmtree(left, ignore_errors=True)
            self.scratch.mkdir()
            self.done.mkdir(exist_ok=True)
            try:
                yield self
            except BadInput:
                shutil.rmtree(self.scratch, ignore_errors=True)
                if nothing_before:
                    self._never_was()
                raise
            shutil.rmtree(self.scratch, ignore_errors=True)

    def _never_was(self) -> None:
        """Bad input leaves the lake as it was: a lake that did not exist does not exist now."""
        self.forget()
        for folder in (self.lake.root / "_jobs", self.lake.root):
            if not any(folder.iterdir()):
                folder.rmdir()

    def forget(self) -> None:
        """The job is over and its tables are written: nothing of it needs to be remembered."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def write(self, table: str, unit: str, rows: pa.Table | Iterable[pa.RecordBatch]) -> int:
        """Replace one unit of a table by these rows; how many there were."""
        schema = TABLES[table].arrow()
        batches = rows.cast(schema).to_batches() if isinstance(rows, pa.Table) else rows
        temporary = self.scratch / f"{table}-{unit}-{os.getpid()}.parquet"
        count = 0
        with pq.ParquetWriter(temporary, schema, compression="zstd") as writer:
            for group in in_groups(batches):
                writer.write_table(group, ROWS_A_GROUP)
                count += group.num_rows
        self.publish(temporary, table, unit)
        return count

    def publish(self, temporary: Path, table: str, unit: str) -> None:
        """A finished file gets its name: it appears whole, in place of an older one."""
        path = self.lake.path(table, unit)
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)

    def mark(self, unit: str, told: Any, scratch: Path | None = None) -> None:
        """Remember that a unit is done, and what was told about it; by way of another job's scratch."""
        temporary = (scratch or self.scratch) / f"{check_unit(unit)}-{os.getpid()}.json"
        temporary.write_bytes(msgspec.json.encode(told))
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(self.done / f"{unit}.json")

    def unmark(self, unit: str) -> None:
        """Forget that a unit is done."""
        (self.done / f"{check_unit(unit)}.json").unlink(missing_ok=True)

    def marked(self) -> set[str]:
        """Every unit that is done."""
        if not self.done.is_dir():
            return set()
        return {entry.name.removesuffix(".json") for entry in os.scandir(self.done)}

    def is_marked(self, unit: str) -> bool:
        return (self.done / f"{unit}.json").is_file()

    def told(self, unit: str) -> Any:
        """What was told about a unit that is done."""
        return msgspec.json.decode((self.done / f"{unit}.json").read_bytes())


def check_unit(name: str) -> str:
    """A name that can be a file's: letters, digits and `. + @ = - _`, beginning with a letter or digit."""
    if not _UNIT.fullmatch(name) or len(name.encode()) > 200:
        raise BadInput(f"not a name: {name!r} (letters, digits and .+@=-_, beginning with a letter or digit)")
    return name


def in_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The same rows in row groups of one size: how they came in must not show in the file."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        while rows >= ROWS_A_GROUP:
            table = pa.Table.from_batches(held)
            yield table.slice(0, ROWS_A_GROUP).combine_chunks()
            held = table.slice(ROWS_A_GROUP).to_batches()
            rows -= ROWS_A_GROUP
    if rows:
        yield pa.Table.from_batches(held).combine_chunks()


def for_spark(path: Path) -> str:
    """A path as Spark's readers want it: with the characters they take for patterns escaped."""
    return _GLOB.sub(r"\\\1", str(path))


def _folder(where: str) -> Path:
    """A lake's folder; a URL of a file system that is not mounted cannot be renamed in, and is refused."""
    parts = urlsplit(where)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    if re.fullmatch(r"[a-z][a-z0-9+.-]+", parts.scheme) and "://" in where:
        raise BadInput(f"--lake {where!r}: a lake that jobs write to is a folder (mounted on every worker)")
    return Path(where)
