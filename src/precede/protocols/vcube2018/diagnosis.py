"""VCube with crashes, joins and leaves: the future work of vcube2018 (section 7), built on its section 2.

*Diagnosis.* Every node tests the first node of each of its clusters. A node that does not answer in time has
crashed, and the next node of its cluster takes its place in the tests and in every tree. The assumptions:
crash-stop, no partitions, and a time-out longer than the flight of two packets. A node that was declared
crashed by mistake learns it and stops.

*Repair.* A node keeps what it has received until all have it. Tests and answers say what their sender has
received. The other side sends the rest again if it is too old to be in flight, and at once to a node that takes
over. So a message that one working node has reaches all of them.

*Orphans.* A message may depend on one that no working node has; it is discarded as `orphaned` (`orphans`).

*Joining.* A newcomer tests like every node. Once it is in the view of all nodes, none of them forgets a message
that it lacks. Then it asks a node for its vector, and begins there.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Final

from precede.core.effects import (
    NOTHING,
    WIRED,
    CancelTimer,
    Discard,
    Effect,
    Effects,
    Key,
    Medium,
    Persist,
    Send,
    SetTimer,
)
from precede.core.errors import BadInput, NotYet, Refused
from precede.core.identity import NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Packet
from precede.core.node import Context, Saved
from precede.protocols.vcube2018.awaited import Held
from precede.protocols.vcube2018.log import MessageLog, is_beyond
from precede.protocols.vcube2018.node import VCubeNode
from precede.protocols.vcube2018.options import VCubeOptions
from precede.protocols.vcube2018.orphans import Orphans
from precede.protocols.vcube2018.packets import (
    Report,
    StampedMessage,
    VCubeJoinPacket,
    VCubePacket,
    VCubeStatePacket,
    VCubeTestPacket,
    Vector,
)
from precede.protocols.vcube2018.prepared import Slot
from precede.protocols.vcube2018.running_tests import RunningTests
from precede.protocols.vcube2018.topology import MOST_POSITIONS, cluster
from precede.protocols.vcube2018.view import View, combine

ORPHANED: Final = "orphaned"
_LIVED: Final = "lived"
_TEST: Final = "test"
_JOIN: Final = "join"


class DiagnosedVCubeNode(VCubeNode):
    """A VCube node that survives crashes of other nodes.

    Once it has `joined`, `begins_after` is the vector it began with. `_reports` has the last report of each
    cluster's child. `_early_arrivals` are messages received before joining. `_join_requests` counts requests to
    join. `_out` says that the node has crashed or was declared crashed.
    """

    draining: ClassVar[tuple[str, ...]] = ("pending", "held", "log")

    def __init__(self, context: Context[VCubeOptions]) -> None:
        everybody = tuple(sorted({*context.members, context.node}))
        super().__init__(Context(context.node, everybody, context.options, context.random, context.incarnation))
        if self._single_tree:
            raise BadInput("vcube: diagnosis needs a tree per source")
        self._every: Duration = context.options.test_every
        self._timeout: Duration = context.options.test_timeout
        self._random = context.random
        self._view = View(everybody)
        self._view_since: Instant = 0
        self._leaving = False
        self._out = False
        self._log = MessageLog()
        self._tests = RunningTests()
        self._reports: dict[int, Report] = {}
        self._orphans = Orphans(self._view, self._delivered)
        self.joined = context.node in context.members
        self.begins_after: dict[NodeId, int] = {}
        self._join_requests = 0
        self._early_arrivals: dict[Slot, StampedMessage] = {}

    # -- inputs --------------------------------------------------------------------------------------------

    def start(self, now: Instant, saved: Saved) -> Effects:
        """Begin to test. A node that restarts stays out and answers no test, so that its crash is noticed."""
        if saved or self._incarnation:
            self._out = True
            return NOTHING
        self._view_since = now
        return [Persist(_LIVED, True), SetTimer(_TEST, now + self._random.randrange(self._every))]

    def broadcast(
        self,
        payload: bytes,
        now: Instant,
        to: Sequence[NodeId] | None = None,
        lifetime: Duration | None = None,
    ) -> Effects:
        if self._out or self._leaving:
            raise Refused("vcube: this node has crashed or left, and cannot come back under its number")
        if not self.joined:
            raise NotYet("vcube: not joined yet")
        return super().broadcast(payload, now, to, lifetime)

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        if self._out:
            return NOTHING
        effects: list[Effect] = []
        if type(packet) is VCubeTestPacket:
            self._receive_test(packet, sender, now, effects)
        elif type(packet) is VCubeJoinPacket:
            self._sponsor(sender, effects)
        elif type(packet) is VCubeStatePacket:
            self._begin(packet, now, effects)
        elif type(packet) is VCubePacket:
            below = cluster(self._me, sender) - 1
            self._in_hand = packet if len(packet.content) == 1 else None
            for stamped in self._unpacked(packet.content):
                self._take(stamped, below, now, effects)
        return effects

    def timer(self, key: Key, now: Instant) -> Effects:
        effects: list[Effect] = []
        if self._out:
            return effects
        if key == _TEST:
            for child in self._children:
                if child is not None:
                    self._test(child, now, False, effects)
            self._conclude(now, effects)
            effects.append(SetTimer(_TEST, now + self._every))
        elif key == _JOIN:
            self._request_to_join(now, effects)
        elif isinstance(key, tuple) and isinstance(key[1], int):
            self._miss_answer(key[1], now, effects)
        return effects

    def leave(self, now: Instant) -> Effects:
        """Stop testing, and tell the neighbours. Those not told in time notice a crash instead."""
        if self._out:
            return NOTHING
        self._leaving = True
        self._view.mark_gone(self._me)
        farewell = VCubeTestPacket(0, True, self._view.events, self._have(), None)
        neighbours = [child for child in self._children if child is not None]
        return [CancelTimer(_TEST), *(Send(farewell, child, WIRED) for child in neighbours)]

    def sizes(self) -> Mapping[str, int]:
        return {**super().sizes(), "log": len(self._log.entries), "lobby": len(self._early_arrivals)}

    # -- tests ---------------------------------------------------------------------------------------------

    def _test(self, node: NodeId, now: Instant, takes_over: bool, effects: list[Effect]) -> None:
        number = self._tests.begin(node, takes_over)
        if number is not None:
            packet = VCubeTestPacket(number, False, self._view.events, self._have(), None)
            effects += [Send(packet, node, WIRED), SetTimer(("silent", node), now + self._timeout)]

    def _receive_test(
        self, packet: VCubeTestPacket, sender: NodeId, now: Instant, effects: list[Effect]
    ) -> None:
        """Process a test or an answer: merge the view, answer, and send the sender messages that it lacks."""
        if self._view.merge(packet.events):
            self._change_view(now, effects)
            if self._out:
                return
        urgent = False
        if not packet.answer:
            report = self._report(cluster(self._me, sender) - 1, now)
            answer = VCubeTestPacket(packet.number, True, self._view.events, self._have(), report)
            effects.append(Send(answer, sender, WIRED))
        elif (test := self._tests.end(sender, packet.number)) is not None:
            urgent = test.takes_over
            effects.append(CancelTimer(("silent", sender)))
            if packet.report is not None:
                self._reports[cluster(self._me, sender) - 1] = packet.report
        if self._view.is_working(sender) and packet.have is not None:
            self._repair(sender, packet.have, urgent, now, effects)

    def _have(self) -> Vector | None:
        """Return how many messages of each source were received without a gap; None before joining."""
        return self._received() if self.joined else None

    def _miss_answer(self, node: NodeId, now: Instant, effects: list[Effect]) -> None:
        if self._tests.by_node.pop(node, None) is not None and self._view.mark_gone(node):
            self._change_view(now, effects)

    def _change_view(self, now: Instant, effects: list[Effect]) -> None:
        """Rebuild the trees after a node crashed, left or came, and test the nodes that take over at once."""
        self._view_since = now
        self._reports = {}
        if self._view.is_gone(self._me) and not self._leaving:
            self._stop()
            return
        self._widen(self._view.positions)
        before = self._children
        self._build_trees(self._view.live | 1 << self._me)
        self._tests.cancel_gone(self._view, effects)
        for t, child in enumerate(self._children):
            if child is not None and (t >= len(before) or child != before[t]):
                self._test(child, now, True, effects)
        occupied = [t for t, child in enumerate(self._children) if child is not None]
        self._keep_held(lambda held: held.t in occupied)

    def _stop(self) -> None:
        """Stop this node, which the others have declared crashed, and drop everything it holds."""
        self._out = True
        self._log.entries, self._early_arrivals, self._early, self._pending = {}, {}, {}, {}
        self._awaited, self._held_from = {}, {}

    def _repair(
        self, peer: NodeId, have: Sequence[int], urgent: bool, now: Instant, effects: list[Effect]
    ) -> None:
        """Send a neighbour the messages it lacks; unless `urgent`, only those too old to be still in flight."""
        lacked = self._log.lacked_by(have, now if urgent else now - self._timeout)
        if lacked:
            self._send_packed(lacked, peer, effects)

    # -- messages ------------------------------------------------------------------------------------------

    def _stamp(self, payload: bytes, now: Instant) -> StampedMessage:
        stamped = super()._stamp(payload, now)
        self._log.add(stamped, len(self._children), now)
        return stamped

    def _take(
        self, stamped: StampedMessage, below: int, now: Instant, effects: list[Effect]
    ) -> Sequence[Slot] | None:
        """Process a message as `VCubeNode._take` does, but drop a given-up one and log any other.

        Before joining, a message is only forwarded and kept for later. Returns what `VCubeNode._take` returns.
        """
        message = stamped.prepared
        slot = message.slot
        positions = max([message.source + 1, *(row.mask.bit_length() for row in message.rows)])
        if positions > MOST_POSITIONS or self._orphans.is_given_up(message.source, message.number):
            return None
        self._widen(positions)
        if not self.joined:
            if slot not in self._early_arrivals:
                self._early_arrivals[slot] = stamped
                self._send_to_all(stamped, below, effects)
            return None
        covered = super()._take(stamped, below, now, effects)
        if covered is None:
            self._forward_duplicate(slot, below, effects)
            return None
        self._log.add(stamped, below, now)
        return covered

    def _forward_duplicate(self, slot: Slot, below: int, effects: list[Effect]) -> None:
        """Forward a duplicate whose sender took over a tree to clusters that the first copy left out."""
        logged = self._log.extend(slot, below)
        if logged is not None:
            for child in self._children[logged.below : below]:
                if child is not None:
                    effects.append(Send(self._alone(logged.stamped), child, WIRED))

    def _widen(self, positions: int) -> None:
        """Raise the number of positions of the hypercube to this one, if it is larger."""
        if positions > self._positions:
            self._positions = positions
            self._delivered.widen(positions)

    # -- reports -------------------------------------------------------------------------------------------

    def _report(self, below: int, now: Instant) -> Report | None:
        """Return the report of this node and its first `below` clusters; None until all report this view."""
        parts = [self._own_report(now)]
        for t, child in enumerate(self._children[:below]):
            if child is not None:
                report = self._reports.get(t)
                if report is None or report.events != self._view.events:
                    return None
                parts.append(report)
        return combine(parts)

    def _received(self) -> Vector:
        """Return *vector_max*: how many messages of each source were received without a gap."""
        return tuple(self._ahead.received(self._delivered))

    def _own_report(self, now: Instant) -> Report:
        counts = self._received()
        return Report(
            self._view.events,
            now - self._view_since >= self._timeout,
            counts if self.joined else (),
            counts,
            tuple(sorted((*self._early, *self._early_arrivals))),
        )

    def _conclude(self, now: Instant, effects: list[Effect]) -> None:
        """Once all nodes have reported: drop messages that all have, discard orphans, and ask to join."""
        report = self._report(len(self._children), now)
        if report is None or self._leaving:
            return
        self._log.forget(report.low)
        if report.settled:
            self._give_up_orphans(report, effects)
            if not self.joined and not self._join_requests:
                self._request_to_join(now, effects)

    def _give_up_orphans(self, report: Report, effects: list[Effect]) -> None:
        """Discard the messages that wait for a message which no working node has."""
        for stamped in self._orphans.take(self._pending, report):
            self._forget(stamped)
            effects.append(Discard(stamped.message, ORPHANED))

    def _forget(self, stamped: StampedMessage) -> None:
        message = stamped.prepared
        slot = message.slot
        self._ahead.cut(message.source, message.number)
        self._pending.pop(slot, None)
        self._early.pop(slot, None)
        self._log.entries.pop(slot, None)
        for awaited in self._awaited.values():
            if awaited.lacking is not None:
                rest = [pending for pending in awaited.lacking if pending.message.slot != slot]
                awaited.lacking = rest or None
        self._keep_held(lambda held: held.stamped is not stamped)

    def _keep_held(self, is_kept: Callable[[Held], bool]) -> None:
        """Remove held messages from the index, except those for which `is_kept` holds."""
        self._held_from = {}
        for awaited in self._awaited.values():
            if awaited.held is None:
                continue
            kept = [held for held in awaited.held if is_kept(held)]
            awaited.held = kept or None
            for held in kept:
                slot = held.message.slot
                self._held_from[slot] = self._held_from.get(slot, 0) | 1 << held.t
        self._awaited = {
            under: awaited for under, awaited in self._awaited.items() if awaited.held or awaited.lacking
        }

    # -- joining -------------------------------------------------------------------------------------------

    def _request_to_join(self, now: Instant, effects: list[Effect]) -> None:
        """Ask one node, nearest first, and set the timer to ask the next one if it does not answer."""
        if self.joined:
            return
        live = self._view.live
        distances = sorted(x ^ self._me for x in range(live.bit_length()) if live >> x & 1 and x != self._me)
        if distances:
            sponsor = distances[self._join_requests % len(distances)] ^ self._me
            effects.append(Send(VCubeJoinPacket(), sponsor, WIRED))
        self._join_requests += 1
        effects.append(SetTimer(_JOIN, now + self._timeout))

    def _sponsor(self, newcomer: NodeId, effects: list[Effect]) -> None:
        """Send a newcomer this node's vector and all messages it keeps, in case this node crashes next."""
        if self.joined and self._view.is_working(newcomer):
            content = {slot: pending.stamped for slot, pending in self._pending.items()}
            content.update((slot, logged.stamped) for slot, logged in self._log.entries.items())
            packet = VCubeStatePacket(tuple(self._delivered.counts()), tuple(content.values()))
            effects.append(Send(packet, newcomer, WIRED))

    def _begin(self, packet: VCubeStatePacket, now: Instant, effects: list[Effect]) -> None:
        """Join with the sponsor's vector; process the messages it kept, then those that came meanwhile.

        Messages before the beginning are not delivered, but kept for other nodes like all others.
        """
        if self.joined or not self._join_requests or len(packet.delivered) > MOST_POSITIONS:
            return
        effects.append(CancelTimer(_JOIN))
        self.joined = True
        self._widen(len(packet.delivered))
        self.begins_after = {source: count for source, count in enumerate(packet.delivered) if count}
        for source, count in self.begins_after.items():
            self._delivered.jump(source, count)
        arrivals, self._early_arrivals = self._early_arrivals, {}
        for stamped in (*packet.content, *arrivals.values()):
            if is_beyond(stamped, packet.delivered):
                self._take(stamped, 0, now, effects)
            else:
                self._log.add(stamped, 0, now)
