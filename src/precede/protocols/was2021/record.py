"""What a WAS station knows about one host (was2021, sections 4.1 and 4.3)."""

from __future__ import annotations

from msgspec import Struct

from precede.core.identity import MessageId, NodeId
from precede.core.instants import Instant
from precede.core.messages import Message
from precede.protocols.was2021.packets import ConnectPacket, FirstRequestPacket, Previous


class Attempt(Struct, frozen=True):
    """What a new station received in an Rsp1, an owner's first answer, and from which `station`.

    `boundary` is the last number that the new station had given when Rsp1 came (the paper's T2). `recovered`
    are the requested messages that came in earlier parts of Rsp2.
    """

    boundary: int
    undelivered: tuple[MessageId, ...]
    accepted: int
    station: NodeId
    recovered: tuple[Message, ...] = ()


class Record(Struct, eq=False):
    """One host at one station, which owns the record (`owner`) or waits for the owner's Rsp2.

    In every record: `ses` is the host's newest connection known here, `previous` the stations that may have a
    record of the host (PS), `pending` the newest Req1 of another station, which is answered when this station
    becomes the owner.

    In a waiting record: `pin` is the lowest number that must be kept for the host, `began` the first connection
    whose Rsp1 is accepted, `asked_stations` those that got Req1, `denied` those without a record, `attempts`
    the answers by connection.

    In an owner's record: `first` is the connection in which the record came here, `next` the number below which
    the host has acknowledged everything, `base` the first of the cell's own numbers for it. `private` are
    recovered messages, under numbers below `base`, with their last transmission in `private_at` (None: in the
    radio's queue). `marks` are numbers it delivered elsewhere, `held` numbers it buffers. `accepted` is the
    number of its last own message accepted, `early` its own messages beyond a gap, `boundary` the last number
    given when Rsp1 was sent.
    """

    host: NodeId
    previous: Previous
    ses: int
    began: int
    pin: int
    next: int
    base: int
    owner: bool = False
    first: int = 0
    private: dict[int, Message] = {}
    private_at: dict[int, Instant | None] = {}
    marks: dict[int, None] = {}
    held: set[int] = set()
    accepted: int = 0
    early: dict[int, Message] = {}
    boundary: int = 0
    attempts: dict[int, Attempt] = {}
    pending: FirstRequestPacket | None = None
    asked_stations: tuple[NodeId, ...] = ()
    denied: set[NodeId] = set()

    @staticmethod
    def of(packet: ConnectPacket, low: int) -> Record:
        """Make the record of a host that connects; messages from the number `low` on are kept for it."""
        return Record(packet.host, packet.previous, packet.ses, packet.ses, low, low, low)

    def need(self) -> int:
        """Return the lowest of the cell's numbers that must be kept for this host."""
        if not self.owner:
            return self.pin
        return self.next if self.next > self.base else self.base

    def needs(self, number: int) -> bool:
        """Must the cell's message with this number be retransmitted for this host?"""
        return self.owner and number >= self.next and number >= self.base and number not in self.held

    def acknowledge(self, upto: int) -> None:
        """Record that the host has delivered everything below `upto`. Drop what is kept for those numbers."""
        if upto <= self.next:
            return
        self.next = upto
        for numbers in (self.private, self.private_at, self.marks):
            for number in [number for number in numbers if number < upto]:
                del numbers[number]
        self.held = {number for number in self.held if number >= upto}

    def forget_connection(self) -> None:
        """Forget the numbers that the host buffers (E8), its early own messages and what is sent to it."""
        self.held.clear()
        self.early.clear()
        self.private_at.clear()
