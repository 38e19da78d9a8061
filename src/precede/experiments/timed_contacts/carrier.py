"""A node's part of the epidemic: the messages it carries, and its links. `TimedWorld` moves the messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final, final

from mypy_extensions import i64

from precede.core.effects import Effect, Effects, Medium
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Packet
from precede.core.node import Saved
from precede.core.peaks import Sizes
from precede.experiments.timed_contacts.carried import Carried
from precede.experiments.timed_contacts.links import Link
from precede.experiments.timed_contacts.marks import Marks
from precede.protocols.layered.dissemination import Dissemination
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.epidemic.options import EpidemicOptions
from precede.protocols.layered.epidemic.transfer_order import TransferOrder
from precede.protocols.layered.ordering import Ordering
from precede.protocols.layered.parsed_envelopes import NEVER
from precede.sim.draws import Draws
from precede.sim.hosted_node import HostedNode
from precede.sim.queue import Event

_RANDOM: Final = 9007199254740992.0
"""A random number of Python has 53 bits: times this one it is whole."""


@final
class Carrier(Dissemination):
    """The cache of a node, in the order of reception, and its links, in the order in which they came up.

    `spread` only keeps a new message in `born`: the world passes it on after the other effects of a broadcast.
    """

    def __init__(self, options: EpidemicOptions, generator: Random, ordering: Ordering) -> None:
        super().__init__(ordering)
        self.hosted: HostedNode | None = None
        self.id: NodeId = -1
        self.process = -1
        self.jitter: Draws | None = None
        self.sweep: Duration = options.sweep
        self.notifies = type(ordering).dropped is not Ordering.dropped
        self.present = True
        self.links: list[Link] = []
        self.log: list[Carried] = []
        self.held = Marks(0, 0)
        self.first_deadline: i64 = NEVER
        self.born: Envelope | None = None
        self.expiry = ExpiryTimer(self)
        self._is_received = options.order == "received"
        self._draw: Callable[[], float] | None = generator.random if options.order == "random" else None
        self._order = TransferOrder(options.order, generator)
        self._payload_bytes: i64 = 0
        self._sizes = Sizes("cache", "cache_bytes", "evicted", "links")

    def join(self, hosted: HostedNode, jitter: Draws | None) -> None:
        """Learn which node this is."""
        self.hosted = hosted
        self.id = hosted.id
        self.process = hosted.process
        self.jitter = jitter

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
        return self._sizes.set(len(self.log), self._payload_bytes, 0, len(self.links))

    def keep(self, message: Carried, first_alive: i64) -> None:
        """Take a message into the cache."""
        self.held.add(message.serial, first_alive)
        self.log.append(message)
        self._payload_bytes += message.payload_bytes
        self.first_deadline = min(self.first_deadline, message.deadline)

    def take_expired(self, now: i64) -> list[Carried]:
        """Remove and return the messages whose deadline has passed: by deadline, then in order of reception."""
        kept: list[Carried] = []
        expired: list[Carried] = []
        first: i64 = NEVER
        for message in self.log:
            if message.deadline <= now:
                expired.append(message)
                self.held.remove(message.serial)
                self._payload_bytes -= message.payload_bytes
            else:
                kept.append(message)
                first = min(first, message.deadline)
        self.log = kept
        self.first_deadline = first
        if len(expired) > 1:
            expired.sort(key=_deadline)
        return expired

    def rank(self, message: Carried) -> i64:
        """Return the rank of a message that is queued now: of a smaller one the transfer is earlier."""
        if self._is_received:
            return 0
        if self._draw is not None:
            return int(self._draw() * _RANDOM)
        rank: Any = self._order.rank(message.parsed)
        if isinstance(rank, MessageId):  # in the order of ids: by source, incarnation and number
            return (rank.source << 11 | rank.incarnation) << 31 | rank.number
        whole: int = rank
        return whole


def _deadline(message: Carried) -> int:
    return message.deadline


@final
class ExpiryTimer(Event):
    """The time has come to remove expired messages from a cache."""

    __slots__ = ("carrier", "is_set")

    def __init__(self, carrier: Carrier) -> None:
        self.when = 0
        self.is_set = False
        self.carrier = carrier
