"""Byte streams that logs are read from: gzip with limited growth, and lines that two readers can share."""

from __future__ import annotations

import gzip
import io
from typing import IO, Any, Final

from precede.core.errors import BadInput

MAX_GROWTH: Final = 200
"""The most times that a compressed log may grow; real logs grow 5 to 40 times."""

FREE_BYTES: Final = 1 << 26
"""The decompressed size up to which growth is not limited."""


class CountedStream(io.RawIOBase):
    """A stream that counts the bytes read from it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = (
            self._stream.read1(len(buffer))
            if hasattr(self._stream, "read1")
            else self._stream.read(len(buffer))
        )
        buffer[: len(data)] = data
        self.count += len(data)
        return len(data)


class UnpackedStream(io.RawIOBase):
    """The decompressed content of a gzip stream.

    Raises BadInput once it has grown more than MAX_GROWTH times.
    """

    def __init__(self, name: str, stream: IO[bytes]) -> None:
        self._name = name
        self._packed = CountedStream(stream)
        self._unpacked = gzip.GzipFile(fileobj=io.BufferedReader(self._packed))
        self._count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._unpacked.read1(len(buffer))
        buffer[: len(data)] = data
        self._count += len(data)
        if self._count > FREE_BYTES and self._count > MAX_GROWTH * self._packed.count:
            raise BadInput(
                f"{self._name}: grows more than {MAX_GROWTH}-fold when decompressed; not read further"
            )
        return len(data)


class LineStream(io.BufferedIOBase):
    """A byte stream whose `read1` returns one line, so that a text reader on top of it never reads ahead.

    `put_back` returns bytes to the front. With `by_line` false, `read1` returns any number of bytes.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._front = b""
        self.by_line = True

    def readable(self) -> bool:
        return True

    def put_back(self, data: bytes) -> None:
        """Make these bytes the next ones to be read."""
        self._front = data + self._front

    def read1(self, size: int = -1) -> bytes:
        if self._front:
            end = len(self._front) if size < 0 else size
            data, self._front = self._front[:end], self._front[end:]
            return data
        if self.by_line:
            return self._stream.readline(size)
        return self._stream.read(size)

    def read(self, size: int | None = -1) -> bytes:
        """Up to `size` bytes; fewer only at the end."""
        front, self._front = self._front, b""
        if size is None or size < 0:
            return front + self._stream.read()
        return front + self._stream.read(max(0, size - len(front)))
