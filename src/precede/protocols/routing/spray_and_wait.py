"""`spray_and_wait`: a limited number of copies; a node with several gives half of them away (binary mode).

Spyropoulos, Psounis, Raghavendra: Spray and Wait (WDTN 2005), section 3.2, Binary Spray and Wait. A node with
one copy waits until it meets a destination.
"""

from typing import Annotated, Final

from precede.core.identity import NodeId
from precede.core.node import Context
from precede.protocols.layered.ordering import Ordering
from precede.protocols.options import option
from precede.protocols.registry import DisseminationEntry
from precede.protocols.routing.copies import PACKETS, Copy
from precede.protocols.routing.router import Router, RoutingOptions


class SprayAndWaitOptions(RoutingOptions, frozen=True, kw_only=True):
    """The options of `spray_and_wait`."""

    copies: Annotated[int, option("copies of each message, the source's included", least=1)] = 8


class SprayAndWait(Router):
    """Gives half of its copies to a node without one; the last copy goes to destinations only."""

    def __init__(self, context: Context[SprayAndWaitOptions], ordering: Ordering) -> None:
        super().__init__(context, ordering)
        self.initial_copies = context.options.copies

    def gives(self, copy: Copy, peer: NodeId) -> bool:
        return copy.copies > 1

    def copies_given(self, copy: Copy) -> int:
        return max(copy.copies // 2, 1)

    def gave(self, copy: Copy, peer: NodeId) -> bool:
        copy.copies -= copy.copies // 2  # a delivery with the last copy keeps it for other destinations
        return True


DISSEMINATION: Final = DisseminationEntry(
    name="spray_and_wait",
    title="a limited number of copies, half of them given away at each contact",
    worlds=("contacts",),
    options=SprayAndWaitOptions,
    build=SprayAndWait,
    packets=PACKETS,
    carriers="receivers",
)
