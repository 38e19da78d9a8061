"""Jobs: the one writer of a lake. Everything that a commit record names appears at once.

A job writes files under names that have their digests, and then one commit record that names them. There is no
lock. Two drivers may do the same job at the same time: they waste work, and readers choose one of the two
results, the same one everywhere. A killed job leaves files that no record names, and its folder; `precede lake
compact` removes both when they are old.

    LAKE/_jobs/<job>/attempt-*/    the inputs of tasks and unfinished files of one attempt
    LAKE/_jobs/<job>/...           files that the next attempt finds again
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from precede.core.errors import BadInput
from precede.lake.commits import KINDS, SWARM, CommittedFile, Damaged, Key, Span, digest_of, encode
from precede.lake.integrity import describe_file
from precede.lake.layout import ROWS_A_GROUP, Lake, check_unit, foreign_path
from precede.lake.schemas import TABLES

Piece = TypeVar("Piece")
Rows: TypeAlias = pa.Table | Iterable[pa.RecordBatch]
_OTHER_KINDS: Final = ("units", SWARM)


class Job:
    """One attempt at a piece of work on a lake. It can be killed at any time; a new attempt continues."""

    def __init__(self, lake: Lake, name: str) -> None:
        self.lake, self.storage = lake, lake.storage
        self.name = check_unit(name)
        self.folder = f"_jobs/{self.name}"
        self.attempt = f"{self.folder}/attempt-{secrets.token_hex(6)}"
        self._generation = 0

    @property
    def generation(self) -> int:
        """The generation of this attempt's commits: one more than the highest when it was first asked for."""
        if not self._generation:
            kinds = sorted({kind for kinds in KINDS.values() for kind in kinds}) + list(_OTHER_KINDS)
            keys = [key.generation for kind in kinds for key in self.lake.commits.keys(kind)]
            self._generation = 1 + max(keys, default=0)
        return self._generation

    @contextmanager
    def hold(self) -> Iterator[Job]:
        """Do the job while the block runs, and remove the attempt's own files afterwards."""
        if self.storage.local is not None:
            try:
                (self.storage.local / self.attempt).mkdir(parents=True)
            except OSError as error:
                raise BadInput(f"the lake {self.lake.location} cannot be written: {error.strerror}") from error
        self.generation  # noqa: B018  workers get the driver's generation
        try:
            yield self
        finally:
            self.storage.delete_folder(self.attempt)
            self._remove_empty_folders()

    def _remove_empty_folders(self) -> None:
        """Remove the job's folder and those above it if they are empty: bad input leaves the lake as it was."""
        if self.storage.local is None:
            return
        for folder in (self.folder, "_jobs", ""):
            with suppress(OSError):
                (self.storage.local / folder).rmdir()

    def workspace(self) -> AbstractContextManager[Path]:
        """A folder on this machine for the files of one task, removed after the block."""
        return self.storage.workspace(self.attempt)

    def write(self, table: str, unit: str, rows: Rows) -> int:
        """Replace one unit of a table by these rows; returns how many rows it has now."""
        file = self.add_rows(table, unit, rows)
        self.commit(KINDS[table][-1], f"{unit}={table}", [file])
        self.storage.delete(foreign_path(table, unit))
        return file.rows

    def write_tables(self, kind: str, name: str, tables: Mapping[str, Rows]) -> None:
        files = [self.add_rows(table, name, rows) for table, rows in tables.items()]
        self.commit(kind, name, files)

    def add_rows(self, table: str, unit: str, rows: Rows) -> CommittedFile:
        """Write rows to a file of a table, in the declared schema; it is not visible before it is committed."""
        with self.workspace() as folder:
            write_rows(folder / "rows.parquet", table, rows)
            return self.add_file(table, unit, folder / "rows.parquet")

    def add_file(
        self, table: str, name: str, source: Path, units: dict[str, Span] | None = None
    ) -> CommittedFile:
        """Move a complete Parquet file into a table; it is not visible before it is committed."""
        file = describe_file(table, name, source, units)
        self.storage.put_file(file.path, source)
        return file

    def stage(self, source: Path) -> str:
        """Move a complete file to the attempt's folder; returns its path. `storage.move` gives it its place."""
        path = f"{self.attempt}/staged/{secrets.token_hex(6)}-{source.name}"
        self.storage.put_file(path, source)
        return path

    def commit(
        self,
        kind: str,
        name: str,
        files: Sequence[CommittedFile] = (),
        facts: Mapping[str, Any] | None = None,
        generation: int | None = None,
    ) -> None:
        """Make files and facts visible, all at once, and remove what they replace.

        The generation is that of the job, unless what is committed is only a copy of something older.
        """
        content = encode(files, facts or {})
        key = Key(generation or self.generation, digest_of(content), check_unit(name), kind)
        self.lake.commits.write(key, content)
        retire(self.lake, kind, name)

    def withdraw(self, kind: str, name: str) -> None:
        """Remove the commit of this name and its files, if it exists."""
        retire(self.lake, kind, name, keep_winner=False)

    def write_plan(self, pieces: Sequence[Any]) -> int:
        """Store the input of every task in a file, so that tasks receive only a number; returns how many."""
        for number, piece in enumerate(pieces):
            self.storage.put(f"{self.attempt}/plan/{number}.json", msgspec.json.encode(piece), durable=False)
        return len(pieces)

    def read_plan(self, number: int, kind: type[Piece]) -> Piece:
        return msgspec.json.decode(self.storage.read(f"{self.attempt}/plan/{number}.json"), type=kind)


def retire(lake: Lake, kind: str, name: str, keep_winner: bool = True) -> None:
    """Delete the records of a name that another one replaced, then their files that no winner names."""
    keys = [key for key in lake.commits.keys(kind) if key.name == name]
    losers = keys[:-1] if keep_winner else keys
    if not losers:
        return
    try:
        needed = {file.path for file in lake.commits.content(keys[-1]).files} if keep_winner else set()
    except FileNotFoundError:  # another driver has just replaced it, and removes the losers itself
        return
    for key in losers:
        try:
            files = lake.commits.content(key).files
        except (Damaged, FileNotFoundError):
            files = ()
        lake.storage.delete(key.path)
        for file in files:
            if file.path not in needed:
                lake.storage.delete(file.path)


def write_rows(path: Path, table: str, rows: Rows, schema: pa.Schema | None = None) -> None:
    """Write rows to a Parquet file with page checksums, by default in the declared schema of the table."""
    schema = schema or TABLES[table].arrow()
    batches = rows.cast(schema).to_batches() if isinstance(rows, pa.Table) else rows
    with pq.ParquetWriter(path, schema, compression="zstd", write_page_checksum=True) as writer:
        for group in _row_groups(batches):
            writer.write_table(group, ROWS_A_GROUP)


def _row_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield the same rows in row groups of one size: the file does not depend on how rows were batched."""
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
