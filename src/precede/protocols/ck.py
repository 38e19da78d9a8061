"""CK, the centralised-discard rival of WAS: Chandra and Kshemkalyani (2004), as was2021 describes it.

Sections 4.1, 5 and 6. A message is (initial station j, number k) with a vector of what must come before it, one
entry per station. A station keeps RECD_h for each of its hosts and sends a message to a host only when the
host has acknowledged everything it depends on; hosts do not buffer, and acknowledge at once. Each
acknowledgement goes on to the initial station, which tells all stations to delete the message when every host
has it. Two variants: `cell` (one broadcast with the list of hosts that may take it) and `host` (one frame per
message and host).

Hosts do not fail here, and join before the messages they need are deleted. A host that moves on before its
handoff is over is served once it connects somewhere: a request for its record follows the record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from precede.core.effects import (
    NOTHING,
    RADIO,
    WIRED,
    Accept,
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
from precede.core.errors import Refused
from precede.core.identity import NEIGHBOURS, MessageId, NodeId
from precede.core.instants import MILLISECOND, Duration, Instant
from precede.core.messages import Message, Packet
from precede.core.node import Context, Node
from precede.protocols.registry import Entry, Option
from precede.protocols.was.packets import RADIO_HEADER, WIRED_HEADER, RoutedPacket, RoutesPacket
from precede.protocols.was.routes import Routes
from precede.protocols.was.settings import jittered


class CkUpPacket(Packet, frozen=True, gc=False):
    """Host to station: a new message."""

    kind: ClassVar[str] = "ck_up"
    host: NodeId
    message: Message
    control_entries: ClassVar[int] = 2
    control_bytes: ClassVar[int] = 8
    messages: ClassVar[int] = 1

    @property
    def size_bytes(self) -> int:
        return RADIO_HEADER + 8 + len(self.message.payload)


class CkDataPacket(Packet, frozen=True, gc=False):
    """Station to the hosts that may deliver this message now."""

    kind: ClassVar[str] = "ck_data"
    origin: NodeId
    number: int
    message: Message
    targets: tuple[NodeId, ...]
    messages: ClassVar[int] = 1

    @property
    def control_entries(self) -> int:
        return 4 + len(self.targets)

    @property
    def control_bytes(self) -> int:
        return 16 + 4 * len(self.targets)

    @property
    def size_bytes(self) -> int:
        return RADIO_HEADER + self.control_bytes + len(self.message.payload)


class CkRepeatPacket(CkDataPacket, frozen=True, gc=False):
    """The same, when at least one of the hosts was sent it before."""

    kind: ClassVar[str] = "ck_repeat"


class CkAckPacket(Packet, frozen=True, gc=False):
    """Host to station: the last message delivered of each initial station in question."""

    kind: ClassVar[str] = "ck_ack"
    host: NodeId
    delivered: tuple[tuple[NodeId, int], ...]
    messages: ClassVar[int] = 0

    @property
    def control_entries(self) -> int:
        return 1 + 2 * len(self.delivered)

    @property
    def control_bytes(self) -> int:
        return 4 + 8 * len(self.delivered)

    @property
    def size_bytes(self) -> int:
        return RADIO_HEADER + self.control_bytes


class CkConnectPacket(Packet, frozen=True, gc=False):
    """Host to station: I am here; my record is at `previous` (-1: nowhere), or where that one sent it."""

    kind: ClassVar[str] = "ck_connect"
    host: NodeId
    ses: int
    previous: NodeId
    control_entries: ClassVar[int] = 3
    control_bytes: ClassVar[int] = 12
    messages: ClassVar[int] = 0
    size_bytes: ClassVar[int] = RADIO_HEADER + 12


class CkConnectAckPacket(Packet, frozen=True, gc=False):
    """Station to host: I have your record; `accepted` of your messages are in."""

    kind: ClassVar[str] = "ck_connect_ack"
    host: NodeId
    ses: int
    accepted: int
    delivered: tuple[tuple[NodeId, int], ...]
    messages: ClassVar[int] = 0

    @property
    def control_entries(self) -> int:
        return 3 + 2 * len(self.delivered)

    @property
    def control_bytes(self) -> int:
        return 12 + 8 * len(self.delivered)

    @property
    def size_bytes(self) -> int:
        return RADIO_HEADER + self.control_bytes


class CkStationAckPacket(Packet, frozen=True, gc=False):
    """Station to host: so many of your messages are in."""

    kind: ClassVar[str] = "ck_station_ack"
    host: NodeId
    accepted: int
    control_entries: ClassVar[int] = 2
    control_bytes: ClassVar[int] = 8
    messages: ClassVar[int] = 0
    size_bytes: ClassVar[int] = RADIO_HEADER + 8


class CkAppPacket(Packet, frozen=True, gc=False):
    """Station to station: message `number` of station `origin`, after everything in `after`."""

    kind: ClassVar[str] = "ck_app"
    origin: NodeId
    number: int
    after: tuple[tuple[NodeId, int], ...]
    message: Message
    messages: ClassVar[int] = 1

    @property
    def control_entries(self) -> int:
        return 4 + len(self.after)

    @property
    def control_bytes(self) -> int:
        return 16 + 4 * len(self.after)

    @property
    def size_bytes(self) -> int:
        return WIRED_HEADER + self.control_bytes + len(self.message.payload)


class CkFloodPacket(Packet, frozen=True, gc=False):
    """Station to all stations: hosts that joined (and what they need not get), messages to delete."""

    kind: ClassVar[str] = "ck_flood"
    joined: tuple[tuple[NodeId, tuple[tuple[NodeId, int], ...]], ...]
    delete: tuple[tuple[NodeId, int], ...]
    messages: ClassVar[int] = 0

    @property
    def control_entries(self) -> int:
        return 2 * len(self.delete) + sum(1 + 2 * len(vector) for _, vector in self.joined)

    @property
    def control_bytes(self) -> int:
        return 4 * self.control_entries

    @property
    def size_bytes(self) -> int:
        return WIRED_HEADER + self.control_bytes


class CkAcksPacket(RoutedPacket, frozen=True, gc=False):
    """Station to an initial station: which of its messages hosts have delivered, several hosts at once."""

    kind: ClassVar[str] = "ck_acks"
    acks: tuple[tuple[NodeId, int], ...]
    messages: ClassVar[int] = 0

    @property
    def control_entries(self) -> int:
        return 2 * len(self.acks)

    @property
    def control_bytes(self) -> int:
        return 8 * len(self.acks)

    @property
    def size_bytes(self) -> int:
        return WIRED_HEADER + self.control_bytes


class CkGetPacket(RoutedPacket, frozen=True, gc=False):
    """Station to station: give `asker` the host's record, or send this where you sent the record."""

    kind: ClassVar[str] = "ck_get"
    asker: NodeId
    control_entries: ClassVar[int] = 3
    control_bytes: ClassVar[int] = 12
    messages: ClassVar[int] = 0
    size_bytes: ClassVar[int] = WIRED_HEADER + 12


class CkGivePacket(RoutedPacket, frozen=True, gc=False):
    """Station to station: the host's record."""

    kind: ClassVar[str] = "ck_give"
    accepted: int
    delivered: tuple[tuple[NodeId, int], ...]
    messages: ClassVar[int] = 0

    @property
    def control_entries(self) -> int:
        return 3 + len(self.delivered)

    @property
    def control_bytes(self) -> int:
        return 12 + 4 * len(self.delivered)

    @property
    def size_bytes(self) -> int:
        return WIRED_HEADER + self.control_bytes


class CkHost(Node):
    """A host: delivers what it is sent, acknowledges at once, buffers nothing."""

    draining = ("sbuffer",)

    def __init__(self, context: Context) -> None:
        self.node = context.node
        self.random = context.random
        self.retry: Duration = context.options["connect_retry"]
        self.repeat: Duration = context.options["uplink_retransmit"]
        self.number = 0
        self.sbuffer: dict[int, Message] = {}
        self.delivered: dict[NodeId, int] = {}
        self.to_acknowledge: dict[NodeId, int] = {}
        self.ses = 0
        self.previous: NodeId = -1
        self.cell: NodeId | None = None
        self.connected = False

    def broadcast(
        self,
        payload: bytes,
        now: Instant,
        to: Sequence[NodeId] | None = None,
        lifetime: Duration | None = None,
    ) -> Effects:
        if to is not None or lifetime is not None:
            raise Refused("CK broadcasts to everybody, without lifetimes")
        if self.previous < 0:
            raise Refused("the host has not joined yet")
        self.number += 1
        message = Message(MessageId(self.node, 0, self.number), payload)
        self.sbuffer[self.number] = message
        effects: list[Effect] = [Accept(message)]
        if len(self.sbuffer) == 1:
            self._send_own(now, effects)
        return effects

    def _send_own(self, now: Instant, effects: list[Effect]) -> None:
        """One at a time: the oldest, until it is acknowledged."""
        if self.connected and self.cell is not None and self.sbuffer:
            message = next(iter(self.sbuffer.values()))
            effects.append(Send(CkUpPacket(self.node, message), self.cell, RADIO, "up"))
            effects.append(SetTimer("up", now + jittered(self.repeat, self.random)))

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        effects: list[Effect] = []
        if sender != self.cell:
            return NOTHING
        if isinstance(packet, CkDataPacket):
            if self.connected and self.node in packet.targets:
                self._data(packet, effects)
        elif type(packet) is CkStationAckPacket:
            if packet.host == self.node:
                self._forget(packet.accepted, now, effects)
        elif (
            type(packet) is CkConnectAckPacket
            and packet.host == self.node
            and packet.ses == self.ses
            and not self.connected
        ):
            self.connected = True
            self.previous = sender
            for station, number in packet.delivered:
                self.delivered[station] = max(number, self.delivered.get(station, 0))
            effects.append(CancelTimer("connect"))
            self._forget(packet.accepted, now, effects)
            self._send_own(now, effects)
        return effects

    def _data(self, packet: CkDataPacket, effects: list[Effect]) -> None:
        if packet.number == self.delivered.get(packet.origin, 0) + 1:
            self.delivered[packet.origin] = packet.number
            if packet.message.id.source != self.node:
                effects.append(Arrive((packet.message,)))
            effects.append(Deliver(packet.message))
        self.to_acknowledge[packet.origin] = self.delivered.get(packet.origin, 0)
        assert self.cell is not None
        acks = CkAckPacket(self.node, tuple(self.to_acknowledge.items()))
        effects.append(Send(acks, self.cell, RADIO, "ack"))

    def _forget(self, accepted: int, now: Instant, effects: list[Effect]) -> None:
        done = [number for number in self.sbuffer if number <= accepted]
        for number in done:
            del self.sbuffer[number]
        if done:
            effects.append(CancelTimer("up"))
            self._send_own(now, effects)

    def sent(self, key: Key, now: Instant, ok: bool) -> Effects:
        if key == "ack":
            self.to_acknowledge.clear()
        return NOTHING

    def timer(self, key: Key, now: Instant) -> Effects:
        effects: list[Effect] = []
        if key == "up":
            self._send_own(now, effects)
        elif not self.connected:
            self._connect(now, effects)
        return effects

    def link_up(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        effects: list[Effect] = []
        self.cell = peer
        self.connected = False
        self.ses += 1
        self._connect(now, effects)
        return effects

    def link_down(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        self.cell = None
        self.connected = False
        self.to_acknowledge.clear()
        return [CancelTimer("connect"), CancelTimer("up")]

    def _connect(self, now: Instant, effects: list[Effect]) -> None:
        if self.cell is None:
            return
        packet = CkConnectPacket(self.node, self.ses, self.previous)
        effects.append(Send(packet, self.cell, RADIO, "connect"))
        effects.append(SetTimer("connect", now + jittered(self.retry, self.random)))

    def sizes(self) -> Mapping[str, int]:
        return {"sbuffer": len(self.sbuffer)}


class _Host:
    """A host's record: RECD_h, what was sent and not acknowledged, how many of its messages are in."""

    __slots__ = ("accepted", "asked", "owner", "recd", "sent_at", "ses")

    def __init__(self, ses: int) -> None:
        self.ses = ses
        self.owner = False
        self.accepted = 0
        self.recd: dict[NodeId, int] = {}
        self.sent_at: dict[tuple[NodeId, int], Instant | None] = {}
        self.asked: CkGetPacket | None = None


class CkStation(Node):
    """A station: RECD_h for its hosts; for its own messages, who has acknowledged."""

    draining = ("sbuffer",)

    def __init__(self, context: Context) -> None:
        self.node = context.node
        self.repeat: Duration = context.options["retransmit"]
        self.batch: Duration = context.options["batch"]
        self.per_host: bool = context.options["frames"] == "host"
        self.routes = Routes(context.node)
        self.hosts: dict[NodeId, _Host] = {}
        self.newest: dict[NodeId, int] = {}
        self.sent_to: dict[NodeId, NodeId] = {}
        self.received: dict[NodeId, int] = {}
        self.stored: dict[tuple[NodeId, int], CkAppPacket] = {}
        self.acked: dict[NodeId, int] = {}
        self.deleted = 0
        self.queued: dict[Key, dict[NodeId, bool]] = {}
        self.acks: dict[NodeId, dict[NodeId, int]] = {}
        self.repeating = False
        self.batching = False

    # Inputs -------------------------------------------------------------------------------------------------

    def link_up(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        effects: list[Effect] = []
        if over == WIRED:
            self.routes.neighbour(peer, effects)
        return effects

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        effects: list[Effect] = []
        if type(packet) is CkAckPacket:
            self._on_ack(packet, now, effects)
        elif type(packet) is CkAppPacket:
            self._store(packet, sender, now, effects)
        elif type(packet) is CkUpPacket:
            self._on_up(packet, now, effects)
        elif type(packet) is CkFloodPacket:
            self._on_flood(packet, sender, now, effects)
        elif type(packet) is CkConnectPacket:
            self._on_connect(packet, now, effects)
        elif type(packet) is RoutesPacket:
            self.routes.learn(packet, sender, effects)
        elif isinstance(packet, RoutedPacket):
            if packet.to != self.node:
                self.routes.forward(packet, effects)
            elif type(packet) is CkAcksPacket:
                for host, number in packet.acks:
                    self.acked[host] = max(number, self.acked.get(host, 0))
                self._delete(now, effects)
            elif type(packet) is CkGetPacket:
                self._on_get(packet, effects)
            elif type(packet) is CkGivePacket:
                self._on_give(packet, now, effects)
        return effects

    def timer(self, key: Key, now: Instant) -> Effects:
        effects: list[Effect] = []
        if key == "batch":
            self.batching = False
            for station, acks in self.acks.items():
                packet = CkAcksPacket(self.node, station, -1, 0, tuple(acks.items()))
                self.routes.forward(packet, effects)
            self.acks.clear()
            self._flood_delete(effects)
        else:
            self.repeating = False
            for host, record in list(self.hosts.items()):
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

    # Messages -----------------------------------------------------------------------------------------------

    def _on_up(self, packet: CkUpPacket, now: Instant, effects: list[Effect]) -> None:
        record = self.hosts.get(packet.host)
        if record is None or not record.owner:
            return
        if packet.message.id.number == record.accepted + 1:
            record.accepted += 1
            number = self.received.get(self.node, 0) + 1
            after = dict(record.recd)
            for station, sent in record.sent_at:
                after[station] = max(sent, after.get(station, 0))
            app = CkAppPacket(self.node, number, tuple(sorted(after.items())), packet.message)
            self._store(app, None, now, effects)
        effects.append(
            Send(CkStationAckPacket(packet.host, record.accepted), packet.host, RADIO, ("up", packet.host))
        )

    def _store(self, app: CkAppPacket, sender: NodeId | None, now: Instant, effects: list[Effect]) -> None:
        effects += [Send(app, peer, WIRED) for peer in self.routes.neighbours if peer != sender]
        self.received[app.origin] = app.number
        self.stored[app.origin, app.number] = app
        for host, record in self.hosts.items():
            if record.owner and record.recd.get(app.origin, 0) == app.number - 1:
                self._offer(host, record, now, effects)

    def _offer(self, host: NodeId, record: _Host, now: Instant, effects: list[Effect]) -> None:
        """Send the host each message it may deliver now and was not sent lately."""
        if not record.owner:
            return
        recd = record.recd
        for origin in self.received:
            message = (origin, recd.get(origin, 0) + 1)
            app = self.stored.get(message)
            if app is None or any(recd.get(station, 0) < number for station, number in app.after):
                continue
            again = message in record.sent_at
            if again:
                at = record.sent_at[message]
                if at is None or now - at < self.repeat:
                    continue
            record.sent_at[message] = None
            self._send(app, host, again, effects)

    def _send(self, app: CkAppPacket, host: NodeId, again: bool, effects: list[Effect]) -> None:
        """Queue a frame, or add the host to the one that waits for its turn in the channel."""
        message = (app.origin, app.number)
        key: Key = (*message, host) if self.per_host else message
        targets = self.queued.setdefault(key, {})
        targets[host] = again or targets.get(host, False)
        kind = CkRepeatPacket if any(targets.values()) else CkDataPacket
        packet = kind(app.origin, app.number, app.message, tuple(targets))
        effects.append(Send(packet, host if self.per_host else NEIGHBOURS, RADIO, key))

    def _arm(self, now: Instant, effects: list[Effect]) -> None:
        if not self.repeating:
            self.repeating = True
            effects.append(SetTimer("repeat", now + self.repeat))

    def _on_ack(self, packet: CkAckPacket, now: Instant, effects: list[Effect]) -> None:
        record = self.hosts.get(packet.host)
        if record is None or not record.owner:
            return
        for origin, number in packet.delivered:
            if number > record.recd.get(origin, 0):
                record.recd[origin] = number
                self.acks.setdefault(origin, {})[packet.host] = number
        record.sent_at = {
            message: at for message, at in record.sent_at.items() if message[1] > record.recd.get(message[0], 0)
        }
        if self.node in self.acks:
            for host, number in self.acks.pop(self.node).items():
                self.acked[host] = max(number, self.acked.get(host, 0))
            self._delete(now, effects)
        if self.acks:
            self._batch(now, effects)
        self._offer(packet.host, record, now, effects)
        if record.sent_at:
            self._arm(now, effects)

    # Central discard ------------------------------------------------------------------------------------------

    def _batch(self, now: Instant, effects: list[Effect]) -> None:
        if not self.batching:
            self.batching = True
            effects.append(SetTimer("batch", now + self.batch))

    def _delete(self, now: Instant, effects: list[Effect]) -> None:
        """Every host has acknowledged: tell everybody, several messages at once."""
        if self.acked and min(self.acked.values()) > self.deleted:
            self._batch(now, effects)

    def _flood_delete(self, effects: list[Effect]) -> None:
        lowest = min(self.acked.values(), default=0)
        if lowest > self.deleted:
            self.deleted = lowest
            packet = CkFloodPacket((), ((self.node, lowest),))
            effects += [Send(packet, peer, WIRED) for peer in self.routes.neighbours]
            self._drop(self.node, lowest)

    def _on_flood(self, packet: CkFloodPacket, sender: NodeId, now: Instant, effects: list[Effect]) -> None:
        effects += [Send(packet, peer, WIRED) for peer in self.routes.neighbours if peer != sender]
        for host, vector in packet.joined:
            self.acked.setdefault(host, dict(vector).get(self.node, 0))
        for origin, number in packet.delete:
            self._drop(origin, number)
        self._delete(now, effects)

    def _drop(self, origin: NodeId, upto: int) -> None:
        while (origin, upto) in self.stored:
            del self.stored[origin, upto]
            upto -= 1

    # Hosts come and go ----------------------------------------------------------------------------------------

    def _on_connect(self, packet: CkConnectPacket, now: Instant, effects: list[Effect]) -> None:
        host = packet.host
        if packet.ses < self.newest.get(host, 0):
            return
        self.newest[host] = packet.ses
        record = self.hosts.get(host)
        if record is not None and record.owner:
            record.ses = packet.ses
            record.sent_at.clear()
            self._welcome(host, record, now, effects)
        elif record is not None:
            record.ses = packet.ses
        elif packet.previous < 0 and host not in self.sent_to:
            self._join(packet, now, effects)
        else:
            record = self.hosts[host] = _Host(packet.ses)
            asked = self.sent_to.get(host, packet.previous)
            self.routes.forward(CkGetPacket(self.node, asked, host, packet.ses, self.node), effects)

    def _join(self, packet: CkConnectPacket, now: Instant, effects: list[Effect]) -> None:
        record = self.hosts[packet.host] = _Host(packet.ses)
        record.owner = True
        record.recd = dict(self.received)
        vector = tuple(sorted(record.recd.items()))
        flood = CkFloodPacket(((packet.host, vector),), ())
        effects += [Send(flood, peer, WIRED) for peer in self.routes.neighbours]
        self.acked.setdefault(packet.host, record.recd.get(self.node, 0))
        self._welcome(packet.host, record, now, effects)

    def _welcome(self, host: NodeId, record: _Host, now: Instant, effects: list[Effect]) -> None:
        vector = tuple(sorted(record.recd.items()))
        packet = CkConnectAckPacket(host, record.ses, record.accepted, vector)
        effects.append(Send(packet, host, RADIO, ("connect", host)))
        self._offer(host, record, now, effects)

    def _on_get(self, packet: CkGetPacket, effects: list[Effect]) -> None:
        """Give the record away, keep the request until it is here, or send it after the record."""
        record = self.hosts.get(packet.host)
        if record is None:
            to = self.sent_to.get(packet.host)
            if to is not None and to != packet.asker:
                self.routes.forward(CkGetPacket(self.node, to, packet.host, packet.ses, packet.asker), effects)
        elif packet.ses < record.ses or packet.asker == self.node:
            return
        elif not record.owner:
            record.asked = packet
        else:
            self._give(packet, record, effects)

    def _give(self, packet: CkGetPacket, record: _Host, effects: list[Effect]) -> None:
        del self.hosts[packet.host]
        self.newest[packet.host] = max(packet.ses, self.newest.get(packet.host, 0))
        self.sent_to[packet.host] = packet.asker
        vector = tuple(sorted(record.recd.items()))
        give = CkGivePacket(self.node, packet.asker, packet.host, packet.ses, record.accepted, vector)
        self.routes.forward(give, effects)

    def _on_give(self, packet: CkGivePacket, now: Instant, effects: list[Effect]) -> None:
        record = self.hosts.setdefault(packet.host, _Host(packet.ses))
        record.owner = True
        record.accepted = packet.accepted
        record.recd = dict(packet.delivered)
        asked, record.asked = record.asked, None
        if asked is not None and asked.ses > packet.ses:
            self._give(asked, record, effects)
        else:
            self._welcome(packet.host, record, now, effects)


def build(role: str, context: Context) -> Node:
    return CkHost(context) if role == "host" else CkStation(context)


ENTRY: Final = Entry(
    name="ck",
    title="causal broadcast over cells with central discard, the rival of WAS",
    paper="was2021",
    order="causal",
    worlds=("cellular",),
    options={
        "frames": Option("choice", "cell", "one frame for all who may take it, or per host", ("cell", "host")),
        "retransmit": Option(
            "duration", 25 * MILLISECOND, "a station repeats what is unacknowledged after this"
        ),
        "batch": Option(
            "duration", 20 * MILLISECOND, "stations collect acknowledgements and deletions so long"
        ),
        "uplink_retransmit": Option("duration", 300 * MILLISECOND, "a host repeats its own message after this"),
        "connect_retry": Option("duration", 100 * MILLISECOND, "a host repeats its connect after this"),
    },
    roles=("host", "station"),
    build=build,
    packets=(
        CkUpPacket,
        CkDataPacket,
        CkRepeatPacket,
        CkAckPacket,
        CkConnectPacket,
        CkConnectAckPacket,
        CkStationAckPacket,
        CkAppPacket,
        CkFloodPacket,
        CkAcksPacket,
        CkGetPacket,
        CkGivePacket,
        RoutesPacket,
    ),
)
