"""Packets larger than a datagram: cut, sent, and put together again in bounded memory.

A fragment is `packet number, place, count` and a piece. A receiver keeps at most a few unfinished packets per
sender and a bounded number of bytes in all; the oldest go first.
"""

from __future__ import annotations

import struct
from collections import Counter, OrderedDict
from typing import Final

from precede.core.errors import Refused
from precede.core.identity import NodeId

_HEADER: Final = struct.Struct(">IHH")
HEADER_BYTES: Final = _HEADER.size
_MOST_PIECES: Final = 4096
_MOST_BYTES: Final = 16 << 20
_MOST_PER_SENDER: Final = 32


class Fragments:
    """Both directions of one node."""

    def __init__(self) -> None:
        self.dropped: Counter[str] = Counter()
        self._number = 0
        self._open: OrderedDict[tuple[NodeId, int], dict[int, bytes]] = OrderedDict()
        self._counts: dict[tuple[NodeId, int], int] = {}
        self._per_sender: Counter[NodeId] = Counter()
        self._bytes = 0

    def cut(self, data: bytes, largest: int) -> list[bytes]:
        """The pieces of a packet, each at most `largest` bytes; Refused when there would be too many."""
        room = largest - HEADER_BYTES
        count = max(1, -(-len(data) // room)) if room > 0 else _MOST_PIECES + 1
        if count > _MOST_PIECES:
            raise Refused(
                f"a packet of {len(data)} bytes does not fit this transport ({largest} bytes a frame)"
            )
        self._number = (self._number + 1) & 0xFFFFFFFF
        return [
            _HEADER.pack(self._number, place, count) + data[place * room : (place + 1) * room]
            for place in range(count)
        ]

    @staticmethod
    def most(largest: int) -> int:
        """How many bytes of a packet go in pieces of `largest` bytes."""
        return max(0, largest - HEADER_BYTES) * _MOST_PIECES

    def join(self, piece: bytes, sender: NodeId) -> bytes | None:
        """The whole packet once its last piece is here."""
        if len(piece) < HEADER_BYTES:
            self.dropped["truncated"] += 1
            return None
        number, place, count = _HEADER.unpack_from(piece)
        if count == 0 or count > _MOST_PIECES or place >= count:
            self.dropped["fragment"] += 1
            return None
        data = piece[HEADER_BYTES:]
        if count == 1:
            return data
        return self._gather((sender, number), place, count, data)

    def forget(self, sender: NodeId) -> None:
        """Its unfinished packets will never be whole."""
        if self._per_sender[sender]:
            for key in [key for key in self._open if key[0] == sender]:
                self._forget(key)

    def _gather(self, key: tuple[NodeId, int], place: int, count: int, data: bytes) -> bytes | None:
        pieces = self._open.get(key)
        if pieces is None:
            pieces = self._open[key] = {}
            self._counts[key] = count
            self._per_sender[key[0]] += 1
        elif self._counts[key] != count:
            self.dropped["fragment"] += 1
            return None
        if place not in pieces:
            pieces[place] = data
            self._bytes += len(data)
        if len(pieces) == count:
            self._forget(key)
            return b"".join(pieces[number] for number in range(count))
        self._bound(key[0])
        return None

    def _bound(self, sender: NodeId) -> None:
        """Unfinished packets are given up, this sender's oldest first, then anybody's."""
        if self._per_sender[sender] > _MOST_PER_SENDER:
            self._give_up(next(key for key in self._open if key[0] == sender))
        while self._bytes > _MOST_BYTES:
            self._give_up(next(iter(self._open)))

    def _give_up(self, key: tuple[NodeId, int]) -> None:
        self.dropped["unfinished"] += 1
        self._forget(key)

    def _forget(self, key: tuple[NodeId, int]) -> None:
        pieces = self._open.pop(key)
        self._bytes -= sum(map(len, pieces.values()))
        del self._counts[key]
        self._per_sender[key[0]] -= 1
        if not self._per_sender[key[0]]:
            del self._per_sender[key[0]]
