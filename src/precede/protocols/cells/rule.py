"""The ordering rule of a proxy station: where CK (was2021) and section 9 of prs1997 differ."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from mypy_extensions import mypyc_attr

from precede.core.identity import NodeId
from precede.core.messages import Packet
from precede.protocols.cells.packets import (
    MessageKey,
    ProxyAppPacket,
    ProxyGetPacket,
    ProxyGivePacket,
    ProxyUpPacket,
)
from precede.protocols.cells.record import ProxyRecord


@mypyc_attr(allow_interpreted_subclasses=True)
class ProxyRule(ABC):
    """Keeps the order data of messages and hosts, and who has not acknowledged this station's messages.

    The type of `app` is the rule's own subclass of `ProxyAppPacket`.
    """

    @abstractmethod
    def new_order(self, host: NodeId) -> Any:
        """Return the order data of a host that has sent and delivered nothing yet."""

    @abstractmethod
    def stamp(self, packet: ProxyUpPacket, number: int, record: ProxyRecord) -> ProxyAppPacket:
        """Return the packet that carries a host's message to other stations, with its number and order data."""

    @abstractmethod
    def is_for(self, host: NodeId, app: Any) -> bool:
        """Is the host a destination of the message?"""

    @abstractmethod
    def is_ready(self, record: ProxyRecord, app: Any) -> bool:
        """Has the host delivered everything that the message depends on?"""

    def deliver(self, record: ProxyRecord, app: Any) -> None:
        """Update a host's order data after it delivered the message. By default there is nothing to update."""

    @abstractmethod
    def acknowledge(self, host: NodeId, number: int) -> bool:
        """Record that a host has delivered messages up to `number`. True if some may be deletable now."""

    @abstractmethod
    def take_deletable(self) -> list[MessageKey]:
        """Return this station's messages that every destination has delivered; each only once."""

    def admit(self, host: NodeId, record: ProxyRecord, received: Mapping[NodeId, int]) -> Packet | None:
        """Set from which messages on a new host receives. Return the packet that announces it, or None."""
        return None

    @abstractmethod
    def give(self, packet: ProxyGetPacket, record: ProxyRecord) -> ProxyGivePacket:
        """Return the packet that moves a record to the station that requested it."""

    @abstractmethod
    def take_over(self, packet: ProxyGivePacket, record: ProxyRecord) -> None:
        """Load the order data of a record that came from another station."""
