"""A VCube node: causal broadcast over a tree per source, with aggregation (vcube2018, section 4, Algorithm 2).

A node forwards a message to its children in the source's tree at once, but for a child that could not deliver
it yet because this very node still owes the child something the message depends on: then the message is held,
and travels with what was missing, in one packet, without a timer.

The paper scans *pending*; we never do. A message that waits for its delivery is filed under one message it
lacks; a message held from a child likewise, in that child's own file. The paper's order of lines 13 to 22 loses
messages where it is read loosely: we take the messages of a packet one at a time, and for each one insert,
advance *vector_max*, CHECKAGG for all children and only then CHECKDELIVERY. Line 30 as printed compares an
entry with itself; the last condition is over all k except the source. The first condition of line 26 ("not sent
before") is what being filed means. Birman's compressed vector says only what changed since the source's
previous message, so a message also waits for that one: to be received, to be free itself for that child, to be
delivered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from precede.core.effects import NOTHING, WIRED, Accept, Effect, Effects, Medium, Send
from precede.core.errors import BadInput, Refused
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Message, Packet
from precede.core.node import Context, Node, Waiting
from precede.protocols.vcube_awaited import Awaited, Held, Pending
from precede.protocols.vcube_packets import StampedMessage, VCubePacket
from precede.protocols.vcube_packing import packet_of, packets_of
from precede.protocols.vcube_prepared import Mask, Prepared, Slot, id_of, slot_of
from precede.protocols.vcube_progress import Ahead, Missing, Progress
from precede.protocols.vcube_topology import (
    dimension,
    first_child,
    height,
    live_mask,
    responsibilities,
)

try:
    from mypy_extensions import mypyc_attr
except ImportError:
    from precede.core.compiling import mypyc_attr

ROOT: Final[NodeId] = 0
NOBODY: Final[NodeId] = -1
_PACKET: Final[Any] = VCubePacket


@mypyc_attr(allow_interpreted_subclasses=True)
class VCubeNode(Node):
    """Algorithm 2 at node i: `_delivered` is *vector_clock*, and with `_ahead` it is *vector_max*."""

    draining: ClassVar[tuple[str, ...]] = ("pending", "held")

    def __init__(self, context: Context) -> None:
        options = context.options
        live = live_mask(context.members)
        if not live >> context.node & 1:
            raise BadInput(
                f"vcube: node {context.node} is not among the members, and only diagnosis lets it join"
            )
        self._me = context.node  # what every reception touches stands together
        self._single_tree: bool = options["tree"] == "single"
        self._whole = False
        self._some_early = False
        if self._single_tree and not live & 1:
            raise BadInput(f"vcube: a single tree is rooted at node {ROOT}, which is not among the members")
        self._delivered = Progress(live.bit_length())
        self._awaited: dict[Slot, Awaited] = {}
        self._in_hand: VCubePacket | None = None
        self._positions = live.bit_length()
        self._early: dict[Slot, bool] = {}
        self._pending: dict[Slot, Pending] = {}
        self._ahead = Ahead()
        self._missing = Missing(self._delivered, self._ahead)
        self._aggregates: bool = options["aggregation"]
        self._holds = 0
        self._held_from: dict[Slot, int] = {}
        self._causal_unpacking: bool = options["unpack"] == "causal"
        self._compresses: bool = options["compression"]
        self._mtu: int = options["mtu"]
        self._incarnation = context.incarnation
        self._members = len(context.members)
        self._number = 0
        self._told = self._delivered.copy()
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

    # -- CO_BROADCAST ------------------------------------------------------------------------------------

    def broadcast(
        self,
        payload: bytes,
        now: Instant,
        to: Sequence[NodeId] | None = None,
        lifetime: Duration | None = None,
    ) -> Effects:
        if to is not None:
            raise Refused("vcube delivers to everybody; for destination sets take a multicast order (prs)")
        if self._incarnation:
            raise Refused("vcube has no way back for a node that lost its state")
        stamped = self._stamp(payload, now)
        deadline = None if lifetime is None else now + lifetime
        effects: list[Effect] = [Accept(stamped.message, None, deadline), stamped.prepared.deliver]
        if self._single_tree and self._me != ROOT:
            effects.append(Send(self._alone(stamped), ROOT, WIRED))
        else:
            self._send_to_all(stamped, len(self._children), effects)
        return effects

    def _stamp(self, payload: bytes, now: Instant) -> StampedMessage:
        """The message with what was delivered since the one before it."""
        self._number = number = self._number + 1
        rows = self._delivered.since(self._told)
        entries = 1 + sum([row.mask.bit_count() for row in rows]) if self._compresses else self._members
        changed = tuple([(row.number, _as_bytes(row.mask)) for row in rows])
        message = Message(MessageId(self._me, 0, number), payload)
        past = self._delivered.counted + 1
        stamped = StampedMessage(message, changed, entries, past)
        self._delivered.advance(stamped.prepared)
        self._told = self._delivered.copy()
        return stamped

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

    # -- upon receive --------------------------------------------------------------------------------------

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        """Each message of the packet in turn."""
        if type(packet) is not _PACKET:
            return NOTHING
        came: Any = packet
        below = self._root_height if self._single_tree else (self._me ^ sender).bit_length() - 1
        content: tuple[StampedMessage, ...] = came.content
        effects: list[Effect] = []
        if len(content) == 1:
            stamped = content[0]
            message: Prepared = stamped.prepared
            awaited = self._awaited.get(message.slot)
            if self._passes(message, awaited):
                if not below and awaited is None:
                    return message.at_once
                effects.append(message.arrive)
                self._send_to_each(came, min(below, self._clusters), effects)
                self._deliver(message, awaited, effects)
            else:
                self._in_hand = came
                self._take_in(stamped, message, below, now, effects)
                self._in_hand = None
            return effects
        for stamped in self._unpacked(content):
            message = stamped.prepared
            awaited = self._awaited.get(message.slot)
            if self._passes(message, awaited):
                effects.append(message.arrive)
                self._send_to_all(stamped, below, effects)
                self._deliver(message, awaited, effects)
            else:
                self._take_in(stamped, message, below, now, effects)
        return effects

    def _unpacked(self, content: tuple[StampedMessage, ...]) -> Sequence[StampedMessage]:
        return sorted(content, key=_by_past) if self._causal_unpacking else content

    def _passes(self, message: Prepared, awaited: Awaited | None) -> bool:
        """A message that is new, next, deliverable and that none is held for counts as delivered."""
        return (
            not self._some_early
            and (awaited is None or awaited.held is None)
            and self._delivered.passes(message)
        )

    def _deliver(self, message: Prepared, awaited: Awaited | None, effects: list[Effect]) -> None:
        """With all that waited for it."""
        effects.append(message.deliver)
        if awaited is not None and awaited.lacking is not None:
            self._deliver_next([message.slot], effects)

    def _take(
        self, stamped: StampedMessage, below: int, now: Instant, effects: list[Effect]
    ) -> Sequence[Slot] | None:
        """Lines 15 to 22 for any message, which this node forwards into its first `below` clusters.

        Returns what *vector_max* covers now that it did not before; None for a copy of what was known.
        """
        return self._take_in(stamped, stamped.prepared, below, now, effects)

    def _take_in(
        self, stamped: StampedMessage, message: Prepared, below: int, now: Instant, effects: list[Effect]
    ) -> list[Slot] | None:
        source, number = message.source, message.number
        if source >= self._positions:
            return None
        if self._delivered.has(number, message.bit) or message.slot in self._pending:
            self._take_again(stamped, below, effects)
            return None
        effects.append(message.arrive)
        covered = self._cover(message, number == 1 or self._delivered.has(number - 1, message.bit))
        under = self._delivered.lacked(message.rows)
        if below or self._held_from:
            self._forward(stamped, message, below, under != 0, covered, effects)
        if under:
            pending = Pending(stamped, message, now)
            self._pending[message.slot] = pending
            self._await(under).lack(pending)
        else:
            self._delivered.advance(message)
            self._ahead.remove(message)
            self._deliver(message, self._awaited.get(message.slot), effects)
        return covered

    def _cover(self, message: Prepared, is_next: bool) -> list[Slot]:
        """*vector_max* moves on to this message, and over what came too early for the lack of it."""
        source, number = message.source, message.number
        if not is_next:
            before = slot_of(source, number - 1)
            if before not in self._pending or before in self._early:
                self._early[message.slot] = self._some_early = True
                return []
        self._ahead.add(number, message.bit)
        covered: list[Slot] = [message.slot]
        while self._some_early and self._early.pop(slot := slot_of(source, number + 1), False):
            number += 1
            self._ahead.add(number, message.bit)
            covered.append(slot)
            self._some_early = len(self._early) > 0
        return covered

    def _take_again(self, stamped: StampedMessage, below: int, effects: list[Effect]) -> None:
        """A copy of what is known: from a single root an own message comes back, on its way to the others."""
        if self._single_tree and stamped.prepared.source == self._me:
            self._send_to_all(stamped, below, effects)

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

    # -- CHECKDELIVERY -------------------------------------------------------------------------------------

    def _deliver_next(self, came: list[Slot], effects: list[Effect]) -> None:
        """All that waited for these messages and waits for nothing else now, and so on."""
        delivered = self._delivered
        while came:
            pending = self._lacking_for(came.pop())
            while pending is not None:
                following = pending.next
                message: Prepared = pending.message
                under = delivered.lacked(message.rows)
                if under:
                    self._await(under).lack(pending)
                else:
                    effects.append(message.deliver)
                    del self._pending[message.slot]
                    delivered.advance(message)
                    self._ahead.remove(message)
                    came.append(message.slot)
                pending = following

    def _lacking_for(self, slot: Slot) -> Pending | None:
        """The first that waited for this message to be delivered; all of them are taken out."""
        awaited = self._awaited.get(slot)
        if awaited is None:
            return None
        lacking = awaited.lacking
        awaited.lacking = None
        if awaited.held is None:
            del self._awaited[slot]
        return lacking

    # -- read-only -----------------------------------------------------------------------------------------

    def waiting(self) -> Sequence[Waiting]:
        return [
            Waiting(id_of(slot), self._all_lacking(pending.message), pending.since)
            for slot, pending in self._pending.items()
        ]

    def _all_lacking(self, message: Prepared) -> tuple[MessageId, ...]:
        """What its own entries name that is not delivered yet."""
        missing: list[MessageId] = []
        for row in message.rows:
            for source in range(row.mask.bit_length()):
                if row.mask >> source & 1:
                    first = self._delivered.count(source) + 1
                    missing += [MessageId(source, 0, lacked) for lacked in range(first, row.number + 1)]
        return tuple(sorted(set(missing)))

    def sizes(self) -> Mapping[str, int]:
        return {
            "pending": len(self._pending),
            "held": sum([clusters.bit_count() for clusters in self._held_from.values()]),
            "vector_entries": self._positions,
        }


def _as_bytes(mask: Mask) -> bytes:
    """As it travels: a wire has no whole numbers of 1,024 bits."""
    written: bytes = mask.to_bytes((mask.bit_length() + 7) // 8, "little")
    return written


def _by_reception(held: Held) -> int:
    return held.order


def _by_past(stamped: StampedMessage) -> int:
    return stamped.past
