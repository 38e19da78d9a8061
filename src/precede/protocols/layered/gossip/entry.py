"""The entry of `gossip` in the registry."""

from typing import Final

from precede.core.node import Context
from precede.protocols.layered.dissemination import Dissemination
from precede.protocols.layered.epidemic.packets import HavePacket, MessagesPacket
from precede.protocols.layered.gossip.air import Gossip
from precede.protocols.layered.gossip.contacts import ContactGossip
from precede.protocols.layered.gossip.options import GossipOptions
from precede.protocols.layered.gossip.packets import DataPacket, DigestPacket, RangesPacket, WantPacket
from precede.protocols.layered.ordering import Ordering
from precede.protocols.registry import DisseminationEntry


def _build(context: Context[GossipOptions], ordering: Ordering) -> Dissemination:
    return (ContactGossip if context.options.medium == "links" else Gossip)(context, ordering)


DISSEMINATION: Final = DisseminationEntry(
    name="gossip",
    title="one transmission for all neighbours; digests of ranges show who lacks what",
    worlds=("contacts", "point_to_point", "flood"),
    options=GossipOptions,
    build=_build,
    state="epidemic",
    packets=(DataPacket, DigestPacket, WantPacket, RangesPacket, HavePacket, MessagesPacket),
)
