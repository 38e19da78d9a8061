"""The lock of a store: one process at a time."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from precede.core.errors import BadInput
from precede.files.private import make_private


def lock_store(path: Path) -> int | None:
    """Lock a store for this process and return the lock's descriptor; None on Windows, where nothing is locked.

    Raise BadInput if another process has the lock. The lock has a file of its own, since SQLite's locks on the
    database end when any descriptor of it is closed.
    """
    if sys.platform == "win32":
        return None
    import fcntl

    lock_file = path.with_name(f"{path.name}-lock")
    make_private(lock_file)
    lock = os.open(lock_file, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise BadInput(f"{path}: is in use by another process") from None
    return lock
