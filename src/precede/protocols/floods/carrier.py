"""Virtually flooded data on the packets of any node (drift2006, sections 3 and 8).

`Carrying` wraps a node of any protocol: it attaches small data to every packet that the node sends, and removes
it from every packet that the node receives. The wrapped node needs no change, and no packet is sent for the
data alone. A packet carries the data as it is when the node hands the packet over; a packet that then waits at
the radio is not renewed.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from precede.core.effects import Effect, Effects, Medium, Send
from precede.core.identity import NodeId
from precede.core.instants import Instant
from precede.core.messages import Packet, Written
from precede.core.node import Node
from precede.protocols.around import Around
from precede.protocols.floods.virtual_flooding import Datum, VirtualFlooding

DATUM_BYTES: Final = 12


class CarrierPacket(Packet, frozen=True, gc=False):
    """A packet of the wrapped node, and the data attached to it."""

    kind: ClassVar[str] = "carrier"
    inner: Packet
    data: tuple[Datum[Any, Any], ...]
    size_bytes: int = 0
    control_bytes: int = 0
    control_entries: int = 0
    messages: int = 0

    def written(self) -> Sequence[Written]:
        return self.inner.written()


class Carrying(Around[Node]):
    """A node whose packets carry virtually flooded data; `virtual` has the data that it has seen."""

    def __init__(self, inner: Node, virtual: VirtualFlooding[Any, Any], datum_bytes: int = DATUM_BYTES) -> None:
        super().__init__(inner)
        self.virtual = virtual
        self._datum_bytes = datum_bytes

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        if isinstance(packet, CarrierPacket):
            self.virtual.merge(packet.data)
            packet = packet.inner
        return super().receive(packet, sender, now, over)

    def sizes(self) -> Mapping[str, int]:
        return {**self.inner.sizes(), "virtual": len(self.virtual)}

    def passed(self, effects: Effects) -> Effects:
        return [self._load(effect) if isinstance(effect, Send) else effect for effect in effects]

    def _load(self, send: Send) -> Effect:
        """Return the same transmission with data attached to its packet."""
        packet, data = send.packet, self.virtual.attach()
        more = self._datum_bytes * len(data)
        carrier = CarrierPacket(
            packet,
            data,
            packet.size_bytes + more,
            packet.control_bytes + more,
            packet.control_entries + len(data),
            packet.messages,
        )
        return Send(carrier, send.to, send.over, send.key)
