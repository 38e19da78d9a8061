"""A node's part of the epidemic: the messages it carries, and its links. `TimedWorld` moves the messages."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final, final

from mypy_extensions import i64

from precede.core.identity import MessageId
from precede.core.instants import Instant
from precede.experiments.contact_worlds.carrier import ContactCarrier
from precede.experiments.timed_contacts.carried import Carried
from precede.experiments.timed_contacts.marks import Marks
from precede.protocols.layered.epidemic.options import EpidemicOptions
from precede.protocols.layered.ordering import Ordering
from precede.protocols.layered.parsed_envelopes import NEVER, ParsedEnvelope
from precede.sim.draws import Draws

_RANDOM: Final = 9007199254740992.0
"""A random number of Python has 53 bits: times this one it is whole."""


@final
class Carrier(ContactCarrier):
    """The cache of a node, in the order of reception: `log`, and which messages it holds."""

    def __init__(self, options: EpidemicOptions, generator: Random, ordering: Ordering) -> None:
        super().__init__(options, generator, ordering)
        self.jitter: Draws | None = None
        self.log: list[Carried] = []
        self.held = Marks(0, 0)
        self._first_deadline: i64 = NEVER
        self._draw: Callable[[], float] | None = generator.random if self.order.is_random else None
        self._payload_bytes: i64 = 0

    def count(self) -> int:
        return len(self.log)

    def held_bytes(self) -> int:
        return self._payload_bytes

    def first_deadline(self) -> Instant:
        return self._first_deadline

    def keep(self, message: Carried, first_alive: i64) -> None:
        """Take a message into the cache."""
        self.held.add(message.serial, first_alive)
        self.log.append(message)
        self._payload_bytes += message.payload_bytes
        self._first_deadline = min(self._first_deadline, message.deadline)

    def take_expired(self, now: i64) -> list[ParsedEnvelope]:
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
        self._first_deadline = first
        if len(expired) > 1:
            expired.sort(key=_deadline)
        return [message.parsed for message in expired]

    def rank(self, message: Carried) -> i64:
        """Return the rank of a message that is queued now: of a smaller one the transfer is earlier."""
        if self.order.is_received:
            return 0
        if self._draw is not None:
            return int(self._draw() * _RANDOM)
        rank: Any = self.order.rank(message.parsed)
        if isinstance(rank, MessageId):  # in the order of ids: by source, incarnation and number
            return (rank.source << 11 | rank.incarnation) << 31 | rank.number
        whole: int = rank
        return whole


def _deadline(message: Carried) -> int:
    return message.deadline
