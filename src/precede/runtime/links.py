"""Who can be heard: from places and frames to nodes and packets.

Seals and opens frames, cuts and joins packets, learns which node is behind a place from its admitted frames,
sends beacons, and says when a neighbour appears and when it has been silent too long. Counts all it drops.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final, Protocol

from precede.core.errors import Refused
from precede.core.identity import NEIGHBOURS, NodeId
from precede.runtime.fragments import Fragments
from precede.runtime.transport import Transport, Where

_BEACON: Final = 0
_PIECE: Final = 1
QUIET_BEACONS: Final = 4


class Door(Protocol):
    """Admission: `sealing.Sealer`, or `sealing.OpenDoor`."""

    dropped: Counter[str]

    def seal(self, data: bytes) -> bytes: ...

    def open(self, frame: bytes) -> tuple[NodeId, int, bytes] | None: ...


class Links:
    """One transport's neighbours; `packet`, `up` and `down` are called as things happen."""

    def __init__(
        self,
        transport: Transport,
        door: Door,
        seal_overhead: int,
        packet: Callable[[bytes, NodeId], None],
        up: Callable[[NodeId], None],
        down: Callable[[NodeId], None],
        most_peers: int = 1024,
    ) -> None:
        self._transport = transport
        self._door = door
        self._room = transport.largest - seal_overhead - 1
        self._packet = packet
        self._up = up
        self._down = down
        self._most_peers = most_peers
        self._fragments = Fragments()
        self._where: dict[NodeId, Where] = {}
        self._silent: dict[NodeId, int] = {}
        self._boots: dict[NodeId, int] = {}
        self._refused = 0
        self._blocked: dict[NodeId, None] = {}

    def send(self, data: bytes, to: NodeId) -> int:
        """A packet to a neighbour or to all of them; how many bytes went on the wire, 0 if nobody is there."""
        where = None if to == NEIGHBOURS else self._where.get(to)
        if to != NEIGHBOURS and (where is None or to in self._blocked):
            return 0
        try:
            pieces = self._fragments.cut(data, self._room)
        except Refused:
            self._refused += 1
            return 0
        sent = 0
        for piece in pieces:
            frame = self._door.seal(bytes((_PIECE,)) + piece)
            if where is None:
                self._transport.broadcast(frame)
            else:
                self._transport.send(frame, where)
            sent += len(frame)
        return sent

    def frame(self, frame: bytes, where: Where) -> None:
        """Something was heard."""
        opened = self._door.open(frame)
        if opened is None:
            return
        sender, boot, data = opened
        if sender in self._blocked or not data:
            return
        if self._boots.get(sender, boot) != boot and sender in self._silent:
            self._forget(sender)  # it has restarted: whatever we thought it had is gone
        if sender not in self._silent:
            if len(self._silent) >= self._most_peers:
                self._door.dropped["too_many_peers"] += 1
                return
            self._where[sender] = where
            self._silent[sender] = 0
            self._boots[sender] = boot
            self._up(sender)
        self._where[sender] = where
        self._silent[sender] = 0
        if data[0] == _PIECE:
            packet = self._fragments.join(data[1:], sender)
            if packet is not None:
                self._packet(packet, sender)

    def tick(self) -> None:
        """Once each beacon interval: say that we are here, and miss those who are not."""
        self._transport.broadcast(self._door.seal(bytes((_BEACON,))))
        for node in list(self._silent):
            self._silent[node] += 1
            if self._silent[node] > QUIET_BEACONS:
                self._forget(node)

    def block(self, node: NodeId) -> None:
        """Hear this node no more (an emulated contact has ended)."""
        self._blocked[node] = None
        if node in self._silent:
            self._forget(node)

    def unblock(self, node: NodeId) -> None:
        """Hear it again."""
        self._blocked.pop(node, None)

    def neighbours(self) -> list[NodeId]:
        return sorted(self._silent)

    def dropped(self) -> dict[str, int]:
        """What was dropped here, by reason."""
        counts = Counter(self._door.dropped) + self._fragments.dropped
        if self._refused:
            counts["does_not_fit"] = self._refused
        return dict(sorted(counts.items()))

    def _forget(self, node: NodeId) -> None:
        del self._silent[node]
        del self._boots[node]
        del self._where[node]
        self._down(node)
