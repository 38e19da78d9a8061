"""Files and folders that only their owner can read, whatever the umask is."""

import os
from pathlib import Path
from typing import BinaryIO

_FILE, _FOLDER = 0o600, 0o700


def private_folder(path: Path) -> None:
    """Make a folder and its missing parents with mode 0700; a folder that exists keeps its mode."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):
        try:
            folder.mkdir(_FOLDER)
        except FileExistsError:
            continue  # another process made it
        folder.chmod(_FOLDER)
    path.mkdir(exist_ok=True)  # raises if it is a file


def open_private(path: Path, *, append: bool = False) -> BinaryIO:
    """Open a file for writing with mode 0600: a new one, or with `append` also an existing one."""
    how = os.O_APPEND if append else os.O_EXCL
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | how, _FILE)
    os.fchmod(descriptor, _FILE)
    return os.fdopen(descriptor, "wb", buffering=0 if append else -1)


def make_private(path: Path) -> None:
    """Make an empty file with mode 0600, or give that mode to an existing file that this user owns."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _FILE)
    try:
        if os.fstat(descriptor).st_uid == os.geteuid():
            os.fchmod(descriptor, _FILE)
    finally:
        os.close(descriptor)
