"""Values derived from a flood or a packet once, for all nodes of a simulation that receive it (drift2006).

A transmission is received by all neighbours, and a flood by all nodes. Compiled code reads a field of these
classes with one or two machine instructions; a field of a struct takes over a hundred.
"""

from __future__ import annotations

from typing import Any, Final, final

from precede.core.effects import Arrive, Deliver, Key
from precede.core.identity import NodeId
from precede.core.messages import Message
from precede.protocols.floods.reliable_floods import RELAY
from precede.protocols.floods.stream import StreamId


@final
class PreparedFlood:
    """The fields of a flood, and its effects if it has a message.

    `plain`: it has a message and does not change the set of sources. `relay_key`: the key of the packet in
    which a node relays it. `author`: the node and incarnation that wrote the message.
    """

    __slots__ = (
        "arrive",
        "author",
        "deliver",
        "message",
        "message_number",
        "number",
        "plain",
        "relay_key",
        "serial",
        "source",
        "stream",
        "timestamp",
    )

    def __init__(self, flood: Any) -> None:
        source: NodeId = flood.source
        serial: int = flood.serial
        message: Message | None = flood.message
        self.source = source
        self.serial = serial
        self.stream: StreamId = (source, serial)
        self.number: int = flood.number
        self.timestamp: int = flood.timestamp
        self.message = message
        self.plain = message is not None and flood.admits is None and not flood.closes
        self.relay_key: Key = ("net", RELAY, source, serial, self.number)
        self.arrive: Arrive | None = None
        self.deliver: Deliver | None = None
        self.author: tuple[NodeId, int] = (source, 0)
        self.message_number = 0
        if message is not None:
            self.arrive = Arrive((message,))
            self.deliver = Deliver(message)
            self.author = (message.id.source, message.id.incarnation)
            self.message_number = message.id.number


@final
class OpenedPacket:
    """The fields of a `DriftPacket` that every reception reads."""

    __slots__ = ("flood", "layout", "packet", "table")

    def __init__(self, packet: Any) -> None:
        self.packet = packet
        self.flood: Any = packet.flood
        self.layout: int = packet.extra.layout
        self.table: bytes = packet.extra.table


@final
class LastOpened:
    """Keeps the packet that was opened last: its other receivers follow at once."""

    __slots__ = ("opened",)

    def __init__(self) -> None:
        self.opened: OpenedPacket | None = None


LAST_OPENED: Final = LastOpened()
