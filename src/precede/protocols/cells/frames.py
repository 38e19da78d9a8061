"""Size models and routing fields of the packets between hosts and stations.

Sizes follow section 5 of was2021: radio frames travel in UDP/IPv4/MAC (a header of 48 bytes), wired ones in
TCP/IPv4/MAC (60 bytes), and an integer is 4 bytes.
"""

from typing import Annotated, ClassVar, Final, TypeAlias

from msgspec import Meta

from precede.core.identity import NodeId
from precede.core.messages import EntrySizedPacket

ConnectionNumber: TypeAlias = Annotated[int, Meta(ge=0, le=(1 << 47) - 1)]
"""The number of a host's connection. In was2021 its upper 15 bits are the host's incarnation."""

MOST_STATIONS: Final = 4_096
"""How many stations can be reached through one neighbour."""


class RadioFrame(EntrySizedPacket, frozen=True, gc=False):
    """A packet between a host and its station."""

    header_bytes: ClassVar[int] = 48


class WiredFrame(EntrySizedPacket, frozen=True, gc=False):
    """A packet between two stations."""

    header_bytes: ClassVar[int] = 60


class RoutesPacket(WiredFrame, frozen=True, gc=False):
    """Station to neighbouring station: these stations can be reached through the sender."""

    kind: ClassVar[str] = "routes"
    stations: Annotated[tuple[NodeId, ...], Meta(max_length=MOST_STATIONS)]

    @property
    def control_entries(self) -> int:
        return len(self.stations)


class RoutedPacket(WiredFrame, frozen=True, gc=False):
    """Station `origin` to station `to`, hop by hop, about connection `ses` of a host.

    It travels on the same first-in first-out links as the messages. Lemmas 1 to 5 of was2021 need that: over a
    direct connection between the two stations it could overtake messages.
    """

    origin: NodeId
    to: NodeId
    host: NodeId
    ses: ConnectionNumber
