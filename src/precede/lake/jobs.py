"""Jobs: the one writer of a lake. A unit of a table appears whole or not at all.

A job writes a file in its own scratch folder and renames it when it is complete. A reader therefore sees the
old file or the new one, never a part of one. A killed job leaves a scratch folder that no reader looks at; the
next attempt removes it. A unit of work that is finished gets a *done mark*, a small JSON record; it comes last,
so a unit with a mark is complete and is not worked on again.

    LAKE/_jobs/<job>/lock                held by the process that runs the job
    LAKE/_jobs/<job>/scratch-*/          files of one attempt
    LAKE/_jobs/<job>/done/<unit>.json    one mark
    LAKE/_jobs/<job>/plan/<number>.json  the input of one task
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from precede.core.errors import BadInput
from precede.lake.integrity import Damaged, FileRecord, commit_path, committed, describe_file, seal, unseal
from precede.lake.layout import ROWS_A_GROUP, Lake, check_unit
from precede.lake.schemas import TABLES

Piece = TypeVar("Piece")


class Job:
    """One piece of work on a lake. It can be killed at any time; run it again and it continues."""

    def __init__(self, lake: Lake, name: str) -> None:
        self.lake = lake
        self.name = check_unit(name)
        self.folder = lake.root / "_jobs" / self.name
        self.done = self.folder / "done"
        # every attempt has a scratch of its own: a task of a killed attempt may still be writing to the old one
        self.scratch = self.folder / f"scratch-{secrets.token_hex(4)}"

    @contextmanager
    def hold(self) -> Iterator[Job]:
        """Lock the job for this process while the block runs, and remove the scratch of killed attempts.

        Raises BadInput if another process holds the job or the lake cannot be written. If the block raises
        BadInput and the job is new, its folder is removed again.
        """
        is_new = not self.folder.exists()
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
            for abandoned in self.folder.glob("scratch-*"):
                shutil.rmtree(abandoned, ignore_errors=True)
            self.scratch.mkdir()
            self.done.mkdir(exist_ok=True)
            try:
                yield self
            except BadInput:
                shutil.rmtree(self.scratch, ignore_errors=True)
                if is_new:
                    self._undo_creation()
                raise
            shutil.rmtree(self.scratch, ignore_errors=True)

    def _undo_creation(self) -> None:
        """Remove the job's folder, and the lake's own folders if empty: the lake is as it was before."""
        self.forget()
        for folder in (self.lake.root / "_jobs", self.lake.root):
            if not any(folder.iterdir()):
                folder.rmdir()

    def forget(self) -> None:
        """Delete the job's folder; call it when the tables are written and no mark is needed any more."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def write(self, table: str, unit: str, rows: pa.Table | Iterable[pa.RecordBatch]) -> int:
        """Replace one unit of a table by these rows; returns how many rows it has now."""
        staged = self.stage(table, unit, rows)
        self.publish(staged, table, unit)
        return self.lake.count(table, unit)

    def stage(self, table: str, unit: str, rows: pa.Table | Iterable[pa.RecordBatch]) -> Path:
        """Write rows to a file in scratch, in the declared schema; `publish` gives it its name."""
        schema = TABLES[table].arrow()
        batches = rows.cast(schema).to_batches() if isinstance(rows, pa.Table) else rows
        temporary = self.scratch / f"{table}-{unit}-{os.getpid()}.parquet"
        with pq.ParquetWriter(temporary, schema, compression="zstd", write_page_checksum=True) as writer:
            for group in _row_groups(batches):
                writer.write_table(group, ROWS_A_GROUP)
        return temporary

    def publish(self, temporary: Path, table: str, unit: str) -> None:
        """Rename a complete file to its place in a table, where it replaces an older one.

        The commit record is written first, and it still allows the older file. So a kill at any point leaves a
        valid unit.
        """
        path = self.lake.path(table, unit)
        new = describe_file(temporary)
        try:
            older = [record for record in committed(path)[:1] if record != new and path.is_file()]
        except Damaged:
            older = []
        self._commit(path, [new, *older])
        _replace(temporary, path)
        if older:
            self._commit(path, [new])

    def _commit(self, path: Path, records: list[FileRecord]) -> None:
        """Replace the commit record of a unit's file."""
        self.scratch.mkdir(parents=True, exist_ok=True)
        temporary = self.scratch / f"{path.parent.name}-{path.stem}-{os.getpid()}.commit"
        temporary.write_bytes(seal(records))
        _replace(temporary, commit_path(path))

    def publish_workload(self, temporary: Path | None, trace: str) -> Path:
        """Replace the messages of a trace by a complete CSV file; without a file, remove them.

        Returns the path of the messages in the lake.
        """
        path = self.lake.workload(trace)
        if temporary is None:
            path.unlink(missing_ok=True)
        else:
            _replace(temporary, path)
        return path

    def mark(self, unit: str, record: Any, scratch: Path | None = None) -> None:
        """Mark a unit as done, with a record about it.

        A worker does not hold the job, so it has no scratch folder; it passes the `scratch` of the holder.
        """
        temporary = (scratch or self.scratch) / f"{check_unit(unit)}-{os.getpid()}.json"
        temporary.write_bytes(seal(record))
        _replace(temporary, self.done / f"{unit}.json")

    def unmark(self, unit: str) -> None:
        """Remove the mark of a unit, if it has one."""
        (self.done / f"{check_unit(unit)}.json").unlink(missing_ok=True)

    def marked(self) -> set[str]:
        """Return the names of all units that have a done mark. Marks are not checked for damage."""
        if not self.done.is_dir():
            return set()
        return {entry.name.removesuffix(".json") for entry in os.scandir(self.done)}

    def is_marked(self, unit: str) -> bool:
        """Return whether the unit has an undamaged done mark."""
        path = self.done / f"{unit}.json"
        try:
            return path.is_file() and bool(unseal(path.read_bytes(), path))
        except Damaged:
            return False

    def record(self, unit: str) -> Any:
        """Return the record that was stored with a unit's mark; raises Damaged if its bytes have changed."""
        path = self.done / f"{unit}.json"
        return msgspec.json.decode(unseal(path.read_bytes(), path))

    def write_plan(self, pieces: Sequence[Any]) -> int:
        """Store the input of every task in a file, so that tasks receive only a number; returns how many."""
        folder = self.folder / "plan"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for number, piece in enumerate(pieces):
            (folder / f"{number}.json").write_bytes(msgspec.json.encode(piece))
        return len(pieces)

    def read_plan(self, number: int, kind: type[Piece]) -> Piece:
        """Read the input of one task, as `write_plan` stored it."""
        return msgspec.json.decode((self.folder / "plan" / f"{number}.json").read_bytes(), type=kind)

    def keep_folder(self, name: str) -> Path:
        """Make a folder of the job whose files the next attempt finds again, and return its path."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        return folder


def _replace(temporary: Path, path: Path) -> None:
    """Put a complete file in its place atomically, after its bytes have reached the disk."""
    with temporary.open("rb") as file:
        os.fsync(file.fileno())
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary.replace(path)


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
