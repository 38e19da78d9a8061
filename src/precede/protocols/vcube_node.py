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
from typing import Any, ClassVar, Final, final

from precede.core.effects import NOTHING, WIRED, Accept, Effect, Effects, Medium, Send
from precede.core.errors import BadInput, Refused
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Message, Packet
from precede.core.node import Context, Node, Waiting
from precede.protocols.vcube_packets import StampedMessage, VCubePacket, changed_entries, changed_rows
from precede.protocols.vcube_packing import packet_of, packets_of
from precede.protocols.vcube_prepared import Prepared, Row, Slot, id_of, slot_of
from precede.protocols.vcube_progress import Ahead, Progress
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
CLUSTER_BITS: Final = 4


@final
class Held:
    """A message held from the child of cluster t + 1."""

    __slots__ = ("order", "stamped", "t")

    def __init__(self, t: int, order: int, stamped: StampedMessage) -> None:
        self.t = t
        self.order = order
        self.stamped = stamped


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
        self._me = context.node
        self._single_tree: bool = options["tree"] == "single"
        if self._single_tree and not live & 1:
            raise BadInput(f"vcube: a single tree is rooted at node {ROOT}, which is not among the members")
        self._delivered = Progress(live.bit_length())  # what every reception touches stands together
        self._early: dict[Slot, bool] = {}
        self._held: dict[Slot, list[Held]] = {}
        self._lacking: dict[Slot, list[StampedMessage]] = {}
        self._fed: list[list[NodeId]] = []
        self._in_hand: VCubePacket | None = None
        self._positions = live.bit_length()
        self._pending: dict[Slot, tuple[StampedMessage, Instant]] = {}
        self._ahead = Ahead()
        self._aggregates: bool = options["aggregation"]
        self._holds = 0
        self._held_from: dict[int, bool] = {}
        self._causal_unpacking: bool = options["unpack"] == "causal"
        self._compresses: bool = options["compression"]
        self._mtu: int = options["mtu"]
        self._incarnation = context.incarnation
        self._members = len(context.members)
        self._number = 0
        self._told: Sequence[int] = ()
        self._build_trees(live)

    def _build_trees(self, live: int) -> None:
        """Whom this node feeds in each cluster, and which sources' messages it feeds them."""
        clusters = range(1, dimension(live) + 1)
        self._children = [first_child(self._me, s, live) for s in clusters]
        self._fed = [
            [child for child in self._children[:below] if child is not None]
            for below in range(len(clusters) + 1)
        ]
        if self._single_tree:
            below = height(self._me, ROOT, live)
            everybody = (1 << self._positions) - 1
            self._shares: list[Any] = [everybody if s <= below else 0 for s in clusters]
            self._root_height = below
        else:
            self._shares = list(responsibilities(self._me, live))

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
        changed = changed_entries(self._delivered.counts, self._told)
        entries = len(changed) + 1 if self._compresses else self._members
        message = Message(MessageId(self._me, 0, number), payload)
        past = sum(self._delivered.counts) + 1
        stamped = StampedMessage(message, changed_rows(changed), entries, past)
        self._delivered.advance(stamped.prepared)
        self._told = self._delivered.counts[:]
        return stamped

    def _send_to_all(self, stamped: StampedMessage, below: int, effects: list[Effect]) -> None:
        """To the children in the first `below` clusters."""
        fed = self._fed[below if below < len(self._fed) else -1]
        if fed:
            alone = self._alone(stamped)
            for child in fed:
                effects.append(Send(alone, child, WIRED))

    def _alone(self, stamped: StampedMessage) -> VCubePacket:
        """The packet that carries this message only: the one it came in, if it came alone."""
        came = self._in_hand
        if came is not None and came.content[0] is stamped:
            return came
        return packet_of((stamped,))

    # -- upon receive --------------------------------------------------------------------------------------

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        """Each message of the packet in turn."""
        if type(packet) is not VCubePacket:
            return NOTHING
        below = self._root_height if self._single_tree else (self._me ^ sender).bit_length() - 1
        content = packet.content
        effects: list[Effect] = []
        if len(content) == 1:
            stamped = content[0]
            message: Prepared = stamped.prepared
            if self._passes(message):
                if not below and message.slot not in self._lacking:
                    return message.at_once
                effects.append(message.arrive)
                for child in self._fed[below]:
                    effects.append(Send(packet, child, WIRED))
                self._deliver(message, effects)
            else:
                self._in_hand = packet
                self._take(stamped, below, now, effects)
                self._in_hand = None
            return effects
        for stamped in self._unpacked(content):
            message = stamped.prepared
            if self._passes(message):
                effects.append(message.arrive)
                self._send_to_all(stamped, below, effects)
                self._deliver(message, effects)
            else:
                self._take(stamped, below, now, effects)
        return effects

    def _unpacked(self, content: tuple[StampedMessage, ...]) -> Sequence[StampedMessage]:
        return sorted(content, key=_by_past) if self._causal_unpacking else content

    def _passes(self, message: Prepared) -> bool:
        """A message that is new, next, deliverable and that none is held for counts as delivered."""
        return (
            not self._early
            and (not self._held or message.slot not in self._held)
            and self._delivered.passes(message)
        )

    def _deliver(self, message: Prepared, effects: list[Effect]) -> None:
        """With all that waited for it."""
        effects.append(message.deliver)
        if message.slot in self._lacking:
            self._deliver_next([message.slot], effects)

    def _take(
        self, stamped: StampedMessage, below: int, now: Instant, effects: list[Effect]
    ) -> Sequence[Slot] | None:
        """Lines 15 to 22 for any message, which this node forwards into its first `below` clusters.

        Returns what *vector_max* covers now that it did not before; None for a copy of what was known.
        """
        message: Prepared = stamped.prepared
        source, number = message.source, message.number
        if source >= self._positions:
            return None
        delivered = self._delivered.counts[source]
        if number <= delivered or message.slot in self._pending:
            self._take_again(stamped, below, effects)
            return None
        effects.append(message.arrive)
        covered = self._cover(message, number - 1 == delivered)
        under = self._delivered.lacked(message.rows)
        if below or self._held:
            self._forward(stamped, below, under != 0, covered, effects)
        if under:
            self._pending[message.slot] = stamped, now
            self._file(under, stamped)
        else:
            self._delivered.advance(message)
            self._ahead.remove(message)
            self._deliver(message, effects)
        return covered

    def _cover(self, message: Prepared, is_next: bool) -> list[Slot]:
        """*vector_max* moves on to this message, and over what came too early for the lack of it."""
        source, number = message.source, message.number
        if not is_next:
            before = slot_of(source, number - 1)
            if before not in self._pending or before in self._early:
                self._early[message.slot] = True
                return []
        self._ahead.add(number, message.bit)
        covered: list[Slot] = [message.slot]
        while self._early and self._early.pop(slot := slot_of(source, number + 1), False):
            number += 1
            self._ahead.add(number, message.bit)
            covered.append(slot)
        return covered

    def _take_again(self, stamped: StampedMessage, below: int, effects: list[Effect]) -> None:
        """A copy of what is known: from a single root an own message comes back, on its way to the others."""
        if self._single_tree and stamped.prepared.source == self._me:
            self._send_to_all(stamped, below, effects)

    # -- CHECKAGG ------------------------------------------------------------------------------------------

    def _forward(
        self,
        stamped: StampedMessage,
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
        below = min(below, len(self._children))
        held = self._hold_from_all(stamped, below, order) if may_hold and below else 0
        released = self._release(covered) if self._held else None
        if released:
            self._send_released(stamped, below, held, released, effects)
            return
        alone: VCubePacket | None = None
        for t in range(below):
            child = self._children[t]
            if child is not None and not held >> t & 1:
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
        """`held` has a bit for each cluster whose child the message itself is held from."""
        for t in [*range(below), *[t for t in released if t >= below]]:
            child = self._children[t] if t < len(self._children) else None
            if child is None:
                continue
            free = released.get(t)
            if free is None:
                if not held >> t & 1:
                    effects.append(Send(self._alone(stamped), child, WIRED))
                continue
            if len(free) > 1:
                free.sort(key=_by_reception)
            content = [one.stamped for one in free]
            if t < below and not held >> t & 1:
                content.append(stamped)
            self._send_packed(content, child, effects)

    def _send_packed(self, content: Sequence[StampedMessage], to: NodeId, effects: list[Effect]) -> None:
        for packet in packets_of(content, self._mtu):
            effects.append(Send(packet, to, WIRED))

    def _hold_from_all(self, stamped: StampedMessage, below: int, order: int) -> int:
        """File a message for each child that lacks something this node owes it; a bit for each such cluster."""
        message: Prepared = stamped.prepared
        absent = self._ahead.absent(self._delivered, message.rows)
        held = 0
        if absent or message.number > 1:
            for t in range(below):
                if self._hold(Held(t, order, stamped), message, absent):
                    held |= 1 << t
        return held

    def _hold(self, held: Held, message: Prepared, absent: list[Row]) -> bool:
        """File a message under one that this node still owes the child of cluster t + 1, if there is one.

        `absent` are the message's entries that this node has not received.
        """
        under = 0
        share: Any = self._shares[held.t]
        for row in absent:
            owed: Any = row.mask & share
            if owed:
                highest: int = owed.bit_length() - 1
                under = slot_of(highest, row.number)
                break
        if not under:
            under = slot_of(message.source, message.number - 1)
            if message.number == 1 or (under << CLUSTER_BITS | held.t) not in self._held_from:
                return False
        self._file_held(under, held)
        slot: int = message.slot
        self._held_from[slot << CLUSTER_BITS | held.t] = True
        return True

    def _file_held(self, under: Slot, held: Held) -> None:
        filed = self._held.get(under)
        if filed is None:
            self._held[under] = [held]
        else:
            filed.append(held)

    def _release(self, covered: list[Slot]) -> dict[int, list[Held]] | None:
        """By cluster, what was held and has become free by these messages; the rest is filed anew.

        A message that becomes free for a child may set its source's next one free for the same child.
        """
        came: list[tuple[int, int]] = []
        for slot in covered:
            if slot in self._held:
                came.append((slot, -1))
        if not came:
            return None
        released: dict[int, list[Held]] = {}
        while came:
            under, only = came.pop()
            for held in self._held.pop(under, ()):
                if only not in (-1, held.t):
                    self._file_held(under, held)
                    continue
                message: Prepared = held.stamped.prepared
                slot = message.slot
                del self._held_from[slot << CLUSTER_BITS | held.t]
                if not self._hold(held, message, self._ahead.absent(self._delivered, message.rows)):
                    released.setdefault(held.t, []).append(held)
                    came.append((slot, held.t))
        return released

    # -- CHECKDELIVERY -------------------------------------------------------------------------------------

    def _file(self, under: Slot, stamped: StampedMessage) -> None:
        filed = self._lacking.get(under)
        if filed is None:
            self._lacking[under] = [stamped]
        else:
            filed.append(stamped)

    def _deliver_next(self, came: list[Slot], effects: list[Effect]) -> None:
        """All that waited for these messages and waits for nothing else now, and so on."""
        delivered, lacking = self._delivered, self._lacking
        while came:
            slot = came.pop()
            if slot not in lacking:
                continue
            for waiting in lacking.pop(slot):
                message: Prepared = waiting.prepared
                under = delivered.lacked(message.rows)
                if under:
                    self._file(under, waiting)
                    continue
                effects.append(message.deliver)
                del self._pending[message.slot]
                delivered.advance(message)
                self._ahead.remove(message)
                came.append(message.slot)

    # -- read-only -----------------------------------------------------------------------------------------

    def waiting(self) -> Sequence[Waiting]:
        return [
            Waiting(id_of(slot), self._all_lacking(stamped), since)
            for slot, (stamped, since) in self._pending.items()
        ]

    def _all_lacking(self, stamped: StampedMessage) -> tuple[MessageId, ...]:
        """What its own entries name that is not delivered yet."""
        missing: list[MessageId] = []
        for row in stamped.prepared.rows:
            for source in range(row.mask.bit_length()):
                if row.mask >> source & 1:
                    first = self._delivered.counts[source] + 1
                    missing += [MessageId(source, 0, lacked) for lacked in range(first, row.number + 1)]
        return tuple(sorted(set(missing)))

    def sizes(self) -> Mapping[str, int]:
        return {
            "pending": len(self._pending),
            "held": len(self._held_from),
            "vector_entries": self._positions,
        }


def _by_reception(held: Held) -> int:
    return held.order


def _by_past(stamped: StampedMessage) -> int:
    return stamped.past
