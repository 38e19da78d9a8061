"""`maxprop`: every node may get a copy; copies that are likely to be delivered go first.

Burgess, Gallagher, Jensen, Levine: MaxProp (INFOCOM 2006), section III. Each node counts whom it meets
(III-A, incremental averaging) and passes the vectors of all nodes on; the cost of a message is that of the
cheapest path from this node to a destination. Messages with few hops have a head start, and a full buffer drops
the messages of highest cost (III-B). A message that has reached its destination is acknowledged to all nodes,
which drop it (III-C). The paper adapts the head start to the bytes that a contact carries; we take it as an
option. Acknowledgements are for messages with one destination. A node believes every peer, as in the paper: one
that invents acknowledgements or likelihoods can have messages of others dropped (docs/security.md).

In a hello, the entry of a node in its own vector is the number of its encounters: of two vectors of one node
the one with more is newer.
"""

from heapq import heappop, heappush
from typing import Annotated, Any, Final

from precede.core.effects import Effect, Effects, Medium
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Instant
from precede.core.messages import Packet
from precede.core.node import Context
from precede.protocols.layered.ordering import Ordering
from precede.protocols.options import option
from precede.protocols.registry import DisseminationEntry
from precede.protocols.routing.copies import MOST_ACKNOWLEDGED, PACKETS, Copy, HelloPacket, RoutedPacket
from precede.protocols.routing.router import Router, RoutingOptions

_UNKNOWN_COST: Final = 1e9


class MaxPropOptions(RoutingOptions, frozen=True, kw_only=True):
    """The options of `maxprop`."""

    head_start: Annotated[int, option("messages with fewer hops than this go first")] = 3


class MaxProp(Router):
    """Counts its encounters, and knows the vectors of other nodes from their hellos."""

    def __init__(self, context: Context[MaxPropOptions], ordering: Ordering) -> None:
        super().__init__(context, ordering)
        self._head_start: int = context.options.head_start
        self._own: dict[NodeId, float] = {}
        self._encounters = 0
        self._others: dict[NodeId, dict[NodeId, float]] = {}
        """The vectors of other nodes, as hellos have them. They are replaced and never changed."""
        self._delivered: dict[MessageId, None] = {}
        self._costs: dict[NodeId, float] | None = None

    def gives(self, copy: Copy, peer: NodeId) -> bool:
        return True

    def rank(self, copy: Copy, peer: NodeId) -> Any:
        if copy.hops < self._head_start:
            return (0, float(copy.hops))
        costs = self._all_costs()
        destinations = copy.envelope.destinations or ()
        return (1, min((costs.get(node, _UNKNOWN_COST) for node in destinations), default=_UNKNOWN_COST))

    def evicts(self, copy: Copy) -> Any:
        behind, rank = self.rank(copy, self.me)
        return (-behind, -rank)

    def hello(self, now: Instant) -> dict[NodeId, dict[NodeId, float]]:
        return {**self._others, self.me: {**self._own, self.me: float(self._encounters)}}

    def delivered(self) -> frozenset[MessageId]:
        return frozenset(self._delivered)

    def met(self, peer: NodeId, hello: HelloPacket, now: Instant, effects: list[Effect]) -> None:
        own = self._own
        own[peer] = own.get(peer, 0.0) + 1.0
        self._encounters += 1
        total = sum(own.values())
        for node in own:
            own[node] /= total
        for node, vector in hello.likelihoods.items():
            count = vector.get(node, 0.0)
            if node != self.me and self.is_member(node) and count > self._count(node):
                self._others[node] = {
                    other: value
                    for other, value in vector.items()
                    if self.is_member(other) and (0 <= value <= 1 or other == node)
                }
        self._costs = None
        news = [id for id in hello.delivered if id not in self._delivered or id in self.held]
        for id in sorted(news):
            self._acknowledge(id, now, effects)

    def _count(self, node: NodeId) -> float:
        return self._others[node][node] if node in self._others else 0.0

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        effects = [*super().receive(packet, sender, now, over)]
        if type(packet) is RoutedPacket and packet.envelope.destinations == (self.me,):
            self._acknowledge(packet.envelope.message.id, now, effects)
        return effects

    def gave(self, copy: Copy, peer: NodeId) -> bool:
        return copy.envelope.destinations != (peer,)

    def _acknowledge(self, id: MessageId, now: Instant, effects: list[Effect]) -> None:
        self._delivered[id] = None
        if len(self._delivered) > MOST_ACKNOWLEDGED:
            del self._delivered[next(iter(self._delivered))]
        if id in self.held:
            self.remove(id, "acknowledged", now, effects)

    def _all_costs(self) -> dict[NodeId, float]:
        """Return the cost of the cheapest path to every node; meeting a node with likelihood f costs 1 - f."""
        if self._costs is None:
            costs: dict[NodeId, float] = {}
            queue = [(0.0, self.me)]
            while queue:
                cost, node = heappop(queue)
                if node in costs:
                    continue
                costs[node] = cost
                vector = self._own if node == self.me else self._others.get(node, {})
                for other, likelihood in vector.items():
                    if other not in costs:
                        heappush(queue, (cost + 1 - likelihood, other))
            self._costs = costs
        return self._costs


DISSEMINATION: Final = DisseminationEntry(
    name="maxprop",
    title="copies to everybody, those that are likely to be delivered first",
    worlds=("contacts",),
    options=MaxPropOptions,
    build=MaxProp,
    packets=PACKETS,
    carriers="unacknowledged",
)
