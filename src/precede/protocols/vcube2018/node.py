"""A VCube node: causal broadcast over a tree per source, with aggregation (vcube2018, section 4, Algorithm 2).

A node forwards a message at once to its children in the source's tree. It holds the message from a child that
lacks a dependency which this node has yet to forward. Both then travel in one packet, without a timer.

The paper scans *pending*; we index each waiting message by one message that it lacks (`awaited`, `forwarding`).
The paper leaves the order of lines 13 to 22 open, and some orders lose messages. We take the messages of a
packet one at a time: insert, advance *vector_max*, CHECKAGG for all children, then CHECKDELIVERY. Line 30 as
printed compares an entry with itself; we apply its last condition to all k except the source. Birman's
compressed vector holds only what changed since the source's previous message, so a message also waits for that
one: to be received, to be forwarded to the same child, to be delivered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from mypy_extensions import mypyc_attr

from precede.core.effects import NOTHING, WIRED, Accept, Effect, Effects, Medium, Send
from precede.core.errors import BadInput, Refused
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Message, Packet
from precede.core.node import Context, Waiting
from precede.protocols.vcube2018.awaited import Awaited, Pending
from precede.protocols.vcube2018.forwarding import ROOT, Forwarding, cluster_of
from precede.protocols.vcube2018.options import VCubeOptions
from precede.protocols.vcube2018.packets import StampedMessage, VCubePacket
from precede.protocols.vcube2018.prepared import Prepared, Slot, id_of, slot_of
from precede.protocols.vcube2018.sources import Mask, sources_of
from precede.protocols.vcube2018.topology import live_mask

_PACKET: Final[Any] = VCubePacket


@mypyc_attr(allow_interpreted_subclasses=True)
class VCubeNode(Forwarding):
    """Algorithm 2 at one node.

    `_pending` are the messages received and not delivered. `_early` are those of them beyond a gap of their
    source; `_some_early` says that there are any. `_last_stamp` is *vector_clock* at the last own broadcast.
    """

    draining: ClassVar[tuple[str, ...]] = ("pending", "held")

    def __init__(self, context: Context[VCubeOptions]) -> None:
        options = context.options
        live = live_mask(context.members)
        if not live >> context.node & 1:
            raise BadInput(
                f"vcube: node {context.node} is not among the members, and only diagnosis lets it join"
            )
        if options.tree == "single" and not live & 1:
            raise BadInput(f"vcube: a single tree is rooted at node {ROOT}, which is not among the members")
        super().__init__(context.node, live, options)
        self._early: dict[Slot, bool] = {}
        self._pending: dict[Slot, Pending] = {}
        self._causal_unpacking: bool = options.unpack == "causal"
        self._compresses: bool = options.compression
        self._incarnation = context.incarnation
        self._members = len(context.members)
        self._number = 0
        self._last_stamp = self._delivered.copy()

    # -- CO_BROADCAST ------------------------------------------------------------------------------------

    def broadcast(
        self,
        payload: bytes,
        now: Instant,
        to: Sequence[NodeId] | None = None,
        lifetime: Duration | None = None,
    ) -> Effects:
        if to is not None:
            raise Refused("vcube delivers to everybody; for destination sets use prs, rst or ses")
        if self._incarnation:
            raise Refused("vcube: a node that restarted cannot broadcast, because it lost its state")
        stamped = self._stamp(payload, now)
        deadline = None if lifetime is None else now + lifetime
        effects: list[Effect] = [Accept(stamped.message, None, deadline, stamped), stamped.prepared.deliver]
        self._send_own(stamped, effects)
        return effects

    def _send_own(self, stamped: StampedMessage, effects: list[Effect]) -> None:
        """Send an own message to the children, or to the root of a single tree."""
        if self._single_tree and self._me != ROOT:
            effects.append(Send(self._alone(stamped), ROOT, WIRED))
        else:
            self._send_to_all(stamped, len(self._children), effects)

    def _stamp(self, payload: bytes, now: Instant) -> StampedMessage:
        """Make a message with the vector entries that changed since the last one. Count it as delivered."""
        self._number = number = self._number + 1
        rows = self._delivered.since(self._last_stamp)
        entries = 1 + sum([row.mask.bit_count() for row in rows]) if self._compresses else self._members
        changed = tuple([(row.number, _as_bytes(row.mask)) for row in rows])
        message = Message(MessageId(self._me, 0, number), payload)
        past = self._delivered.counted + 1
        stamped = StampedMessage(message, changed, entries, past)
        self._delivered.advance(stamped.prepared)
        self._last_stamp = self._delivered.copy()
        return stamped

    # -- upon receive --------------------------------------------------------------------------------------

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        """Process the messages of a packet, one at a time; a single message has a faster path."""
        if type(packet) is not _PACKET:
            return NOTHING
        received: Any = packet
        below = self._root_height if self._single_tree else cluster_of(self._me, sender) - 1
        content: tuple[StampedMessage, ...] = received.content
        effects: list[Effect] = []
        if len(content) == 1:
            stamped = content[0]
            message: Prepared = stamped.prepared
            awaited = self._awaited.get(message.slot)
            if self._passes(message, awaited):
                if not below and awaited is None:
                    return message.at_once
                effects.append(message.arrive)
                self._send_to_each(received, min(below, self._clusters), effects)
                self._deliver(message, awaited, effects)
            else:
                self._in_hand = received
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
        """Return the messages of a packet in the order in which they are processed."""
        return sorted(content, key=_by_past) if self._causal_unpacking else content

    def _passes(self, message: Prepared, awaited: Awaited | None) -> bool:
        """Count a message as delivered if it is new and deliverable and no held message waits for it.

        Return True if it was counted. After False the slower `_take_in` decides.
        """
        return (
            not self._some_early
            and (awaited is None or awaited.held is None)
            and self._delivered.passes(message)
        )

    def _deliver(self, message: Prepared, awaited: Awaited | None, effects: list[Effect]) -> None:
        """Deliver a message that is counted already, then the waiting messages that now lack nothing."""
        effects.append(message.deliver)
        if awaited is not None and awaited.lacking is not None:
            self._deliver_next([message.slot], effects)

    def _take(
        self, stamped: StampedMessage, below: int, now: Instant, effects: list[Effect]
    ) -> Sequence[Slot] | None:
        """Call `_take_in` for a received message, after computing its prepared form."""
        return self._take_in(stamped, stamped.prepared, below, now, effects)

    def _take_in(
        self, stamped: StampedMessage, message: Prepared, below: int, now: Instant, effects: list[Effect]
    ) -> list[Slot] | None:
        """Take in a received message (lines 15 to 22): forward it, and deliver it or let it wait.

        `message` is `stamped.prepared`. This node forwards it into its first `below` clusters. Returns the
        messages that *vector_max*, the messages received without a gap, covers now and did not before; None for
        a duplicate or an unknown source.
        """
        source, number = message.source, message.number
        if source >= self._positions:
            return None
        if self._delivered.has(number, source) or message.slot in self._pending:
            self._take_duplicate(stamped, below, effects)
            return None
        effects.append(message.arrive)
        covered = self._cover(message, number == 1 or self._delivered.has(number - 1, source))
        under = self._delivered.lacked(message.rows)
        if below or self._held_from:
            self._forward(stamped, message, below, under != 0, covered, effects)
        if under:
            pending = Pending(stamped, message, now)
            self._pending[message.slot] = pending
            self._await(under).lack(pending)
        else:
            self._delivered.advance(message)
            self._ahead.remove(message.number, message.source)
            self._deliver(message, self._awaited.get(message.slot), effects)
        return covered

    def _cover(self, message: Prepared, is_next: bool) -> list[Slot]:
        """Advance *vector_max* over this message and over early ones that follow it. Returns these messages.

        A message beyond a gap of its source becomes early itself; then nothing is returned.
        """
        source, number = message.source, message.number
        if not is_next:
            before = slot_of(source, number - 1)
            if before not in self._pending or before in self._early:
                self._early[message.slot] = self._some_early = True
                return []
        self._ahead.add(number, source)
        covered: list[Slot] = [message.slot]
        while self._some_early and self._early.pop(slot := slot_of(source, number + 1), False):
            number += 1
            self._ahead.add(number, source)
            covered.append(slot)
            self._some_early = len(self._early) > 0
        return covered

    def _take_duplicate(self, stamped: StampedMessage, below: int, effects: list[Effect]) -> None:
        """Forward a duplicate only if it is an own message that the root of a single tree sends back."""
        if self._single_tree and stamped.prepared.source == self._me:
            self._send_to_all(stamped, below, effects)

    # -- CHECKDELIVERY -------------------------------------------------------------------------------------

    def _deliver_next(self, arrived: list[Slot], effects: list[Effect]) -> None:
        """Deliver the messages that waited for those in `arrived` and now lack nothing, and so on."""
        delivered = self._delivered
        while arrived:
            for pending in self._lacking_for(arrived.pop()):
                message: Prepared = pending.message
                under = delivered.lacked(message.rows)
                if under:
                    self._await(under).lack(pending)
                else:
                    effects.append(message.deliver)
                    del self._pending[message.slot]
                    delivered.advance(message)
                    self._ahead.remove(message.number, message.source)
                    arrived.append(message.slot)

    def _lacking_for(self, slot: Slot) -> list[Pending]:
        """Remove from the index the messages that lack this delivery, and return them."""
        awaited = self._awaited.get(slot)
        if awaited is None or awaited.lacking is None:
            return []
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
        """Return the undelivered messages that a message's own vector entries say come before it."""
        missing: list[MessageId] = []
        for row in message.rows:
            for source in sources_of(row.mask):
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
    """Return a mask as it is sent: as bytes, because msgpack has no integers of 1,024 bits."""
    encoded: bytes = mask.to_bytes((mask.bit_length() + 7) // 8, "little")
    return encoded


def _by_past(stamped: StampedMessage) -> int:
    return stamped.past
