"""The nodes of the tree protocol. `benchmarks.engine` runs the same text compiled and interpreted."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.tree.packet import TreePacket
from precede.core.effects import Accept, Deliver, Effects, Medium, Send
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Message, Packet
from precede.core.node import Node
from precede.core.writing_node import EffectWriter, WritingNode


class TreeNode(WritingNode):
    """Forwards along the binomial tree of the source: a node v has position v xor source in it."""

    def __init__(self, node: NodeId, bits: int) -> None:
        self.node = node
        self.bits = bits

    def broadcast(
        self,
        payload: bytes,
        now: Instant,
        to: Sequence[NodeId] | None = None,
        lifetime: Duration | None = None,
    ) -> Effects:
        message = Message(MessageId(self.node, 0, 1), payload)
        packet = TreePacket(120, 20, 1, 1, message)
        return [
            Accept(message),
            Deliver(message),
            *[Send(packet, self.node ^ (1 << bit)) for bit in range(self.bits)],
        ]

    def take(self, packet: Packet, sender: NodeId, now: Instant, over: Medium, effects: EffectWriter) -> None:
        message: Message = packet.message  # type: ignore[attr-defined]
        source: NodeId = message.id.source
        place = self.node ^ source
        effects.arrive(message)
        effects.deliver(message)
        bit = 1
        while not place & bit:
            effects.send(packet, self.node ^ bit)
            bit <<= 1


class ListingTreeNode(Node):
    """A `TreeNode` that returns its effects in lists, as a driver without an `EffectWriter` gets them."""

    def __init__(self, node: NodeId, bits: int) -> None:
        self._node = TreeNode(node, bits)

    def broadcast(
        self,
        payload: bytes,
        now: Instant,
        to: Sequence[NodeId] | None = None,
        lifetime: Duration | None = None,
    ) -> Effects:
        return self._node.broadcast(payload, now, to, lifetime)

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        return self._node.receive(packet, sender, now, over)
