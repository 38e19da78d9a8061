"""The transport: a small public interface, so that a radio is twenty lines.

A transport moves frames: best effort, each whole or not at all, perhaps late or twice. It knows places, not
nodes, keys or order; who is behind a place is the business of `links`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from typing import TypeAlias

Where: TypeAlias = Hashable
"""A place a frame can be sent to: an address, a port of a radio, a file descriptor."""

OnFrame: TypeAlias = Callable[[bytes, Where], None]


OnLink: TypeAlias = Callable[[Where, bool], None]


class Transport(ABC):
    """`largest` is the most bytes one frame may have.

    A transport that notices when a place can be reached and when it cannot any more says so to `on_link`; for
    one that does not, beacons find out.
    """

    largest: int
    on_link: OnLink = staticmethod(lambda where, up: None)

    @abstractmethod
    async def start(self, on_frame: OnFrame) -> None:
        """Begin to listen; every frame heard goes to `on_frame`, on this event loop."""

    @abstractmethod
    def send(self, frame: bytes, where: Where) -> None:
        """One frame to one place."""

    @abstractmethod
    def broadcast(self, frame: bytes) -> None:
        """One frame to whoever can hear it."""

    def broadcast_reaches(self, where: Where) -> bool:
        """Does `broadcast` get to this place? On most media it gets to everybody in range."""
        return True

    def known(self, where: Where, near: bool) -> None:
        """A member was admitted from this place (`near`), or has gone: one may keep it apart from strangers."""

    @abstractmethod
    async def stop(self) -> None:
        """Release everything."""
