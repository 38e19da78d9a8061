"""A process writes down what crossed its nodes' links, for the simulation that is held against an emulation.

One file for each process (and for each time it is begun again); blocks of a msgpack array with their length
before them. A process that is killed leaves what it had written, at most some seconds less than it saw.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from struct import Struct as Layout
from typing import Any, BinaryIO, Final

import msgspec

from precede.core.identity import NodeId
from precede.core.instants import Instant
from precede.core.messages import Packet
from precede.core.transfers import DOWN, RECEIVED, SENT, UP, Told, content_of

_LENGTH: Final = Layout("<I")


class Transfers:
    """What the nodes of one process tell, each with the instant that the node itself was given."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._told: list[tuple[Any, ...]] = []
        self._file: BinaryIO | None = None
        self._encode = msgspec.msgpack.Encoder().encode

    def link(self, at: Instant, node: NodeId, peer: NodeId, up: bool) -> None:
        self._told.append((UP if up else DOWN, at, node, peer))

    def sent(self, at: Instant, node: NodeId, peer: NodeId, packet: Packet) -> None:
        self._told.append((SENT, at, node, peer, *content_of(packet)))

    def received(self, at: Instant, node: NodeId, peer: NodeId, packet: Packet) -> None:
        self._told.append((RECEIVED, at, node, peer, *(content_of(packet) if packet.messages else ())))

    def flush(self) -> None:
        """Into the file, for good."""
        if not self._told:
            return
        if self._file is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._file = (self._folder / f"{os.getpid()}.told").open("ab", buffering=0)
        block = self._encode(self._told)
        self._file.write(_LENGTH.pack(len(block)) + block)
        self._told.clear()


def read_told(folder: Path) -> Iterator[Told]:
    """Everything that all processes told; a block that was cut off by a kill is left out."""
    decode = msgspec.msgpack.Decoder(list[Told]).decode
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
