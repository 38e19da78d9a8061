"""`gossip` on links between two nodes: `epidemic` with summaries as ranges and with fewer copies.

If transfers take no time, a node that passes messages on to several peers names these peers; a peer does not
send the messages to the others named. If transfers take time, a link may end before they are made, so nobody
relies on them.
"""

from typing import Final

from mypy_extensions import mypyc_attr

from precede.core.effects import RADIO, Effect, Effects, Medium, Send
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Instant
from precede.core.messages import Packet
from precede.protocols.layered.epidemic.node import Epidemic
from precede.protocols.layered.epidemic.packets import BatchPacket, SummaryPacket
from precede.protocols.layered.epidemic.transfer_order import arranged
from precede.protocols.layered.gossip.packets import DataPacket, RangesPacket, data_packet, ranges_packet
from precede.protocols.layered.parsed_envelopes import Batch

_MOST_LISTED: Final = 1 << 20


@mypyc_attr(allow_interpreted_subclasses=True)
class ContactGossip(Epidemic):
    """`Epidemic` with summaries as ranges, and with messages that name the peers to which they go."""

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        if type(packet) is DataPacket:
            effects: list[Effect] = []
            self._receive_messages(packet, sender, now, effects)
            return effects
        if type(packet) is RangesPacket:
            listed = packet.listed_ids if 0 < packet.count <= _MOST_LISTED else frozenset[MessageId]()
            return super().receive(SummaryPacket(listed), sender, now, over)
        return super().receive(packet, sender, now, over)

    def _summary(self) -> Packet:
        held = self._cache.summary()
        return ranges_packet(held.union(self._evicted.ids) if self._evicted.ids else held)

    def _pass_on(
        self,
        batch: Batch,
        packet: BatchPacket | None,
        sender: NodeId,
        now: Instant,
        effects: list[Effect],
    ) -> None:
        """Send new messages to the peers that the sender did not name, in one packet that names them."""
        if not self._immediate:
            super()._pass_on(batch, packet, sender, now, effects)
            return
        named = packet.neighbours or () if type(packet) is DataPacket else ()
        ranks = self._order.ranks(batch) if len(batch.ids) > 1 else None
        peers = [
            peer for peer, link in self._links.items() if peer != sender and link.synced and peer not in named
        ]
        if peers:
            data = data_packet(arranged(batch, ranks), 0, tuple(peers) if len(peers) > 1 else None)
            effects += [Send(data, peer, RADIO) for peer in peers]
