"""A WAS host (Wilhelm, Arantes, Sens 2021, sections 4.1 to 4.5): a few integers, and what is unacknowledged.

Where the paper is wrong or silent the code follows `papers/was2021/reading.md` (E1 to E18); the paper's own
reading of each point is in `literal.py`. A cell is the station whose RADIO link is up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from precede.core.effects import (
    NOTHING,
    RADIO,
    Accept,
    Arrive,
    CancelTimer,
    Deliver,
    Effect,
    Effects,
    Key,
    Medium,
    Persist,
    Send,
    SetTimer,
)
from precede.core.errors import NotYet, Refused
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Message, Packet
from precede.core.node import Context, Node, Saved, Waiting, restore
from precede.protocols.cells.jitter import jittered
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
    UpPacket,
)
from precede.protocols.was2021.settings import LIFE, WasOptions


class WasHost(Node):
    """One mobile host."""

    draining: ClassVar[tuple[str, ...]] = ("sbuffer", "rbuffer")

    def __init__(self, context: Context[WasOptions]) -> None:
        self.node = context.node
        self.incarnation = context.incarnation
        self.random = context.random
        self.settings = context.options
        self.durable = self.settings.durable
        self.heartbeat = self.settings.down_after // 4
        # Uplink: the paper's seq_h and SBuffer; when each was last sent (None: in the radio's queue).
        self.number = 0
        self.sbuffer: dict[int, Message] = {}
        self.uplink_at: dict[int, Instant | None] = {}
        # Downlink: seq_NC, RBuffer {number: (message, delivered before)}, where the cell's own numbers begin.
        self.next = 0
        self.base = 0
        self.skip: frozenset[int] = frozenset()
        self.rbuffer: dict[int, tuple[Message, bool]] = {}
        self.top = 0
        self.seen: set[MessageId] = set()
        # Connection: Ses, Ses_LC, PS, the cell, the attempt under way.
        self.ses = self.incarnation * LIFE
        self.last_ses = 0
        self.previous: dict[NodeId, int] = {}
        self.ask_all = self.incarnation > 0
        self.cell: NodeId | None = None
        self.tried: NodeId | None = None
        self.connected = False
        self.joined = False
        self.reason: Reason = "join"
        self.leaving = False
        self.left = False
        # Acknowledgements: when the timer is set for, the regular one, the earliest repeated report of a hole.
        self.ack_timer: Instant | None = None
        self.ack_regular: Instant = 0
        self.ack_owed = False
        self.hole_after: Instant = 0

    # Inputs -------------------------------------------------------------------------------------------------

    def start(self, now: Instant, saved: Saved) -> Effects:
        if not saved:
            return NOTHING
        self.ses = restore(saved, "ses", int, self.ses)
        self._restore_position(saved)
        own = {key[1]: value for key, value in saved.items() if isinstance(key, tuple) and key[0] == "own"}
        for number in sorted(own):
            message = Message(MessageId(self.node, self.incarnation, int(number)), own[number])
            self.sbuffer[int(number)] = message
        self.number = max([restore(saved, "number", int, 0), *self.sbuffer])
        self.leaving = restore(saved, "leaving", bool, False)
        self.reason = "recover" if self.joined else "join"
        self.ask_all = True
        return [Accept(message) for message in self.sbuffer.values()]

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
        self.number += 1
        message = Message(MessageId(self.node, self.incarnation, self.number), payload)
        self.sbuffer[self.number] = message
        effects: list[Effect] = []
        if self.durable:
            effects.append(Persist(("own", self.number), payload))
        effects.append(Accept(message))
        self._send_own(now, effects)
        return effects

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        if sender != self.cell:
            return NOTHING
        effects: list[Effect] = []
        if type(packet) is DataPacket:
            self._data(packet, now, effects)
        elif type(packet) is PrivatePacket:
            self._private(packet, now, effects)
        elif type(packet) is StationAckPacket:
            self._station_ack(packet, now, effects)
        elif type(packet) is ConnectAckPacket:
            self._connect_ack(packet, sender, now, effects)
        elif type(packet) is NotRegisteredPacket:
            self._not_registered(packet, now, effects)
        elif type(packet) is LeaveAckPacket:
            self._leave_ack(packet, effects)
        return effects

    def sent(self, key: Key, now: Instant, ok: bool) -> Effects:
        effects: list[Effect] = []
        if type(key) is int and key in self.uplink_at:
            self.uplink_at[key] = now
            self._arm_uplink(effects)
        return effects

    def timer(self, key: Key, now: Instant) -> Effects:
        effects: list[Effect] = []
        if key == "ack":
            self._ack_due(now, effects)
        elif key == "uplink":
            self._send_own(now, effects)
            self._arm_uplink(effects)
        elif key == "connect":
            if self.leaving:
                self._send_leave(now, effects)
            elif not self.connected:
                self._send_connect(now, effects)
        return effects

    def link_up(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        effects: list[Effect] = []
        if over == RADIO and not self.left:
            self._exit(effects)
            self.cell = peer
            if self.leaving:
                self._send_leave(now, effects)
            else:
                self._new_attempt(now, effects)
        return effects

    def link_down(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        effects: list[Effect] = []
        if over == RADIO and peer == self.cell:
            self._exit(effects)
        return effects

    def leave(self, now: Instant) -> Effects:
        if self.leaving or self.left:
            return NOTHING
        effects: list[Effect] = []
        self._remember_attempt()
        self._disconnect(effects)
        self.leaving = True
        self.ses += 1
        if self.durable:
            effects += (Persist("leaving", True), Persist("ses", self.ses))
        self._forget_own(self.number, effects)
        if self.cell is not None:
            self._send_leave(now, effects)
        return effects

    def waiting(self) -> Sequence[Waiting]:
        """What is in RBuffer; a host does not know the ids of what is missing, only their numbers."""
        return [Waiting(message.id, (), 0) for message, before in self.rbuffer.values() if not before]

    def sizes(self) -> Mapping[str, int]:
        return {"sbuffer": len(self.sbuffer), "rbuffer": len(self.rbuffer), "previous": len(self.previous)}

    # Uplink (section 4.1) -----------------------------------------------------------------------------------

    def _send_own(self, now: Instant, effects: list[Effect]) -> None:
        """Send what is in the window and neither queued nor sent within the retransmission time."""
        if not self.connected or self.cell is None:
            return
        late = now - self.settings.uplink_retransmit
        for position, (number, message) in enumerate(self.sbuffer.items()):
            if position >= self.settings.uplink_window:
                break
            if number in self.uplink_at:
                at = self.uplink_at[number]
                if at is None or at > late:
                    continue
            self.uplink_at[number] = None
            effects.append(Send(UpPacket(self.node, self.ses, message), self.cell, RADIO, number))

    def _arm_uplink(self, effects: list[Effect]) -> None:
        oldest = min((at for at in self.uplink_at.values() if at is not None), default=None)
        if oldest is not None:
            effects.append(SetTimer("uplink", oldest + self.settings.uplink_retransmit))

    def _station_ack(self, packet: StationAckPacket, now: Instant, effects: list[Effect]) -> None:
        for host, accepted in packet.accepted:
            if host == self.node:
                self._forget_own(accepted, effects)
                self._send_own(now, effects)
                break

    def _forget_own(self, accepted: int, effects: list[Effect]) -> None:
        """The station has everything up to `accepted`: the number is kept, the messages are not."""
        done = [number for number in self.sbuffer if number <= accepted]
        if done and self.durable:
            effects.append(Persist("number", self.number))
            effects += [Persist(("own", number), None) for number in done]
        for number in done:
            del self.sbuffer[number]
            self.uplink_at.pop(number, None)
        if not self.sbuffer:
            effects.append(CancelTimer("uplink"))

    # Downlink (section 4.1) ---------------------------------------------------------------------------------

    def _data(self, packet: DataPacket, now: Instant, effects: list[Effect]) -> None:
        if not self.connected:
            return
        number = packet.number
        if number < self.next or number < self.base or number in self.rbuffer:
            self._owe_ack(now, effects)
            return
        before = number in self.skip or self.node in packet.marks
        self._take(number, packet.message, before, now, effects)

    def _private(self, packet: PrivatePacket, now: Instant, effects: list[Effect]) -> None:
        if not self.connected or packet.host != self.node or packet.ses != self.ses:
            return
        if packet.number >= self.next and packet.number not in self.rbuffer:
            self._take(packet.number, packet.message, False, now, effects)
        self._owe_ack(now, effects)
        self._ack_within(self.settings.gap_ack, now, effects)

    def _take(self, number: int, message: Message, before: bool, now: Instant, effects: list[Effect]) -> None:
        """A message under a number not seen in this connection: hand over what is in order, keep the rest."""
        if not before and message.id.source != self.node and message.id not in self.seen:
            effects.append(Arrive((message,)))
        if number == self.next:
            self._hand_over(message, before, effects)
            if self.rbuffer:
                self._drain(effects)
        else:
            self.rbuffer[number] = (message, before)
        self._owe_ack(now, effects)
        if self.rbuffer:
            self._report_hole(number, now, effects)
        self.top = max(self.top, number)

    def _drain(self, effects: list[Effect]) -> None:
        while self.next in self.rbuffer:
            self._hand_over(*self.rbuffer.pop(self.next), effects)

    def _hand_over(self, message: Message, before: bool, effects: list[Effect]) -> None:
        """seq_NC is written with the delivery, in one step (E17)."""
        self.next += 1
        self._position(effects)
        if before:
            return
        if self.seen:
            self.seen.discard(message.id)
        effects.append(Deliver(message))

    def _position(self, effects: list[Effect]) -> None:
        if self.durable:
            effects.append(Persist("position", (self.last_ses, self.next)))

    # Acknowledgements (section 4.1) -------------------------------------------------------------------------

    def _owe_ack(self, now: Instant, effects: list[Effect]) -> None:
        """Something came: acknowledge it in the usual interval, together with what else comes until then."""
        if self.ack_owed:
            return
        self.ack_owed = True
        self.ack_regular = min(self.ack_regular, now + jittered(self.settings.ack_interval, self.random))
        self._set_ack(self.ack_regular, effects)

    def _report_hole(self, number: int, now: Instant, effects: list[Effect]) -> None:
        """A message is missing. The paper waits for the regular acknowledgement; its delays need more."""
        if number > self.top + 1 or now >= self.hole_after:
            self._ack_within(self.settings.gap_ack, now, effects)

    def _ack_within(self, most: Duration, now: Instant, effects: list[Effect]) -> None:
        self._set_ack(now + round(most * self.random.random()), effects)

    def _set_ack(self, at: Instant, effects: list[Effect]) -> None:
        if self.ack_timer is None or at < self.ack_timer:
            self.ack_timer = at
            effects.append(SetTimer("ack", at))

    def _ack_due(self, now: Instant, effects: list[Effect]) -> None:
        self.ack_timer = None
        if not self.connected:
            return
        if self.rbuffer or self.next < self.base or now >= self.ack_regular:
            self._send_ack(now, effects)
        else:
            self._set_ack(self.ack_regular, effects)

    def _send_ack(self, now: Instant, effects: list[Effect]) -> None:
        assert self.cell is not None
        packet = AckPacket(self.node, self.ses, self.next, ranges(self.rbuffer))
        effects.append(Send(packet, self.cell, RADIO, "ack"))
        self.ack_owed = False
        self.hole_after = now + self.settings.hole_ack
        self.ack_regular = now + self.heartbeat
        self._set_ack(self.ack_regular, effects)

    # Join, connect, recover, leave (sections 4.2, 4.3, 4.5) -------------------------------------------------

    def _exit(self, effects: list[Effect]) -> None:
        """Out of the cell: the attempt under way may have been registered."""
        if self.cell is None:
            return
        self._remember_attempt()
        self._disconnect(effects)
        effects.append(CancelTimer("connect"))
        self.cell = None

    def _remember_attempt(self) -> None:
        if self.tried is not None and not self.connected:
            self.previous[self.tried] = self.ses
        self.tried = None

    def _disconnect(self, effects: list[Effect]) -> None:
        """Numbers belong to a connection: what is in RBuffer means nothing in the next one (E9)."""
        if self.connected:
            effects += (CancelTimer("ack"), CancelTimer("uplink"))
        self.connected = False
        self.ack_timer = None
        self.uplink_at.clear()
        self._clear_rbuffer()

    def _clear_rbuffer(self) -> None:
        self.seen.update(message.id for message, before in self.rbuffer.values() if not before)
        self.rbuffer.clear()

    def _new_attempt(self, now: Instant, effects: list[Effect]) -> None:
        self.ses += 1
        if self.durable:
            effects.append(Persist("ses", self.ses))
        self.tried = self.cell
        self._send_connect(now, effects)

    def _send_connect(self, now: Instant, effects: list[Effect]) -> None:
        if self.cell is None:
            return
        previous: Previous = None if self.ask_all else tuple(sorted(self.previous.items()))
        packet = ConnectPacket(self.reason, self.node, self.next, self.ses, self.last_ses, previous)
        effects.append(Send(packet, self.cell, RADIO, "connect"))
        effects.append(SetTimer("connect", now + jittered(self.settings.connect_retry, self.random)))

    def _connect_ack(
        self, packet: ConnectAckPacket, sender: NodeId, now: Instant, effects: list[Effect]
    ) -> None:
        """Connected. A repeated acknowledgement must not roll the host back (E1); seq_h only grows (E2)."""
        if packet.host != self.node or packet.ses != self.ses or self.connected or self.leaving:
            return
        self._clear_rbuffer()
        if self.reason != "connect":
            self.seen.clear()
        self.connected = self.joined = True
        self.reason = "connect"
        self.ask_all = False
        self.last_ses = self.ses
        self.base = packet.start
        self.next = packet.start - packet.recovered
        self.top = self.next - 1
        self._position(effects)
        self.skip = frozenset(packet.skip)
        self.previous = {sender: self.ses}
        effects.append(CancelTimer("connect"))
        self._forget_own(packet.accepted, effects)
        self._send_own(now, effects)
        self.ack_owed = False
        self.ack_regular = now + self.heartbeat
        self.hole_after = now
        self._owe_ack(now, effects)

    def _not_registered(self, packet: NotRegisteredPacket, now: Instant, effects: list[Effect]) -> None:
        """The station has declared this host down while it was silent: recover (E16)."""
        if packet.host != self.node or packet.ses != self.ses or self.leaving:
            return
        self._disconnect(effects)
        self.reason = "recover" if self.joined else "join"
        self.ask_all = True
        self._new_attempt(now, effects)

    def _send_leave(self, now: Instant, effects: list[Effect]) -> None:
        assert self.cell is not None
        previous: Previous = None if self.ask_all else tuple(sorted(self.previous.items()))
        effects.append(Send(LeavePacket(self.node, self.ses, previous), self.cell, RADIO, "connect"))
        effects.append(SetTimer("connect", now + jittered(self.settings.connect_retry, self.random)))

    def _leave_ack(self, packet: LeaveAckPacket, effects: list[Effect]) -> None:
        if packet.host == self.node and self.leaving and packet.ses == self.ses:
            self.left = True
            effects.append(CancelTimer("connect"))

    # Recovery (section 4.5) ---------------------------------------------------------------------------------

    def _restore_position(self, saved: Saved) -> None:
        if "position" in saved:
            self.last_ses, self.next = restore(saved, "position", tuple[int, int], (0, 0))
            self.joined = True


def ranges(numbers: Mapping[int, object]) -> tuple[tuple[int, int], ...]:
    """Numbers as ranges with both ends in.

    >>> ranges({4: "", 7: "", 5: ""})
    ((4, 5), (7, 7))
    """
    found: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return tuple(found)
