"""Which part of a member an incoming packet is for: presence, topics, state transfer or the node.

Whatever one packet does to these parts, the member goes on: an exception drops that packet, is counted
(`raised`) and logged once. A store that fails is no such exception: it stops the member.
"""

from __future__ import annotations

from precede.core.effects import Medium
from precede.core.errors import StoreFailed
from precede.core.identity import NodeId
from precede.runtime.driver import Driver
from precede.runtime.presence.presence import FAREWELL, Presence
from precede.runtime.topics.lane_plan import FIRST_LANE
from precede.runtime.topics.topics import Topics
from precede.runtime.transfer.packets import is_transfer
from precede.runtime.transfer.transfer import Transfer


class Incoming:
    """Hands the packets of neighbours to the parts of one member."""

    def __init__(self, presence: Presence, topics: Topics, transfer: Transfer, driver: Driver) -> None:
        self._presence = presence
        self._topics = topics
        self._transfer = transfer
        self._driver = driver

    def packet(self, data: bytes, sender: NodeId, over: Medium, to_all: bool) -> None:
        """Handle the packet of a neighbour. `to_all`: it came in a frame for everybody."""
        kind = "farewell"
        try:
            if data == FAREWELL and not to_all:
                self._presence.left(sender)
            elif data[:1] >= FIRST_LANE:
                kind = "topic"
                self._topics.packet(data, sender, over, to_all)
            elif is_transfer(data):
                kind = "transfer"
                self._transfer.packet(data, sender, to_all)
            else:
                kind = "protocol"
                self._driver.packet(data, sender, over, to_all)
        except StoreFailed:
            raise  # the driver has stopped the member; the caller's loop reports it
        except Exception as error:
            self._driver.reception.raised(kind, sender, error)
