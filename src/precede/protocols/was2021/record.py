"""What a WAS station keeps: a record per host, and the messages some host of its cell needs (section 4.1)."""

from __future__ import annotations

from msgspec import Struct

from precede.core.effects import RADIO, CancelSend, Effect, Send, SetTimer
from precede.core.identity import NEIGHBOURS, MessageId, NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Message
from precede.protocols.was2021.packets import DataPacket, FirstRequestPacket, Previous


class Attempt(Struct, frozen=True):
    """One Rsp1 in hand: what was received before it (T2), what the host has not delivered, who answered."""

    boundary: int
    undelivered: tuple[MessageId, ...]
    accepted: int
    station: NodeId


class Record:
    """A host at one station: as its owner, or waiting for the owner's Rsp2.

    `next` is the host's cumulative acknowledgement, `base` where the cell's own numbers begin for it (below are
    the private ones), `pin` what a waiting station must keep. A record is a draft until `owner`.
    """

    __slots__ = (
        "accepted",
        "asked",
        "attempts",
        "base",
        "began",
        "boundary",
        "denied",
        "early",
        "first",
        "held",
        "host",
        "marks",
        "next",
        "owner",
        "pending",
        "pin",
        "previous",
        "private",
        "private_at",
        "ses",
    )

    def __init__(self, host: NodeId, ses: int, pin: int, previous: Previous) -> None:
        self.host = host
        self.owner = False
        self.ses = ses
        self.began = ses
        self.first = 0
        self.previous = previous
        self.pin = pin
        self.next = pin
        self.base = pin
        self.private: dict[int, Message] = {}
        self.private_at: dict[int, Instant | None] = {}
        self.marks: dict[int, None] = {}
        self.held: set[int] = set()
        self.accepted = 0
        self.early: dict[int, Message] = {}
        self.boundary = 0
        self.attempts: dict[int, Attempt] = {}
        self.pending: FirstRequestPacket | None = None
        self.asked: tuple[NodeId, ...] = ()
        self.denied: set[NodeId] = set()

    def need(self) -> int:
        """The lowest number of the cell that must be kept for this host."""
        if not self.owner:
            return self.pin
        return self.next if self.next > self.base else self.base

    def needs(self, number: int) -> bool:
        """Must this one be repeated for this host?"""
        return self.owner and number >= self.next and number >= self.base and number not in self.held

    def acknowledge(self, upto: int) -> None:
        """Everything below `upto` is delivered."""
        if upto <= self.next:
            return
        self.next = upto
        for numbers in (self.private, self.private_at, self.marks):
            for number in [number for number in numbers if number < upto]:
                del numbers[number]
        self.held = {number for number in self.held if number >= upto}

    def forget_connection(self) -> None:
        """A new connection: the host's RBuffer is empty again (E8), and nothing is under way to it."""
        self.held.clear()
        self.early.clear()
        self.private_at.clear()


class StationBuffer:
    """The station's SBuffer, its numbering, and when each message was last really transmitted.

    `sent_at` is in the order of transmission, so what is due to be repeated is at its front.
    """

    def __init__(self, retransmit: Duration) -> None:
        self.retransmit = retransmit
        self.last = 0
        self.low = 1
        self.messages: dict[int, Message] = {}
        self.position: dict[MessageId, int] = {}
        self.queued: dict[int, None] = {}
        self.sent_at: dict[int, Instant] = {}
        self.armed: Instant | None = None

    def add(self, message: Message) -> int:
        """Number a message and keep it."""
        self.last += 1
        self.messages[self.last] = message
        self.position[message.id] = self.last
        return self.last

    def pass_by(self) -> None:
        """Number a message that no host here needs."""
        self.last += 1
        self.low = self.last + 1

    def send(self, number: int, marks: tuple[NodeId, ...], effects: list[Effect]) -> None:
        """Queue a message for the cell; never twice."""
        if number in self.queued:
            return
        self.queued[number] = None
        self.sent_at.pop(number, None)
        effects.append(Send(DataPacket(number, self.messages[number], marks), NEIGHBOURS, RADIO, number))

    def sent(self, number: int, now: Instant, effects: list[Effect]) -> None:
        """It has left the queue: the retransmission time runs from here."""
        self.queued.pop(number, None)
        if number in self.messages:
            self.sent_at.pop(number, None)
            self.sent_at[number] = now
            self.arm(effects)

    def due(self, now: Instant) -> list[int]:
        """What was transmitted a retransmission time ago; it counts as looked at now."""
        found = []
        for number, at in self.sent_at.items():
            if at + self.retransmit > now:
                break
            found.append(number)
        for number in found:
            del self.sent_at[number]
            self.sent_at[number] = now
        return found

    def arm(self, effects: list[Effect]) -> None:
        """One timer for the message that was transmitted longest ago."""
        if self.armed is None and self.sent_at:
            self.armed = next(iter(self.sent_at.values())) + self.retransmit
            effects.append(SetTimer("repeat", self.armed))

    def discard_below(self, low: int, effects: list[Effect]) -> None:
        """Prefix discard (E7): everything below, never anything else."""
        if low <= self.low:
            return
        for number in range(self.low, low):
            if number in self.messages:
                self.discard(number, effects)
        self.low = low

    def discard(self, number: int, effects: list[Effect]) -> None:
        message = self.messages.pop(number)
        if self.position.get(message.id) == number:
            del self.position[message.id]
        self.sent_at.pop(number, None)
        if number in self.queued:
            del self.queued[number]
            effects.append(CancelSend(number))
