"""`prophet`: a copy goes to a node that is more likely to meet a destination than this one.

Lindgren, Doria, Schelén: Probabilistic routing in intermittently connected networks (MC2R 7(3), 2003),
section 3.1: delivery predictabilities grow with every encounter (equation 1), age (2) and are transitive (3).
Forwarding by the rule of section 3.2 (GRTR): the peer's predictability is higher for some destination. Both
predictabilities are those after the encounter. The paper leaves the unit of time open; ours is 30 s.
"""

from collections.abc import Mapping
from typing import Annotated, Final

from precede.core.effects import Effect, Effects, Medium
from precede.core.identity import NodeId
from precede.core.instants import SECOND, Duration, Instant
from precede.core.node import Context
from precede.protocols.layered.ordering import Ordering
from precede.protocols.options import duration, option
from precede.protocols.registry import DisseminationEntry
from precede.protocols.routing.copies import PACKETS, Copy, HelloPacket
from precede.protocols.routing.router import Router, RoutingOptions


class ProphetOptions(RoutingOptions, frozen=True, kw_only=True):
    """The options of `prophet`, with the paper's values."""

    p_init: Annotated[float, option("how much an encounter raises a predictability", most=1)] = 0.75
    beta: Annotated[float, option("how much transitivity counts", most=1)] = 0.25
    gamma: Annotated[float, option("how much of a predictability is left after a unit of time", most=1)] = 0.98
    unit: Annotated[Duration, duration("the unit of time in which predictabilities age", least=1)] = 30 * SECOND


class Prophet(Router):
    """Keeps a delivery predictability for every node it has heard of; its hellos carry them as likelihoods."""

    def __init__(self, context: Context[ProphetOptions], ordering: Ordering) -> None:
        super().__init__(context, ordering)
        self._options = context.options
        self._own: dict[NodeId, float] = {}
        self._of_peers: dict[NodeId, dict[NodeId, float]] = {}
        """Of the nodes in contact: their predictabilities, aged like our own."""
        self._aged_at: Instant = 0

    def hello(self, now: Instant) -> dict[NodeId, dict[NodeId, float]]:
        self._age(now)
        return {self.me: dict(self._own)}

    def met(self, peer: NodeId, hello: HelloPacket, now: Instant, effects: list[Effect]) -> None:
        self._age(now)
        announced = hello.likelihoods.get(peer, {})
        theirs = {node: value for node, value in announced.items() if self.is_member(node) and 0 <= value <= 1}
        before = self._own
        self._own = self._after_meeting(before, self.me, theirs, peer)
        self._of_peers[peer] = self._after_meeting(theirs, peer, before, self.me)

    def link_down(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        self._of_peers.pop(peer, None)
        return super().link_down(peer, now, over)

    def gives(self, copy: Copy, peer: NodeId) -> bool:
        theirs, own = self._of_peers.get(peer, {}), self._own
        for node in copy.envelope.destinations or ():  # noqa: SIM110 (a generator takes twice the time)
            if theirs.get(node, 0.0) > own.get(node, 0.0):
                return True
        return False

    def _after_meeting(
        self, ours: Mapping[NodeId, float], me: NodeId, theirs: Mapping[NodeId, float], peer: NodeId
    ) -> dict[NodeId, float]:
        """Return the predictabilities of a node after it met a peer: equation 1, then equation 3."""
        options = self._options
        after = dict(ours)
        after[peer] = met = after.get(peer, 0.0) + (1 - after.get(peer, 0.0)) * options.p_init
        for node, value in theirs.items():
            if node != me:
                after[node] = after.get(node, 0.0) + (1 - after.get(node, 0.0)) * met * value * options.beta
        return after

    def _age(self, now: Instant) -> None:
        """Shrink all predictabilities by the time that has passed since they last shrank (equation 2)."""
        if now == self._aged_at:
            return
        left = self._options.gamma ** ((now - self._aged_at) / self._options.unit)
        self._aged_at = now
        for table in (self._own, *self._of_peers.values()):
            for node in table:
                table[node] *= left


DISSEMINATION: Final = DisseminationEntry(
    name="prophet",
    title="copies go to nodes that are more likely to meet a destination",
    worlds=("contacts",),
    options=ProphetOptions,
    build=Prophet,
    packets=PACKETS,
    carriers="receivers",
)
