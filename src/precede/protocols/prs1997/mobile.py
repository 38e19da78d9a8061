"""PRS for hosts in radio cells: stations as proxies (Prakash, Raynal, Singhal 1997, section 9).

For each of its hosts a station keeps a causal barrier CB_h and the known deliveries Delivered_h
(`prs.PrsRule`), and h_RECD, what the host has delivered of each station. It stamps their messages, and sends a
host a message when h_RECD and the causal barrier allow. Barriers travel between stations only. The package
`cells` has what this shares with CK. The role `node`, in a world without stations, is section 9.3: PRS itself,
as unicasts.

The paper's radio loses nothing, so a station always knows what its host has delivered. Ours loses frames, so a
host says what it has delivered with each message of its own and when it connects. Its former station updates
the record before the record moves (section 9.2: "delayed until the update is done").
"""

from collections import deque
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec.structs import replace
from mypy_extensions import mypyc_attr

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
from precede.protocols.cells.proxy_station import ProxyStation
from precede.protocols.cells.record import ProxyRecord
from precede.protocols.cells.rule import ProxyRule
from precede.protocols.multicast.process import process_of
from precede.protocols.prs1997 import prs
from precede.protocols.prs1997.mobile_packets import PrsAppPacket, PrsGivePacket, PrsUpPacket
from precede.protocols.prs1997.options import PrsMobileOptions, PrsOptions
from precede.protocols.prs1997.packets import PrsStamp
from precede.protocols.registry import Entry


class Destinations:
    """The hosts that a node may multicast to: all others."""

    def __init__(self, context: Context[PrsMobileOptions]) -> None:
        stations = context.options.stations
        self.others = tuple(
            member for member in context.members if member >= stations and member != context.node
        )
        self.knows_hosts = stations > 0

    def read(self, to: Sequence[NodeId] | None, lifetime: Duration | None) -> tuple[NodeId, ...]:
        """Return the destinations of a message, ascending. Raises Refused for ones that cannot be."""
        if lifetime is not None:
            raise Refused("causal multicast has no lifetimes: a message reaches all its destinations")
        if to is None and not self.knows_hosts:
            raise Refused("name destinations, or set the option `stations` so that the hosts are known")
        destinations = self.others if to is None else tuple(sorted(to))
        if not destinations or len(set(destinations)) != len(destinations):
            raise Refused("the destination set is empty, or a destination is named twice")
        if any(host not in self.others for host in destinations):
            raise Refused("every destination must be another host")
        return destinations


@mypyc_attr(allow_interpreted_subclasses=True)
class PrsHost(ProxyHost):
    """A host that multicasts to other hosts, by default to all. It refuses itself as one (section 5.1)."""

    def __init__(self, context: Context[PrsMobileOptions]) -> None:
        super().__init__(context)
        self.destinations = Destinations(context)

    def broadcast(
        self,
        payload: bytes,
        now: Instant,
        to: Sequence[NodeId] | None = None,
        lifetime: Duration | None = None,
    ) -> Effects:
        destinations = self.destinations.read(to, lifetime)
        message = Message(MessageId(self.node, 0, self.number + 1), payload)
        effects: list[Effect] = [Accept(message, destinations)]
        self._queue(PrsUpPacket(self.node, message, destinations, ()), now, effects)
        return effects

    def _on_air(self, packet: ProxyUpPacket) -> ProxyUpPacket:
        """Return the packet with the host's deliveries so far, which include those before the broadcast."""
        return replace(packet, delivered=self._delivered_vector())

    def _delivered_vector(self) -> Vector:
        return tuple(sorted(self.delivered.items()))


@mypyc_attr(allow_interpreted_subclasses=True)
class MobileRule(ProxyRule):
    """Keeps the causal barriers of one station's hosts: a record's `order` is the host's `PrsRule`.

    Of this station's own messages, `lacking` has the destinations that have not acknowledged each, `owed` the
    unacknowledged messages of each destination, `finished` those that may be deleted.
    """

    def __init__(self, node: NodeId, population: int) -> None:
        self.node = node
        self.population = population
        self.lacking: dict[int, dict[NodeId, None]] = {}
        self.owed: dict[NodeId, deque[int]] = {}
        self.finished: list[MessageKey] = []

    def new_order(self, host: NodeId) -> prs.PrsRule:
        return prs.PrsRule(process_of(host, 0), "tuples")

    def stamp(self, packet: ProxyUpPacket, number: int, record: ProxyRecord) -> ProxyAppPacket:
        assert isinstance(packet, PrsUpPacket)
        rule: prs.PrsRule = record.order
        (stamp,) = rule.stamp(packet.message.id.number, packet.to, self.population)
        assert isinstance(stamp, PrsStamp)
        self.lacking[number] = dict.fromkeys(packet.to)
        for host in packet.to:
            self.owed.setdefault(host, deque()).append(number)
        return PrsAppPacket(self.node, number, packet.message, packet.to, stamp)

    def is_for(self, host: NodeId, app: PrsAppPacket) -> bool:
        return host in app.to

    def is_ready(self, record: ProxyRecord, app: PrsAppPacket) -> bool:
        """Has the host delivered what the message's barrier names for it (third condition of section 9.1)?"""
        rule: prs.PrsRule = record.order
        reached = rule.reached
        return all(reached.get(source, 0) >= number for source, number in rule.needs(app.stamp).items())

    def deliver(self, record: ProxyRecord, app: PrsAppPacket) -> None:
        rule: prs.PrsRule = record.order
        id = app.message.id
        rule.deliver(process_of(id.source, 0), id.number, app.to, app.stamp)

    def acknowledge(self, host: NodeId, number: int) -> bool:
        owed = self.owed.get(host) or deque()
        while owed and owed[0] <= number:
            acknowledged = owed.popleft()
            lacking = self.lacking.get(acknowledged)
            if lacking is None:
                continue  # a malicious source has named this host twice
            lacking.pop(host, None)
            if not lacking:
                del self.lacking[acknowledged]
                self.finished.append((self.node, acknowledged))
        return bool(self.finished)

    def take_deletable(self) -> list[MessageKey]:
        finished, self.finished = self.finished, []
        return finished

    def give(self, packet: ProxyGetPacket, record: ProxyRecord) -> ProxyGivePacket:
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

    def take_over(self, packet: ProxyGivePacket, record: ProxyRecord) -> None:
        assert isinstance(packet, PrsGivePacket)
        record.order.load(packet.order)


class PrsStation(ProxyStation):
    """A proxy station whose hosts report their deliveries with each own message.

    Section 9 lets a station multicast, too. It has a causal barrier of its own for that (`own`), and hands its
    message to the other stations like one of a host. It is nobody's destination, so its messages depend on its
    earlier ones alone.
    """

    def __init__(self, context: Context[PrsMobileOptions]) -> None:
        rule = MobileRule(context.node, len(context.members))
        super().__init__(context, rule)
        self.destinations = Destinations(context)
        self.own = ProxyRecord(0, rule.new_order(context.node))

    def broadcast(
        self,
        payload: bytes,
        now: Instant,
        to: Sequence[NodeId] | None = None,
        lifetime: Duration | None = None,
    ) -> Effects:
        destinations = self.destinations.read(to, lifetime)
        self.own.accepted += 1
        message = Message(MessageId(self.node, 0, self.own.accepted), payload)
        effects: list[Effect] = [Accept(message, destinations)]
        number = self.offers.received.get(self.node, 0) + 1
        app = self.rule.stamp(PrsUpPacket(self.node, message, destinations, ()), number, self.own)
        self._disseminate(app, None, now, effects)
        return effects

    def _on_up(self, packet: ProxyUpPacket, now: Instant, effects: list[Effect]) -> None:
        if not isinstance(packet, PrsUpPacket):
            return
        self._on_ack(packet.host, packet.delivered, now, effects)
        super()._on_up(packet, now, effects)


def build(role: str, context: Context[PrsMobileOptions]) -> Node:
    """Make a host, a station, or a mobile node in a network without stations (section 9.3)."""
    if role == "node":
        options = msgspec.convert(context.options, PrsOptions, from_attributes=True)
        return prs.build(
            role, Context(context.node, context.members, options, context.random, context.incarnation)
        )
    if role == "host":
        return PrsHost(context)
    return PrsStation(context)


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
