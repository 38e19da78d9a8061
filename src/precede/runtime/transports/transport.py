"""The interface of a transport; a radio of your own implements four methods.

A transport moves frames, best effort: each arrives complete or not at all, perhaps late or twice. It knows
places, not nodes, keys or order; `links` learns which node is at which place.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from typing import TypeAlias

Where: TypeAlias = Hashable
"""A place that a frame can be sent to: an address, a port of a radio, a file descriptor."""

OnFrame: TypeAlias = Callable[[bytes, Where], None]
OnLink: TypeAlias = Callable[[Where, bool], None]


class Transport(ABC):
    """Moves frames of at most `largest` bytes between places. Subclass it for a radio of your own.

    A transport that notices when a place becomes reachable or unreachable calls `on_link(place, up)`; otherwise
    beacons find out. examples/serial_line.py is a transport for a serial line.

    >>> import asyncio, precede
    >>> class Loopback(precede.Transport):
    ...     largest = 1000
    ...
    ...     async def start(self, on_frame):
    ...         self.hear = on_frame
    ...
    ...     def send(self, frame, where):
    ...         self.hear(frame, "here")
    ...
    ...     def broadcast(self, frame):
    ...         self.hear(frame, "here")
    ...
    ...     async def stop(self):
    ...         pass
    >>> async def main() -> None:
    ...     async with precede.join("picnic", "ana", key=None, transport=Loopback()) as group:
    ...         await asyncio.sleep(0.01)
    ...         print(group.neighbours(), group.status()["dropped"])
    >>> asyncio.run(main())
    [] {'own': 1}
    """

    largest: int
    one_reaches_all: bool = True
    """Whether `broadcast` is one transmission that all hear, not one for each place."""
    pace: float = 1.0
    """How many times slower than a LAN this medium is: it multiplies waits for answers."""
    sealed: bool = True
    """Whether strangers cannot read or make frames. The group sets it before `start`: False with `key=None`."""
    on_link: OnLink = staticmethod(lambda where, up: None)

    @abstractmethod
    async def start(self, on_frame: OnFrame) -> None:
        """Start to listen: call `on_frame(frame, place)` on this event loop for every frame received."""

    @abstractmethod
    def send(self, frame: bytes, where: Where) -> None:
        """Send a frame to one address."""

    @abstractmethod
    def broadcast(self, frame: bytes) -> None:
        """Send a frame to every place in range."""

    def broadcast_reaches(self, where: Where) -> bool:
        """Return whether `broadcast` reaches a place. By default it reaches every place."""
        return True

    def known(self, where: Where, near: bool) -> None:
        """Called when a member at this place is admitted (`near`) or gone. Members may get more resources."""

    def unsent_bytes(self) -> int:
        """Return how many bytes wait to be sent, to the neighbour that takes them fastest; 0 if unknown.

        `broadcast` of a group waits while they are many. One slow neighbour does not slow the others down.
        """
        return 0

    def why_silent(self) -> str:
        """Return the likely reason why no member is heard, as a sentence for the application."""
        return "nobody is heard over this transport; the others are not running or out of range"

    @abstractmethod
    async def stop(self) -> None:
        """Stop to listen and release all resources: a port is free again when this returns."""
