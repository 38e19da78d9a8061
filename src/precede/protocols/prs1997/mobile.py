"""PRS for hosts in radio cells: stations as proxies (Prakash, Raynal, Singhal 1997, section 9).

A station keeps CB_h and Delivered_h (`prs.PrsRule`) and h_RECD for each of its hosts, stamps their messages,
and sends a host what is for it when h_RECD and the barrier allow. Barriers travel on the wires only. What it
shares with CK is in `proxy_station`. The role `node`, in a world without stations, is the form of section 9.3:
PRS itself, as many unicasts.

The paper's radio loses nothing, so a station always knows what its host has delivered when the host sends or
moves. Ours loses frames, so a host says it itself: with each message of its own, and when it connects. Its
former station makes that update before the record moves (section 9.2: "delayed until the update is done").
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import ClassVar, Final

import msgspec
from msgspec.structs import replace

from precede.core.effects import Accept, Effect, Effects
from precede.core.errors import Refused
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Message
from precede.core.node import Context, Node
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
from precede.protocols.multicast.rule import process_of
from precede.protocols.prs1997 import prs
from precede.protocols.prs1997.options import PrsMobileOptions, PrsOptions
from precede.protocols.registry import Entry


class PrsUpPacket(ProxyUpPacket, frozen=True, gc=False):
    """Host to station: a new message to these, sent after having delivered so much."""

    kind: ClassVar[str] = "prs_up"
    to: tuple[NodeId, ...]
    delivered: Vector

    @property
    def control_entries(self) -> int:
        return 2 + len(self.to) + 2 * len(self.delivered)


class PrsAppPacket(ProxyAppPacket, frozen=True, gc=False):
    """Station to station: M with CB_M and M_id."""

    kind: ClassVar[str] = "prs_app"
    to: tuple[NodeId, ...]
    stamp: prs.PrsStamp

    @property
    def control_entries(self) -> int:
        return self.stamp.entries

    @property
    def control_bytes(self) -> int:
        return 16 + 4 * len(self.to) + self.stamp.order_bytes


class PrsGivePacket(ProxyGivePacket, frozen=True, gc=False):
    """Station to station: h_RECD, CB_h and Delivered_h."""

    kind: ClassVar[str] = "prs_give"
    order: tuple[dict[int, dict[int, int]], dict[int, dict[int, int]]]
    tuples: int

    @property
    def control_entries(self) -> int:
        return 3 + len(self.delivered) + self.tuples

    @property
    def control_bytes(self) -> int:
        return 12 + 4 * len(self.delivered) + 8 * self.tuples


class PrsHost(ProxyHost):
    """A host that multicasts. As in section 5.1 it is never one of its own destinations."""

    def __init__(self, context: Context[PrsMobileOptions]) -> None:
        super().__init__(context)
        stations = context.options.stations
        self.others = tuple(member for member in context.members if member >= stations and member != self.node)
        self.knows_hosts = stations > 0

    def broadcast(
        self,
        payload: bytes,
        now: Instant,
        to: Sequence[NodeId] | None = None,
        lifetime: Duration | None = None,
    ) -> Effects:
        if lifetime is not None:
            raise Refused("causal multicast has no lifetimes: a message reaches all its destinations")
        if to is None and not self.knows_hosts:
            raise Refused("name destinations, or say with the option `stations` which members are hosts")
        destinations = self.others if to is None else tuple(sorted(to))
        if not destinations or len(set(destinations)) != len(destinations):
            raise Refused("the destination set is empty, or a destination is named twice")
        if any(host not in self.others for host in destinations):
            raise Refused("every destination must be another host")
        message = Message(MessageId(self.node, 0, self.number + 1), payload)
        effects: list[Effect] = [Accept(message, destinations)]
        self._queue(PrsUpPacket(self.node, message, destinations, ()), now, effects)
        return effects

    def _on_air(self, packet: ProxyUpPacket) -> ProxyUpPacket:
        """What is delivered by now comes before it: more than had to be, never less, and true."""
        return replace(packet, delivered=self._told_on_connecting())

    def _told_on_connecting(self) -> Vector:
        return tuple(sorted(self.delivered.items()))


class PrsStation(ProxyStation):
    """A station: a `PrsRule` for each of its hosts; for its own messages, which destinations lack them."""

    def __init__(self, context: Context[PrsMobileOptions]) -> None:
        super().__init__(context)
        self.population = len(context.members)
        self.lacking: dict[int, dict[NodeId, None]] = {}
        self.owed: dict[NodeId, deque[int]] = {}
        self.finished: list[MessageKey] = []

    def _new_record(self, host: NodeId, ses: int) -> Record:
        return Record(ses, prs.PrsRule(process_of(host, 0), "tuples"))

    def _on_up(self, packet: ProxyUpPacket, now: Instant, effects: list[Effect]) -> None:
        if not isinstance(packet, PrsUpPacket):
            return
        self._on_ack(packet.host, packet.delivered, now, effects)
        super()._on_up(packet, now, effects)

    def _stamped(self, packet: ProxyUpPacket, number: int, record: Record) -> ProxyAppPacket:
        assert isinstance(packet, PrsUpPacket)
        rule: prs.PrsRule = record.order
        (stamp,) = rule.stamp(packet.message.id.number, packet.to, self.population)
        assert isinstance(stamp, prs.PrsStamp)
        self.lacking[number] = dict.fromkeys(packet.to)
        for host in packet.to:
            self.owed.setdefault(host, deque()).append(number)
        return PrsAppPacket(self.node, number, packet.message, packet.to, stamp)

    def _is_for(self, host: NodeId, app: PrsAppPacket) -> bool:
        return host in app.to

    def _ready(self, record: Record, app: PrsAppPacket) -> bool:
        """Section 9.1's third condition; the first two are in `_next`."""
        rule: prs.PrsRule = record.order
        reached = rule.reached
        return all(reached.get(source, 0) >= number for source, number in rule.needs(app.stamp).items())

    def _delivered(self, record: Record, app: PrsAppPacket) -> None:
        rule: prs.PrsRule = record.order
        id = app.message.id
        rule.deliver(process_of(id.source, 0), id.number, app.to, app.stamp)

    def _settle(self, host: NodeId, number: int, now: Instant, effects: list[Effect]) -> None:
        owed = self.owed.get(host) or deque()
        while owed and owed[0] <= number:
            mine = owed.popleft()
            lacking = self.lacking[mine]
            del lacking[host]
            if not lacking:
                del self.lacking[mine]
                self.finished.append((self.node, mine))
        if self.finished:
            self._batch(now, effects)

    def _deletable(self) -> list[MessageKey]:
        finished, self.finished = self.finished, []
        return finished

    def _giving(self, packet: ProxyGetPacket, record: Record) -> ProxyGivePacket:
        rule: prs.PrsRule = record.order
        return PrsGivePacket(
            self.node,
            packet.asker,
            packet.host,
            packet.ses,
            record.accepted,
            record.vector(),
            rule.save(),
            sum(rule.sizes().values()),
        )

    def _given(self, packet: ProxyGivePacket, record: Record) -> None:
        assert isinstance(packet, PrsGivePacket)
        record.order.load(packet.order)


def build(role: str, context: Context[PrsMobileOptions]) -> Node:
    """A host, a station, or (section 9.3) a mobile node in a network that has none."""
    if role == "node":
        options = msgspec.convert(context.options, PrsOptions, from_attributes=True)
        return prs.build(
            role, Context(context.node, context.members, options, context.random, context.incarnation)
        )
    return PrsHost(context) if role == "host" else PrsStation(context)


ENTRY: Final = Entry(
    name="prs_mobile",
    title="PRS with stations as proxies for mobile hosts: multicast to any set of hosts",
    paper="prs1997",
    order="multicast",
    worlds=("cellular", "point_to_point"),
    options=PrsMobileOptions,
    roles=("host", "station", "node"),
    build=build,
    packets=(*PACKETS, PrsUpPacket, PrsAppPacket, PrsGivePacket, *prs.ENTRY.packets),
)
