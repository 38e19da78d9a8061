"""Which topics of a lane the application has opened, and up to which place it has taken the messages of each.

A lane has one outbox, and each topic has its own reader. Like the place of the group's own reader
(`taken_place`), the place of a topic is written at each message: eight bytes in a file beside the store. The
file survives the end of the process; after a power failure a few messages may be delivered again.
"""

from __future__ import annotations

import os
import secrets
import struct
from typing import Final

from precede.core.errors import StoreFailed
from precede.files.private import make_private
from precede.runtime.no_store import NoStore
from precede.runtime.store import Store
from precede.runtime.topics.topic_names import MOST_NAME_BYTES

_MARK: Final = struct.Struct(">Q")
_ROW: Final = struct.Struct(f">Q{1 + MOST_NAME_BYTES}p")
"""The place, and the name with its length before it. An empty name is a free row."""


class TopicPlaces:
    """The places of a lane's topics, by name; in memory only if there is no store.

    The file begins with a mark, which the store holds too: places of another store, or of an older copy of this
    one, do not count.
    """

    def __init__(self, store: Store | NoStore) -> None:
        self.places: dict[str, int] = {}
        self._rows: dict[str, int] = {}
        self._free: list[int] = []
        self.must_flush = False
        self._file: int | None = None
        if not isinstance(store, Store):
            return
        self.path = store.path.with_name(f"{store.path.name}-places")
        try:
            make_private(self.path)
            self._file = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
            self._read(store.remembered("topic places", 0))
            mark = secrets.randbits(63)
            store.remember("topic places", mark)
            store.commit()
            os.pwrite(self._file, _MARK.pack(mark), 0)
        except OSError as error:
            raise StoreFailed(f"{self.path}: {error}") from error

    def _read(self, mark: int) -> None:
        assert self._file is not None
        content = os.pread(self._file, os.fstat(self._file).st_size, 0)
        is_current = content[: _MARK.size] == _MARK.pack(mark)
        for row, begin in enumerate(range(_MARK.size, len(content) - _ROW.size + 1, _ROW.size)):
            place, name = _ROW.unpack_from(content, begin)
            if name:
                self._rows[name.decode()] = row
                self.places[name.decode()] = place if is_current else 0
            else:
                self._free.append(row)

    def open(self, name: str, place: int) -> None:
        """Note a topic whose messages behind a place are to be taken. Nothing happens if it is known."""
        if name in self.places:
            return
        row = self._free.pop() if self._free else len(self._rows)
        self._rows[name] = row
        self.places[name] = place
        self._write(_ROW.pack(place, name.encode()), row)
        self.must_flush = True

    def take(self, name: str, place: int) -> None:
        """Note that the messages of a topic up to a place are taken."""
        self.places[name] = place
        self._write(_ROW.pack(place, b"")[:8], self._rows[name])

    def forget(self, name: str) -> None:
        if self.places.pop(name, None) is not None:
            row = self._rows.pop(name)
            self._free.append(row)
            self._write(_ROW.pack(0, b""), row)
            self.must_flush = True

    def flush(self) -> None:
        """Make opened and forgotten topics durable, all that there are since the last time."""
        if self.must_flush and self._file is not None:
            try:
                os.fsync(self._file)
            except OSError as error:
                raise StoreFailed(f"{self.path}: {error}") from error
        self.must_flush = False

    def _write(self, data: bytes, row: int) -> None:
        if self._file is None:
            return
        try:
            os.pwrite(self._file, data, _MARK.size + row * _ROW.size)
        except OSError as error:
            raise StoreFailed(f"{self.path}: {error}") from error

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
