"""The place in the outbox up to which the application has taken the messages, in a file beside the store.

Every message that an application takes is acknowledged before the next one, so this is written more often than
anything else. Eight bytes in a file of their own take 1 µs; a commit without waiting for the disk takes 22 µs.
Like such a commit, the file survives the end of the process, and perhaps not a power failure.
"""

import os
import struct
from pathlib import Path
from typing import Final

from precede.files.private import make_private

_CONTENT: Final = struct.Struct(">QQ")
_PLACE: Final = struct.Struct(">Q")


class TakenPlace:
    """The file. `mark` names the start of the store whose places it counts: it means nothing to another one."""

    def __init__(self, path: Path) -> None:
        make_private(path)
        self._file: int | None = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        content = os.pread(self._file, _CONTENT.size, 0)
        self.mark: int
        self.place: int
        self.mark, self.place = _CONTENT.unpack(content) if len(content) == _CONTENT.size else (0, 0)

    def begin(self, mark: int, place: int) -> None:
        """Count for a new start of the store, which has this mark."""
        assert self._file is not None
        self.mark, self.place = mark, place
        os.pwrite(self._file, _CONTENT.pack(mark, place), 0)

    def write(self, place: int) -> None:
        """Record that the messages up to a place are taken. One write of 8 bytes is never cut in two."""
        assert self._file is not None
        self.place = place
        os.pwrite(self._file, _PLACE.pack(place), _PLACE.size)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
