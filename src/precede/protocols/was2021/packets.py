"""The frames of WAS (Wilhelm, Arantes, Sens 2021, sections 4.1 to 4.5), with the sizes of its section 5.

Radio frames travel in UDP/IPv4/MAC (48 bytes), wired ones in TCP/IPv4/MAC (60 bytes). An integer is 4 bytes, a
message's id 8. `ses` is the paper's Ses (the number of a host's connection attempt), `last_ses` Ses_LC, `next`
seq_NC (the next number expected), `previous` PS, with None for "every station".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final, Literal, TypeAlias

from precede.core.identity import MessageId, NodeId
from precede.core.messages import Message, Packet, Written

RADIO_HEADER: Final = 48
WIRED_HEADER: Final = 60

Previous: TypeAlias = tuple[tuple[NodeId, int], ...] | None
"""Where a host may be registered: (station, ses) pairs; None when it cannot know, so every station is asked."""

Reason: TypeAlias = Literal["join", "connect", "recover"]


class UpPacket(Packet, frozen=True, gc=False):
    """Host to station: a new message, in the order of its number."""

    kind: ClassVar[str] = "up"
    host: NodeId
    ses: int
    message: Message

    control_entries: ClassVar[int] = 3
    control_bytes: ClassVar[int] = 12
    messages: ClassVar[int] = 1

    @property
    def size_bytes(self) -> int:
        return RADIO_HEADER + 12 + len(self.message.payload)


class AckPacket(Packet, frozen=True, gc=False):
    """Host to station: everything below `next` is delivered, and these ranges (both ends in) are in hand."""

    kind: ClassVar[str] = "ack"
    host: NodeId
    ses: int
    next: int
    ranges: tuple[tuple[int, int], ...]

    messages: ClassVar[int] = 0

    @property
    def control_entries(self) -> int:
        return 3 + 2 * len(self.ranges)

    @property
    def control_bytes(self) -> int:
        return 12 + 8 * len(self.ranges)

    @property
    def size_bytes(self) -> int:
        return RADIO_HEADER + 12 + 8 * len(self.ranges)


class ConnectPacket(Packet, frozen=True, gc=False):
    """Host to station: join, connect after a move, or recover after a failure."""

    kind: ClassVar[str] = "connect"
    reason: Reason
    host: NodeId
    next: int
    ses: int
    last_ses: int
    previous: Previous

    messages: ClassVar[int] = 0

    @property
    def control_entries(self) -> int:
        return 6 + 2 * len(self.previous or ())

    @property
    def control_bytes(self) -> int:
        return 24 + 8 * len(self.previous or ())

    @property
    def size_bytes(self) -> int:
        return RADIO_HEADER + self.control_bytes


class LeavePacket(Packet, frozen=True, gc=False):
    """Host to any station: forget me everywhere."""

    kind: ClassVar[str] = "leave"
    host: NodeId
    ses: int
    previous: Previous

    messages: ClassVar[int] = 0

    @property
    def control_entries(self) -> int:
        return 2 + 2 * len(self.previous or ())

    @property
    def control_bytes(self) -> int:
        return 8 + 8 * len(self.previous or ())

    @property
    def size_bytes(self) -> int:
        return RADIO_HEADER + self.control_bytes


class DataPacket(Packet, frozen=True, gc=False):
    """Station to its cell: message `number` of this station. `marks` are hosts that have delivered it before.

    The marks are the paper's; ours are in `ConnectAckPacket.skip` (reading.md, E9), so they stay empty.
    """

    kind: ClassVar[str] = "data"
    number: int
    message: Message
    marks: tuple[NodeId, ...] = ()

    messages: ClassVar[int] = 1

    @property
    def control_entries(self) -> int:
        return 3 + len(self.marks)

    @property
    def control_bytes(self) -> int:
        return 12 + 4 * len(self.marks)

    @property
    def size_bytes(self) -> int:
        return RADIO_HEADER + 12 + 4 * len(self.marks) + len(self.message.payload)


class PrivatePacket(Packet, frozen=True, gc=False):
    """Station to one host: a message the station had discarded, under a number of this host's own."""

    kind: ClassVar[str] = "private"
    host: NodeId
    ses: int
    number: int
    message: Message

    control_entries: ClassVar[int] = 5
    control_bytes: ClassVar[int] = 20
    messages: ClassVar[int] = 1

    @property
    def size_bytes(self) -> int:
        return RADIO_HEADER + 20 + len(self.message.payload)


class StationAckPacket(Packet, frozen=True, gc=False):
    """Station to its cell: for each host the last number accepted."""

    kind: ClassVar[str] = "station_ack"
    accepted: tuple[tuple[NodeId, int], ...]

    messages: ClassVar[int] = 0

    @property
    def control_entries(self) -> int:
        return 2 * len(self.accepted)

    @property
    def control_bytes(self) -> int:
        return 8 * len(self.accepted)

    @property
    def size_bytes(self) -> int:
        return RADIO_HEADER + 8 * len(self.accepted)


class ConnectAckPacket(Packet, frozen=True, gc=False):
    """Station to host: you are connected in `ses`.

    `accepted` acknowledges the host's own messages; `recovered` private messages come first, numbered up to
    `start - 1`; then the cell's own from `start`, of which those in `skip` were delivered elsewhere before.
    """

    kind: ClassVar[str] = "connect_ack"
    host: NodeId
    accepted: int
    start: int
    recovered: int
    skip: tuple[int, ...]
    ses: int

    messages: ClassVar[int] = 0

    @property
    def control_entries(self) -> int:
        return 5 + len(self.skip)

    @property
    def control_bytes(self) -> int:
        return 24 + 4 * len(self.skip)

    @property
    def size_bytes(self) -> int:
        return RADIO_HEADER + self.control_bytes


class LeaveAckPacket(Packet, frozen=True, gc=False):
    """Station to host: you have left."""

    kind: ClassVar[str] = "leave_ack"
    host: NodeId
    ses: int

    control_entries: ClassVar[int] = 2
    control_bytes: ClassVar[int] = 8
    messages: ClassVar[int] = 0
    size_bytes: ClassVar[int] = RADIO_HEADER + 8


class NotRegisteredPacket(Packet, frozen=True, gc=False):
    """Station to host: I do not know you in this connection; recover."""

    kind: ClassVar[str] = "not_registered"
    host: NodeId
    ses: int

    control_entries: ClassVar[int] = 2
    control_bytes: ClassVar[int] = 8
    messages: ClassVar[int] = 0
    size_bytes: ClassVar[int] = RADIO_HEADER + 8


class AppPacket(Packet, frozen=True, gc=False):
    """Station to neighbouring station: a message on its way along the tree."""

    kind: ClassVar[str] = "app"
    message: Message

    control_entries: ClassVar[int] = 3
    control_bytes: ClassVar[int] = 12
    messages: ClassVar[int] = 1

    @property
    def size_bytes(self) -> int:
        return WIRED_HEADER + 12 + len(self.message.payload)


class RoutesPacket(Packet, frozen=True, gc=False):
    """Station to neighbouring station, once per link: which stations are reached through me."""

    kind: ClassVar[str] = "routes"
    stations: tuple[NodeId, ...]

    messages: ClassVar[int] = 0

    @property
    def control_entries(self) -> int:
        return len(self.stations)

    @property
    def control_bytes(self) -> int:
        return 4 * len(self.stations)

    @property
    def size_bytes(self) -> int:
        return WIRED_HEADER + self.control_bytes


class RoutedPacket(Packet, frozen=True, gc=False):
    """Station to station, hop by hop on the same first-in first-out links as the messages.

    Lemmas 1 to 5 of the paper need exactly that: a direct connection between the two would overtake messages.
    """

    origin: NodeId
    to: NodeId
    host: NodeId
    ses: int


class FirstRequestPacket(RoutedPacket, frozen=True, gc=False):
    """Req1, new station to previous ones: who has the host's record, and what has it not delivered?"""

    kind: ClassVar[str] = "first_request"
    next: int
    last_ses: int

    control_entries: ClassVar[int] = 4
    control_bytes: ClassVar[int] = 20
    messages: ClassVar[int] = 0
    size_bytes: ClassVar[int] = WIRED_HEADER + 20


class FirstResponsePacket(RoutedPacket, frozen=True, gc=False):
    """Rsp1: the host's last accepted number and the ids of what it has not delivered, in delivery order."""

    kind: ClassVar[str] = "first_response"
    accepted: int
    undelivered: tuple[MessageId, ...]

    messages: ClassVar[int] = 0

    @property
    def control_entries(self) -> int:
        return 3 + 2 * len(self.undelivered)

    @property
    def control_bytes(self) -> int:
        return 16 + 8 * len(self.undelivered)

    @property
    def size_bytes(self) -> int:
        return WIRED_HEADER + self.control_bytes


class SecondRequestPacket(RoutedPacket, frozen=True, gc=False):
    """Req2: send me these messages and the host's record."""

    kind: ClassVar[str] = "second_request"
    wanted: tuple[MessageId, ...]

    messages: ClassVar[int] = 0

    @property
    def control_entries(self) -> int:
        return 2 + 2 * len(self.wanted)

    @property
    def control_bytes(self) -> int:
        return 12 + 8 * len(self.wanted)

    @property
    def size_bytes(self) -> int:
        return WIRED_HEADER + self.control_bytes


class SecondResponsePacket(RoutedPacket, frozen=True, gc=False):
    """Rsp2, which carries the token: the messages asked for, and the ids received since Req1."""

    kind: ClassVar[str] = "second_response"
    recovered: tuple[Message, ...]
    received: tuple[MessageId, ...]

    def written(self) -> Sequence[Written]:
        return [Written(message) for message in self.recovered]

    @property
    def messages(self) -> int:
        return len(self.recovered)

    @property
    def control_entries(self) -> int:
        return 2 + 3 * len(self.recovered) + 2 * len(self.received)

    @property
    def control_bytes(self) -> int:
        return 16 + 12 * len(self.recovered) + 8 * len(self.received)

    @property
    def size_bytes(self) -> int:
        return WIRED_HEADER + self.control_bytes + sum(len(message.payload) for message in self.recovered)


class NoRecordPacket(RoutedPacket, frozen=True, gc=False):
    """The negative answer the paper lacks (reading.md, E14): I have no record of this host."""

    kind: ClassVar[str] = "no_record"

    control_entries: ClassVar[int] = 2
    control_bytes: ClassVar[int] = 8
    messages: ClassVar[int] = 0
    size_bytes: ClassVar[int] = WIRED_HEADER + 8


class DeletePacket(RoutedPacket, frozen=True, gc=False):
    """Delete: forget the host up to this connection."""

    kind: ClassVar[str] = "delete"

    control_entries: ClassVar[int] = 2
    control_bytes: ClassVar[int] = 8
    messages: ClassVar[int] = 0
    size_bytes: ClassVar[int] = WIRED_HEADER + 8


PACKETS: Final[tuple[type[Packet], ...]] = (
    UpPacket,
    AckPacket,
    ConnectPacket,
    LeavePacket,
    DataPacket,
    PrivatePacket,
    StationAckPacket,
    ConnectAckPacket,
    LeaveAckPacket,
    NotRegisteredPacket,
    AppPacket,
    RoutesPacket,
    FirstRequestPacket,
    FirstResponsePacket,
    SecondRequestPacket,
    SecondResponsePacket,
    NoRecordPacket,
    DeletePacket,
)
