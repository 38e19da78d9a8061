"""A WAS host: join, connect, recover, leave, and the dispatch to its parts (was2021, sections 4.1 to 4.5).

Where the paper is wrong or silent the code follows `papers/was2021/reading.md` (E1 to E18). A host is in the
cell of the station whose RADIO link is up.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from precede.core.effects import (
    NOTHING,
    RADIO,
    Accept,
    CancelTimer,
    Effect,
    Effects,
    Key,
    Medium,
    Persist,
    Send,
    SetTimer,
)
from precede.core.errors import NotYet, Refused
from precede.core.identity import NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Packet
from precede.core.node import Context, Node, Saved, Waiting, restore
from precede.core.randomness import jittered
from precede.protocols.was2021.acknowledgements import Acknowledgements
from precede.protocols.was2021.downlink import Downlink, ranges
from precede.protocols.was2021.options import INCARNATION_STEP, WasOptions
from precede.protocols.was2021.packets import (
    AckPacket,
    ConnectAckPacket,
    ConnectPacket,
    DataPacket,
    LeaveAckPacket,
    LeavePacket,
    NotRegisteredPacket,
    Previous,
    PrivatePacket,
    Reason,
    StationAckPacket,
)
from precede.protocols.was2021.uplink import Uplink


class WasHost(Node):
    """One mobile host.

    `ses` is the number of the newest connection attempt (the paper's Ses). `previous` are the stations that may
    have a record of the host, each with the attempt (PS). `ask_all` says that PS is incomplete, so every
    station must be asked for the record. `tried` is the station of the attempt under way.
    """

    draining: ClassVar[tuple[str, ...]] = ("sbuffer", "rbuffer")

    def __init__(self, context: Context[WasOptions]) -> None:
        self.node = context.node
        self.random = context.random
        self.options = context.options
        self.durable = self.options.durable
        self.uplink = Uplink(context.node, context.incarnation, self.options)
        self.downlink = Downlink(context.node, self.durable)
        self.acks = Acknowledgements(self.options, context.random)
        self.ses = context.incarnation * INCARNATION_STEP
        self.previous: dict[NodeId, int] = {}
        self.ask_all = context.incarnation > 0
        self.cell: NodeId | None = None
        self.tried: NodeId | None = None
        self.connected = False
        self.joined = False
        self.reason: Reason = "join"
        self.leaving = False
        self.left = False

    # Inputs -------------------------------------------------------------------------------------------------

    def start(self, now: Instant, saved: Saved) -> Effects:
        """Load what was saved before a crash (section 4.5). Accept again own messages not yet at a station."""
        if not saved:
            return NOTHING
        self.ses = restore(saved, "ses", int, self.ses)
        self.joined = self.downlink.restore(saved)
        self.uplink.restore(saved)
        self.leaving = restore(saved, "leaving", bool, False)
        self.reason = "recover" if self.joined else "join"
        self.ask_all = True
        return [Accept(message) for message in self.uplink.sbuffer.values()]

    def broadcast(
        self,
        payload: bytes,
        now: Instant,
        to: Sequence[NodeId] | None = None,
        lifetime: Duration | None = None,
    ) -> Effects:
        if to is not None:
            raise Refused("WAS broadcasts to everybody: it takes no destinations")
        if lifetime is not None:
            raise Refused("WAS has no lifetimes")
        if self.leaving:
            raise Refused("the host has left")
        if not self.joined:
            raise NotYet("the host has not joined yet")
        effects: list[Effect] = []
        self.uplink.add(payload, effects)
        self._send_own(now, effects)
        return effects

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        if sender != self.cell:
            return NOTHING
        effects: list[Effect] = []
        if type(packet) is DataPacket:
            self._on_data(packet, now, effects)
        elif type(packet) is PrivatePacket:
            self._on_private(packet, now, effects)
        elif type(packet) is StationAckPacket:
            self._on_station_ack(packet, now, effects)
        elif type(packet) is ConnectAckPacket:
            self._on_connect_ack(packet, sender, now, effects)
        elif type(packet) is NotRegisteredPacket:
            self._on_not_registered(packet, now, effects)
        elif type(packet) is LeaveAckPacket:
            self._on_leave_ack(packet, effects)
        return effects

    def sent(self, key: Key, now: Instant, ok: bool) -> Effects:
        effects: list[Effect] = []
        if type(key) is int:
            self.uplink.sent(key, now, effects)
        return effects

    def timer(self, key: Key, now: Instant) -> Effects:
        effects: list[Effect] = []
        if key == "ack":
            self._acknowledge(now, effects)
        elif key == "uplink":
            self._send_own(now, effects)
            self.uplink.arm(effects)
        elif key == "connect":
            if self.leaving:
                self._send_leave(now, effects)
            elif not self.connected:
                self._send_connect(now, effects)
        return effects

    def link_up(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        effects: list[Effect] = []
        if over == RADIO and not self.left:
            self._exit_cell(effects)
            self.cell = peer
            if self.leaving:
                self._send_leave(now, effects)
            else:
                self._new_attempt(now, effects)
        return effects

    def link_down(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        effects: list[Effect] = []
        if over == RADIO and peer == self.cell:
            self._exit_cell(effects)
        return effects

    def leave(self, now: Instant) -> Effects:
        """Leave under a new connection number, which ends every earlier registration (E12)."""
        if self.leaving or self.left:
            return NOTHING
        effects: list[Effect] = []
        self._remember_attempt()
        self._disconnect(effects)
        self.leaving = True
        self.ses += 1
        if self.durable:
            effects += (Persist("leaving", True), Persist("ses", self.ses))
        self.uplink.forget(self.uplink.number, effects)
        if self.cell is not None:
            self._send_leave(now, effects)
        return effects

    def waiting(self) -> Sequence[Waiting]:
        """Return the messages in RBuffer. Of the missing ones a host knows the numbers, not the ids."""
        buffered = self.downlink.rbuffer.values()
        return [Waiting(message.id, (), 0) for message, before in buffered if not before]

    def sizes(self) -> Mapping[str, int]:
        return {
            "sbuffer": len(self.uplink.sbuffer),
            "rbuffer": len(self.downlink.rbuffer),
            "previous": len(self.previous),
        }

    # Messages and acknowledgements (section 4.1) ------------------------------------------------------------

    def _send_own(self, now: Instant, effects: list[Effect]) -> None:
        if self.connected and self.cell is not None:
            self.uplink.send(self.cell, self.ses, now, effects)

    def _on_station_ack(self, packet: StationAckPacket, now: Instant, effects: list[Effect]) -> None:
        """Drop this host's messages that the station has accepted, and send the next ones."""
        for host, accepted in packet.accepted:
            if host == self.node:
                self.uplink.forget(accepted, effects)
                self._send_own(now, effects)
                break

    def _on_data(self, packet: DataPacket, now: Instant, effects: list[Effect]) -> None:
        """Receive a message of the cell. Acknowledge a duplicate too: the last one may have been lost."""
        if not self.connected:
            return
        number = packet.number
        if number < self.downlink.base or self.downlink.has(number):
            self.acks.owe(now, effects)
            return
        before = number in self.downlink.skip or self.node in packet.marks
        self._take(packet, before, now, effects)

    def _on_private(self, packet: PrivatePacket, now: Instant, effects: list[Effect]) -> None:
        """Receive a recovered message, and acknowledge it soon: after one window of these the station waits."""
        if not self.connected or packet.host != self.node or packet.ses != self.ses:
            return
        if not self.downlink.has(packet.number):
            self._take(packet, False, now, effects)
        self.acks.owe(now, effects)
        self.acks.hurry(now, effects)

    def _take(
        self, packet: DataPacket | PrivatePacket, before: bool, now: Instant, effects: list[Effect]
    ) -> None:
        opens_hole = self.downlink.take(packet.number, packet.message, before, effects)
        self.acks.owe(now, effects)
        if self.downlink.rbuffer:
            self.acks.report_hole(opens_hole, now, effects)

    def _acknowledge(self, now: Instant, effects: list[Effect]) -> None:
        """Handle the timer: acknowledge if a message is missing or it is time to; else set the timer again."""
        self.acks.timer_at = None
        if not self.connected:
            return
        if self.downlink.is_incomplete() or now >= self.acks.regular_at:
            self._send_ack(now, effects)
        else:
            self.acks.set_timer(self.acks.regular_at, effects)

    def _send_ack(self, now: Instant, effects: list[Effect]) -> None:
        assert self.cell is not None
        packet = AckPacket(self.node, self.ses, self.downlink.next, ranges(self.downlink.rbuffer))
        effects.append(Send(packet, self.cell, RADIO, "ack"))
        self.acks.sent(now, effects)

    # Join, connect, recover, leave (sections 4.2, 4.3, 4.5) -------------------------------------------------

    def _exit_cell(self, effects: list[Effect]) -> None:
        """Leave the present cell, if the host is in one: disconnect and stop trying to connect."""
        if self.cell is None:
            return
        self._remember_attempt()
        self._disconnect(effects)
        effects.append(CancelTimer("connect"))
        self.cell = None

    def _remember_attempt(self) -> None:
        """Add the station of an unconfirmed attempt to `previous`, because it may have registered the host."""
        if self.tried is not None and not self.connected:
            self.previous[self.tried] = self.ses
        self.tried = None

    def _disconnect(self, effects: list[Effect]) -> None:
        """End the connection, and empty the downlink's buffer, whose numbers belong to it (E9)."""
        if self.connected:
            effects += (CancelTimer("ack"), CancelTimer("uplink"))
        self.connected = False
        self.acks.timer_at = None
        self.uplink.sent_at.clear()
        self.downlink.clear()

    def _new_attempt(self, now: Instant, effects: list[Effect]) -> None:
        self.ses += 1
        if self.durable:
            effects.append(Persist("ses", self.ses))
        self.tried = self.cell
        self._send_connect(now, effects)

    def _send_connect(self, now: Instant, effects: list[Effect]) -> None:
        """Send join, connect or recover, and repeat it until the station confirms it (connectACK)."""
        if self.cell is None:
            return
        packet = ConnectPacket(
            self.reason, self.node, self.downlink.next, self.ses, self.downlink.last_ses, self._previous()
        )
        self._send_until_confirmed(packet, self.cell, now, effects)

    def _send_leave(self, now: Instant, effects: list[Effect]) -> None:
        assert self.cell is not None
        self._send_until_confirmed(LeavePacket(self.node, self.ses, self._previous()), self.cell, now, effects)

    def _previous(self) -> Previous:
        """Return PS as it is sent: the stations that may have a record; None means every station."""
        return None if self.ask_all else tuple(sorted(self.previous.items()))

    def _send_until_confirmed(self, packet: Packet, cell: NodeId, now: Instant, effects: list[Effect]) -> None:
        effects.append(Send(packet, cell, RADIO, "connect"))
        effects.append(SetTimer("connect", now + jittered(self.options.connect_retry, self.random)))

    def _on_connect_ack(
        self, packet: ConnectAckPacket, sender: NodeId, now: Instant, effects: list[Effect]
    ) -> None:
        """Become connected at the number that the station names, unless this is a repetition (E1, E2)."""
        if packet.host != self.node or packet.ses != self.ses or self.connected or self.leaving:
            return
        self.downlink.clear()
        if self.reason != "connect":
            self.downlink.seen.clear()
        self.connected = self.joined = True
        self.reason = "connect"
        self.ask_all = False
        self.downlink.begin(self.ses, packet.start, packet.recovered, packet.skip, effects)
        self.previous = {sender: self.ses}
        effects.append(CancelTimer("connect"))
        self.uplink.forget(packet.accepted, effects)
        self._send_own(now, effects)
        self.acks.begin(now, effects)

    def _on_not_registered(self, packet: NotRegisteredPacket, now: Instant, effects: list[Effect]) -> None:
        """Recover, or join again, because the station does not have this host registered (E16)."""
        if packet.host != self.node or packet.ses != self.ses or self.leaving:
            return
        self._disconnect(effects)
        self.reason = "recover" if self.joined else "join"
        self.ask_all = True
        self._new_attempt(now, effects)

    def _on_leave_ack(self, packet: LeaveAckPacket, effects: list[Effect]) -> None:
        if packet.host == self.node and self.leaving and packet.ses == self.ses:
            self.left = True
            effects.append(CancelTimer("connect"))
