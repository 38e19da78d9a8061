"""Records what crossed the links of one process, so that a simulation can repeat the measured times.

There is one file for each process and each restart. A file has blocks, each a length and a MessagePack array. A
process that is killed loses at most the last seconds of its record.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from struct import Struct as Layout
from typing import Any, BinaryIO, Final

import msgspec

from precede.core.identity import NodeId
from precede.core.instants import Instant
from precede.core.messages import Packet
from precede.core.transfers import DOWN, RECEIVED, SENT, UP, LinkRecord, content_of
from precede.files.private import open_private, private_folder

_LENGTH: Final = Layout("<I")


class Transfers:
    """The record of one process. Each entry has the instant that the node's input had."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._entries: list[tuple[Any, ...]] = []
        self._file: BinaryIO | None = None
        self._encode = msgspec.msgpack.Encoder().encode

    def link(self, at: Instant, node: NodeId, peer: NodeId, up: bool) -> None:
        self._entries.append((UP if up else DOWN, at, node, peer))

    def sent(self, at: Instant, node: NodeId, peer: NodeId, packet: Packet) -> None:
        self._entries.append((SENT, at, node, peer, *content_of(packet)))

    def received(self, at: Instant, node: NodeId, peer: NodeId, packet: Packet) -> None:
        self._entries.append((RECEIVED, at, node, peer, *(content_of(packet) if packet.messages else ())))

    def flush(self) -> None:
        if not self._entries:
            return
        if self._file is None:
            private_folder(self._folder)
            self._file = open_private(self._folder / f"{os.getpid()}.told", append=True)
        block = self._encode(self._entries)
        self._file.write(_LENGTH.pack(len(block)) + block)
        self._entries.clear()


def read_transfers(folder: Path) -> Iterator[LinkRecord]:
    """Yield the entries of all processes. A block that was cut off by a kill is skipped."""
    decode = msgspec.msgpack.Decoder(list[LinkRecord]).decode
    for path in sorted(folder.glob("*.told")):
        data = path.read_bytes()
        at = 0
        while at + _LENGTH.size <= len(data):
            (length,) = _LENGTH.unpack_from(data, at)
            block = data[at + _LENGTH.size : at + _LENGTH.size + length]
            if len(block) < length:
                break
            yield from decode(block)
            at += _LENGTH.size + length
