"""A node's part of the epidemic: the messages it carries, and its links. `InstantWorld` moves the messages."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import final

from precede.core.effects import Effect, Effects, Medium
from precede.core.identity import NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Packet
from precede.core.node import Saved
from precede.core.peaks import Sizes
from precede.experiments.instant_contacts.store import Store
from precede.protocols.layered.dissemination import Dissemination
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.epidemic.links import Link as Queue
from precede.protocols.layered.epidemic.options import EpidemicOptions
from precede.protocols.layered.epidemic.transfer_order import TransferOrder
from precede.protocols.layered.ordering import Ordering
from precede.sim.hosted_node import HostedNode
from precede.sim.queue import Event


@final
class Carrier(Dissemination):
    """The messages of a node and its links, in the order in which they came up.

    `immediate` is True once the node knows that transfers take no time. `spread` only keeps a new message in
    `born`: the world passes it on after the other effects of a broadcast.
    """

    def __init__(self, options: EpidemicOptions, generator: Random, ordering: Ordering) -> None:
        super().__init__(ordering)
        self.hosted: HostedNode | None = None
        self.id: NodeId = -1
        self.process = -1
        self.sweep: Duration = options.sweep
        self.notifies = type(ordering).dropped is not Ordering.dropped
        self.immediate = False
        self.links: list[Link] = []
        self.store = Store()
        self.born: Envelope | None = None
        self.expiry: ExpiryTimer | None = ExpiryTimer(self)
        self._order = TransferOrder(options.order, generator)
        self._sizes = Sizes("cache", "cache_bytes", "evicted", "links")

    def join(self, hosted: HostedNode) -> None:
        """Learn which node this is."""
        self.hosted = hosted
        self.id = hosted.id
        self.process = hosted.process

    def retire(self) -> None:
        """Forget everything, because the node is down; its timer may stay in the queue for a while."""
        self.links = []
        self.store = Store()
        self.expiry = None

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
        return self._sizes.set(self.store.count, self.store.payload_bytes, 0, len(self.links))

    def new_queue(self) -> Queue:
        """Return a queue for a link on which the first message is still on its way."""
        return Queue(0, self._order)


@final
class Link:
    """One direction of a contact, from `owner` to `peer`; `back` is the other.

    `synced`: the peer has sent its summary. `queue` is used until the owner knows that transfers take no time.
    """

    __slots__ = ("back", "owner", "peer", "queue", "synced")

    def __init__(self, owner: Carrier, peer: Carrier) -> None:
        self.owner = owner
        self.peer = peer
        self.back: Link | None = None
        self.synced = False
        self.queue: Queue | None = None


@final
class ExpiryTimer(Event):
    """The time has come to remove expired messages from a store."""

    __slots__ = ("carrier", "is_set")

    def __init__(self, carrier: Carrier) -> None:
        self.when = 0
        self.is_set = False
        self.carrier = carrier
