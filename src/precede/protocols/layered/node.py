"""The two halves of a layered node: a dissemination brings messages, an ordering says when to deliver.

Where a paper has layers they meet here, so that every ordering runs over every dissemination (DESIGN section 2,
idea 2). Both return effects; `LayeredNode` is the node that the drivers see. A protocol without layers (DRIFT,
VCube, WAS, PRS) implements `Node` directly and does not use this file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from mypy_extensions import mypyc_attr

from precede.core.effects import NOTHING, Effect, Effects, Key, Medium
from precede.core.errors import Refused
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Packet
from precede.core.node import Node, Saved, Waiting
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.parsed_envelopes import Batch

__all__ = ["Dissemination", "Envelope", "LayeredNode", "Ordering", "is_net"]


@mypyc_attr(allow_interpreted_subclasses=True)
class Ordering(ABC):
    """Decides when a message may be delivered. Timer keys it uses are passed to `timer` unchanged."""

    draining: ClassVar[tuple[str, ...]] = ()
    stamp_type: ClassVar[Any] = Any
    """What its stamps are, so that a driver which decodes untrusted bytes can convert and check them."""

    knows_for_ever: ClassVar[bool] = True
    """Does `knows` answer for all that it was ever given? Else the layer below has to remember."""

    def start(self, now: Instant, saved: Saved) -> Effects:
        return NOTHING

    @abstractmethod
    def stamp(
        self, payload: bytes, now: Instant, to: Sequence[NodeId] | None, lifetime: Duration | None
    ) -> tuple[Envelope, list[Effect]]:
        """A new own message: its envelope, and the effects (persist, Accept, own Deliver) before it is sent."""

    @abstractmethod
    def arrive(self, envelopes: Sequence[Envelope], now: Instant, effects: list[Effect]) -> None:
        """First copies, already announced with `Arrive`: append deliveries, timers, discards."""

    def arrive_batch(self, batch: Batch, now: Instant, effects: list[Effect]) -> None:
        """The same, for an ordering that is glad to have them opened."""
        self.arrive(batch.envelopes(), now, effects)

    @abstractmethod
    def knows(self, id: MessageId) -> bool:
        """Is this message delivered, waiting or given up? Then another copy is a duplicate."""

    def dropped(self, envelope: Envelope, now: Instant, effects: list[Effect]) -> None:
        """The dissemination gives a message up (expired or evicted): notice before removal."""

    def unfinished(self) -> Sequence[Envelope]:
        """Own messages whose sending may have been cut by a crash: asked once, after `start`."""
        return ()

    def timer(self, key: Key, now: Instant, effects: list[Effect]) -> None:
        """One of the ordering's own timers is due."""

    def waiting(self) -> Sequence[Waiting]:
        return ()

    def sizes(self) -> Mapping[str, int]:
        return {}


@mypyc_attr(allow_interpreted_subclasses=True)
class Dissemination(ABC):
    """Brings every message to whoever is due, in any order, each at most once to the ordering above it.

    Its timer and send keys are tuples that begin with "net"; an ordering's keys never do.
    """

    draining: ClassVar[tuple[str, ...]] = ()

    takes_destinations: ClassVar[bool] = True
    """Can it bring a message to some and not to others?"""

    def __init__(self, ordering: Ordering) -> None:
        self.ordering = ordering

    def start(self, now: Instant, saved: Saved) -> Effects:
        return NOTHING

    @abstractmethod
    def spread(self, envelope: Envelope, now: Instant, effects: list[Effect]) -> None:
        """An own message, stamped and accepted: append what sends it."""

    @abstractmethod
    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        """A packet: announce first copies with `Arrive`, hand them to the ordering, forward."""

    def sent(self, key: Key, now: Instant, ok: bool) -> Effects:
        return NOTHING

    def timer(self, key: Key, now: Instant) -> Effects:
        return NOTHING

    def link_up(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        return NOTHING

    def link_down(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        return NOTHING

    def leave(self, now: Instant) -> Effects:
        return NOTHING

    def sizes(self) -> Mapping[str, int]:
        return {}


def is_net(key: Key) -> bool:
    """Does this timer or send belong to the dissemination?"""
    return type(key) is tuple and key[0] == "net"


@mypyc_attr(allow_interpreted_subclasses=True)
class LayeredNode(Node):
    """An ordering joined to a dissemination."""

    def __init__(self, ordering: Ordering, dissemination: Dissemination) -> None:
        self.ordering = ordering
        self.dissemination = dissemination

    def start(self, now: Instant, saved: Saved) -> Effects:
        effects = [*self.ordering.start(now, saved), *self.dissemination.start(now, saved)]
        for envelope in self.ordering.unfinished():
            self.dissemination.spread(envelope, now, effects)
        return effects

    def broadcast(
        self,
        payload: bytes,
        now: Instant,
        to: Sequence[NodeId] | None = None,
        lifetime: Duration | None = None,
    ) -> Effects:
        if to is not None and not self.dissemination.takes_destinations:
            raise Refused(
                "what is carried from node to node is for everybody; for destination sets take a multicast"
                " order (prs), or another dissemination"
            )
        envelope, effects = self.ordering.stamp(payload, now, to, lifetime)
        self.dissemination.spread(envelope, now, effects)
        return effects

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        return self.dissemination.receive(packet, sender, now, over)

    def sent(self, key: Key, now: Instant, ok: bool) -> Effects:
        return self.dissemination.sent(key, now, ok)

    def link_up(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        return self.dissemination.link_up(peer, now, over)

    def link_down(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        return self.dissemination.link_down(peer, now, over)

    def leave(self, now: Instant) -> Effects:
        return self.dissemination.leave(now)

    def timer(self, key: Key, now: Instant) -> Effects:
        if is_net(key):
            return self.dissemination.timer(key, now)
        effects: list[Effect] = []
        self.ordering.timer(key, now, effects)
        return effects

    def waiting(self) -> Sequence[Waiting]:
        return self.ordering.waiting()

    def drains(self) -> tuple[str, ...]:
        return self.ordering.draining + self.dissemination.draining

    def sizes(self) -> Mapping[str, int]:
        return {**self.ordering.sizes(), **self.dissemination.sizes()}
