"""The transport: a small public interface, so that a radio is twenty lines (examples/serial_radio.py).

A transport moves datagrams between nodes and says which peers can be heard. It knows nothing of protocols,
keys or order. Everything it reports goes to one `Listener`, on the event loop that started it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol

from precede.core.effects import Medium
from precede.core.identity import NodeId


class Listener(Protocol):
    """Whoever is told what a transport hears."""

    def datagram(self, data: bytes, sender: NodeId, over: Medium) -> None: ...

    def link_up(self, peer: NodeId, over: Medium) -> None: ...

    def link_down(self, peer: NodeId, over: Medium) -> None: ...


class Transport(ABC):
    """Datagrams, best effort: each arrives whole, possibly late, twice or never.

    `largest` is the most bytes that `send` takes in one call.
    """

    largest: int

    @abstractmethod
    async def start(self, listener: Listener) -> None:
        """Begin to listen."""

    @abstractmethod
    def send(self, data: bytes, to: NodeId, over: Medium) -> bool:
        """One datagram to a peer, or to all in reach (NEIGHBOURS). False: dropped here, the peer is unknown."""

    @abstractmethod
    async def stop(self) -> None:
        """Release everything."""
