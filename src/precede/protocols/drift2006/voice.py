"""How a DRIFT node speaks: what goes along with each packet, and the packets themselves (`floods.Voice`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from precede.core.effects import Effect
from precede.core.identity import NodeId
from precede.core.instants import Instant
from precede.core.messages import Packet
from precede.protocols.drift2006.clock_table import Packed
from precede.protocols.drift2006.packets import (
    CHOSEN_BYTES,
    ENTRY_BYTES,
    HAVE_BYTES,
    HEADER_BYTES,
    WANT_BYTES,
    ControlPacket,
    DigestPacket,
    DriftPacket,
    DummyPacket,
    Flood,
    Piggyback,
    WantPacket,
    sizes_of,
)
from precede.protocols.floods.reliable_floods import Have, Stream, Want

if TYPE_CHECKING:
    from precede.protocols.drift2006.node import DriftNode

Carried: TypeAlias = Flood | DummyPacket | ControlPacket
"""What is flooded: a numbered flood of a stream, or one that belongs to none."""


class DriftVoice:
    """Made anew for each packet that leaves, but for what has not changed."""

    def __init__(self, node: DriftNode) -> None:
        self._node = node
        self._extra: Piggyback | None = None
        self._packed: Packed = 0
        self.dropped: list[Effect] = []

    def changed(self) -> None:
        """What goes along is not what it was."""
        self._extra = None

    @property
    def is_stale(self) -> bool:
        """Has it changed since the last packet was made? (Chosen entries are chosen once per packet.)"""
        seen = self._node.seen
        seen.settle()
        return seen.limit is None and (self._extra is None or self._packed != seen.table.packed)

    def extra(self) -> Piggyback:
        """What goes along with a packet that leaves now."""
        node = self._node
        seen, views = node.seen, node.views
        if seen.heard:
            seen.settle()
        if self._extra is not None and self._packed == seen.table.packed:
            return self._extra
        table = seen.whole_table() if node.virtual and seen.limit is None else b""
        chosen = seen.chosen() if node.virtual and seen.limit is not None else ()
        floors = views.floors_table() if views.active else b""
        columns = (len(seen.columns) if table else 0) + (len(views.voters) if floors else 0)
        extra = Piggyback(
            node.entrance.group,
            views.number,
            seen.layout,
            table,
            chosen,
            floors,
            ENTRY_BYTES * columns + CHOSEN_BYTES * len(chosen),
            columns + len(chosen),
        )
        if seen.limit is None:
            self._extra, self._packed = extra, seen.table.packed
        return extra

    def flood_packet(self, flood: Carried) -> Packet:
        extra = self.extra()
        if isinstance(flood, Flood):
            carried = flood.message
            size = HEADER_BYTES + extra.size_bytes
            if carried is None:
                return DriftPacket(flood, extra, size, size, extra.entries)
            return DriftPacket(flood, extra, size + len(carried.payload), size, extra.entries, 1)
        if isinstance(flood, DummyPacket):
            return DummyPacket(
                flood.origin, flood.number, flood.asks, flood.clock, extra, *sizes_of(extra, 0, 1)
            )
        return ControlPacket(flood.origin, flood.number, flood.body, extra, *sizes_of(extra, 24, 1))

    def want_packet(self, wants: tuple[Want, ...]) -> Packet:
        extra = self.extra()
        return WantPacket(wants, extra, *sizes_of(extra, WANT_BYTES * len(wants), len(wants)))

    def digest_packet(self, haves: tuple[Have, ...]) -> Packet:
        """Without the streams of sources whose admission has not arrived: nobody is behind on those."""
        extra = self.extra()
        listed = tuple(have for have in haves if have[:2] in self._node.admitted)
        return DigestPacket(listed, extra, *sizes_of(extra, HAVE_BYTES * len(listed), len(listed)))

    def without_cut(self, haves: Sequence[Have]) -> list[Have]:
        """A digest without what lies behind the end of a removed source's stream."""
        end_of = self._node.views.end_of
        return [(source, life, min(number, end_of((source, life), number))) for source, life, number in haves]

    def can_drop(self, stream: Stream[Any], number: int, flood: Carried) -> bool:
        """Not before it was delivered here, nor while a source that votes may lack it."""
        node = self._node
        assert isinstance(flood, Flood)
        if number > node.done.get(stream.id, (0, 0))[0] or not node.views.everywhere(flood.timestamp):
            return False
        node.forget(flood, self.dropped)
        return True

    def forget_dropped(self, effects: list[Effect]) -> None:
        """What is not kept any more need not be on disk either."""
        effects += self.dropped
        self.dropped = []

    def asked_for_gone(self, stream: Stream[Any], peer: NodeId, effects: list[Effect]) -> None:
        """Perhaps another neighbour has it; if not, it will knock."""

    def nobody_has(self, stream: Stream[Any], now: Instant, effects: list[Effect]) -> None:
        """Go on from another place in the order, like a newcomer."""
        self._node.entrance.knock(effects)
