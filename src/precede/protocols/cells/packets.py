"""Frames between hosts and stations that act for them, shared by CK (was2021) and prs1997's section 9.

A message is known to stations as (initial station, number): the paper's M_id = (M_init, M_seq). Radio frames
travel in UDP/IPv4/MAC (48 bytes), wired ones in TCP/IPv4/MAC (60 bytes), as in was2021's section 5; an integer
is 4 bytes.
"""

from __future__ import annotations

from typing import ClassVar, Final, TypeAlias

from precede.core.identity import NodeId
from precede.core.messages import Message, Packet
from precede.protocols.was2021.packets import RADIO_HEADER, WIRED_HEADER, RoutedPacket, RoutesPacket

Vector: TypeAlias = tuple[tuple[NodeId, int], ...]
"""One number for each initial station in question, ascending by station."""

MessageKey: TypeAlias = tuple[NodeId, int]
"""(M_init, M_seq)."""


class Frame(Packet, frozen=True, gc=False):
    """A header, then whole numbers; a frame with a message adds its payload."""

    header: ClassVar[int]
    messages: ClassVar[int] = 0

    @property
    def control_bytes(self) -> int:
        return 4 * self.control_entries

    @property
    def size_bytes(self) -> int:
        return self.header + self.control_bytes


class RadioFrame(Frame, frozen=True, gc=False):
    """Between a host and its station."""

    header: ClassVar[int] = RADIO_HEADER


class WiredFrame(Frame, frozen=True, gc=False):
    """Between stations."""

    header: ClassVar[int] = WIRED_HEADER


class ProxyUpPacket(RadioFrame, frozen=True, gc=False):
    """Host to station: a new message."""

    kind: ClassVar[str] = "proxy_up"
    host: NodeId
    message: Message
    messages: ClassVar[int] = 1

    @property
    def control_entries(self) -> int:
        return 2

    @property
    def size_bytes(self) -> int:
        return self.header + self.control_bytes + len(self.message.payload)


class ProxyDataPacket(RadioFrame, frozen=True, gc=False):
    """Station to the hosts that may deliver this message now."""

    kind: ClassVar[str] = "proxy_data"
    origin: NodeId
    number: int
    message: Message
    targets: tuple[NodeId, ...]
    messages: ClassVar[int] = 1

    @property
    def control_entries(self) -> int:
        return 4 + len(self.targets)

    @property
    def size_bytes(self) -> int:
        return self.header + self.control_bytes + len(self.message.payload)


class ProxyRepeatPacket(ProxyDataPacket, frozen=True, gc=False):
    """The same, when at least one of the hosts was sent it before."""

    kind: ClassVar[str] = "proxy_repeat"


class ProxyAckPacket(RadioFrame, frozen=True, gc=False):
    """Host to station: the last message delivered of each initial station in question."""

    kind: ClassVar[str] = "proxy_ack"
    host: NodeId
    delivered: Vector

    @property
    def control_entries(self) -> int:
        return 1 + 2 * len(self.delivered)


class ProxyConnectPacket(RadioFrame, frozen=True, gc=False):
    """Host to station: I am here; my record is at `previous`, or where that one sent it.

    A host that was never connected names the first station it tried: there it joins, and nowhere else.
    `delivered` is what the host has, where its former station must know it before it gives the record away.
    """

    kind: ClassVar[str] = "proxy_connect"
    host: NodeId
    ses: int
    previous: NodeId
    delivered: Vector = ()

    @property
    def control_entries(self) -> int:
        return 3 + 2 * len(self.delivered)


class ProxyConnectAckPacket(RadioFrame, frozen=True, gc=False):
    """Station to host: I have your record; `accepted` of your messages are in."""

    kind: ClassVar[str] = "proxy_connect_ack"
    host: NodeId
    ses: int
    accepted: int
    delivered: Vector

    @property
    def control_entries(self) -> int:
        return 3 + 2 * len(self.delivered)


class ProxyStationAckPacket(RadioFrame, frozen=True, gc=False):
    """Station to host: so many of your messages are in."""

    kind: ClassVar[str] = "proxy_station_ack"
    host: NodeId
    accepted: int
    control_entries: ClassVar[int] = 2


class ProxyAppPacket(WiredFrame, frozen=True, gc=False):
    """Station to station: message `number` of station `origin`. A subclass adds what it must come after."""

    origin: NodeId
    number: int
    message: Message
    messages: ClassVar[int] = 1

    @property
    def key(self) -> MessageKey:
        return self.origin, self.number

    @property
    def size_bytes(self) -> int:
        return self.header + self.control_bytes + len(self.message.payload)


class ProxyDeletePacket(WiredFrame, frozen=True, gc=False):
    """Delete(M), station to all stations: every destination has these; several messages at once."""

    kind: ClassVar[str] = "proxy_delete"
    delete: tuple[MessageKey, ...]

    @property
    def control_entries(self) -> int:
        return 2 * len(self.delete)


class ProxyAcksPacket(WiredFrame, RoutedPacket, frozen=True, gc=False):
    """Acknowledge(h), station to initial station: which of its messages hosts have, several hosts at once."""

    kind: ClassVar[str] = "proxy_acks"
    acks: Vector

    @property
    def control_entries(self) -> int:
        return 2 * len(self.acks)


class ProxyGetPacket(WiredFrame, RoutedPacket, frozen=True, gc=False):
    """Station to station: give `asker` the host's record, or send this where you sent the record."""

    kind: ClassVar[str] = "proxy_get"
    asker: NodeId
    delivered: Vector = ()

    @property
    def control_entries(self) -> int:
        return 3 + 2 * len(self.delivered)


class ProxyOvertakenPacket(WiredFrame, RoutedPacket, frozen=True, gc=False):
    """Station to station: the host has a newer connection and its record is here; stop waiting for it."""

    kind: ClassVar[str] = "proxy_overtaken"
    control_entries: ClassVar[int] = 2


class ProxyGivePacket(WiredFrame, RoutedPacket, frozen=True, gc=False):
    """Station to station: the host's record. A subclass adds more of it."""

    accepted: int
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
