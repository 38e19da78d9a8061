"""`direct_delivery`: the source gives its messages to their destinations and to nobody else.

Spyropoulos, Psounis, Raghavendra: Single-copy routing in intermittently connected mobile networks (SECON 2004),
section III-A, direct transmission.
"""

from typing import Final

from precede.protocols.registry import DisseminationEntry
from precede.protocols.routing.copies import PACKETS, Copy
from precede.protocols.routing.router import Router, RoutingOptions


class DirectDelivery(Router):
    """Carries its own messages only."""

    def carries(self, copy: Copy) -> bool:
        return False


DISSEMINATION: Final = DisseminationEntry(
    name="direct_delivery",
    title="the source gives its messages to their destinations only",
    worlds=("contacts",),
    options=RoutingOptions,
    build=DirectDelivery,
    packets=PACKETS,
    carriers="source",
)
