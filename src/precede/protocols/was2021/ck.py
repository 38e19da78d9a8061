"""CK, the rival of WAS with central discard: Chandra and Kshemkalyani (2004), as was2021 describes it.

was2021, sections 4.1, 5 and 6. A message carries a vector: for each initial station, the last message that must
be delivered before it. A station sends a host a message only when the host has acknowledged everything in that
vector. Acknowledgements go on to the message's initial station, which tells all stations to delete the message
when every host has it. `precede.protocols.cells` has what CK shares with its ancestor, section 9 of prs1997.

Hosts do not fail here. A host that joins begins with the messages that its station receives from then on. It
may miss some of them that are deleted before every station knows of the host, unless they were sent to it.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from mypy_extensions import mypyc_attr

from precede.core.effects import Accept, Effect, Effects, Medium
from precede.core.errors import NotYet, Refused
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Message, Packet
from precede.core.node import Context, Node
from precede.protocols.cells.options import ProxyOptions
from precede.protocols.cells.packets import (
    PACKETS,
    MessageKey,
    ProxyAppPacket,
    ProxyGetPacket,
    ProxyGivePacket,
    ProxyUpPacket,
)
from precede.protocols.cells.proxy_host import ProxyHost
from precede.protocols.cells.proxy_station import ProxyStation
from precede.protocols.cells.record import ProxyRecord
from precede.protocols.cells.rule import ProxyRule
from precede.protocols.registry import Entry
from precede.protocols.was2021.ck_packets import CkAppPacket, CkGivePacket, CkJoinPacket

_MOST_DELETED: Final = 1 << 13
"""The most messages that one batch deletes, because a malicious station can acknowledge any number."""


class CkHost(ProxyHost):
    """A host whose messages go to all hosts."""

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


@mypyc_attr(allow_interpreted_subclasses=True)
class CkRule(ProxyRule):
    """Orders the messages of one station's hosts by vectors.

    A record's `order` has the number of the host's own last message at each initial station. `acked` is how
    many of this station's messages each host has acknowledged, `deleted` how many of them are deleted.
    """

    def __init__(self, node: NodeId) -> None:
        self.node = node
        self.acked: dict[NodeId, int] = {}
        self.deleted = 0

    def new_order(self, host: NodeId) -> dict[NodeId, int]:
        return {}

    def stamp(self, packet: ProxyUpPacket, number: int, record: ProxyRecord) -> ProxyAppPacket:
        """Return the packet of a host's own message, which follows all that the host has sent or delivered."""
        own: dict[NodeId, int] = record.order
        after = dict(record.recd)
        for station, earlier in (*own.items(), *record.sent_at):
            after[station] = max(earlier, after.get(station, 0))
        own[self.node] = number
        return CkAppPacket(self.node, number, packet.message, tuple(sorted(after.items())))

    def is_for(self, host: NodeId, app: CkAppPacket) -> bool:
        return True

    def is_ready(self, record: ProxyRecord, app: CkAppPacket) -> bool:
        recd = record.recd
        return all(recd.get(station, 0) >= number for station, number in app.after)

    def acknowledge(self, host: NodeId, number: int) -> bool:
        self.acked[host] = max(number, self.acked.get(host, 0))
        return True

    def take_deletable(self) -> list[MessageKey]:
        before, acked = self.deleted, min(self.acked.values(), default=0)
        self.deleted = max(min(acked, before + _MOST_DELETED), before)
        return [(self.node, number) for number in range(before + 1, self.deleted + 1)]

    def admit(self, host: NodeId, record: ProxyRecord, received: Mapping[NodeId, int]) -> Packet:
        record.recd = dict(received)
        self.expect_acks(host, received)
        return CkJoinPacket(host, record.vector())

    def expect_acks(self, host: NodeId, vector: Mapping[NodeId, int]) -> None:
        """Wait for a new host's acknowledgements of this station's messages beyond its entry in `vector`."""
        self.acked.setdefault(host, vector.get(self.node, 0))

    def give(self, packet: ProxyGetPacket, record: ProxyRecord) -> ProxyGivePacket:
        own = tuple(sorted(record.order.items()))
        recd = record.vector()
        return CkGivePacket(self.node, packet.asker, packet.host, packet.ses, record.accepted, recd, own)

    def take_over(self, packet: ProxyGivePacket, record: ProxyRecord) -> None:
        assert isinstance(packet, CkGivePacket)
        record.order = dict(packet.own)


class CkStation(ProxyStation):
    """A proxy station that also learns of hosts that joined elsewhere."""

    def __init__(self, context: Context[ProxyOptions], rule: CkRule) -> None:
        super().__init__(context, rule)
        self.ck = rule

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        if type(packet) is not CkJoinPacket:
            return super().receive(packet, sender, now, over)
        effects: list[Effect] = []
        self.routes.flood(packet, sender, effects)
        self.ck.expect_acks(packet.host, dict(packet.vector))
        return effects


def build(role: str, context: Context[ProxyOptions]) -> Node:
    return CkHost(context) if role == "host" else CkStation(context, CkRule(context.node))


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
