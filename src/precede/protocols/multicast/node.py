"""`MulticastNode`: the node around a multicast rule (PRS, RST, SES).

It numbers messages, holds them back until the rule allows delivery, retransmits, and survives restarts. The
paper assumes reliable channels and processes that never stop; we add acknowledgement and retransmission
(`Outbox`) and a journal, because real channels lose packets and real processes crash. As in section 5.1 a
sender is never one of its own destinations, so a node delivers only messages of others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any, ClassVar, Final, final

from mypy_extensions import mypyc_attr

from precede.core.effects import (
    NOTHING,
    RADIO,
    Accept,
    Arrive,
    Deliver,
    Effect,
    Effects,
    Key,
    Medium,
    Persist,
    Send,
)
from precede.core.errors import BadInput, Refused
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Message, Packet
from precede.core.node import AfterCopy, Context, Node, Saved, Waiting
from precede.protocols.acknowledgement import AckPacket
from precede.protocols.multicast.address_book import GONE, AddressBook
from precede.protocols.multicast.journal import Checkpoint, Journal, unsent_by_packet
from precede.protocols.multicast.options import MulticastOptions
from precede.protocols.multicast.packets import LifePacket, MulticastPacket
from precede.protocols.multicast.process import (
    INCARNATION_SHIFT,
    NODE_MASK,
    Process,
    incarnation_of,
    message_of,
    node_of,
    process_of,
)
from precede.protocols.multicast.rule import Rule
from precede.protocols.outbox import Outbox

ANNOUNCEMENT: Final = 1 << 40
"""The message number of announcements: the highest, which no message reaches."""
AFTER_ALL_INCARNATIONS: Final = 1 << (63 - INCARNATION_SHIFT)
"""A number higher than every incarnation."""


@final
class _Held:
    """A message that waits, and an iterator over its needs (process, threshold) that were not checked yet."""

    __slots__ = ("arrival", "needs", "packet", "since", "source")

    def __init__(
        self,
        packet: MulticastPacket,
        source: Process,
        needs: Iterator[tuple[Process, int]],
        arrival: int,
        since: Instant,
    ) -> None:
        self.packet = packet
        self.source = source
        self.needs = needs
        self.arrival = arrival
        self.since = since


@mypyc_attr(allow_interpreted_subclasses=True)
class MulticastNode(Node):
    """A node in one incarnation: one process of the paper.

    `_last` is the last delivered number of each process. `_watchers` has, by process, a heap of the messages
    that wait until the rule's `reached` count of that process is high enough.
    """

    draining: ClassVar[tuple[str, ...]] = ("unacknowledged", "pending")
    after_copy: AfterCopy = "empty"
    """Messages to an incarnation follow each other: a copy would wait for those that its original received."""

    def __init__(self, context: Context[MulticastOptions], rule: Rule) -> None:
        if context.node > NODE_MASK:
            raise BadInput(f"node id {context.node} does not fit in {INCARNATION_SHIFT} bits")
        self.rule = rule
        self._node = context.node
        self._incarnation = context.incarnation
        self._announcement = MessageId(context.node, context.incarnation, ANNOUNCEMENT)
        self._me = rule.me
        self._book = AddressBook(context.node, context.incarnation, context.members)
        self._number = 0
        self._last: dict[Process, int] = {}
        self._held: dict[MessageId, _Held] = {}
        self._watchers: dict[Process, list[tuple[int, int, _Held]]] = {}
        self._arrivals = 0
        self._outbox = Outbox(context.options.rto)
        self._journal = Journal(context.options.durable, max(1, context.options.checkpoint))

    # -- message send -----------------------------------------------------------------------------------

    def broadcast(
        self,
        payload: bytes,
        now: Instant,
        to: Sequence[NodeId] | None = None,
        lifetime: Duration | None = None,
    ) -> Effects:
        if self._book.incarnation_of(self._node) == GONE:
            raise Refused("this node is leaving")
        if lifetime is not None:
            raise Refused("causal multicast has no lifetimes: every destination receives the message")
        destinations = self._destinations(to)
        packets = self._send(payload, destinations)
        message = packets[destinations[0]].message
        effects: list[Effect] = []
        self._journal.sent(payload, destinations, effects)
        effects.append(Accept(message, tuple(map(node_of, destinations))))
        self._outbox.send(message.id, {node_of(to): packet for to, packet in packets.items()}, now, effects)
        self._journal.checkpoint(self._save, effects)
        return effects

    def _destinations(self, to: Sequence[NodeId] | None) -> tuple[Process, ...]:
        """Return the processes of these nodes, by default of all others. Raises Refused if not allowed."""
        if to is None:
            to = self._book.others()
        if not to:
            raise Refused("the destination set is empty")
        if len(set(to)) != len(to):
            raise Refused("a destination is named twice")
        processes = []
        for node in to:
            incarnation = self._book.incarnation_of(node)
            if node == self._node:
                raise Refused("a sender is not one of its own destinations")
            if incarnation is None or incarnation == GONE:
                raise Refused(f"destination {node} is not in the address book")
            processes.append(process_of(node, incarnation))
        self.rule.check(to, self._book)
        return tuple(processes)

    def _send(self, payload: bytes, destinations: tuple[Process, ...]) -> dict[Process, MulticastPacket]:
        """Number and stamp a new message. Returns its packet for each destination."""
        self._number += 1
        message = Message(MessageId(self._node, self._incarnation, self._number), payload)
        stamps = self.rule.stamp(self._number, destinations, self._book.population)
        make: Any = self.rule.packet
        if len(stamps) == 1:
            return dict.fromkeys(destinations, make(message, destinations, stamps[0]))
        return {
            destination: make(message, destinations, stamp)
            for destination, stamp in zip(destinations, stamps, strict=True)
        }

    # -- message reception ------------------------------------------------------------------------------

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        if isinstance(packet, MulticastPacket):
            return self._receive_message(packet, sender, now)
        if type(packet) is AckPacket:
            return self._receive_ack(packet, sender)
        if type(packet) is LifePacket:
            return self._receive_announcement(packet, sender, now)
        return NOTHING

    def _receive_message(self, packet: MulticastPacket, sender: NodeId, now: Instant) -> Effects:
        id = packet.message.id
        if id.source != sender or type(packet) is not self.rule.packet:
            return NOTHING
        effects: list[Effect] = []
        self._learn(sender, id.incarnation, now, effects)
        source = process_of(sender, id.incarnation)
        # A message to an earlier incarnation of this node is only acknowledged, so that its sender forgets it.
        if self._me in packet.destinations and id.number > self._last.get(source, 0) and id not in self._held:
            effects.append(Arrive((packet.message,)))
            self._wait(packet, source, now, effects)
        self._outbox.acknowledge(id, sender, effects)
        self._journal.checkpoint(self._save, effects)
        return effects

    def _wait(self, packet: MulticastPacket, source: Process, now: Instant, effects: list[Effect]) -> None:
        """Deliver a message and those that it makes deliverable, or let it wait for its first unmet need."""
        reached = self.rule.reached
        needs = iter(self.rule.needs(packet.stamp).items())
        for other, threshold in needs:
            if reached.get(other, 0) < threshold:
                self._arrivals += 1
                held = _Held(packet, source, needs, self._arrivals, now)
                self._held[packet.message.id] = held
                heappush(self._watchers.setdefault(other, []), (threshold, held.arrival, held))
                self._journal.held(packet, packet.message.id, effects)
                return
        ready: list[tuple[int, MulticastPacket, Process]] = [(0, packet, source)]
        while ready:
            _, packet, source = heappop(ready)
            for other in self._deliver(packet, source, effects):
                if other in self._watchers:
                    self._wake(other, ready)

    def _deliver(self, packet: MulticastPacket, source: Process, effects: list[Effect]) -> Iterable[Process]:
        """Deliver one message. Returns the processes whose `reached` grew."""
        id = packet.message.id
        self._last[source] = id.number
        self._journal.delivered(packet, effects)
        effects.append(Deliver(packet.message))
        if self._held and self._held.pop(id, None) is not None:
            self._journal.released(id, effects)
        return self.rule.deliver(source, id.number, packet.destinations, packet.stamp)

    def _wake(self, other: Process, ready: list[tuple[int, MulticastPacket, Process]]) -> None:
        """Check the messages that wait for this process; add the deliverable ones to the heap `ready`."""
        watchers = self._watchers[other]
        reached = self.rule.reached
        while watchers and watchers[0][0] <= reached[other]:
            held = heappop(watchers)[2]
            for unmet, threshold in held.needs:
                if reached.get(unmet, 0) < threshold:
                    heappush(self._watchers.setdefault(unmet, []), (threshold, held.arrival, held))
                    break
            else:
                heappush(ready, (held.arrival, held.packet, held.source))
        if not watchers:
            del self._watchers[other]

    # -- acknowledgements and incarnations --------------------------------------------------------------

    def _receive_ack(self, packet: AckPacket, sender: NodeId) -> Effects:
        effects: list[Effect] = []
        for id in packet.ids:
            self._outbox.acknowledged(id, sender, effects)
        return effects

    def timer(self, key: Key, now: Instant) -> Effects:
        return self._outbox.timer(key, now)

    def _receive_announcement(self, packet: LifePacket, sender: NodeId, now: Instant) -> Effects:
        effects: list[Effect] = []
        if packet.gone:
            self._part_with(sender, effects)
        else:
            self._learn(sender, packet.incarnation, now, effects)
        effects.append(Send(AckPacket((MessageId(sender, packet.incarnation, ANNOUNCEMENT),)), sender, RADIO))
        return effects

    def _learn(self, node: NodeId, incarnation: int, now: Instant, effects: list[Effect]) -> None:
        """Record a new node or a new incarnation; stop sending to the node's earlier incarnations.

        If this node is leaving, tell the new one: its earlier incarnation may have lost that with its state.
        """
        previous = self._book.incarnation_of(node)
        if not self._book.learn(node, incarnation):
            return
        self._journal.incarnation(node, incarnation, effects)
        if previous is not None:
            self._outbox.give_up(node, effects)
            self.rule.forget(node, incarnation)
        if self._book.incarnation_of(self._node) == GONE:
            lacking = self._outbox.unacknowledged().get(self._announcement, {})
            self._announce_leave([*lacking, node], now, effects)

    def _part_with(self, node: NodeId, effects: list[Effect]) -> None:
        if self._book.learn(node, GONE):
            self._journal.incarnation(node, GONE, effects)
            self._outbox.give_up(node, effects)
            self.rule.forget(node, AFTER_ALL_INCARNATIONS)

    def link_up(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        effects: list[Effect] = []
        self._learn(peer, 0, now, effects)
        self._outbox.link_up(peer, now, effects)
        return effects

    def leave(self, now: Instant) -> Effects:
        """Announce that this node leaves for good. Call it when `sizes` shows nothing unacknowledged."""
        self._book.learn(self._node, GONE)
        effects: list[Effect] = []
        self._announce_leave(self._book.others(), now, effects)
        return effects

    def _announce_leave(self, to: Sequence[NodeId], now: Instant, effects: list[Effect]) -> None:
        """Tell these nodes, until they acknowledge it, that this node leaves."""
        leave = LifePacket(self._incarnation, True)
        self._outbox.send(self._announcement, dict.fromkeys(to, leave), now, effects)

    # -- restart ----------------------------------------------------------------------------------------

    def start(self, now: Instant, saved: Saved) -> Effects:
        effects: list[Effect] = []
        if saved:
            self._restore(now, saved, effects)
        if self._incarnation:
            begun = LifePacket(self._incarnation)
            self._outbox.send(self._announcement, dict.fromkeys(self._book.others(), begun), now, effects)
        return effects

    def _restore(self, now: Instant, saved: Saved, effects: list[Effect]) -> None:
        """Replay the journal, repeat effects that a crash may have prevented, hold waiting messages again."""
        contents = self._journal.open(saved, self.rule.packet)
        effects += [Persist(key, None) for key in contents.stale]
        for node, incarnation in contents.incarnations.items():
            self._book.learn(node, incarnation)
        unsent: dict[MessageId, dict[NodeId, Packet]] = {}
        if contents.checkpoint is not None:
            self._load(contents.checkpoint, unsent)
        for step in contents.steps:
            if step.packet is None:
                packets = self._send(step.payload, step.destinations)
                id = MessageId(self._node, self._incarnation, self._number)
                unsent[id] = {node_of(to): packet for to, packet in packets.items()}
            else:
                id = step.packet.message.id
                source = process_of(id.source, id.incarnation)
                self._last[source] = id.number
                self.rule.deliver(source, id.number, step.packet.destinations, step.packet.stamp)
        for node, incarnation in contents.incarnations.items():
            self.rule.forget(node, incarnation if incarnation != GONE else AFTER_ALL_INCARNATIONS)
        self._send_again(unsent, now, effects)
        self._hold_again(contents.held, now, effects)
        self._journal.checkpoint(self._save, effects)

    def _send_again(
        self, unsent: Mapping[MessageId, Mapping[NodeId, Packet]], now: Instant, effects: list[Effect]
    ) -> None:
        """Accept and send own messages that a crash may have cut off, to nodes in the same incarnation."""
        for id, packets in unsent.items():
            first: Any = next(iter(packets.values()))
            effects.append(Accept(first.message, tuple(map(node_of, first.destinations))))
            alive = {
                node_of(to): packets[node_of(to)]
                for to in first.destinations
                if node_of(to) in packets and self._book.incarnation_of(node_of(to)) == incarnation_of(to)
            }
            self._outbox.send(id, alive, now, effects)

    def _hold_again(self, held: Sequence[MulticastPacket], now: Instant, effects: list[Effect]) -> None:
        """After a restart, hold the messages that waited before it; erase those that need not wait any more."""
        for packet in held:
            id = packet.message.id
            source = process_of(id.source, id.incarnation)
            if id.number > self._last.get(source, 0):
                self._wait(packet, source, now, effects)
            if id not in self._held:
                self._journal.released(id, effects)

    def _save(self, step: int) -> Checkpoint:
        """Return the state after this step of the journal. Announcements are not part of it."""
        unsent = [
            entry
            for id, packets in self._outbox.unacknowledged().items()
            if id.number != ANNOUNCEMENT
            for entry in unsent_by_packet(packets)
        ]
        return Checkpoint(step, self._number, dict(self._last), self.rule.save(), unsent)

    def _load(self, checkpoint: Checkpoint, unsent: dict[MessageId, dict[NodeId, Packet]]) -> None:
        """Restore the state of a checkpoint. Add its unacknowledged packets to `unsent`."""
        self._number = checkpoint.number
        self._last = checkpoint.last
        self.rule.load(checkpoint.rule)
        for packet, nodes in self._journal.packets(checkpoint, self.rule.packet):
            unsent.setdefault(packet.message.id, {}).update(dict.fromkeys(nodes, packet))

    # -- questions --------------------------------------------------------------------------------------

    def waiting(self) -> Sequence[Waiting]:
        return [Waiting(id, self._lacked_by(held), held.since) for id, held in self._held.items()]

    def _lacked_by(self, held: _Held) -> tuple[MessageId, ...]:
        """Return the messages that a waiting message needs first: of each process only the last one.

        Return none if the rule's thresholds are not message numbers.
        """
        if not self.rule.names_messages:
            return ()
        reached = self.rule.reached
        needs = self.rule.needs(held.packet.stamp)
        return tuple(
            [message_of(other, number) for other, number in needs.items() if reached.get(other, 0) < number]
        )

    def sizes(self) -> Mapping[str, int]:
        return {"unacknowledged": len(self._outbox), "pending": len(self._held), **self.rule.sizes()}
