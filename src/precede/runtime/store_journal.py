"""The journal of a store: a file to which each commit appends its changes, before the tables have them.

From time to time the changes in the journal are written to the tables, together: a value that was replaced
since, and a message that was taken since, are not written at all (docs/decisions/0022). One write and one flush
is all that a commit takes; a transaction of SQLite with the same bytes takes several times the CPU.

A record is `mark 8, length 4, checksum 4, data`. The mark is a random number that the tables hold too. So older
records that are still in the file do not count, nor does a record that a crash cut off. The transaction that
writes the changes to the tables gives them a new mark: from then on the journal is empty, and it is overwritten
from its beginning.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Final, TypeAlias
from zlib import crc32

from msgspec import Struct, field

from precede.files.private import make_private
from precede.runtime.history.table import Extra

Links: TypeAlias = dict[tuple[int, int], tuple[bytes, bytes]]
"""Trailer (nonce and previous hash) and own hash of own messages, by incarnation and number."""

_HEAD: Final = struct.Struct(">QII")
_flush: Final = getattr(os, "fdatasync", os.fsync)


class Changes(Struct, array_like=True):
    """Values by key (None: deleted), delivered messages by place, the driver's numbers, rows of the log, links
    of own messages; time, source and content of the delivered ones. Keys, values and messages are encoded.
    """

    values: dict[bytes, bytes | None] = field(default_factory=dict)
    delivered: dict[int, bytes] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    rows: list[bytes] = field(default_factory=list)
    links: Links = field(default_factory=dict)
    extras: dict[int, Extra] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.values or self.delivered or self.numbers or self.rows or self.links)

    def add(self, later: Changes) -> None:
        """Add the changes of a later commit."""
        self.values |= later.values
        self.delivered |= later.delivered
        self.numbers |= later.numbers
        self.rows += later.rows
        self.links |= later.links
        self.extras |= later.extras

    def clear(self) -> None:
        self.values.clear()
        self.delivered.clear()
        self.numbers.clear()
        self.rows.clear()
        self.links.clear()
        self.extras.clear()


class StoreJournal:
    """The file. `size` is how many bytes the records of the present mark take."""

    def __init__(self, path: Path, *, synchronous: bool) -> None:
        is_new = not path.exists()
        make_private(path)
        self._file: int | None = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self._synchronous = synchronous
        self._mark = 0
        self.size = 0
        if is_new and synchronous:
            _flush_folder(path.parent)

    def read(self, mark: int) -> list[bytes]:
        """Return the data of the records with this mark, oldest first. Further records follow them."""
        assert self._file is not None
        self.begin(mark)
        content = os.pread(self._file, os.fstat(self._file).st_size, 0)
        records = []
        while self.size + _HEAD.size <= len(content):
            mark_read, length, checksum = _HEAD.unpack_from(content, self.size)
            begin = self.size + _HEAD.size
            data = content[begin : begin + length]
            if mark_read != mark or len(data) != length or checksum != crc32(data):
                break
            records.append(data)
            self.size = begin + length
        return records

    @property
    def file_bytes(self) -> int:
        """The size of the file, which does not shrink."""
        assert self._file is not None
        return os.fstat(self._file).st_size

    def begin(self, mark: int) -> None:
        """Forget all records: the tables have their changes, and this mark."""
        self._mark = mark
        self.size = 0

    def append(self, data: bytes) -> None:
        """Append a record and make it durable. Raise OSError if that fails."""
        assert self._file is not None
        record = _HEAD.pack(self._mark, len(data), crc32(data)) + data
        if os.pwrite(self._file, record, self.size) != len(record):
            raise OSError("no space left for the journal")
        if self._synchronous:
            _flush(self._file)
        self.size += len(record)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _flush_folder(folder: Path) -> None:
    """Make a new file's entry in its folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
