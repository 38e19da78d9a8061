"""A node's part of the epidemic, as both engines need it. A `ContactWorld` moves the messages."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import final

from mypy_extensions import i32

from precede.core.effects import Effect, Effects, Medium
from precede.core.identity import NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Packet
from precede.core.node import Saved
from precede.core.peaks import Sizes
from precede.protocols.layered.dissemination import Dissemination
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.epidemic.options import EpidemicOptions
from precede.protocols.layered.epidemic.transfer_order import TransferOrder
from precede.protocols.layered.ordering import Ordering
from precede.sim.hosted_node import HostedNode
from precede.sim.queue import Event


class ContactCarrier(Dissemination):
    """The links of a node, in the order in which they came up; a subclass has the messages it carries.

    `spread` only keeps a new message in `born`: the world passes it on after the other effects of a broadcast.
    """

    def __init__(self, options: EpidemicOptions, generator: Random, ordering: Ordering) -> None:
        super().__init__(ordering)
        self.hosted: HostedNode | None = None
        self.id: i32 = -1
        self.process: i32 = -1
        self.sweep: Duration = options.sweep
        self.notifies = type(ordering).dropped is not Ordering.dropped
        self.present = True
        self.links: list[ContactLink] = []
        self.born: Envelope | None = None
        self.expiry = ExpiryTimer(self)
        self.order = TransferOrder(options.order, generator)
        self._sizes = Sizes("cache", "cache_bytes", "evicted", "links")

    def join(self, hosted: HostedNode) -> None:
        """Learn which node this is."""
        self.hosted = hosted
        self.id = hosted.id
        self.process = hosted.process

    def retire(self) -> None:
        """Forget everything, because the node is down; its timer may stay in the queue for a while."""
        self.present = False
        self.links = []

    def start(self, now: Instant, saved: Saved) -> Effects:
        effects: list[Effect] = []
        self.ordering.arrive((), now, effects)  # as `Epidemic`, which saved nothing: orderings count from it
        return effects

    def spread(self, envelope: Envelope, now: Instant, effects: list[Effect]) -> None:
        self.born = envelope

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        raise NotImplementedError("the world passes messages on without packets")

    def sizes(self) -> Mapping[str, int]:
        return self.counted_sizes().mapping()

    def counted_sizes(self) -> Sizes:
        return self._sizes.set(self.count(), self.held_bytes(), self.evicted_count(), len(self.links))

    def count(self) -> int:
        """Return how many messages the node carries."""
        raise NotImplementedError

    def held_bytes(self) -> int:
        """Return the payload bytes of these messages."""
        raise NotImplementedError

    def evicted_count(self) -> int:
        """Return how many evicted messages the node remembers."""
        return 0

    def first_deadline(self) -> Instant:
        """Return an instant before which no message expires; NEVER if no message has a deadline."""
        raise NotImplementedError


class ContactLink(Event):
    """One direction of a contact, from `owner` to `peer`; `back` is the other.

    In the engine for timed transfers it is itself the event that ends one.
    """

    __slots__ = ("back", "owner", "peer")

    def __init__(self, owner: ContactCarrier, peer: ContactCarrier) -> None:
        self.when = 0
        self.owner = owner
        self.peer = peer
        self.back: ContactLink | None = None


@final
class ExpiryTimer(Event):
    """The time has come to remove expired messages from a cache."""

    __slots__ = ("carrier", "is_set")

    def __init__(self, carrier: ContactCarrier) -> None:
        self.when = 0
        self.is_set = False
        self.carrier = carrier
