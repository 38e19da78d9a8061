"""A node's part of the epidemic: the messages it carries, and its links. `InstantWorld` moves the messages."""

from __future__ import annotations

from random import Random
from typing import final

from precede.core.instants import Instant
from precede.experiments.contact_worlds.carrier import ContactCarrier, ContactLink
from precede.experiments.instant_contacts.store import Store
from precede.protocols.layered.epidemic.links import Link as Queue
from precede.protocols.layered.epidemic.options import EpidemicOptions
from precede.protocols.layered.ordering import Ordering


@final
class Carrier(ContactCarrier):
    """The messages of a node. `immediate` is True once the node knows that transfers take no time."""

    def __init__(self, options: EpidemicOptions, generator: Random, ordering: Ordering) -> None:
        super().__init__(options, generator, ordering)
        self.immediate = False
        self.store = Store()
        self._most: int = options.cache
        self._most_bytes: int = options.cache_bytes

    def is_over_full(self) -> bool:
        return 0 < self._most < self.store.count or 0 < self._most_bytes < self.store.payload_bytes

    def retire(self) -> None:
        super().retire()
        self.store = Store()

    def count(self) -> int:
        return self.store.count

    def held_bytes(self) -> int:
        return self.store.payload_bytes

    def evicted_count(self) -> int:
        return len(self.store.evicted)

    def first_deadline(self) -> Instant:
        return self.store.first_deadline()

    def new_queue(self) -> Queue:
        """Return a queue for a link on which the first message is still on its way."""
        return Queue(0, self.order)


@final
class Link(ContactLink):
    """One direction of a contact.

    `synced`: the peer has sent its summary. `queue` is used until the owner knows that transfers take no time.
    """

    __slots__ = ("queue", "synced")

    def __init__(self, owner: Carrier, peer: Carrier) -> None:
        super().__init__(owner, peer)
        self.synced = False
        self.queue: Queue | None = None
