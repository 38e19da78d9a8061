"""Cuts packets that are larger than a frame into pieces, and joins pieces in bounded memory.

A piece starts with the packet's number, its place and the number of pieces. A receiver keeps a bounded number
of incomplete packets per sender and a bounded number of bytes in total; it drops the oldest first.
"""

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
_PIECE_OVERHEAD_BYTES: Final = 128
"""How many bytes of memory a piece takes in addition to its data."""


class Fragments:
    """Cuts one node's outgoing packets and joins its incoming ones. `dropped` counts by reason."""

    def __init__(self) -> None:
        self.dropped: Counter[str] = Counter()
        self._number = 0
        self._open: OrderedDict[tuple[NodeId, int], dict[int, bytes]] = OrderedDict()
        self._counts: dict[tuple[NodeId, int], int] = {}
        self._per_sender: Counter[NodeId] = Counter()
        self._bytes = 0

    def cut(self, data: bytes, largest: int) -> list[bytes]:
        """Cut a packet into pieces of at most `largest` bytes each. Raise Refused if they are too many."""
        payload_bytes = largest - HEADER_BYTES
        count = max(1, -(-len(data) // payload_bytes)) if payload_bytes > 0 else _MOST_PIECES + 1
        if count > _MOST_PIECES:
            raise Refused(
                f"a packet of {len(data)} bytes does not fit this transport ({largest} bytes a frame)"
            )
        self._number = (self._number + 1) & 0xFFFFFFFF
        return [
            _HEADER.pack(self._number, place, count) + data[place * payload_bytes : (place + 1) * payload_bytes]
            for place in range(count)
        ]

    @staticmethod
    def most(largest: int) -> int:
        return max(0, largest - HEADER_BYTES) * _MOST_PIECES

    def join(self, piece: bytes, sender: NodeId) -> bytes | None:
        """Add a piece. Return its packet if that completes it, else None. Count and drop a bad piece."""
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
        if not data:  # nobody cuts a packet into empty pieces
            self.dropped["fragment"] += 1
            return None
        return self._gather((sender, number), place, count, data)

    def forget(self, sender: NodeId) -> None:
        """Drop a sender's incomplete packets: the missing pieces will not come."""
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
            self._bytes += len(data) + _PIECE_OVERHEAD_BYTES
        if len(pieces) == count:
            self._forget(key)
            return b"".join(pieces[number] for number in range(count))
        self._bound(key[0])
        return None

    def _bound(self, sender: NodeId) -> None:
        """Enforce the limits: drop this sender's oldest incomplete packet, then the oldest of all."""
        if self._per_sender[sender] > _MOST_PER_SENDER:
            self._give_up(next(key for key in self._open if key[0] == sender))
        while self._bytes > _MOST_BYTES:
            self._give_up(next(iter(self._open)))

    def _give_up(self, key: tuple[NodeId, int]) -> None:
        self.dropped["unfinished"] += 1
        self._forget(key)

    def _forget(self, key: tuple[NodeId, int]) -> None:
        pieces = self._open.pop(key)
        self._bytes -= sum(map(len, pieces.values())) + _PIECE_OVERHEAD_BYTES * len(pieces)
        del self._counts[key]
        self._per_sender[key[0]] -= 1
        if not self._per_sender[key[0]]:
            del self._per_sender[key[0]]
