"""Builds the packets of DRIFT with their virtual-flooding data (drift2006, Figure 3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

from precede.core.effects import RADIO, Effect, Send
from precede.core.identity import NEIGHBOURS, NodeId
from precede.core.instants import Instant
from precede.core.messages import Packet
from precede.protocols.drift2006.packets import (
    CHOSEN_BYTES,
    ENTRY_BYTES,
    HAVE_BYTES,
    HEADER_BYTES,
    STREAM_BYTES,
    WANT_BYTES,
    Carried,
    CheckpointPacket,
    ControlPacket,
    DigestPacket,
    DriftPacket,
    DummyPacket,
    Flood,
    KnockPacket,
    Origin,
    Piggyback,
    ViewPacket,
    WantPacket,
    sizes_of,
)
from precede.protocols.drift2006.state import DriftState
from precede.protocols.floods.stream import Have, Stream, StreamId, Want


@final
class PacketBuilder:
    """Builds packets from the current state; the piggyback is built again only when it has changed.

    `dropped`: effects that remove floods from the store, which `Floods` keeps no longer.
    """

    def __init__(self, state: DriftState) -> None:
        self._state = state
        self._version = -1  # of the table of clocks in the last piggyback
        self.dropped: list[Effect] = []

    @property
    def is_stale(self) -> bool:
        """Has the virtual-flooding data changed since it was built? Always False if entries are limited.

        Limited entries are chosen once per packet, so a packet that waits is not built again.
        """
        state = self._state
        seen = state.seen
        seen.settle()
        return seen.limit is None and (state.piggyback is None or self._version != seen.table.version)

    def piggyback(self) -> Piggyback:
        state = self._state
        seen, view = state.seen, state.view
        if seen.unmerged:
            seen.settle()
        if state.piggyback is not None and self._version == seen.table.version:
            return state.piggyback
        table = seen.whole_table() if state.virtual and seen.limit is None else b""
        chosen = seen.chosen() if state.virtual and seen.limit is not None else ()
        floors = view.floors_table() if view.crash_tolerant else b""
        columns = (len(seen.columns) if table else 0) + (len(view.voters) if floors else 0)
        piggyback = Piggyback(
            state.group,
            view.number,
            seen.layout,
            table,
            chosen,
            floors,
            ENTRY_BYTES * columns + CHOSEN_BYTES * len(chosen),
            columns + len(chosen),
        )
        if seen.limit is None:
            state.piggyback, self._version = piggyback, seen.table.version
        return piggyback

    # -- packets for neighbours --------------------------------------------------------------------------

    def knock(self, to: NodeId = NEIGHBOURS) -> Send:
        extra = self.piggyback()
        return Send(KnockPacket(extra, *sizes_of(extra, 0, 0)), to, RADIO)

    def view(self) -> Send:
        extra = self.piggyback()
        record = self._state.view.record()
        entries = len(record.voters) + len(record.ends)
        sizes = sizes_of(extra, STREAM_BYTES * entries, entries)
        return Send(ViewPacket(record, extra, *sizes), NEIGHBOURS, RADIO)

    def checkpoint(self, sources: tuple[StreamId, ...], origin: Origin | None, to: NodeId) -> Send:
        """Return the effect that sends a node this node's position in the order.

        `sources` are the streams whose clocks count at that position.
        """
        state = self._state
        done = tuple((*id, number) for id, (number, _) in sorted(state.delivered.items()))
        extra = self.piggyback()
        entries = len(sources) + len(done)
        sizes = sizes_of(extra, HAVE_BYTES * entries, entries)
        packet = CheckpointPacket(state.view.record(), state.position, sources, done, extra, *sizes, origin)
        return Send(packet, to, RADIO)

    # -- what `Floods` asks for (`FloodUser`) --------------------------------------------------------------

    def flood_packet(self, flood: Carried) -> Packet:
        extra = self.piggyback()
        if isinstance(flood, Flood):
            message = flood.message
            size = HEADER_BYTES + extra.size_bytes
            if message is None:
                return DriftPacket(flood, extra, size, size, extra.entries)
            return DriftPacket(flood, extra, size + len(message.payload), size, extra.entries, 1)
        if isinstance(flood, DummyPacket):
            return DummyPacket(
                flood.origin,
                flood.number,
                flood.asks,
                flood.clock,
                extra,
                *sizes_of(extra, 0, 1),
                flood.signature,
            )
        sizes = sizes_of(extra, 24, 1)
        return ControlPacket(flood.origin, flood.number, flood.body, extra, *sizes, flood.signature)

    def want_packet(self, wants: tuple[Want, ...]) -> Packet:
        extra = self.piggyback()
        return WantPacket(wants, extra, *sizes_of(extra, WANT_BYTES * len(wants), len(wants)))

    def digest_packet(self, haves: tuple[Have, ...]) -> Packet:
        """Build a digest of all streams whose admission has arrived here."""
        extra = self.piggyback()
        listed = tuple(have for have in haves if have[:2] in self._state.admitted)
        return DigestPacket(listed, extra, *sizes_of(extra, HAVE_BYTES * len(listed), len(listed)))

    def without_cut(self, haves: Sequence[Have]) -> list[Have]:
        """Return a neighbour's digest without the floods that lie behind the ends of their streams."""
        ends = self._state.view.ends
        return [(source, serial, min(n, ends.get((source, serial), n))) for source, serial, n in haves]

    def payload_bytes(self, flood: Carried) -> int:
        return len(flood.message.payload) if isinstance(flood, Flood) and flood.message is not None else 0

    def can_drop(self, stream: Stream[Any], number: int, flood: Carried) -> bool:
        """Was a flood delivered here, and does every voter hold it? It is then removed from the store too."""
        state = self._state
        assert isinstance(flood, Flood)
        if number > state.delivered_number(stream.id) or not state.view.all_hold(flood.timestamp):
            return False
        state.forget(flood, self.dropped)
        return True

    def take_dropped(self, effects: list[Effect]) -> None:
        effects += self.dropped
        self.dropped = []

    def requested_dropped(self, stream: Stream[Any], peer: NodeId, effects: list[Effect]) -> None:
        """Do nothing. Another neighbour may have the floods; if none has, the peer requests a checkpoint."""

    def nobody_has(self, stream: Stream[Any], now: Instant, effects: list[Effect]) -> None:
        """Request a checkpoint, to continue from another position in the order like a newcomer."""
        effects.append(self.knock())
