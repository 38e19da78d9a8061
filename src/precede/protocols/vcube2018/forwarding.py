"""How a VCube node forwards messages in the tree of each source: CHECKAGG (vcube2018, sections 3 and 4).

A node forwards a message at once to its children in the source's tree, with one exception. If the message
depends on another one that this node has yet to forward to a child, it is held from that child. The paper scans
*pending* for held messages; we index them by the message they wait for (`_awaited`). A message is in that index
as long as it has not been sent, which is the first condition of line 26.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from mypy_extensions import i64, mypyc_attr

from precede.core.effects import WIRED, Effect, Send
from precede.core.identity import NodeId
from precede.core.node import Node
from precede.protocols.vcube2018.awaited import Awaited, Held
from precede.protocols.vcube2018.options import VCubeOptions
from precede.protocols.vcube2018.packets import StampedMessage, VCubePacket
from precede.protocols.vcube2018.prepared import ENTRY_BYTES, HEADER_BYTES, Prepared, Slot, new_share, slot_of
from precede.protocols.vcube2018.progress import Ahead, Missing, Progress
from precede.protocols.vcube2018.sources import Share
from precede.protocols.vcube2018.topology import (
    MOST_POSITIONS,
    dimension,
    first_child,
    height,
    multiples,
    responsibilities,
)

ROOT: Final[NodeId] = 0
NOBODY: Final[NodeId] = -1


def cluster_of(i: i64, j: i64) -> i64:
    """Return `topology.cluster(i, j)`, in machine instructions: it takes two turns for the average packet."""
    distance = i ^ j
    number: i64 = 0
    while distance > 0:
        distance >>= 1
        number += 1
    return number


def packet_of(stamped: StampedMessage) -> VCubePacket:
    message: Prepared = stamped.prepared
    return _packet([stamped], HEADER_BYTES + message.size_bytes, message.entries)


def packets_of(content: Sequence[StampedMessage], mtu: int) -> list[VCubePacket]:
    """Fill packets up to `mtu` bytes, one after the other; a larger message gets a packet of its own."""
    packets: list[VCubePacket] = []
    filling: list[StampedMessage] = []
    entries, size = 0, HEADER_BYTES
    for stamped in content:
        message: Prepared = stamped.prepared
        if filling and size + message.size_bytes > mtu:
            packets.append(_packet(filling, size, entries))
            filling, entries, size = [], 0, HEADER_BYTES
        filling.append(stamped)
        entries += message.entries
        size += message.size_bytes
    packets.append(_packet(filling, size, entries))
    return packets


def _packet(content: list[StampedMessage], size: int, entries: int) -> VCubePacket:
    return VCubePacket(tuple(content), size, ENTRY_BYTES * entries, entries, len(content))


@lru_cache(maxsize=2 * MOST_POSITIONS)
def _share_of_cube(rest: int, s: int, d: int) -> Share:
    """Return the share of cluster s in a whole cube of d dimensions, of all nodes with this rest modulo 2^s."""
    return new_share(multiples(1 << s, 1 << d), rest, 1 << s)


@mypyc_attr(allow_interpreted_subclasses=True)
class Forwarding(Node):
    """The forwarding half of a VCube node.

    `_delivered` is the paper's *vector_clock*, the messages delivered of each source. Together with `_ahead` it
    is *vector_max*, the messages received of each source without a gap. `_children` has the child in each
    cluster, `_shares` the sources whose messages go to that child. `_held_from` maps a held message
    to the mask of the clusters it is held from. `_in_hand` is a packet with a single message that is being
    processed: it is forwarded as it is.
    """

    def __init__(self, me: NodeId, live: int, options: VCubeOptions) -> None:
        self._me = me  # the attributes that every reception reads come first: they share cache lines
        self._single_tree: bool = options.tree == "single"
        self._aggregates: bool = options.aggregation
        self._whole = False
        self._some_early = False
        self._delivered = Progress(live.bit_length())
        self._awaited: dict[Slot, Awaited] = {}
        self._in_hand: VCubePacket | None = None
        self._positions = live.bit_length()
        self._ahead = Ahead()
        self._missing = Missing(self._delivered, self._ahead)
        self._holds = 0
        self._held_from: dict[Slot, int] = {}
        self._mtu: int = options.mtu
        self._build_trees(live)

    def _build_trees(self, live: int) -> None:
        """Set the child in each cluster, and the sources whose messages this node forwards to it."""
        clusters = range(1, dimension(live) + 1)
        self._clusters = len(clusters)
        self._whole = live + 1 == 1 << (1 << self._clusters)
        self._children = [
            self._me ^ 1 << s - 1 if self._whole else first_child(self._me, s, live) for s in clusters
        ]
        if self._single_tree:
            below = height(self._me, ROOT, live)
            everybody = (1 << self._positions) - 1
            self._shares = [new_share(everybody if s <= below else 0, 0) for s in clusters]
            self._root_height = below
        elif self._whole:
            self._shares = [_share_of_cube(self._me % (1 << s), s, self._clusters) for s in clusters]
        else:
            self._shares = [new_share(mask, shift) for mask, shift in responsibilities(self._me, live)]

    def _child(self, t: int) -> NodeId:
        """Return the child in cluster t + 1; NOBODY if no node of that cluster works."""
        if self._whole:
            return self._me ^ 1 << t
        child = self._children[t] if t < self._clusters else None
        return NOBODY if child is None else child

    # -- to children ---------------------------------------------------------------------------------------

    def _send_to_all(self, stamped: StampedMessage, below: int, effects: list[Effect]) -> None:
        if below:
            self._send_to_each(self._alone(stamped), min(below, self._clusters), effects)

    def _send_to_each(self, packet: VCubePacket, below: int, effects: list[Effect]) -> None:
        for t in range(below):
            child = self._child(t)
            if child != NOBODY:
                effects.append(Send(packet, child, WIRED))

    def _alone(self, stamped: StampedMessage) -> VCubePacket:
        """Return a packet with this message alone: the one it came in, if it came alone, else a new one."""
        received = self._in_hand
        if received is not None and received.content[0] is stamped:
            return received
        return packet_of(stamped)

    # -- CHECKAGG ------------------------------------------------------------------------------------------

    def _forward(
        self,
        stamped: StampedMessage,
        message: Prepared,
        below: int,
        may_hold: bool,
        covered: list[Slot],
        effects: list[Effect],
    ) -> None:
        """Send each child the held messages that this message releases, then the message unless it is held.

        `covered` are the messages that this one completes to a sequence without a gap; they release others. If
        not `may_hold`, the message lacks nothing and is not held. Without aggregation nothing is ever held.
        """
        if not self._aggregates:
            self._send_to_all(stamped, below, effects)
            return
        self._holds = order = self._holds + 1
        below = min(below, self._clusters)
        held = self._hold_from_all(stamped, message, below, order) if may_hold and below else 0
        released = self._release(covered) if self._held_from else None
        if released:
            self._send_released(stamped, below, held, released, effects)
        elif not held:
            self._send_to_all(stamped, below, effects)
        else:
            self._send_to_rest(stamped, below, held, effects)

    def _send_to_rest(self, stamped: StampedMessage, below: int, held: int, effects: list[Effect]) -> None:
        """Send a message to the children it is not held from; `held` is the mask of the other clusters."""
        alone: VCubePacket | None = None
        for t in range(below):
            child = self._child(t)
            if child != NOBODY and not held >> t & 1:
                if alone is None:
                    alone = self._alone(stamped)
                effects.append(Send(alone, child, WIRED))

    def _send_released(
        self,
        stamped: StampedMessage,
        below: int,
        held: int,
        released: dict[int, list[Held]],
        effects: list[Effect],
    ) -> None:
        """Send each child its released messages, and the message itself unless it is held."""
        for t in range(below):
            free = released.get(t)
            itself = None if held >> t & 1 else stamped
            if free is not None:
                self._send_free(t, free, itself, effects)
            elif itself is not None and (child := self._child(t)) != NOBODY:
                effects.append(Send(self._alone(stamped), child, WIRED))
        for t, free in released.items():
            if t >= below:
                self._send_free(t, free, None, effects)

    def _send_free(
        self, t: int, free: list[Held], itself: StampedMessage | None, effects: list[Effect]
    ) -> None:
        """Send the child of cluster t + 1 its released messages in order of reception, then `itself`."""
        child = self._child(t)
        if child == NOBODY:
            return
        if len(free) > 1:
            free.sort(key=_by_reception)
        content = [held.stamped for held in free]
        if itself is not None:
            content.append(itself)
        self._send_packed(content, child, effects)

    def _send_packed(self, content: Sequence[StampedMessage], to: NodeId, effects: list[Effect]) -> None:
        for packet in packets_of(content, self._mtu):
            effects.append(Send(packet, to, WIRED))

    def _hold_from_all(self, stamped: StampedMessage, message: Prepared, below: int, order: int) -> int:
        """Hold a message from each child that lacks a dependency. Returns the mask of those clusters.

        Only dependencies count that this node has yet to forward to that child.
        """
        before = self._held_before(message)
        held = 0
        for t in range(below):
            under = self._missing.one_of(message.rows, self._shares[t])
            if not under:
                if not before:
                    break
                if not before >> t & 1:
                    continue
                under = slot_of(message.source, message.number - 1)
            self._await(under).hold(Held(t, order, stamped, message))
            held |= 1 << t
        if held:
            self._held_from[message.slot] = held
        return held

    def _held_before(self, message: Prepared) -> int:
        """Return the mask of the clusters from which the previous message of the same source is held."""
        if message.number == 1:
            return 0
        return self._held_from.get(slot_of(message.source, message.number - 1), 0)

    def _await(self, slot: Slot) -> Awaited:
        """Return the index entry of the messages that wait for this one; make it if there is none."""
        awaited = self._awaited.get(slot)
        if awaited is None:
            awaited = self._awaited[slot] = Awaited()
        return awaited

    def _release(self, covered: list[Slot]) -> dict[int, list[Held]] | None:
        """Return by cluster the held messages that the messages `covered` release; None if none waits for them.

        Messages that still lack another one are indexed again. A message that is released to a child may
        release its source's next message to the same child.
        """
        arrived = [(slot, -1) for slot in covered if self._is_held_for(slot)]
        if not arrived:
            return None
        released: dict[int, list[Held]] = {}
        while arrived:
            under, only = arrived.pop()
            for held in self._held_for(under):
                t = held.t
                message: Prepared = held.message
                if only not in (-1, t):
                    self._await(under).hold(held)
                elif still := self._missing.one_of(message.rows, self._shares[t]):
                    self._await(still).hold(held)
                elif self._held_before(message) >> t & 1:
                    self._await(slot_of(message.source, message.number - 1)).hold(held)
                else:
                    self._let_go(held, released)
                    if self._is_held_for(message.slot):
                        arrived.append((message.slot, t))
        return released

    def _is_held_for(self, slot: Slot) -> bool:
        awaited = self._awaited.get(slot)
        return awaited is not None and awaited.held is not None

    def _held_for(self, slot: Slot) -> list[Held]:
        """Remove from the index the held messages that wait for this one, and return them."""
        awaited = self._awaited.get(slot)
        if awaited is None or awaited.held is None:
            return []
        held = awaited.held
        awaited.held = None
        if awaited.lacking is None:
            del self._awaited[slot]
        return held

    def _let_go(self, held: Held, released: dict[int, list[Held]]) -> None:
        """Stop holding a message from one child, and add it to `released`."""
        slot: Any = held.message.slot
        rest = self._held_from[slot] ^ 1 << held.t
        if rest:
            self._held_from[slot] = rest
        else:
            del self._held_from[slot]
        free = released.get(held.t)
        if free is None:
            released[held.t] = [held]
        else:
            free.append(held)


def _by_reception(held: Held) -> int:
    return held.order
