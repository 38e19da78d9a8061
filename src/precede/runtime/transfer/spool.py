"""Where the bytes of a snapshot are collected: a file beside the store, with which a killed member goes on.

The file begins with the length of the offer in 4 bytes, then the offer. The bytes of the snapshot follow,
in order, so that the length of the file says how far the transfer is. Without a store they are in memory.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from precede.core.identity import NodeId
from precede.files.private import make_private
from precede.runtime.transfer.packets import SnapshotOffer
from precede.runtime.transfer.snapshot import digest_of

_LENGTH_BYTES: Final = 4


class Source(Struct, frozen=True, array_like=True):
    """An offer and the member that made it."""

    giver: NodeId
    offer: SnapshotOffer


class Spool:
    """The bytes of one snapshot so far. `path` is None without a store."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file: int | None = None
        self._memory = bytearray()
        self._begin = 0
        self.size = 0
        self.source: Source | None = None
        if path is not None and path.exists():
            self._resume(path)

    def _resume(self, path: Path) -> None:
        """Go on with the file that an earlier process has left. Delete it if it is damaged."""
        self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        content = os.pread(self._file, os.fstat(self._file).st_size, 0)
        self._begin = _LENGTH_BYTES + int.from_bytes(content[:_LENGTH_BYTES], "big")
        try:
            self.source = msgspec.msgpack.decode(content[_LENGTH_BYTES : self._begin], type=Source)
        except msgspec.MsgspecError:
            self.clear()
            return
        self.size = len(content) - self._begin
        if self.size > self.source.offer.size:
            self.clear()

    def begin(self, source: Source) -> None:
        """Collect another snapshot, from its first byte."""
        self.clear()
        self.source = source
        if self._path is None:
            return
        head = msgspec.msgpack.encode(source)
        make_private(self._path)
        self._file = os.open(self._path, os.O_RDWR | os.O_CLOEXEC | os.O_TRUNC)
        self._begin = _LENGTH_BYTES + len(head)
        os.pwrite(self._file, len(head).to_bytes(_LENGTH_BYTES, "big") + head, 0)

    def add(self, data: bytes) -> None:
        """Append bytes. Raise OSError if the disk is full."""
        if self._file is None:
            self._memory += data
        elif os.pwrite(self._file, data, self._begin + self.size) != len(data):
            raise OSError("no space left for a snapshot")
        self.size += len(data)

    @property
    def is_complete(self) -> bool:
        return self.source is not None and self.size == self.source.offer.size

    def state(self) -> bytes | None:
        """Return the bytes of a complete snapshot; None if they are not those that its maker signed."""
        assert self.source is not None
        state = bytes(self._memory) if self._file is None else os.pread(self._file, self.size, self._begin)
        return state if digest_of(state) == self.source.offer.digest else None

    def clear(self) -> None:
        """Forget the snapshot, and delete its file."""
        self.close()
        self.source = None
        self.size = 0
        self._memory.clear()
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
