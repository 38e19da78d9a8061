"""Packets between hosts and the stations that act for them, shared by CK (was2021) and section 9 of prs1997.

Stations name a message by its initial station and number, the paper's M_id = (M_init, M_seq). `ses` is the
number of a host's connection, as in was2021.
"""

from typing import ClassVar, Final, TypeAlias

from precede.core.identity import Count, NodeId
from precede.core.messages import Message, Packet
from precede.protocols.cells.frames import ConnectionNumber, RadioFrame, RoutedPacket, RoutesPacket, WiredFrame

Vector: TypeAlias = tuple[tuple[NodeId, Count], ...]
"""Pairs of a node, mostly an initial station (where messages entered), and a number."""

MessageKey: TypeAlias = tuple[NodeId, Count]
"""How stations name a message: its initial station (where it entered) and its number there (M_init, M_seq)."""


# Between host and station ----------------------------------------------------------------------------------


class ProxyUpPacket(RadioFrame, frozen=True, gc=False):
    """Host to station: one of the host's own messages."""

    kind: ClassVar[str] = "proxy_up"
    host: NodeId
    message: Message
    messages: ClassVar[int] = 1

    @property
    def control_entries(self) -> int:
        return 2


class ProxyDataPacket(RadioFrame, frozen=True, gc=False):
    """Station to the hosts `targets`, which may all deliver this message now."""

    kind: ClassVar[str] = "proxy_data"
    to_all: ClassVar[bool] = True
    origin: NodeId
    number: Count
    message: Message
    targets: tuple[NodeId, ...]
    messages: ClassVar[int] = 1

    @property
    def control_entries(self) -> int:
        return 4 + len(self.targets)


class ProxyRepeatPacket(ProxyDataPacket, frozen=True, gc=False):
    """A `ProxyDataPacket` that is a retransmission for at least one of its targets."""

    kind: ClassVar[str] = "proxy_repeat"


class ProxyAckPacket(RadioFrame, frozen=True, gc=False):
    """Host to station: for each of these initial stations, the number of the last message delivered."""

    kind: ClassVar[str] = "proxy_ack"
    host: NodeId
    delivered: Vector

    @property
    def control_entries(self) -> int:
        return 1 + 2 * len(self.delivered)


class ProxyConnectPacket(RadioFrame, frozen=True, gc=False):
    """Host to station: connect me; my record is at `previous`, or where that station sent it.

    A host that was never connected names the first station it tried: only there it joins. `delivered` is what
    the host has delivered, if its former station must know that before it sends the record away.
    """

    kind: ClassVar[str] = "proxy_connect"
    host: NodeId
    ses: ConnectionNumber
    previous: NodeId
    delivered: Vector = ()

    @property
    def control_entries(self) -> int:
        return 3 + 2 * len(self.delivered)


class ProxyConnectAckPacket(RadioFrame, frozen=True, gc=False):
    """Station to host: you are connected in `ses`.

    `accepted` is the number of your own last accepted message. `delivered` is, for each initial station, the
    last message that you have delivered or need not get.
    """

    kind: ClassVar[str] = "proxy_connect_ack"
    host: NodeId
    ses: ConnectionNumber
    accepted: Count
    delivered: Vector

    @property
    def control_entries(self) -> int:
        return 3 + 2 * len(self.delivered)


class ProxyStationAckPacket(RadioFrame, frozen=True, gc=False):
    """Station to host: `accepted` is the number of your own last message that I accepted."""

    kind: ClassVar[str] = "proxy_station_ack"
    host: NodeId
    accepted: Count
    control_entries: ClassVar[int] = 2


# Between stations ------------------------------------------------------------------------------------------


class ProxyAppPacket(WiredFrame, frozen=True, gc=False):
    """Station to station: message `number` of station `origin`. A subclass adds its order data."""

    origin: NodeId
    number: Count
    message: Message
    messages: ClassVar[int] = 1

    @property
    def key(self) -> MessageKey:
        """The name of the message among stations, M_id."""
        return self.origin, self.number


class ProxyDeletePacket(WiredFrame, frozen=True, gc=False):
    """Delete(M), station to all stations: every destination has acknowledged these messages."""

    kind: ClassVar[str] = "proxy_delete"
    delete: tuple[MessageKey, ...]

    @property
    def control_entries(self) -> int:
        return 2 * len(self.delete)


class ProxyAcksPacket(RoutedPacket, frozen=True, gc=False):
    """Acknowledge(h), station to initial station: the last of your messages that each host has delivered."""

    kind: ClassVar[str] = "proxy_acks"
    acks: Vector

    @property
    def control_entries(self) -> int:
        return 2 * len(self.acks)


class ProxyGetPacket(RoutedPacket, frozen=True, gc=False):
    """Station to station: send `asker` the host's record, or forward this to where you sent the record."""

    kind: ClassVar[str] = "proxy_get"
    asker: NodeId
    delivered: Vector = ()

    @property
    def control_entries(self) -> int:
        return 3 + 2 * len(self.delivered)


class ProxyOvertakenPacket(RoutedPacket, frozen=True, gc=False):
    """Station to station: the host has a newer connection, so stop waiting for its record."""

    kind: ClassVar[str] = "proxy_overtaken"
    control_entries: ClassVar[int] = 2


class ProxyGivePacket(RoutedPacket, frozen=True, gc=False):
    """Station to station: the host's record. A subclass adds its order data."""

    accepted: Count
    delivered: Vector

    @property
    def control_entries(self) -> int:
        return 3 + len(self.delivered)


PACKETS: Final[tuple[type[Packet], ...]] = (
    ProxyUpPacket,
    ProxyDataPacket,
    ProxyRepeatPacket,
    ProxyAckPacket,
    ProxyConnectPacket,
    ProxyConnectAckPacket,
    ProxyStationAckPacket,
    ProxyDeletePacket,
    ProxyAcksPacket,
    ProxyGetPacket,
    ProxyOvertakenPacket,
    RoutesPacket,
)
