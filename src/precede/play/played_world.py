"""The simulator with links that a player can cut and mend, in every kind of network."""

from __future__ import annotations

from typing import Any, ClassVar

from precede.core.effects import Accept, Medium
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Instant
from precede.core.messages import Packet
from precede.sim.world import World

Pair = tuple[NodeId, NodeId]


def pair_of(a: NodeId, b: NodeId) -> Pair:
    return (a, b) if a < b else (b, a)


class PlayedWorld(World):
    """A world in which packets do not cross a cut link.

    Nodes hear of a cut as they hear of every link that goes down, if their network reports links at all.
    `links` are the links that the network reports, in each direction; `cuts` those that were cut by hand.
    """

    may_crash: ClassVar[bool] = True

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.links: dict[tuple[NodeId, NodeId, Medium], None] = {}
        self.cuts: dict[Pair, None] = {}
        self.texts: dict[MessageId, str] = {}
        self.reports_links = False
        super().__init__(*arguments, **options)

    def accept(self, node: NodeId, effect: Accept, now: Instant) -> None:
        if any(effect.message.payload):
            self.texts[effect.message.id] = effect.message.payload.decode("utf-8", "replace")
        super().accept(node, effect, now)

    def receive(self, to: NodeId, packet: Packet, sender: NodeId, over: Medium) -> None:
        if not self.cuts or pair_of(to, sender) not in self.cuts:
            super().receive(to, packet, sender, over)

    def link_up(self, node: NodeId, peer: NodeId, over: Medium) -> None:
        self.reports_links = True
        self.links[node, peer, over] = None
        if pair_of(node, peer) not in self.cuts:
            super().link_up(node, peer, over)

    def link_down(self, node: NodeId, peer: NodeId, over: Medium) -> None:
        self.links.pop((node, peer, over), None)
        if pair_of(node, peer) not in self.cuts:
            super().link_down(node, peer, over)

    def cut(self, a: NodeId, b: NodeId) -> bool:
        """Cut the link of two nodes, whether it is up now or not. Return False if it is cut already."""
        pair = pair_of(a, b)
        if pair in self.cuts:
            return False
        self.network.cut(a, b)
        self.cuts[pair] = None
        for node, peer, over in self._links_between(pair):
            super().link_down(node, peer, over)
        return True

    def mend(self, a: NodeId, b: NodeId) -> bool:
        """Mend a link that was cut. Return False if it was not."""
        pair = pair_of(a, b)
        if pair not in self.cuts:
            return False
        standing = self._links_between(pair)
        del self.cuts[pair]
        self.network.mend(a, b)
        for node, peer, over in standing:
            super().link_up(node, peer, over)
        return True

    def _links_between(self, pair: Pair) -> list[tuple[NodeId, NodeId, Medium]]:
        return [link for link in self.links if pair_of(link[0], link[1]) == pair]
