"""CK, the centralised-discard rival of WAS: Chandra and Kshemkalyani (2004), as was2021 describes it.

Sections 4.1, 5 and 6. A message is (initial station j, number k) with a vector of what must come before it, one
entry per station. A station sends a message to a host only when the host has acknowledged everything it depends
on. Each acknowledgement goes on to the initial station, which tells all stations to delete the message when
every host has it. Two variants: `cell` (one broadcast with the list of hosts that may take it) and `host` (one
frame per message and host). What it shares with its ancestor, section 9 of prs1997, is in `proxy_station`.

Hosts do not fail here. A host that joins begins with what its station receives from then on; of that it may
miss what was deleted before every station knew of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from precede.core.effects import Accept, Effect, Effects, Medium
from precede.core.errors import NotYet, Refused
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Message, Packet
from precede.core.node import Context, Node
from precede.protocols.cells.frames import WiredFrame
from precede.protocols.cells.options import ProxyOptions
from precede.protocols.cells.packets import (
    PACKETS,
    MessageKey,
    ProxyAppPacket,
    ProxyGetPacket,
    ProxyGivePacket,
    ProxyUpPacket,
    Vector,
)
from precede.protocols.cells.proxy_host import ProxyHost
from precede.protocols.cells.proxy_station import ProxyStation, Record
from precede.protocols.registry import Entry


class CkAppPacket(ProxyAppPacket, frozen=True, gc=False):
    """Station to station: a message, after everything in `after`."""

    kind: ClassVar[str] = "ck_app"
    after: Vector

    @property
    def control_entries(self) -> int:
        return 4 + len(self.after)


class CkJoinPacket(WiredFrame, frozen=True, gc=False):
    """Station to all stations: a host joined, and what it need not get."""

    kind: ClassVar[str] = "ck_join"
    host: NodeId
    vector: Vector

    @property
    def control_entries(self) -> int:
        return 1 + 2 * len(self.vector)


class CkGivePacket(ProxyGivePacket, frozen=True, gc=False):
    """Station to station: the record, with the host's own last message at each initial station."""

    kind: ClassVar[str] = "ck_give"
    own: Vector

    @property
    def control_entries(self) -> int:
        return 3 + len(self.delivered) + 2 * len(self.own)


class CkHost(ProxyHost):
    """A host: every message is for everybody."""

    def broadcast(
        self,
        payload: bytes,
        now: Instant,
        to: Sequence[NodeId] | None = None,
        lifetime: Duration | None = None,
    ) -> Effects:
        if to is not None or lifetime is not None:
            raise Refused("CK broadcasts to everybody, without lifetimes")
        if not self.joined:
            raise NotYet("the host has not joined yet")
        message = Message(MessageId(self.node, 0, self.number + 1), payload)
        effects: list[Effect] = [Accept(message)]
        self._queue(ProxyUpPacket(self.node, message), now, effects)
        return effects


class CkStation(ProxyStation):
    """A station: for its own messages, up to where each host has acknowledged."""

    def __init__(self, context: Context[ProxyOptions]) -> None:
        super().__init__(context)
        self.acked: dict[NodeId, int] = {}
        self.deleted = 0

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        if type(packet) is not CkJoinPacket:
            return super().receive(packet, sender, now, over)
        effects: list[Effect] = []
        self._flood(packet, sender, effects)
        self.acked.setdefault(packet.host, dict(packet.vector).get(self.node, 0))
        return effects

    def _stamped(self, packet: ProxyUpPacket, number: int, record: Record) -> ProxyAppPacket:
        """After the host's earlier messages, what it acknowledged, what it was sent and may have delivered."""
        own: dict[NodeId, int] = record.order
        after = dict(record.recd)
        for station, earlier in (*own.items(), *record.sent_at):
            after[station] = max(earlier, after.get(station, 0))
        own[self.node] = number
        return CkAppPacket(self.node, number, packet.message, tuple(sorted(after.items())))

    def _new_record(self, host: NodeId, ses: int) -> Record:
        own: dict[NodeId, int] = {}
        return Record(ses, own)

    def _giving(self, packet: ProxyGetPacket, record: Record) -> ProxyGivePacket:
        own = tuple(sorted(record.order.items()))
        recd = record.vector()
        return CkGivePacket(self.node, packet.asker, packet.host, packet.ses, record.accepted, recd, own)

    def _given(self, packet: ProxyGivePacket, record: Record) -> None:
        assert isinstance(packet, CkGivePacket)
        record.order = dict(packet.own)

    def _is_for(self, host: NodeId, app: CkAppPacket) -> bool:
        return True

    def _ready(self, record: Record, app: CkAppPacket) -> bool:
        recd = record.recd
        return all(recd.get(station, 0) >= number for station, number in app.after)

    def _joined(self, host: NodeId, record: Record, effects: list[Effect]) -> None:
        record.recd = dict(self.received)
        self.acked.setdefault(host, record.recd.get(self.node, 0))
        self._flood(CkJoinPacket(host, record.vector()), None, effects)

    def _settle(self, host: NodeId, number: int, now: Instant, effects: list[Effect]) -> None:
        self.acked[host] = max(number, self.acked.get(host, 0))
        self._batch(now, effects)

    def _deletable(self) -> list[MessageKey]:
        before, self.deleted = self.deleted, max(min(self.acked.values(), default=0), self.deleted)
        return [(self.node, number) for number in range(before + 1, self.deleted + 1)]


def build(role: str, context: Context[ProxyOptions]) -> Node:
    return CkHost(context) if role == "host" else CkStation(context)


ENTRY: Final = Entry(
    name="ck",
    title="causal broadcast over cells with central discard, the rival of WAS",
    paper="was2021",
    order="causal",
    worlds=("cellular",),
    options=ProxyOptions,
    roles=("host", "station"),
    build=build,
    packets=(*PACKETS, CkAppPacket, CkGivePacket, CkJoinPacket),
)
