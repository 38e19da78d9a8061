"""A byte stream of lines that two readers can share."""

import io
from typing import IO


class LineStream(io.BufferedIOBase):
    """A byte stream whose `read1` returns one line, so that a text reader on top of it never reads ahead.

    `put_back` returns bytes to the front. The next `read1` returns these bytes at once, also if they are
    several lines, up to its `size`. With `by_line` false, `read1` returns any number of bytes.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._front = b""
        self.by_line = True

    def readable(self) -> bool:
        return True

    def put_back(self, data: bytes) -> None:
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
        """Return up to `size` bytes; fewer only at the end of the stream."""
        front, self._front = self._front, b""
        if size is None or size < 0:
            return front + self._stream.read()
        return front + self._stream.read(max(0, size - len(front)))
