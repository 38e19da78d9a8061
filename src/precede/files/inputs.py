"""Opens files that a stranger may have made: no pipes or devices, and archives that grow only so much.

All limits count bytes and lines that were really read. What the header of an archive declares is not used.
"""

import io
import os
import stat
from pathlib import Path
from typing import IO, Any, Final

from precede.core.errors import BadInput

MAX_GROWTH: Final = 200
"""The most times that an archive may grow when it is unpacked. Traces and logs grow 3 to 40 times."""

FREE_BYTES: Final = 1 << 24
"""The unpacked size up to which growth is not limited."""

MAX_EMPTY_LINES: Final = 1_000_000
"""The most blank lines and comments in a file that has fewer lines with content."""


def open_regular(path: str | Path) -> io.BufferedReader:
    """Open a regular file to read bytes. Raises BadInput for a pipe (it would block), a device or a folder."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        folder = Path(path).is_dir()
        raise BadInput(f"{path}: {'Is a directory' if folder else 'not a regular file'}")
    return os.fdopen(descriptor, "rb")


class Counted(io.RawIOBase):
    """A stream that counts the bytes read from it in `count`."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self.count = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._source.seekable()

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._source.seek(offset, whence)

    def tell(self) -> int:
        return self._source.tell()

    def readinto(self, buffer: Any) -> int:
        read = getattr(self._source, "read1", self._source.read)  # `read` would wait for a full buffer
        data: bytes = read(len(buffer))
        buffer[: len(data)] = data
        self.count += len(data)
        return len(data)


class Unpacked(io.RawIOBase):
    """Reads the unpacked content of an archive. Raises BadInput if it grows too much by unpacking."""

    def __init__(self, name: str, packed: Counted, unpacked: Any) -> None:
        self._name, self._packed, self._unpacked = name, packed, unpacked
        self._before, self._count = packed.count, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data: bytes = self._unpacked.read1(len(buffer))
        buffer[: len(data)] = data
        self._count += len(data)
        read = self._packed.count - self._before
        if self._count > FREE_BYTES and self._count > MAX_GROWTH * read:
            raise BadInput(f"{self._name}: grows more than {MAX_GROWTH}-fold when unpacked; not read further")
        return len(data)


class EmptyLines:
    """Counts the blank lines and comments of a file. `add` raises BadInput for very many and little else."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._count = 0

    def add(self, line_number: int) -> None:
        self._count += 1
        if self._count > MAX_EMPTY_LINES and 2 * self._count > line_number:
            raise BadInput(
                f"{self._name}:{line_number}: {self._count:,} blank lines and comments, more than lines with"
                " content; not read further"
            )
