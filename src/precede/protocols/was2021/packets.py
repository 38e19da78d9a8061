"""The packets of WAS (was2021, sections 4.1 to 4.5), with the sizes of its section 5.

Fields that many packets share: `ses` is the paper's Ses (the number of a host's connection attempt), `last_ses`
Ses_LC (the last attempt that was confirmed), `next` seq_NC (the next number the host expects), `previous` PS
(the stations that may have a record of the host).
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Final, Literal, TypeAlias

from msgspec import Meta
from msgspec.structs import replace

from precede.core.identity import Count, MessageId, NodeId
from precede.core.messages import MOST_MESSAGES, Message, Packet, Written
from precede.protocols.cells.frames import ConnectionNumber, RadioFrame, RoutedPacket, RoutesPacket, WiredFrame

Previous: TypeAlias = tuple[tuple[NodeId, ConnectionNumber], ...] | None
"""The stations where a host may be registered, each with its connection number; None means every station."""

Reason: TypeAlias = Literal["join", "connect", "recover"]


# Host to station -------------------------------------------------------------------------------------------


class UpPacket(RadioFrame, frozen=True, gc=False):
    """Host to station: one of the host's own messages."""

    kind: ClassVar[str] = "up"
    host: NodeId
    ses: ConnectionNumber
    message: Message

    control_entries: ClassVar[int] = 3
    messages: ClassVar[int] = 1


class AckPacket(RadioFrame, frozen=True, gc=False):
    """Host to station: I have delivered all numbers below `next`, and buffer `ranges` (both ends in)."""

    kind: ClassVar[str] = "ack"
    host: NodeId
    ses: ConnectionNumber
    next: Count
    ranges: tuple[tuple[Count, Count], ...]

    @property
    def control_entries(self) -> int:
        return 3 + 2 * len(self.ranges)


class ConnectPacket(RadioFrame, frozen=True, gc=False):
    """Host to station: join, connect after a move, or recover after a failure."""

    kind: ClassVar[str] = "connect"
    reason: Reason
    host: NodeId
    next: Count
    ses: ConnectionNumber
    last_ses: ConnectionNumber
    previous: Previous

    @property
    def control_entries(self) -> int:
        return 6 + 2 * len(self.previous or ())


class LeavePacket(RadioFrame, frozen=True, gc=False):
    """Host to any station: delete my registration at every station."""

    kind: ClassVar[str] = "leave"
    host: NodeId
    ses: ConnectionNumber
    previous: Previous

    @property
    def control_entries(self) -> int:
        return 2 + 2 * len(self.previous or ())


# Station to host -------------------------------------------------------------------------------------------


class DataPacket(RadioFrame, frozen=True, gc=False):
    """Station to its cell: the message with this station's number `number`.

    The paper marks each frame with the hosts that have delivered the message before. We send a host that list
    once, in `ConnectAckPacket.skip` (reading.md, E9), so `marks` stays empty.
    """

    kind: ClassVar[str] = "data"
    to_all: ClassVar[bool] = True
    number: Count
    message: Message
    marks: tuple[NodeId, ...] = ()
    messages: ClassVar[int] = 1

    @property
    def control_entries(self) -> int:
        return 3 + len(self.marks)


class PrivatePacket(RadioFrame, frozen=True, gc=False):
    """Station to one host: a message recovered from the previous station, under a number of this host only."""

    kind: ClassVar[str] = "private"
    host: NodeId
    ses: ConnectionNumber
    number: Count
    message: Message

    control_entries: ClassVar[int] = 5
    messages: ClassVar[int] = 1


class StationAckPacket(RadioFrame, frozen=True, gc=False):
    """Station to its cell: for each host, the number of its last message that the station accepted."""

    kind: ClassVar[str] = "station_ack"
    to_all: ClassVar[bool] = True
    accepted: tuple[tuple[NodeId, Count], ...]

    @property
    def control_entries(self) -> int:
        return 2 * len(self.accepted)


class ConnectAckPacket(RadioFrame, frozen=True, gc=False):
    """Station to host: you are connected in `ses`.

    `accepted` acknowledges the host's own messages. The host first gets `recovered` private messages, which are
    numbered up to `start - 1`, then the cell's messages from `start` on. It has delivered those in
    `skip` at another station before.
    """

    kind: ClassVar[str] = "connect_ack"
    host: NodeId
    accepted: Count
    start: Count
    recovered: Count
    skip: tuple[Count, ...]
    ses: ConnectionNumber

    uncounted_bytes: ClassVar[int] = 4

    @property
    def control_entries(self) -> int:
        return 5 + len(self.skip)


class LeaveAckPacket(RadioFrame, frozen=True, gc=False):
    """Station to host: you have left."""

    kind: ClassVar[str] = "leave_ack"
    host: NodeId
    ses: ConnectionNumber

    control_entries: ClassVar[int] = 2


class NotRegisteredPacket(RadioFrame, frozen=True, gc=False):
    """Station to host: you are not registered here in this connection, so recover."""

    kind: ClassVar[str] = "not_registered"
    host: NodeId
    ses: ConnectionNumber

    control_entries: ClassVar[int] = 2


# Station to station ----------------------------------------------------------------------------------------


class AppPacket(WiredFrame, frozen=True, gc=False):
    """Station to neighbouring station: a message that is flooded along the tree."""

    kind: ClassVar[str] = "app"
    message: Message

    control_entries: ClassVar[int] = 3
    messages: ClassVar[int] = 1


class FirstRequestPacket(RoutedPacket, frozen=True, gc=False):
    """Req1, new station to a previous one: do you own the host's record, and what does the host lack?"""

    kind: ClassVar[str] = "first_request"
    next: Count
    last_ses: ConnectionNumber

    control_entries: ClassVar[int] = 4
    uncounted_bytes: ClassVar[int] = 4


class FirstResponsePacket(RoutedPacket, frozen=True, gc=False):
    """Rsp1, the owner's answer to Req1.

    `accepted` is the number of the host's own last message that was accepted, `undelivered` the messages that
    the host has not delivered, in delivery order.
    """

    kind: ClassVar[str] = "first_response"
    accepted: Count
    undelivered: tuple[MessageId, ...]

    uncounted_bytes: ClassVar[int] = 4

    @property
    def control_entries(self) -> int:
        return 3 + 2 * len(self.undelivered)


class SecondRequestPacket(RoutedPacket, frozen=True, gc=False):
    """Req2, new station to the owner: send me the host's record and these messages, which I do not have."""

    kind: ClassVar[str] = "second_request"
    missing_ids: tuple[MessageId, ...]

    uncounted_bytes: ClassVar[int] = 4

    @property
    def control_entries(self) -> int:
        return 2 + 2 * len(self.missing_ids)


class SecondResponsePacket(RoutedPacket, frozen=True, gc=False):
    """Rsp2, which moves the record: the requested messages, and the ids of messages received since Rsp1.

    The paper has one packet; over sockets a long one is several, and all but the last have `more`.
    """

    kind: ClassVar[str] = "second_response"
    recovered: Annotated[tuple[Message, ...], Meta(max_length=MOST_MESSAGES)]
    received: tuple[MessageId, ...]
    more: bool = False

    uncounted_bytes: ClassVar[int] = 8

    def written(self) -> Sequence[Written]:
        return [Written(message) for message in self.recovered]

    def divided(self, most: int) -> Sequence[Packet]:
        *first, last = [self.recovered[n : n + most] for n in range(0, len(self.recovered), most)]
        parts = [replace(self, recovered=part, received=(), more=True) for part in first]
        return [*parts, replace(self, recovered=last)]

    @property
    def messages(self) -> int:  # type: ignore[override]
        return len(self.recovered)

    @property
    def control_entries(self) -> int:
        return 2 + 3 * len(self.recovered) + 2 * len(self.received)

    @property
    def size_bytes(self) -> int:
        payload_bytes = sum(len(message.payload) for message in self.recovered)
        return self.header_bytes + self.control_bytes + payload_bytes


class NoRecordPacket(RoutedPacket, frozen=True, gc=False):
    """The negative answer to Req1 and Req2, which the paper lacks (reading.md, E14): no record here."""

    kind: ClassVar[str] = "no_record"

    control_entries: ClassVar[int] = 2


class DeletePacket(RoutedPacket, frozen=True, gc=False):
    """Delete, station to station: end the host's registration if its connection is `ses` or an earlier one."""

    kind: ClassVar[str] = "delete"

    control_entries: ClassVar[int] = 2


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
