"""What a proxy station knows about one host (prs1997, section 9)."""

from typing import Any, final

from precede.core.identity import NodeId
from precede.core.instants import Instant
from precede.protocols.cells.packets import MessageKey, ProxyGetPacket, Vector


@final
class ProxyRecord:
    """One host at one station, which owns the record (`owner`) or waits for it.

    `ses` is the host's newest connection known here. `recd` is h_RECD: for each initial station, the last
    message that the host has delivered or need not get. `sent_at` is when each unacknowledged message was last
    transmitted (None: it is in the radio's queue). `accepted` is the number of the host's last own message
    accepted. `order` is the ordering rule's state of the host. `request` is a request of another station,
    answered once this one owns the record.
    """

    def __init__(self, ses: int, order: Any) -> None:
        self.ses = ses
        self.order = order
        self.owner: bool = False
        self.accepted: int = 0
        self.recd: dict[NodeId, int] = {}
        self.sent_at: dict[MessageKey, Instant | None] = {}
        self.request: ProxyGetPacket | None = None

    def vector(self) -> Vector:
        """Return `recd` (h_RECD) as it is sent, ascending by initial station."""
        return tuple(sorted(self.recd.items()))
