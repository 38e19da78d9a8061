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
from typing import ClassVar, Final, TypeAlias

from precede.core.effects import NOTHING, WIRED, Accept, Effect, Effects, Medium, Send
from precede.core.errors import BadInput, Refused
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Message, Packet
from precede.core.node import Context, Node, Waiting
from precede.protocols.vcube_packets import (
    Rows,
    Slot,
    StampedMessage,
    VCubePacket,
    changed_entries,
    changed_rows,
    id_of,
    packets_of,
    slot_of,
)
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


Held: TypeAlias = tuple[int, int, StampedMessage]
"""A message held from the child of cluster t + 1: t, the order of reception, the message."""

CLUSTER_BITS: Final = 4


@mypyc_attr(allow_interpreted_subclasses=True)
class VCubeNode(Node):
    """Algorithm 2 at node i: `_delivered` is *vector_clock*, and with `_ahead` it is *vector_max*."""

    draining: ClassVar[tuple[str, ...]] = ("pending", "held")

    def __init__(self, context: Context) -> None:
        options = context.options
        self._me = context.node
        self._incarnation = context.incarnation
        self._aggregates: bool = options["aggregation"]
        self._causal_unpacking: bool = options["unpack"] == "causal"
        self._single_tree: bool = options["tree"] == "single"
        self._compresses: bool = options["compression"]
        self._mtu: int = options["mtu"]
        live = live_mask(context.members)
        if not live >> self._me & 1:
            raise BadInput(f"vcube: node {self._me} is not among the members, and only diagnosis lets it join")
        if self._single_tree and not live & 1:
            raise BadInput(f"vcube: a single tree is rooted at node {ROOT}, which is not among the members")
        self._members = len(context.members)
        self._positions = live.bit_length()
        self._delivered = Progress(self._positions)
        self._ahead = Ahead()
        self._number = 0
        self._told: Sequence[int] = ()
        self._early: dict[Slot, bool] = {}
        self._pending: dict[Slot, tuple[StampedMessage, Instant]] = {}
        self._lacking: dict[Slot, list[StampedMessage]] = {}
        self._holds = 0
        self._held: dict[Slot, list[Held]] = {}
        self._held_from: dict[int, bool] = {}
        self._build_trees(live)

    def _build_trees(self, live: int) -> None:
        """Whom this node feeds in each cluster, and which sources' messages it feeds them."""
        clusters = range(1, dimension(live) + 1)
        self._children = [first_child(self._me, s, live) for s in clusters]
        self._fed = [
            tuple(child for child in self._children[:below] if child is not None)
            for below in range(len(clusters) + 1)
        ]
        if self._single_tree:
            below = height(self._me, ROOT, live)
            everybody = (1 << self._positions) - 1
            self._shares = [everybody if s <= below else 0 for s in clusters]
            self._root_height = below
        else:
            self._shares = responsibilities(self._me, live)

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
            effects.append(Send(stamped.alone, ROOT, WIRED))
        else:
            self._send_to_all(stamped, len(self._children), effects)
        return effects

    def _stamp(self, payload: bytes, now: Instant) -> StampedMessage:
        """The message with what was delivered since the one before it."""
        self._number = number = self._number + 1
        changed = changed_entries(self._delivered.counts, self._told)
        self._delivered.advance(self._me, number, 1 << self._me)
        self._told = self._delivered.counts[:]
        entries = len(changed) + 1 if self._compresses else self._members
        message = Message(MessageId(self._me, 0, number), payload)
        return StampedMessage(message, changed_rows(changed), entries, sum(self._told))

    def _send_to_all(self, stamped: StampedMessage, below: int, effects: list[Effect]) -> None:
        """To the children in the first `below` clusters."""
        alone = stamped.alone
        for child in self._fed[below if below < len(self._fed) else -1]:
            effects.append(Send(alone, child, WIRED))

    # -- upon receive --------------------------------------------------------------------------------------

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        """Each message of the packet in turn. What is new, next, deliverable and awaited stands here."""
        if type(packet) is not VCubePacket:
            return NOTHING
        effects: list[Effect] = []
        delivered = self._delivered
        lacking = delivered.lacking
        below = self._root_height if self._single_tree else (self._me ^ sender).bit_length() - 1
        for stamped in self._unpacked(packet.content) if packet.messages > 1 else packet.content:
            source, number, slot, bit, rows, arrive, deliver = stamped.prepared
            usual = number in lacking and lacking[number] & bit and slot not in self._held and not self._early
            for counted, mask in rows:
                if counted not in lacking or mask & lacking[counted]:
                    usual = False
            if not usual:
                self._take(stamped, below, now, effects)
                continue
            effects.append(arrive)
            if below:
                alone = stamped.alone
                for child in self._fed[below]:
                    effects.append(Send(alone, child, WIRED))
            effects.append(deliver)
            lacking[number] ^= bit
            delivered.counts[source] = number
            if slot in self._lacking:
                self._deliver_next([slot], effects)
        return effects

    def _unpacked(self, content: tuple[StampedMessage, ...]) -> Sequence[StampedMessage]:
        return sorted(content, key=_by_past) if self._causal_unpacking else content

    def _take(
        self, stamped: StampedMessage, below: int, now: Instant, effects: list[Effect]
    ) -> Sequence[Slot] | None:
        """Lines 15 to 22 for any message, which this node forwards into its first `below` clusters.

        Returns what *vector_max* covers now that it did not before; None for a copy of what was known.
        """
        source, number, slot, bit, rows, arrive, deliver = stamped.prepared
        if source >= self._positions:
            return None
        ahead = self._ahead.counts
        have = ahead[source] if source in ahead else self._delivered.counts[source]
        if number <= have or slot in self._early:
            self._take_again(stamped, below, effects)
            return None
        effects.append(arrive)
        covered = self._cover(source, number, have)
        lacks = self._delivered.missing(rows)
        if below or self._held:
            self._forward(stamped, below, lacks is not None, covered, effects)
        if lacks is None:
            effects.append(deliver)
            self._delivered.advance(source, number, bit)
            self._ahead.remove(source, number, bit)
            self._deliver_next([slot], effects)
        else:
            self._pending[slot] = stamped, now
            self._lacking.setdefault(_one_of(lacks), []).append(stamped)
        return covered

    def _cover(self, source: NodeId, number: int, have: int) -> Sequence[Slot]:
        """*vector_max* moves on to this message, and over what came too early for the lack of it."""
        if number == have + 1 and not self._early:
            self._ahead.add(source, number, 1 << source)
            return (slot_of(source, number),)
        covered: list[Slot] = []
        self._early[slot_of(source, number)] = True
        while self._early.pop(slot := slot_of(source, have + 1), False):
            have += 1
            self._ahead.add(source, have, 1 << source)
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
        covered: Sequence[Slot],
        effects: list[Effect],
    ) -> None:
        """For each child: what this message sets free, then the message itself unless it is held."""
        if not self._aggregates:
            self._send_to_all(stamped, below, effects)
            return
        self._holds = order = self._holds + 1
        below = min(below, len(self._children))
        absent = self._ahead.absent(self._delivered, stamped.prepared.rows) if may_hold else []
        held = [may_hold and self._hold(t, order, stamped, absent) for t in range(below)]
        released = self._release(covered) if self._held else {}
        for t in [*range(below), *(t for t in released if t >= below)] if released else range(below):
            child = self._children[t] if t < len(self._children) else None
            if child is None:
                continue
            if t not in released:
                if not held[t]:
                    effects.append(Send(stamped.alone, child, WIRED))
                continue
            content = [one for _, _, one in sorted(released[t], key=_by_reception)]
            if t < below and not held[t]:
                content.append(stamped)
            self._send_packed(content, child, effects)

    def _send_packed(self, content: Sequence[StampedMessage], to: NodeId, effects: list[Effect]) -> None:
        for packet in packets_of(content, self._mtu):
            effects.append(Send(packet, to, WIRED))

    def _hold(self, t: int, order: int, stamped: StampedMessage, absent: Rows) -> bool:
        """File a message under one that this node still owes the child of cluster t + 1, if there is one.

        `absent` are the message's entries that this node has not received.
        """
        source, number, slot = stamped.prepared[:3]
        share = self._shares[t]
        for lacked, mask in absent:
            if mask & share:
                under = slot_of((mask & share).bit_length() - 1, lacked)
                break
        else:
            under = slot_of(source, number - 1)
            if number == 1 or (under << CLUSTER_BITS | t) not in self._held_from:
                return False
        self._held.setdefault(under, []).append((t, order, stamped))
        self._held_from[slot << CLUSTER_BITS | t] = True
        return True

    def _release(self, covered: Sequence[Slot]) -> dict[int, list[Held]]:
        """By cluster, what was held and has become free by these messages; the rest is filed anew.

        A message that becomes free for a child may set its source's next one free for the same child.
        """
        released: dict[int, list[Held]] = {}
        came = [(slot, -1) for slot in covered if slot in self._held]
        while came:
            under, only = came.pop()
            for held in self._held.pop(under, ()):
                t, order, stamped = held
                if only not in (-1, t):
                    self._held.setdefault(under, []).append(held)
                    continue
                slot, rows = stamped.prepared.slot, stamped.prepared.rows
                del self._held_from[slot << CLUSTER_BITS | t]
                if not self._hold(t, order, stamped, self._ahead.absent(self._delivered, rows)):
                    released.setdefault(t, []).append(held)
                    came.append((slot, t))
        return released

    # -- CHECKDELIVERY -------------------------------------------------------------------------------------

    def _deliver_next(self, came: list[Slot], effects: list[Effect]) -> None:
        """All that waited for these messages and waits for nothing else now, and so on."""
        delivered, lacking = self._delivered, self._lacking
        while came:
            for waiting in lacking.pop(came.pop(), ()):
                source, number, slot, bit, rows, _, deliver = waiting.prepared
                lacks = delivered.missing(rows)
                if lacks is not None:
                    lacking.setdefault(_one_of(lacks), []).append(waiting)
                    continue
                effects.append(deliver)
                del self._pending[slot]
                delivered.advance(source, number, bit)
                self._ahead.remove(source, number, bit)
                came.append(slot)

    # -- read-only -----------------------------------------------------------------------------------------

    def waiting(self) -> Sequence[Waiting]:
        return [
            Waiting(id_of(slot), self._all_lacking(stamped), since)
            for slot, (stamped, since) in self._pending.items()
        ]

    def _all_lacking(self, stamped: StampedMessage) -> tuple[MessageId, ...]:
        """What its own entries name that is not delivered yet."""
        missing: list[MessageId] = []
        for number, mask in stamped.prepared.rows:
            for source in range(mask.bit_length()):
                if mask >> source & 1:
                    first = self._delivered.counts[source] + 1
                    missing += [MessageId(source, 0, lacked) for lacked in range(first, number + 1)]
        return tuple(sorted(set(missing)))

    def sizes(self) -> Mapping[str, int]:
        return {
            "pending": len(self._pending),
            "held": len(self._held_from),
            "vector_entries": self._positions,
        }


def _one_of(missing: tuple[int, int]) -> Slot:
    """The message of the highest source among those missing: any one will do to be filed under."""
    number, sources = missing
    return slot_of(sources.bit_length() - 1, number)


def _by_reception(held: Held) -> int:
    return held[1]


def _by_past(stamped: StampedMessage) -> int:
    return stamped.past
