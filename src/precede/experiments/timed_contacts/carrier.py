"""A node's part of the epidemic: the messages it carries, and its links. `TimedWorld` moves the messages."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final, final

from librt.vecs import append, vec
from mypy_extensions import i64

from precede.core.identity import MessageId
from precede.core.instants import Instant
from precede.experiments.contact_worlds.carrier import ContactCarrier
from precede.experiments.timed_contacts.carried import Carried, Catalogue
from precede.experiments.timed_contacts.marks import Marks
from precede.protocols.layered.epidemic.options import EpidemicOptions
from precede.protocols.layered.ordering import Ordering
from precede.protocols.layered.parsed_envelopes import NEVER, ParsedEnvelope
from precede.sim.draws import Draws
from precede.sim.hosted_node import HostedNode

_RANDOM: Final = 9007199254740992.0
"""A random number of Python has 53 bits: times this one it is whole."""


@final
class Carrier(ContactCarrier):
    """The cache of a node: which messages it holds, and their serial numbers in the order of reception."""

    def __init__(self, options: EpidemicOptions, generator: Random, ordering: Ordering) -> None:
        super().__init__(options, generator, ordering)
        self.jitter: Draws | None = None
        self.held = Marks(0, 0)
        self.serials = vec[i64]()
        self.length: i64 = 0
        self._catalogue = Catalogue()
        self._first_deadline: i64 = NEVER
        self._draw: Callable[[], float] | None = generator.random if self.order.is_random else None
        self._payload_bytes: i64 = 0

    def enter(self, hosted: HostedNode, catalogue: Catalogue, jitter: Draws | None) -> None:
        self.join(hosted)
        self._catalogue = catalogue
        self.jitter = jitter

    def retire(self) -> None:
        super().retire()
        place: i64 = 0
        while place < self.length:
            self._catalogue.message(self.serials[place]).holders -= 1
            place += 1
        self.length = 0

    def count(self) -> int:
        return self.length

    def held_bytes(self) -> int:
        return self._payload_bytes

    def first_deadline(self) -> Instant:
        return self._first_deadline

    def keep(self, message: Carried) -> None:
        """Take a message into the cache."""
        serial = message.serial
        self.held.add(serial, self._catalogue.first_alive)
        if self.length == len(self.serials):
            self.serials = append(self.serials, serial)
        else:
            self.serials[self.length] = serial
        self.length += 1
        message.holders += 1
        self._payload_bytes += message.payload_bytes
        self._first_deadline = min(self._first_deadline, message.deadline)

    def take_expired(self, now: i64) -> list[ParsedEnvelope]:
        """Remove and return the messages whose deadline has passed: by deadline, then in order of reception."""
        expired: list[Carried] = []
        serials, deadlines = self.serials, self._catalogue.deadlines
        first: i64 = NEVER
        place: i64 = 0
        kept: i64 = 0
        while place < self.length:
            serial = serials[place]
            place += 1
            deadline = deadlines[serial]
            if deadline <= now:
                expired.append(self._catalogue.message(serial))
            else:
                serials[kept] = serial
                kept += 1
                first = min(first, deadline)
        self.length = kept
        self._first_deadline = first
        for message in expired:
            self.held.remove(message.serial)
            message.holders -= 1
            self._payload_bytes -= message.payload_bytes
        if len(expired) > 1:
            expired.sort(key=_deadline)
        return [message.parsed for message in expired]

    def rank(self, serial: i64) -> i64:
        """Return the rank of a message that is queued now: of a smaller one the transfer is earlier."""
        if self.order.is_received:
            return 0
        if self._draw is not None:
            return int(self._draw() * _RANDOM)
        rank: Any = self.order.rank(self._catalogue.message(serial).parsed)
        if isinstance(rank, MessageId):  # in the order of ids: by source, incarnation and number
            return (rank.source << 11 | rank.incarnation) << 31 | rank.number
        whole: int = rank
        return whole


def _deadline(message: Carried) -> int:
    return message.deadline
