"""The lock of a store, which also tells whether the store is still where it was closed.

Only one process opens a store at a time. A copy on another disk, or a backup that was restored, can still run
beside the original or after it, and would give two messages one number. So each start, and each end in good
order, writes a random token into the lock's file, and the store remembers a mark: a hash of the token, of the
file's inode and of the time at which the inode last changed. Nobody can set that time. A store that is copied,
moved to another disk or restored from a backup has a lock's file with another mark, or none.
"""

import os
import secrets
import sys
from hashlib import blake2b
from pathlib import Path
from typing import Final

from precede.core.errors import BadInput
from precede.files.private import make_private

_TOKEN_BYTES: Final = 16


class StoreLock:
    """The lock of one store. `mark` is that of the lock's file as it was found.

    Raises BadInput if another process has the lock. The lock has a file of its own, since SQLite's locks on the
    database end when any descriptor of it is closed. On Windows nothing is locked and every mark is 1.
    """

    def __init__(self, path: Path, *, synchronous: bool = True) -> None:
        self._synchronous = synchronous
        self._file: int | None = None
        self.mark = 1
        if sys.platform == "win32":
            return
        import fcntl

        lock_file = path.with_name(f"{path.name}-lock")
        if lock_file.exists():
            self._file = os.open(lock_file, os.O_RDWR | os.O_CLOEXEC)
            self.mark = self._mark()  # before anything changes its inode
        make_private(lock_file)
        if self._file is None:
            self._file = os.open(lock_file, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.close()
            raise BadInput(f"{path}: is in use by another process") from None

    def renew(self) -> int:
        """Write a new token and return the mark of the file."""
        if self._file is not None:
            os.pwrite(self._file, secrets.token_bytes(_TOKEN_BYTES), 0)
            if self._synchronous:
                os.fsync(self._file)
            self.mark = self._mark()
        return self.mark

    def close(self) -> None:
        """Release the lock."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _mark(self) -> int:
        assert self._file is not None
        status = os.fstat(self._file)
        content = os.pread(self._file, _TOKEN_BYTES, 0) + b"%d %d" % (status.st_ino, status.st_ctime_ns)
        return int.from_bytes(blake2b(content, digest_size=7).digest(), "big")
