"""Logs in object stores, for the verifier, which reads files of this machine.

A log at a URL is copied to a temporary folder while it is read. Files of a lake's table are compared with their
commit records; files that no record names are left out.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from precede.core.errors import BadInput
from precede.lake.commits import KINDS, CommittedFile, Damaged
from precede.lake.integrity import digest_file, readable_files
from precede.lake.storage import Storage, is_url


@contextmanager
def local_log(log: str) -> Iterator[str]:
    """Yield a path on this machine with the log; that of a log which is no URL is yielded as it is.

    Raises BadInput if there is no such log, Damaged if a file of a lake is not what its record says.
    """
    if not is_url(log):
        yield log
        return
    with tempfile.TemporaryDirectory(prefix="precede-log-") as folder:
        yield str(_copied(log.rstrip("/"), Path(folder)))


def _copied(url: str, folder: Path) -> Path:
    """Copy the log at a URL into a folder; returns the path of the copy."""
    parent, _, name = url.rpartition("/")
    storage = Storage(parent)
    target = folder / name
    if storage.size(name) is not None:
        table = parent.rpartition("/")[2]
        if table in KINDS:
            lake = Storage(parent.rpartition("/")[0])
            records = {record.path: record for record in readable_files(lake, table)}
            _copy(lake, f"{table}/{name}", target, records.get(f"{table}/{name}"))
        else:
            storage.copy_to(name, target)
        return target
    if name in KINDS and storage.entries("_commits/" + KINDS[name][0]):
        for record in readable_files(storage, name):
            _copy(storage, record.path, folder / record.path, record)
        for entry in storage.entries(name):
            if "~" not in entry.name:
                _copy(storage, f"{name}/{entry.name}", target / entry.name, None)
    else:
        for path, _ in storage.walk(name):
            _copy(storage, path, folder / path, None)
    if not target.is_dir():
        raise BadInput(f"{url}: no such log")
    return target


def _copy(storage: Storage, path: str, target: Path, record: CommittedFile | None) -> None:
    """Copy a file, and compare the copy with its record if it has one."""
    target.parent.mkdir(parents=True, exist_ok=True)
    where = f"{storage.location}/{path}"
    try:
        storage.copy_to(path, target)
    except FileNotFoundError:
        raise Damaged(f"{where}: missing: it has a commit record") from None
    if record is None and "~" in Path(path).name:
        raise Damaged(f"{where}: no commit record names it (a job that was killed left it, or it was replaced)")
    if record is not None and digest_file(target) != record.digest:
        raise Damaged(f"{where}: is damaged: its content is not that of its commit record")
