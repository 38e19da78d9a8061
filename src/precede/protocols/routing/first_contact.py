"""`first_contact`: one copy of a message, handed to the first node in contact that has not had it.

Jain, Fall, Patra: Routing in a delay tolerant network (SIGCOMM 2004), section 4.1, first contact.
"""

from typing import Final

from precede.core.identity import NodeId
from precede.protocols.registry import DisseminationEntry
from precede.protocols.routing.copies import PACKETS, Copy
from precede.protocols.routing.router import Router, RoutingOptions


class FirstContact(Router):
    """Hands every copy on.

    In the paper a node may get a copy again; here it gets one only if it had none, which avoids endless
    exchanges between two nodes in contact.
    """

    def gives(self, copy: Copy, peer: NodeId) -> bool:
        return True

    def gave(self, copy: Copy, peer: NodeId) -> bool:
        return False


DISSEMINATION: Final = DisseminationEntry(
    name="first_contact",
    title="one copy, handed to the first node in contact",
    worlds=("contacts",),
    options=RoutingOptions,
    build=FirstContact,
    packets=PACKETS,
    carriers="last",
)
