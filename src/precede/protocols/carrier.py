"""Any node whose packets also carry virtually flooded data (drift2006, sections 3 and 8).

`Carrying` stands around a node of any protocol: what that node sends leaves with small data attached, what
arrives is taken apart. The node inside notices nothing, and no packet is sent for the data's own sake. A packet
takes along what is known when the node hands it over, which is when it leaves unless it waits at the radio.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from precede.core.effects import Effect, Effects, Key, Medium, Send
from precede.core.identity import NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Packet
from precede.core.node import Node, Saved, Waiting
from precede.protocols.virtual_flooding import Datum, VirtualFlooding

DATUM_BYTES: Final = 12


class CarrierPacket(Packet, frozen=True, gc=False):
    """A packet of the node inside, and what travels on it."""

    kind: ClassVar[str] = "carrier"
    inner: Packet
    data: tuple[Datum[Any, Any], ...]
    size_bytes: int = 0
    control_bytes: int = 0
    control_entries: int = 0
    messages: int = 0


class Carrying(Node):
    """The node inside does what it does; `virtual` has what this node knows."""

    def __init__(self, inner: Node, virtual: VirtualFlooding[Any, Any], datum_bytes: int = DATUM_BYTES) -> None:
        self.inner = inner
        self.virtual = virtual
        self._datum_bytes = datum_bytes

    def start(self, now: Instant, saved: Saved) -> Effects:
        return self._loaded(self.inner.start(now, saved))

    def broadcast(
        self,
        payload: bytes,
        now: Instant,
        to: Sequence[NodeId] | None = None,
        lifetime: Duration | None = None,
    ) -> Effects:
        return self._loaded(self.inner.broadcast(payload, now, to, lifetime))

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        if isinstance(packet, CarrierPacket):
            self.virtual.merge(packet.data)
            packet = packet.inner
        return self._loaded(self.inner.receive(packet, sender, now, over))

    def sent(self, key: Key, now: Instant, ok: bool) -> Effects:
        return self._loaded(self.inner.sent(key, now, ok))

    def timer(self, key: Key, now: Instant) -> Effects:
        return self._loaded(self.inner.timer(key, now))

    def link_up(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        return self._loaded(self.inner.link_up(peer, now, over))

    def link_down(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        return self._loaded(self.inner.link_down(peer, now, over))

    def leave(self, now: Instant) -> Effects:
        return self._loaded(self.inner.leave(now))

    def waiting(self) -> Sequence[Waiting]:
        return self.inner.waiting()

    def drains(self) -> tuple[str, ...]:
        return self.inner.drains()

    def sizes(self) -> Mapping[str, int]:
        return {**self.inner.sizes(), "virtual": len(self.virtual)}

    def _loaded(self, effects: Effects) -> Effects:
        return [self._load(effect) if isinstance(effect, Send) else effect for effect in effects]

    def _load(self, send: Send) -> Effect:
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
