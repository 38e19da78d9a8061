"""Timestamps and sequence numbers that are reused (drift2006, section 4.4), as a node around a DRIFT node.

The paper says that they "can be easily bounded by reusing them after some time in a round-robin fashion". Here
packets have only the lowest bits of them. A receiver completes each to the nearest number to one that it has:
timestamps to its own clock, sequence numbers to the last one received from that source. This is right while no
node is behind by half of the range. So a source refuses to send while its clock is a quarter of the range ahead
of the lowest clock it knows of any source. A destination that is no source has no such protection: it must not
be disconnected for half of a range. Checkpoints and view changes are rare, and their receivers may have nothing
to compare with, so they have whole numbers.
"""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from precede.core.effects import Effects, Medium, Send
from precede.core.errors import BadInput, NotYet
from precede.core.identity import NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Packet
from precede.protocols.around import Around
from precede.protocols.drift2006.clock_table import NARROW, WIDE
from precede.protocols.drift2006.node import DriftNode
from precede.protocols.drift2006.packets import (
    CheckpointPacket,
    Chosen,
    DigestPacket,
    DriftPacket,
    DummyPacket,
    Piggyback,
    WantPacket,
)
from precede.protocols.drift2006.seen import fingerprint
from precede.protocols.floods.stream import StreamId

FEWEST_BITS: Final = 6
MOST_BITS: Final = NARROW.bits - 1 - NARROW.number_bits


class BoundedDrift(Around[DriftNode]):
    """Wraps a DRIFT node: its packets have only the lowest `bits` of timestamps and sequence numbers."""

    def __init__(self, inner: DriftNode, bits: int) -> None:
        if not FEWEST_BITS <= bits <= MOST_BITS:
            raise BadInput(f"option 'bounded': {bits} is not between {FEWEST_BITS} and {MOST_BITS} bits")
        super().__init__(inner)
        self._times = 1 << bits
        self._numbers = 1 << min(bits, NARROW.number_bits)

    # -- inputs ------------------------------------------------------------------------------------------

    def broadcast(
        self,
        payload: bytes,
        now: Instant,
        to: Sequence[NodeId] | None = None,
        lifetime: Duration | None = None,
    ) -> Effects:
        """Broadcast a message. Raise NotYet while a source's clock is too far behind to reuse timestamps."""
        seen, clock = self.inner.state.seen, self.inner.state.clock
        seen.settle()
        lowest = min((seen.usable_timestamp(column) for column in range(len(seen.columns))), default=clock)
        if clock - lowest >= self._times // 4:
            raise NotYet("the clock of a source is too far behind to reuse timestamps: send later")
        return super().broadcast(payload, now, to, lifetime)

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        return super().receive(self._completed(packet), sender, now, over)

    # -- sending: only the lowest bits ---------------------------------------------------------------------

    def passed(self, effects: Effects) -> Effects:
        return [
            Send(self._cut_packet(effect.packet), effect.to, effect.over, effect.key)
            if isinstance(effect, Send)
            else effect
            for effect in effects
        ]

    def _cut_packet(self, packet: Packet) -> Packet:
        """Return a packet with only the lowest bits of its numbers. Checkpoints stay whole."""
        numbers, times = self._numbers, self._times
        if isinstance(packet, DriftPacket):
            flood = packet.flood
            flood = replace(flood, number=flood.number % numbers, timestamp=flood.timestamp % times)
            return replace(packet, flood=flood, extra=self._cut_extra(packet.extra))
        if isinstance(packet, DigestPacket):
            haves = tuple((source, serial, number % numbers) for source, serial, number in packet.haves)
            return replace(packet, haves=haves, extra=self._cut_extra(packet.extra))
        if isinstance(packet, WantPacket):
            wants = tuple((*id, first % numbers, last % numbers) for *id, first, last in packet.wants)
            return replace(packet, wants=wants, extra=self._cut_extra(packet.extra))
        if isinstance(packet, DummyPacket):
            clock = None if packet.clock is None else self._cut_entry(packet.clock)
            return replace(packet, clock=clock, extra=self._cut_extra(packet.extra))
        if isinstance(packet, CheckpointPacket):
            return packet
        extra: Piggyback = packet.extra  # type: ignore[attr-defined]
        return replace(packet, extra=self._cut_extra(extra))

    def _cut_entry(self, entry: Chosen) -> Chosen:
        source, serial, number, timestamp = entry
        return source, serial, number % self._numbers, timestamp % self._times

    def _cut_extra(self, extra: Piggyback) -> Piggyback:
        """Return virtual-flooding data with only the lowest bits of its numbers, in narrow columns."""
        chosen = tuple(map(self._cut_entry, extra.chosen))
        table, layout = extra.table, extra.layout
        if table:
            columns, form = self.inner.state.seen.columns_of(layout)
            clocks = [(number % self._numbers, at % self._times) for number, at in form.unpack(table)]
            table = NARROW.pack(clocks)
            layout = fingerprint(extra.group, extra.view, columns, NARROW)
        floors = WIDE.pack([(0, at % self._times) for _, at in WIDE.unpack(extra.floors)])
        return replace(extra, layout=layout, table=table, chosen=chosen, floors=floors)

    # -- receiving: the nearest number with these lowest bits ----------------------------------------------

    def _completed(self, packet: Packet) -> Packet:
        """Return a packet with whole numbers again. Checkpoints and packets of other groups stay."""
        extra: Piggyback | None = getattr(packet, "extra", None)
        if extra is None or extra.group != self.inner.state.group or isinstance(packet, CheckpointPacket):
            return packet
        extra = self._complete_extra(extra)
        if isinstance(packet, DriftPacket):
            flood = packet.flood
            number = self._number((flood.source, flood.serial), flood.number)
            flood = replace(flood, number=number, timestamp=self._time(flood.timestamp))
            return replace(packet, flood=flood, extra=extra)
        if isinstance(packet, DigestPacket):
            haves = tuple((*id, self._number((id[0], id[1]), number)) for *id, number in packet.haves)
            return replace(packet, haves=haves, extra=extra)
        if isinstance(packet, WantPacket):
            wants = tuple(
                (*id, self._number((id[0], id[1]), first), self._number((id[0], id[1]), last))
                for *id, first, last in packet.wants
            )
            return replace(packet, wants=wants, extra=extra)
        if isinstance(packet, DummyPacket):
            clock = None if packet.clock is None else self._complete_entry(packet.clock)
            return replace(packet, clock=clock, extra=extra)
        return replace(packet, extra=extra)

    def _number(self, id: StreamId, number: int) -> int:
        """Return the sequence number with these lowest bits, nearest to the stream's last received one."""
        stream = self.inner.floods.streams.get(id)
        return _nearest(0 if stream is None else stream.received, number, self._numbers)

    def _time(self, timestamp: int) -> int:
        """Return the timestamp with these lowest bits that is nearest to this node's clock."""
        return _nearest(self.inner.state.clock, timestamp, self._times)

    def _complete_entry(self, entry: Chosen) -> Chosen:
        source, serial, number, timestamp = entry
        return source, serial, self._number((source, serial), number), self._time(timestamp)

    def _complete_extra(self, extra: Piggyback) -> Piggyback:
        """Return virtual-flooding data with whole numbers. A table that this node cannot read is left out."""
        chosen = tuple(map(self._complete_entry, extra.chosen))
        seen = self.inner.state.seen
        columns, form = seen.columns_of(extra.layout)
        table, layout = b"", extra.layout
        if extra.table and columns and len(extra.table) == NARROW.size * len(columns) and form is NARROW:
            read = zip(columns, NARROW.unpack(extra.table), strict=True)
            clocks = [(self._number(id, number), self._time(at)) for id, (number, at) in read]
            form = NARROW if seen.table.form is NARROW and all(map(NARROW.fits, clocks)) else WIDE
            table = form.pack(clocks)
            layout = fingerprint(extra.group, extra.view, columns, form)
        floors = b""
        if len(extra.floors) % WIDE.size == 0:
            floors = WIDE.pack([(0, self._time(at)) for _, at in WIDE.unpack(extra.floors)])
        return replace(extra, layout=layout, table=table, chosen=chosen, floors=floors)


def _nearest(reference: int, lowest_bits: int, range_: int) -> int:
    """Return the number nearest to `reference` that equals `lowest_bits` modulo `range_`; never negative."""
    half = range_ // 2
    nearest = reference + (lowest_bits - reference + half) % range_ - half
    return nearest if nearest >= 0 else nearest + range_
