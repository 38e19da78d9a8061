"""The packets that only CK has; the others are in `precede.protocols.cells.packets`."""

from typing import ClassVar

from precede.core.identity import NodeId
from precede.protocols.cells.frames import WiredFrame
from precede.protocols.cells.packets import ProxyAppPacket, ProxyGivePacket, Vector


class CkAppPacket(ProxyAppPacket, frozen=True, gc=False):
    """Station to station: a message, to be delivered after everything in the vector `after`."""

    kind: ClassVar[str] = "ck_app"
    after: Vector

    @property
    def control_entries(self) -> int:
        return 4 + len(self.after)


class CkJoinPacket(WiredFrame, frozen=True, gc=False):
    """Station to all stations: a host joined; it gets a station's messages beyond its number in `vector`."""

    kind: ClassVar[str] = "ck_join"
    host: NodeId
    vector: Vector

    @property
    def control_entries(self) -> int:
        return 1 + 2 * len(self.vector)


class CkGivePacket(ProxyGivePacket, frozen=True, gc=False):
    """Station to station: a host's record, with the number of its `own` last message at each station."""

    kind: ClassVar[str] = "ck_give"
    own: Vector

    @property
    def control_entries(self) -> int:
        return 3 + len(self.delivered) + 2 * len(self.own)
