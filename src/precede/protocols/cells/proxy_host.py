"""A host whose station acts for it (prs1997, section 9, and CK, its descendant).

It delivers each message on arrival and acknowledges it at once. It sends its own messages one at a time and
retransmits each until the station acknowledges it. The papers' radio loses nothing; ours does.
"""

from collections.abc import Mapping
from typing import ClassVar

from mypy_extensions import mypyc_attr

from precede.core.effects import (
    NOTHING,
    RADIO,
    Arrive,
    CancelTimer,
    Deliver,
    Effect,
    Effects,
    Key,
    Medium,
    Send,
    SetTimer,
)
from precede.core.identity import NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Packet
from precede.core.node import Context, Node
from precede.core.randomness import jittered
from precede.protocols.cells.options import ProxyOptions
from precede.protocols.cells.packets import (
    ProxyAckPacket,
    ProxyConnectAckPacket,
    ProxyConnectPacket,
    ProxyDataPacket,
    ProxyStationAckPacket,
    ProxyUpPacket,
    Vector,
)


@mypyc_attr(allow_interpreted_subclasses=True)
class ProxyHost(Node):
    """One mobile host; a subclass adds `broadcast`.

    `delivered` is the last number delivered of each initial station. `ses` is the connection number, `previous`
    the station of the last confirmed connection (before the first one: the first station tried, or -1).
    """

    draining: ClassVar[tuple[str, ...]] = ("sbuffer",)

    def __init__(self, context: Context[ProxyOptions]) -> None:
        self.node = context.node
        self.random = context.random
        self.retry: Duration = context.options.connect_retry
        self.repeat: Duration = context.options.uplink_retransmit
        self.number = 0
        self.sbuffer: dict[int, ProxyUpPacket] = {}
        self.delivered: dict[NodeId, int] = {}
        self.to_acknowledge: dict[NodeId, int] = {}
        self.ses = 0
        self.previous: NodeId = -1
        self.cell: NodeId | None = None
        self.connected = False
        self.joined = False

    # Uplink -------------------------------------------------------------------------------------------------

    def _queue(self, packet: ProxyUpPacket, now: Instant, effects: list[Effect]) -> None:
        """Buffer an own message, and send it if no other is unacknowledged."""
        self.number = packet.message.id.number
        self.sbuffer[self.number] = packet
        if len(self.sbuffer) == 1:
            self._send_own(now, effects)

    def _send_own(self, now: Instant, effects: list[Effect]) -> None:
        if self.connected and self.cell is not None and self.sbuffer:
            packet = self._on_air(next(iter(self.sbuffer.values())))
            effects.append(Send(packet, self.cell, RADIO, "up"))
            effects.append(SetTimer("up", now + jittered(self.repeat, self.random)))

    def _on_air(self, packet: ProxyUpPacket) -> ProxyUpPacket:
        """Return the packet as it is sent now; a subclass may add current data."""
        return packet

    def _forget(self, accepted: int, now: Instant, effects: list[Effect]) -> None:
        """Drop the own messages up to `accepted`, which the station has, and send the next one."""
        done = [number for number in self.sbuffer if number <= accepted]
        for number in done:
            del self.sbuffer[number]
        if done:
            effects.append(CancelTimer("up"))
            self._send_own(now, effects)

    # Downlink -----------------------------------------------------------------------------------------------

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        effects: list[Effect] = []
        if sender != self.cell:
            return NOTHING
        if isinstance(packet, ProxyDataPacket):
            if self.connected and self.node in packet.targets:
                self._on_data(packet, sender, effects)
        elif type(packet) is ProxyStationAckPacket:
            if packet.host == self.node:
                self._forget(packet.accepted, now, effects)
        elif type(packet) is ProxyConnectAckPacket and packet.host == self.node:
            self._on_connect_ack(packet, sender, now, effects)
        return effects

    def _on_data(self, packet: ProxyDataPacket, station: NodeId, effects: list[Effect]) -> None:
        """Deliver a message if it is new, and acknowledge it. A new one is the next: stations send in order."""
        if packet.number > self.delivered.get(packet.origin, 0):
            self.delivered[packet.origin] = packet.number
            if packet.message.id.source != self.node:
                effects.append(Arrive((packet.message,)))
            effects.append(Deliver(packet.message))
        self.to_acknowledge[packet.origin] = self.delivered[packet.origin]
        acks = ProxyAckPacket(self.node, tuple(self.to_acknowledge.items()))
        effects.append(Send(acks, station, RADIO, "ack"))

    def sent(self, key: Key, now: Instant, ok: bool) -> Effects:
        if key == "ack":
            self.to_acknowledge.clear()
        return NOTHING

    # Cells --------------------------------------------------------------------------------------------------

    def link_up(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        effects: list[Effect] = []
        self.cell = peer
        self.connected = False
        self.ses += 1
        if self.previous < 0:
            self.previous = peer
        self._connect(now, effects)
        return effects

    def link_down(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        self.cell = None
        self.connected = False
        self.to_acknowledge.clear()
        return [CancelTimer("connect"), CancelTimer("up")]

    def timer(self, key: Key, now: Instant) -> Effects:
        effects: list[Effect] = []
        if key == "up":
            self._send_own(now, effects)
        elif not self.connected:
            self._connect(now, effects)
        return effects

    def _connect(self, now: Instant, effects: list[Effect]) -> None:
        """Ask the station of the cell to connect this host; repeated until it answers."""
        if self.cell is None:
            return
        packet = ProxyConnectPacket(self.node, self.ses, self.previous, self._delivered_vector())
        effects.append(Send(packet, self.cell, RADIO, "connect"))
        effects.append(SetTimer("connect", now + jittered(self.retry, self.random)))

    def _delivered_vector(self) -> Vector:
        """Return what the former station must know before it sends the record away: nothing, in CK."""
        return ()

    def _on_connect_ack(
        self, packet: ProxyConnectAckPacket, sender: NodeId, now: Instant, effects: list[Effect]
    ) -> None:
        """Become connected: adopt the station's record of what this host delivered, and send own messages."""
        if packet.ses != self.ses or self.connected:
            return
        self.connected = self.joined = True
        self.previous = sender
        for station, number in packet.delivered:
            self.delivered[station] = max(number, self.delivered.get(station, 0))
        effects.append(CancelTimer("connect"))
        self._forget(packet.accepted, now, effects)
        self._send_own(now, effects)

    def sizes(self) -> Mapping[str, int]:
        return {"sbuffer": len(self.sbuffer)}
