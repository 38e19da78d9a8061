"""Commit records: what the file of a unit must be, so that a damaged file is never believed.

For every unit that a job writes there is a record `LAKE/_commits/<table>/<unit>.json` with size, rows and
digest of its file. Readers compare the file with the record. A truncated, emptied, exchanged or altered file
raises `Damaged`, which names it. While a unit is replaced, its record lists the new file and the old one, so
that a kill between two renames leaves a unit that is one of the two. A file without a record was put there by
another program; it is read as it is, and `find_damage` lists it as a stray.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import pyarrow.parquet as pq
from msgspec import Struct

from precede.core.errors import BadInput
from precede.lake.schemas import TABLES

COMMITS: Final = "_commits"
_UNIT: Final = re.compile(r"[^\W_][\w.+@=-]*")
_DIGEST_BYTES: Final = 16
_checked: dict[Path, tuple[int, int, int]] = {}
"""Files that this process has compared with their records: inode, size and time of change."""


class Damaged(BadInput):
    """A file of the lake is not what its commit record says."""


class FileRecord(Struct, frozen=True, order=True):
    """The state that a file must have: its size in bytes, its number of rows and the digest of its bytes."""

    size: int
    rows: int
    digest: str


class Finding(NamedTuple):
    """One file of a lake that is wrong, and what is wrong with it."""

    path: Path
    what: str


def describe_file(path: Path) -> FileRecord:
    """Read a Parquet file and return its record as it is now."""
    return FileRecord(path.stat().st_size, int(pq.read_metadata(path).num_rows), _digest(path))


def seal(record: Any) -> bytes:
    """Encode plain data as JSON, after a first line with the digest of the JSON text."""
    text = msgspec.json.encode(record)
    return hashlib.blake2b(text, digest_size=_DIGEST_BYTES).hexdigest().encode() + b"\n" + text


def unseal(content: bytes, path: Path) -> bytes:
    """Return the JSON text that `seal` encoded. Raises Damaged if a byte of it has changed."""
    digest, _, text = content.partition(b"\n")
    if digest != hashlib.blake2b(text, digest_size=_DIGEST_BYTES).hexdigest().encode():
        raise Damaged(f"{path}: is damaged (its digest does not match)")
    return text


def commit_path(file: Path) -> Path:
    """Return the path of the commit record of a unit's file (`LAKE/<table>/<unit>.parquet`)."""
    return file.parent.parent / COMMITS / file.parent.name / f"{file.stem}.json"


def committed(file: Path) -> list[FileRecord]:
    """Read the commit record of a unit's file: the list of states that the file may have.

    The list has one state. It has two while the unit is replaced: the new file and the old one. It is empty if
    no job wrote the file. Raises Damaged if the record itself was altered.
    """
    path = commit_path(file)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return []
    return msgspec.json.decode(unseal(content, path), type=list[FileRecord])


def check_file(file: Path) -> None:
    """Raise Damaged unless a unit's file is what its commit record says.

    The file is read for this once. This process does not read it again until it changes.
    """
    status = file.stat()
    state = (status.st_ino, status.st_size, status.st_mtime_ns)
    if _checked.get(file) == state:
        return
    records = committed(file)
    if records:
        if status.st_size not in [record.size for record in records]:
            sizes = " or ".join(f"{record.size:,}" for record in records)
            raise Damaged(f"{file}: is damaged: {status.st_size:,} bytes, its commit record says {sizes}")
        if _digest(file) not in [record.digest for record in records]:
            raise Damaged(f"{file}: is damaged: its content is not that of its commit record")
    _checked[file] = state


def check_log(log: str) -> None:
    """Compare the files of a log with their commit records, if the log is a table or a file of a lake.

    Raises Damaged if a file differs or if a file of the table was deleted, because a verdict about the other
    files would not be one about the whole log.
    """
    path = Path(log)
    if path.is_file() and path.suffix == ".parquet":
        check_file(path.absolute())
    elif path.is_dir() and (path.absolute().parent / COMMITS / path.absolute().name).is_dir():
        table = path.absolute()
        for file in sorted(table.glob("*.parquet")):
            check_file(file)
        for finding in missing_files(table):
            raise Damaged(f"{finding.path}: {finding.what}")


def find_damage(root: Path) -> Iterator[Finding]:
    """Yield everything in a lake that is not as its jobs left it: damaged, missing and stray files."""
    for name in TABLES:
        table = root / name
        for file in sorted(table.glob("*")) if table.is_dir() else ():
            if file.suffix != ".parquet" or not _UNIT.match(file.name):
                yield Finding(file, "stray: no unit of the table has this name")
                continue
            try:
                if not committed(file):
                    yield Finding(file, "stray: it has no commit record")
                    continue
                check_file(file)
            except Damaged as error:
                yield Finding(file, str(error).partition(": ")[2])
        yield from missing_files(table)


def missing_files(table: Path) -> Iterator[Finding]:
    """Yield the units of a lake's table that have a commit record and no file; nothing for any other folder."""
    table = table.absolute()
    folder = table.parent / COMMITS / table.name
    for record in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        file = table / f"{record.stem}.parquet"
        if not file.is_file():
            yield Finding(file, "missing: it has a commit record")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=_DIGEST_BYTES)).hexdigest()
