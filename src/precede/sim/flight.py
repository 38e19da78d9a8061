"""The time that a packet is on its way, in a network that only delays packets."""

from __future__ import annotations

from abc import ABC, abstractmethod

from mypy_extensions import mypyc_attr

from precede.core.instants import Duration, Instant


@mypyc_attr(allow_interpreted_subclasses=True)
class Flight(ABC):
    """How long the packets that one node sends take, in a network that only delays packets."""

    @abstractmethod
    def takes(self, now: Instant) -> Duration:
        """Draws the time until a packet that is sent now arrives. Call it once per packet."""
