"""Is a file what its commit record says? Readers ask before they believe a file; `find_damage` asks for all.

A truncated, emptied, exchanged or altered file raises `Damaged`, which names it. A file of an object store is
copied to this machine first, and the copy is compared and read. A file without a record was put there by
another program, or by a job that was killed; the name of a job's file has a `~`, and such a file is not read.
"""

import atexit
import hashlib
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow.parquet as pq

from precede.core.errors import BadInput
from precede.lake.commits import COMMITS, DIGEST_BYTES, KINDS, Commits, CommittedFile, Damaged, Span
from precede.lake.storage import Storage

_COPIES_KEPT: Final = 24
_checked: dict[Path, tuple[str, int, int, int]] = {}
"""Files that this process has compared with their records: digest, inode, size and time of change."""

_copies: dict[tuple[str, str], Path] = {}
"""Local copies of files in object stores, by location and path; the one used longest ago comes first."""

_folders: list[Path] = []
_commits: dict[str, Commits] = {}
"""The commit records that this process has read, by location."""


class Finding(NamedTuple):
    """One thing that is wrong in a lake: the file, relative to the lake, and what is wrong with it."""

    path: str
    what: str


def describe_file(table: str, name: str, source: Path, units: dict[str, Span] | None = None) -> CommittedFile:
    """Read a Parquet file and return its description for a commit record.

    `name` is the name of its unit, or of a pack of units; then `units` says which rows are which unit.
    """
    digest, rows = digest_file(source), int(pq.read_metadata(source).num_rows)
    path = f"{table}/{name}~{digest[:12]}.parquet"
    spans = {name: Span(0, rows)} if units is None else units
    return CommittedFile(table, path, source.stat().st_size, rows, digest, spans)


def verified(storage: Storage, file: CommittedFile) -> Path:
    """Return a path on this machine with the bytes of a file, compared once with its record.

    Raises Damaged if the file differs, FileNotFoundError if there is none.
    """
    path = fetched(storage, file.path) if storage.local is None else storage.local / file.path
    status = path.stat()
    state = (file.digest, status.st_ino, status.st_size, status.st_mtime_ns)
    if _checked.get(path) == state:
        return path
    where = f"{storage.location}/{file.path}"
    if status.st_size != file.size:
        raise Damaged(f"{where}: is damaged: {status.st_size:,} bytes, its commit record says {file.size:,}")
    if digest_file(path) != file.digest:
        raise Damaged(f"{where}: is damaged: its content is not that of its commit record")
    _checked[path] = state
    return path


def fetched(storage: Storage, path: str) -> Path:
    """Return a copy on this machine of a file of an object store, kept until the process ends."""
    key = (storage.location, path)
    copy = _copies.pop(key, None)
    if copy is None:
        if not _folders:
            _folders.append(Path(tempfile.mkdtemp(prefix="precede-copies-")))
            atexit.register(shutil.rmtree, _folders[0], ignore_errors=True)
        copy = _folders[0] / secrets.token_hex(6) / Path(path).name
        copy.parent.mkdir()
        storage.copy_to(path, copy)
        while len(_copies) >= _COPIES_KEPT:
            oldest = next(iter(_copies))
            _copies.pop(oldest).unlink(missing_ok=True)
    _copies[key] = copy
    return copy


def local_file(url: str) -> Path:
    """Return a copy of the file at a URL on this machine. Raises BadInput if there is none."""
    folder, _, name = url.rpartition("/")
    try:
        return fetched(Storage(folder), name)
    except FileNotFoundError:
        raise BadInput(f"{url}: no such file") from None


def forget_copies() -> None:
    """Delete the copies of this process and forget the records it read, so that the next reader reads again."""
    _commits.clear()
    for key in list(_copies):
        _copies.pop(key).unlink(missing_ok=True)


def find_damage(storage: Storage, progress: Callable[[int], None] | None = None) -> Iterator[Finding]:
    """Yield everything in a lake that is not as its jobs left it: damaged, missing and stray files.

    `progress` is called with the number of files that were compared.
    """
    forget_copies()
    commits = Commits(storage)
    named: set[str] = set()
    for kind in sorted({kind for kinds in KINDS.values() for kind in kinds}):
        for key in commits.winners(kind):
            try:
                files = commits.content(key).files
            except Damaged as error:
                yield Finding(key.path, str(error).partition(": ")[2])
                continue
            for file in files:
                if file.path not in named:
                    named.add(file.path)
                    yield from _compare(storage, file)
                    if progress is not None:
                        progress(len(named))
    for table in KINDS:
        for entry in storage.entries(table):
            if f"{table}/{entry.name}" not in named:
                yield Finding(f"{table}/{entry.name}", "stray: no commit record names it")


def _compare(storage: Storage, file: CommittedFile) -> Iterator[Finding]:
    try:
        verified(storage, file)
    except FileNotFoundError:
        yield Finding(file.path, "missing: it has a commit record")
    except Damaged as error:
        yield Finding(file.path, str(error).partition(": ")[2])


def is_table(folder: Path) -> bool:
    return folder.name in KINDS and (folder.parent / COMMITS).is_dir()


def check_file(file: Path) -> None:
    """Raise Damaged if a file of a lake is not what its commit record says; other files pass."""
    if not is_table(file.parent):
        return
    storage, path = Storage(file.parent.parent), f"{file.parent.name}/{file.name}"
    record = {record.path: record for record in _records(storage, file.parent.name)}.get(path)
    if record is not None:
        verified(storage, record)
    elif "~" in file.name:
        raise Damaged(f"{file}: no commit record names it (a job that was killed left it, or it was replaced)")


def readable_files(storage: Storage, table: str) -> list[CommittedFile]:
    """Return the committed files of a table. Raises Damaged if one has rows that another file replaced."""
    records = _records(storage, table)
    owners = {unit: record.path for record in records for unit in record.units}
    for record in records:
        if any(owners[unit] != record.path for unit in record.units):
            raise Damaged(f"{storage.location}/{record.path}: has replaced rows (precede lake compact)")
    return records


def table_files(folder: Path) -> list[Path]:
    """Return the files of a table that are to be read: committed ones, and those of other programs."""
    committed = readable_files(Storage(folder.parent), folder.name)
    for finding in missing_files(folder):
        raise Damaged(f"{finding.path}: {finding.what}")
    foreign = [path for path in folder.glob("*.parquet") if "~" not in path.name and path.name[0] not in "_."]
    return sorted([*(folder.parent / record.path for record in committed), *foreign])


def check_log(log: str) -> None:
    """Compare the files of a log with their commit records, if they are of a lake; raise Damaged."""
    path = Path(log).absolute()
    if path.is_file() and path.suffix == ".parquet":
        check_file(path)
    elif is_table(path):
        for file in table_files(path):
            check_file(file)


def missing_files(table: Path) -> Iterator[Finding]:
    """Yield the files of a lake's table that a commit record names and that do not exist."""
    table = table.absolute()
    for record in _records(Storage(table.parent), table.name) if is_table(table) else ():
        if not (table.parent / record.path).is_file():
            yield Finding(str(table.parent / record.path), "missing: it has a commit record")


def _records(storage: Storage, table: str) -> list[CommittedFile]:
    """Return the files that a table's commit records name, winners last. Raises Damaged for a broken record."""
    commits = _commits.setdefault(storage.location, Commits(storage))
    keys = sorted(key for kind in KINDS[table] for key in commits.winners(kind))
    files = [file for key in keys for file in commits.content(key).files if file.table == table]
    return list({file.path: file for file in files}.values())


def digest_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=DIGEST_BYTES)).hexdigest()
