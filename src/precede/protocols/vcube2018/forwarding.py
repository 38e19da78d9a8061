"""How a VCube node forwards: its place in the tree of each source, and CHECKAGG (vcube2018, sections 3 and 4).

A message is sent to the children in the source's tree at once, but for a child that could not deliver it yet
because this very node still owes the child something the message depends on. Then it is held: filed under that
message, in the index `_awaited`, and never looked for by a scan. The first condition of line 26 ("not sent
before") is what being filed means.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from mypy_extensions import mypyc_attr

from precede.core.effects import WIRED, Effect, Send
from precede.core.identity import NodeId
from precede.core.node import Node
from precede.protocols.vcube2018.awaited import Awaited, Held
from precede.protocols.vcube2018.options import VCubeOptions
from precede.protocols.vcube2018.packets import StampedMessage, VCubePacket
from precede.protocols.vcube2018.packing import packet_of, packets_of
from precede.protocols.vcube2018.prepared import Prepared, Slot, slot_of
from precede.protocols.vcube2018.progress import Ahead, Missing, Progress
from precede.protocols.vcube2018.topology import dimension, first_child, height, responsibilities

ROOT: Final[NodeId] = 0
NOBODY: Final[NodeId] = -1


@mypyc_attr(allow_interpreted_subclasses=True)
class Forwarding(Node):
    """Of node i among those that live: `_delivered` is *vector_clock*, and with `_ahead` it is *vector_max*."""

    def __init__(self, me: NodeId, live: int, options: VCubeOptions) -> None:
        self._me = me  # what every reception touches stands together
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
        """Whom this node feeds in each cluster, and which sources' messages it feeds them.

        Who is fed in a cluster is fed in all lower ones: each share is a part of the one before it.
        """
        clusters = range(1, dimension(live) + 1)
        self._children = [first_child(self._me, s, live) for s in clusters]
        self._clusters = len(clusters)
        self._whole = live + 1 == 1 << (1 << self._clusters)
        if self._single_tree:
            below = height(self._me, ROOT, live)
            everybody = (1 << self._positions) - 1
            self._shares: list[Any] = [everybody if s <= below else 0 for s in clusters]
            self._root_height = below
        else:
            self._shares = list(responsibilities(self._me, live))

    def _child(self, t: int) -> NodeId:
        """Whom this node feeds in cluster t + 1; NOBODY where all of it are gone."""
        if self._whole:
            return self._me ^ 1 << t
        child = self._children[t] if t < self._clusters else None
        return NOBODY if child is None else child

    # -- to children ---------------------------------------------------------------------------------------

    def _send_to_all(self, stamped: StampedMessage, below: int, effects: list[Effect]) -> None:
        """To the children in the first `below` clusters."""
        if below:
            self._send_to_each(self._alone(stamped), min(below, self._clusters), effects)

    def _send_to_each(self, packet: VCubePacket, below: int, effects: list[Effect]) -> None:
        for t in range(below):
            child = self._child(t)
            if child != NOBODY:
                effects.append(Send(packet, child, WIRED))

    def _alone(self, stamped: StampedMessage) -> VCubePacket:
        """The packet that carries this message only: the one it came in, if it came alone."""
        came = self._in_hand
        if came is not None and came.content[0] is stamped:
            return came
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
        """For each child: what this message sets free, then the message itself unless it is held."""
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
        """`held` has a bit for each cluster whose child the message is held from."""
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
        """To each child what has become free for it, and the message itself unless it is held."""
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
        """To the child of cluster t + 1: what was held, in the order of reception, then the message itself."""
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
        """File a message for each child that lacks something this node owes it; a bit for each such cluster."""
        before = self._held_before(message)
        held = 0
        self._missing.renew()
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
        """From which clusters the source's previous message is held."""
        if message.number == 1:
            return 0
        return self._held_from.get(slot_of(message.source, message.number - 1), 0)

    def _await(self, slot: Slot) -> Awaited:
        awaited = self._awaited.get(slot)
        if awaited is None:
            awaited = self._awaited[slot] = Awaited()
        return awaited

    def _release(self, covered: list[Slot]) -> dict[int, list[Held]] | None:
        """By cluster, what was held and has become free by these messages; the rest is filed anew.

        A message that becomes free for a child may set its source's next one free for the same child.
        """
        came = [(slot, -1) for slot in covered if self._is_held_for(slot)]
        if not came:
            return None
        released: dict[int, list[Held]] = {}
        self._missing.renew()
        while came:
            under, only = came.pop()
            held = self._held_for(under)
            while held is not None:
                following, t = held.next, held.t
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
                        came.append((message.slot, t))
                held = following
        return released

    def _is_held_for(self, slot: Slot) -> bool:
        awaited = self._awaited.get(slot)
        return awaited is not None and awaited.held is not None

    def _held_for(self, slot: Slot) -> Held | None:
        """The first that waited for this message to be forwarded; all of them are taken out."""
        awaited = self._awaited.get(slot)
        if awaited is None:
            return None
        held = awaited.held
        awaited.held = None
        if awaited.lacking is None:
            del self._awaited[slot]
        return held

    def _let_go(self, held: Held, released: dict[int, list[Held]]) -> None:
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
