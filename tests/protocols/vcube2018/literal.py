"""Algorithm 2 of vcube2018 line by line, with whole vectors and scans of *pending*: an oracle for tests.

`variant` selects a wrong reading, which loses, duplicates or sends twice; None is the correct reading.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from precede.core.effects import WIRED, Accept, Arrive, Deliver, Effect, Effects, Medium, Send
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Message, Packet
from precede.core.node import Context, Node
from precede.protocols.vcube2018.topology import cluster, dimension, first_child, height, live_mask

VARIANTS = (
    "children_without_cluster_1",
    "delivery_compares_source_with_itself",
    "delivery_before_aggregation",
    "whole_packet_first",
    "line_26_without_first_condition",
    "line_26_second_condition_on_trigger",
)


def children(i: NodeId, r: NodeId, live: int) -> list[NodeId]:
    """CHILDREN called by i: its children in the tree of r, cluster 1 first."""
    firsts = (first_child(i, s, live) for s in range(1, height(i, r, live) + 1))
    return [child for child in firsts if child is not None]


class Stamped:
    """A message with its whole vector."""

    def __init__(self, message: Message, vc: tuple[int, ...], entries: int) -> None:
        self.message, self.vc, self.entries = message, vc, entries
        self.s = message.id.source


class LiteralPacket(Packet, frozen=True, gc=False):
    """Messages with whole vectors, with the sizes of `VCubePacket`."""

    kind: ClassVar[str] = "vcube_literal"
    content: tuple

    @property
    def size_bytes(self) -> int:
        return 20 + sum(4 * m.entries + len(m.message.payload) for m in self.content)

    @property
    def control_bytes(self) -> int:
        return 4 * self.control_entries

    @property
    def control_entries(self) -> int:
        return sum(m.entries for m in self.content)

    @property
    def messages(self) -> int:
        return len(self.content)


class LiteralNode(Node):
    """A node with the paper's names: *vector_clock*, *vector_max*, *pending*, CHECKAGG, CHECKDELIVERY."""

    def __init__(self, context: Context, variant: str | None = None) -> None:
        assert variant is None or variant in VARIANTS
        self.variant = variant
        self.i = context.node
        self.options = {"aggregation": True, "unpack": "insertion", "mtu": 1500, **context.options}
        self.live = live_mask(context.members)
        positions = self.live.bit_length()
        self.vector_clock = [0] * positions
        self.vector_max = [0] * positions
        self.last_vc = [0] * positions
        self.pending: list[Stamped] = []

    def children_in(self, r: NodeId) -> list[NodeId]:
        """The children of this node in the tree of r."""
        below = children(self.i, r, self.live)
        if self.variant == "children_without_cluster_1":
            return [k for k in below if cluster(self.i, k) != 1]
        return below

    def children_below(self, h: int) -> list[NodeId]:
        """The children of this node in its first h clusters."""
        lowest = 2 if self.variant == "children_without_cluster_1" else 1
        firsts = [first_child(self.i, s, self.live) for s in range(lowest, h + 1)]
        return [k for k in firsts if k is not None]

    def broadcast(
        self,
        payload: bytes,
        now: Instant,
        to: Sequence[NodeId] | None = None,
        lifetime: Duration | None = None,
    ) -> Effects:
        i = self.i
        self.vector_clock[i] += 1
        self.vector_max[i] = self.vector_clock[i]
        vc = tuple(self.vector_clock)
        entries = sum(now != then for now, then in zip(vc, self.last_vc, strict=True))
        self.last_vc = list(vc)
        m = Stamped(Message(MessageId(i, 0, vc[i]), payload), vc, entries)
        effects: list[Effect] = [Accept(m.message), Deliver(m.message)]
        effects += [Send(LiteralPacket((m,)), k, WIRED) for k in self.children_below(dimension(self.live))]
        return effects

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        assert isinstance(packet, LiteralPacket)
        effects: list[Effect] = [Arrive(tuple(m.message for m in packet.content))]
        m_set = list(packet.content)
        if self.options["unpack"] == "causal":
            m_set.sort(key=lambda m: sum(m.vc))
        if self.variant == "whole_packet_first":
            for m in m_set:
                self.insert(m)
        for m in m_set:
            if self.variant != "whole_packet_first":
                self.insert(m)
            if self.variant == "delivery_before_aggregation":
                self.check_delivery(effects)
            for k in self.children_below(cluster(self.i, sender) - 1):
                agg = self.check_agg(k, m) if self.options["aggregation"] else [m]
                for part in self.fill(agg):
                    effects.append(Send(LiteralPacket(tuple(part)), k, WIRED))
            self.check_delivery(effects)
        return effects

    def insert(self, m: Stamped) -> None:
        """Lines 15 to 17: insert a message into *pending* and advance *vector_max*."""
        self.pending.append(m)
        while any(x.vc[x.s] == self.vector_max[x.s] + 1 for x in self.pending):
            x = next(x for x in self.pending if x.vc[x.s] == self.vector_max[x.s] + 1)
            self.vector_max[x.s] += 1

    def check_agg(self, k: NodeId, m: Stamped) -> list[Stamped]:
        """CHECKAGG: the messages to send to child k now."""
        agg = []
        for x in self.pending:
            if k not in self.children_in(x.s):
                continue
            first = x.vc[m.s] >= m.vc[m.s] or self.variant == "line_26_without_first_condition"
            subject = m if self.variant == "line_26_second_condition_on_trigger" else x
            owed = any(
                subject.vc[other] > self.vector_max[other] and k in self.children_in(other)
                for other in range(len(subject.vc))
                if subject.vc[other] > self.vector_max[other]
            )
            if first and not owed:
                agg.append(x)
        return agg

    def fill(self, agg: list[Stamped]) -> list[list[Stamped]]:
        """Divide messages into packets of at most `mtu` bytes."""
        parts: list[list[Stamped]] = []
        size = 0
        for m in agg:
            more = 4 * m.entries + len(m.message.payload)
            if not parts or size + more > self.options["mtu"]:
                parts.append([])
                size = 20
            parts[-1].append(m)
            size += more
        return parts

    def check_delivery(self, effects: list[Effect]) -> None:
        """CHECKDELIVERY: deliver every pending message whose dependencies are delivered."""
        delivered = True
        while delivered:
            delivered = False
            for x in self.pending:
                others = all(
                    x.vc[k] <= self.vector_clock[k]
                    for k in range(len(x.vc))
                    if k != x.s or self.variant == "delivery_compares_source_with_itself"
                )
                if x.vc[x.s] == self.vector_clock[x.s] + 1 and others:
                    effects.append(Deliver(x.message))
                    self.vector_clock[x.s] += 1
                    self.pending.remove(x)
                    delivered = True
                    break
