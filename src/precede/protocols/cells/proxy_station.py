"""A station that acts for its hosts (prs1997, section 9, and CK after it): h_RECD, Acknowledge, Delete.

Every message goes to every station, which keeps it until its initial station says Delete. A host is sent the
next message of each initial station when its order allows (`_ready`); its acknowledgement moves h_RECD and goes
on to the initial station, several hosts' in one packet. CK and prs1997 differ in what a message carries and in
what more a record has.

Stations learn the tree's routes as WAS does. A host that moves on before its hand-off is over is served once it
connects somewhere: a request for its record follows the record.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from precede.core.effects import RADIO, WIRED, Effect, Effects, Key, Medium, Send, SetTimer
from precede.core.identity import NEIGHBOURS, MessageId, NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Packet
from precede.core.node import Context, Node
from precede.protocols.cells.frames import RoutedPacket, RoutesPacket
from precede.protocols.cells.options import ProxyOptions
from precede.protocols.cells.packets import (
    MessageKey,
    ProxyAckPacket,
    ProxyAcksPacket,
    ProxyAppPacket,
    ProxyConnectAckPacket,
    ProxyConnectPacket,
    ProxyDataPacket,
    ProxyDeletePacket,
    ProxyGetPacket,
    ProxyGivePacket,
    ProxyOvertakenPacket,
    ProxyRepeatPacket,
    ProxyStationAckPacket,
    ProxyUpPacket,
    Vector,
)
from precede.protocols.cells.routes import Routes

_MOST_AHEAD: Final = 1 << 12


class Record:
    """A host at its station: h_RECD, what was sent and not acknowledged, how many of its messages are in.

    `sent_at` is when each was last on the air (None: in the radio's queue). `order` is the subclass's part.
    """

    __slots__ = ("accepted", "asked", "order", "owner", "recd", "sent_at", "ses")

    def __init__(self, ses: int, order: Any) -> None:
        self.ses = ses
        self.owner = False
        self.accepted = 0
        self.recd: dict[NodeId, int] = {}
        self.sent_at: dict[MessageKey, Instant | None] = {}
        self.asked: ProxyGetPacket | None = None
        self.order = order

    def vector(self) -> Vector:
        return tuple(sorted(self.recd.items()))


class ProxyStation(Node):
    """One station."""

    draining: ClassVar[tuple[str, ...]] = ("sbuffer",)

    def __init__(self, context: Context[ProxyOptions]) -> None:
        self.node = context.node
        self.repeat: Duration = context.options.retransmit
        self.batch: Duration = context.options.batch
        self.per_host: bool = context.options.frames == "host"
        self.routes = Routes(context.node)
        self.hosts: dict[NodeId, Record] = {}
        self.newest: dict[NodeId, int] = {}
        self.sent_to: dict[NodeId, NodeId] = {}
        self.admitted: dict[NodeId, Instant] = {}
        self.received: dict[NodeId, int] = {}
        self.stored: dict[MessageKey, Any] = {}
        self.queued: dict[Key, dict[NodeId, bool]] = {}
        self.acks: dict[NodeId, dict[NodeId, int]] = {}
        self.repeating = False
        self.batching = False

    # What CK and prs1997 differ in --------------------------------------------------------------------------

    @abstractmethod
    def _stamped(self, packet: ProxyUpPacket, number: int, record: Record) -> ProxyAppPacket:
        """A host's message with what it must come after."""

    @abstractmethod
    def _is_for(self, host: NodeId, app: Any) -> bool:
        """Is the host a destination?"""

    @abstractmethod
    def _ready(self, record: Record, app: Any) -> bool:
        """May the host deliver it now?"""

    def _delivered(self, record: Record, app: Any) -> None:
        """The host has delivered it: the record moves on."""

    @abstractmethod
    def _settle(self, host: NodeId, number: int, now: Instant, effects: list[Effect]) -> None:
        """The host has everything of this station up to this number."""

    @abstractmethod
    def _deletable(self) -> list[MessageKey]:
        """Own messages that every destination has; each is named once."""

    @abstractmethod
    def _new_record(self, host: NodeId, ses: int) -> Record:
        """An empty record."""

    def _joined(self, host: NodeId, record: Record, effects: list[Effect]) -> None:
        """A host is new: where it begins, and who is told."""

    @abstractmethod
    def _giving(self, packet: ProxyGetPacket, record: Record) -> ProxyGivePacket:
        """A record as it travels."""

    @abstractmethod
    def _given(self, packet: ProxyGivePacket, record: Record) -> None:
        """Take over the subclass's part of a record."""

    # Inputs -------------------------------------------------------------------------------------------------

    def link_up(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        effects: list[Effect] = []
        if over == WIRED:
            self.routes.add_neighbour(peer, effects)
        return effects

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        effects: list[Effect] = []
        if type(packet) is ProxyAckPacket:
            self._on_ack(packet.host, packet.delivered, now, effects)
        elif isinstance(packet, ProxyAppPacket):
            self._store(packet, sender, now, effects)
        elif isinstance(packet, ProxyUpPacket):
            self._on_up(packet, now, effects)
        elif type(packet) is ProxyDeletePacket:
            self._flood(packet, sender, effects)
            self._drop(packet.delete, now, effects)
        elif type(packet) is ProxyConnectPacket:
            self._on_connect(packet, now, effects)
        elif type(packet) is RoutesPacket:
            self.routes.learn(packet, sender, effects)
        elif isinstance(packet, RoutedPacket):
            if packet.to != self.node:
                self.routes.forward(packet, effects)
            else:
                self._on_routed(packet, now, effects)
        return effects

    def _on_routed(self, packet: RoutedPacket, now: Instant, effects: list[Effect]) -> None:
        if type(packet) is ProxyAcksPacket:
            for host, number in packet.acks:
                self._settle(host, number, now, effects)
        elif type(packet) is ProxyGetPacket:
            self._on_get(packet, now, effects)
        elif type(packet) is ProxyOvertakenPacket:
            self._on_overtaken(packet, effects)
        elif isinstance(packet, ProxyGivePacket):
            self._on_give(packet, now, effects)

    def timer(self, key: Key, now: Instant) -> Effects:
        effects: list[Effect] = []
        if key == "batch":
            self._send_batch(now, effects)
            return effects
        self.repeating = False
        for host, record in self.hosts.items():
            self._offer(host, record, now, effects)
        if any(record.sent_at for record in self.hosts.values()):
            self._arm(now, effects)
        return effects

    def sent(self, key: Key, now: Instant, ok: bool) -> Effects:
        effects: list[Effect] = []
        if key not in self.queued or not isinstance(key, tuple):
            return effects
        message = (int(key[0]), int(key[1]))
        for host in self.queued.pop(key):
            record = self.hosts.get(host)
            if record is not None and message in record.sent_at:
                record.sent_at[message] = now
        self._arm(now, effects)
        return effects

    def sizes(self) -> Mapping[str, int]:
        return {"sbuffer": len(self.stored), "hosts": len(self.hosts)}

    def acts_for(self) -> Sequence[NodeId]:
        """The hosts whose record is here."""
        return [host for host, record in self.hosts.items() if record.owner]

    def kept(self) -> Sequence[MessageId]:
        """What is not deleted yet, in the order in which it came."""
        return [app.message.id for app in self.stored.values()]

    # Messages -----------------------------------------------------------------------------------------------

    def _on_up(self, packet: ProxyUpPacket, now: Instant, effects: list[Effect]) -> None:
        record = self.hosts.get(packet.host)
        if record is None or not record.owner:
            return
        if packet.message.id.number == record.accepted + 1:
            record.accepted += 1
            app = self._stamped(packet, self.received.get(self.node, 0) + 1, record)
            self._store(app, None, now, effects)
        answer = ProxyStationAckPacket(packet.host, record.accepted)
        effects.append(Send(answer, packet.host, RADIO, ("up", packet.host)))

    def _flood(self, packet: Packet, sender: NodeId | None, effects: list[Effect]) -> None:
        effects += [Send(packet, peer, WIRED) for peer in self.routes.neighbours if peer != sender]

    def _store(self, app: ProxyAppPacket, sender: NodeId | None, now: Instant, effects: list[Effect]) -> None:
        if app.number > self.received.get(app.origin, 0) + _MOST_AHEAD:
            return  # wires lose nothing: no honest station is this far ahead, and `_next` counts up to it
        self._flood(app, sender, effects)
        self.received[app.origin] = app.number
        self.stored[app.key] = app
        for host, record in self.hosts.items():
            if record.owner:
                self._offer_next(host, record, app.origin, now, effects)

    def _offer(self, host: NodeId, record: Record, now: Instant, effects: list[Effect]) -> None:
        """Send the host each message it may deliver now and was not sent lately."""
        if record.owner:
            for origin in self.received:
                self._offer_next(host, record, origin, now, effects)

    def _offer_next(
        self, host: NodeId, record: Record, origin: NodeId, now: Instant, effects: list[Effect]
    ) -> None:
        """The next message of one initial station, if it is for this host, and its time has come."""
        app = self._next(host, record, origin)
        if app is None or not self._ready(record, app):
            return
        again = app.key in record.sent_at
        if again:
            at = record.sent_at[app.key]
            if at is None or now - at < self.repeat:
                return
        record.sent_at[app.key] = None
        self._send(app, host, again, effects)

    def _next(self, host: NodeId, record: Record, origin: NodeId) -> Any:
        """h_RECD passes over what is for others, and over what was deleted: no destination lacks that."""
        number, last = max(record.recd.get(origin, 0), 0) + 1, self.received[origin]
        while number <= last:
            app = self.stored.get((origin, number))
            if app is not None and self._is_for(host, app):
                return app
            record.recd[origin] = number
            number += 1
        return None

    def _send(self, app: ProxyAppPacket, host: NodeId, again: bool, effects: list[Effect]) -> None:
        """Queue a frame, or add the host to the one that waits for its turn in the channel."""
        key: Key = (*app.key, host) if self.per_host else app.key
        targets = self.queued.setdefault(key, {})
        targets[host] = again or targets.get(host, False)
        kind = ProxyRepeatPacket if any(targets.values()) else ProxyDataPacket
        packet = kind(app.origin, app.number, app.message, tuple(targets))
        effects.append(Send(packet, host if self.per_host else NEIGHBOURS, RADIO, key))

    def _arm(self, now: Instant, effects: list[Effect]) -> None:
        if not self.repeating:
            self.repeating = True
            effects.append(SetTimer("repeat", now + self.repeat))

    def _on_ack(self, host: NodeId, delivered: Vector, now: Instant, effects: list[Effect]) -> None:
        record = self.hosts.get(host)
        if record is None or not record.owner:
            return
        self._update(host, record, delivered, now, effects)
        self._offer(host, record, now, effects)
        if record.sent_at:
            self._arm(now, effects)

    def _update(
        self, host: NodeId, record: Record, delivered: Vector, now: Instant, effects: list[Effect]
    ) -> None:
        """The host has delivered these: its record moves on, and the initial stations hear of it."""
        for origin, number in delivered:
            if number <= record.recd.get(origin, 0):
                continue
            app = self.stored.get((origin, number))
            if app is not None:
                self._delivered(record, app)
            record.recd[origin] = number
            if origin == self.node:
                self._settle(host, number, now, effects)
            else:
                self.acks.setdefault(origin, {})[host] = number
        recd = record.recd
        record.sent_at = {key: at for key, at in record.sent_at.items() if key[1] > recd.get(key[0], 0)}
        if self.acks:
            self._batch(now, effects)

    # Central discard ------------------------------------------------------------------------------------------

    def _batch(self, now: Instant, effects: list[Effect]) -> None:
        if not self.batching:
            self.batching = True
            effects.append(SetTimer("batch", now + self.batch))

    def _send_batch(self, now: Instant, effects: list[Effect]) -> None:
        """Acknowledgements of several hosts in one packet, and what everybody has in one Delete."""
        self.batching = False
        for station, acks in self.acks.items():
            packet = ProxyAcksPacket(self.node, station, -1, 0, tuple(acks.items()))
            self.routes.forward(packet, effects)
        self.acks.clear()
        delete = tuple(self._deletable())
        if delete:
            self._flood(ProxyDeletePacket(delete), None, effects)
            self._drop(delete, now, effects)

    def _drop(self, delete: tuple[MessageKey, ...], now: Instant, effects: list[Effect]) -> None:
        for key in delete:
            self.stored.pop(key, None)

    # Hosts come and go ----------------------------------------------------------------------------------------

    def _on_connect(self, packet: ProxyConnectPacket, now: Instant, effects: list[Effect]) -> None:
        host = packet.host
        if packet.ses < self.newest.get(host, 0):
            return
        self.newest[host] = packet.ses
        record = self.hosts.get(host)
        if record is not None:
            record.ses = packet.ses
            if record.owner:
                record.sent_at.clear()
                self._update(host, record, packet.delivered, now, effects)
                self._welcome(host, record, now, effects)
        elif packet.previous == self.node and host not in self.sent_to:
            self._welcome(host, self._join(host, packet.ses, now, effects), now, effects)
        else:
            self.hosts[host] = self._new_record(host, packet.ses)
            asked = self.sent_to.get(host, packet.previous)
            get = ProxyGetPacket(self.node, asked, host, packet.ses, self.node, packet.delivered)
            self.routes.forward(get, effects)

    def _join(self, host: NodeId, ses: int, now: Instant, effects: list[Effect]) -> Record:
        """At the first station the host tried, by its own word or by that of the station where it is now."""
        record = self.hosts[host] = self._new_record(host, ses)
        record.owner = True
        self.admitted[host] = now
        self._joined(host, record, effects)
        return record

    def _welcome(self, host: NodeId, record: Record, now: Instant, effects: list[Effect]) -> None:
        packet = ProxyConnectAckPacket(host, record.ses, record.accepted, record.vector())
        effects.append(Send(packet, host, RADIO, ("connect", host)))
        self._offer(host, record, now, effects)

    def _on_get(self, packet: ProxyGetPacket, now: Instant, effects: list[Effect]) -> None:
        """Give the record away, keep the request until it is here, or send it after the record.

        A station is reached after the record it sent on, as the links are first-in first-out: so a request
        that follows the record from station to station comes to where it is.
        """
        record = self.hosts.get(packet.host)
        if packet.asker == self.node:
            return
        if record is None and packet.host not in self.sent_to:
            record = self._join(packet.host, packet.ses, now, effects)
        if record is None:
            self._follow(packet, effects)
        elif packet.ses < record.ses:
            self._overtaken(packet, effects)
        elif record.owner:
            self._give(packet, record, now, effects)
        elif record.asked is not None and record.asked.ses > packet.ses:
            self._overtaken(packet, effects)
        else:
            if record.asked is not None and record.asked.asker != packet.asker:
                self._overtaken(record.asked, effects)
            record.asked = packet

    def _follow(self, packet: ProxyGetPacket, effects: list[Effect]) -> None:
        to = self.sent_to[packet.host]
        if to != packet.asker:
            get = ProxyGetPacket(self.node, to, packet.host, packet.ses, packet.asker, packet.delivered)
            self.routes.forward(get, effects)

    def _overtaken(self, packet: ProxyGetPacket, effects: list[Effect]) -> None:
        answer = ProxyOvertakenPacket(self.node, packet.asker, packet.host, packet.ses)
        self.routes.forward(answer, effects)

    def _on_overtaken(self, packet: ProxyOvertakenPacket, effects: list[Effect]) -> None:
        """Wait no more; whoever waits for the record here, or comes back here, asks where it is."""
        record = self.hosts.get(packet.host)
        if record is None or record.owner:
            return
        self.sent_to[packet.host] = packet.origin
        if record.ses > packet.ses:
            get = ProxyGetPacket(self.node, packet.origin, packet.host, record.ses, self.node)
            self.routes.forward(get, effects)
            return
        del self.hosts[packet.host]
        if record.asked is not None:
            self._follow(record.asked, effects)

    def _give(self, packet: ProxyGetPacket, record: Record, now: Instant, effects: list[Effect]) -> None:
        """First the update that is under way, with what the host said; then the record goes."""
        self._update(packet.host, record, packet.delivered, now, effects)
        del self.hosts[packet.host]
        self.newest[packet.host] = max(packet.ses, self.newest.get(packet.host, 0))
        self.sent_to[packet.host] = packet.asker
        self.routes.forward(self._giving(packet, record), effects)

    def _on_give(self, packet: ProxyGivePacket, now: Instant, effects: list[Effect]) -> None:
        record = self.hosts.get(packet.host)
        if record is None:
            record = self.hosts[packet.host] = self._new_record(packet.host, packet.ses)
        record.owner = True
        record.accepted = packet.accepted
        record.recd = dict(packet.delivered)
        self._given(packet, record)
        asked, record.asked = record.asked, None
        if asked is not None and asked.ses > record.ses:
            self._give(asked, record, now, effects)
            return
        if asked is not None:
            self._overtaken(asked, effects)
        self._welcome(packet.host, record, now, effects)
