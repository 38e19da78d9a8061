"""The packets that only PRS for hosts in cells has; the others are in `precede.protocols.cells.packets`."""

from typing import ClassVar

from precede.core.identity import NodeId
from precede.core.messages import Size
from precede.protocols.cells.packets import ProxyAppPacket, ProxyGivePacket, ProxyUpPacket, Vector
from precede.protocols.multicast.process import Process
from precede.protocols.multicast.vectors import SparseVector
from precede.protocols.prs1997.packets import PrsStamp


class PrsUpPacket(ProxyUpPacket, frozen=True, gc=False):
    """Host to station: an own message to the hosts `to`, and the host's deliveries before it."""

    kind: ClassVar[str] = "prs_up"
    to: tuple[NodeId, ...]
    delivered: Vector

    @property
    def control_entries(self) -> int:
        return 2 + len(self.to) + 2 * len(self.delivered)


class PrsAppPacket(ProxyAppPacket, frozen=True, gc=False):
    """Station to station: a message M for the hosts `to`, with its causal barrier CB_M and its name M_id."""

    kind: ClassVar[str] = "prs_app"
    to: tuple[NodeId, ...]
    stamp: PrsStamp

    @property
    def control_entries(self) -> int:
        return self.stamp.entries

    @property
    def control_bytes(self) -> int:
        return 16 + 4 * len(self.to) + self.stamp.order_bytes


class PrsGivePacket(ProxyGivePacket, frozen=True, gc=False):
    """Station to station: a record. `order` is the host's CB_h and Delivered_h, which have `tuples` tuples."""

    kind: ClassVar[str] = "prs_give"
    order: tuple[dict[Process, SparseVector], dict[Process, SparseVector]]
    tuples: Size

    @property
    def control_entries(self) -> int:
        return 3 + len(self.delivered) + self.tuples

    @property
    def control_bytes(self) -> int:
        return 12 + 4 * len(self.delivered) + 8 * self.tuples
