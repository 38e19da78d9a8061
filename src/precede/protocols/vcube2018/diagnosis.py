"""VCube when nodes crash, join and leave: what vcube2018 names as future work (section 7), from its section 2.

*Diagnosis.* Every node tests the first node of each of its clusters; one that does not answer in time has
crashed, and the next of its cluster stands for it: in the tests and in every tree. Nodes crash for good,
nothing is cut off, the time-out is longer than two packets fly. (One wrongly buried learns it and stops.)

*Nothing is lost with a forwarder.* A node keeps what it has received until all have it. Tests and answers say
what their sender has received; what the other lacks, and is old enough not to be on its way, is sent again, at
once to a node that takes over. So what any working node has comes to all of them, whoever crashed.

*What is lost with its source.* A message may depend on one that no working node has any more. Once all have
held the same view for longer than a packet flies, the last number that anybody has of a crashed source is
final; what waits for a later one is given up as `orphaned`, at every node alike.

*Joining.* A newcomer makes itself known by its tests. When all have it in their view, nothing it lacks is
forgotten any more; then it asks a node what that has delivered, and begins there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Final, NamedTuple

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
from precede.protocols.vcube2018.node import VCubeNode
from precede.protocols.vcube2018.options import VCubeOptions
from precede.protocols.vcube2018.packets import StampedMessage, VCubePacket
from precede.protocols.vcube2018.prepared import Prepared, Slot, slot_of
from precede.protocols.vcube2018.progress import sources_of
from precede.protocols.vcube2018.topology import MOST_POSITIONS, cluster
from precede.protocols.vcube2018.view import (
    Report,
    VCubeJoinPacket,
    VCubeStatePacket,
    VCubeTestPacket,
    Vector,
    View,
    combine,
)

ORPHANED: Final = "orphaned"
_LIVED: Final = "lived"
_TEST: Final = "test"
_JOIN: Final = "join"


class Logged(NamedTuple):
    """A message kept until all have it: how many clusters this node served with it, and since when."""

    stamped: StampedMessage
    below: int
    since: Instant


class Asked(NamedTuple):
    """A test under way; one that takes over is sent what it lacks at once."""

    number: int
    takes_over: bool


class DiagnosedVCubeNode(VCubeNode):
    """A VCube node that survives the others. once `joined`, `begins_after` is the vector it began with."""

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
        self.joined = context.node in context.members
        self._leaving = False
        self._out = False
        self.begins_after: dict[NodeId, int] = {}
        self._log: dict[Slot, Logged] = {}
        self._reports: dict[int, Report] = {}
        self._tests: dict[NodeId, Asked] = {}
        self._tested = 0
        self._asked = 0
        self._limits: dict[NodeId, int] = {}
        self._lobby: dict[Slot, StampedMessage] = {}

    # -- inputs --------------------------------------------------------------------------------------------

    def start(self, now: Instant, saved: Saved) -> Effects:
        """Crash-stop: a node that has lived before stays out, so that its silence is noticed."""
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
            raise Refused("vcube: this node has crashed or left, and there is no way back under its number")
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
            self._ask_to_join(now, effects)
        elif isinstance(key, tuple) and isinstance(key[1], int):
            self._miss(key[1], now, effects)
        return effects

    def leave(self, now: Instant) -> Effects:
        """Say so to the neighbours; without the time to, it is a crash like any other."""
        if self._out:
            return NOTHING
        self._leaving = True
        self._view.bury(self._me)
        farewell = VCubeTestPacket(0, True, self._view.events, self._have(), None)
        neighbours = [child for child in self._children if child is not None]
        return [CancelTimer(_TEST), *(Send(farewell, child, WIRED) for child in neighbours)]

    # -- tests ---------------------------------------------------------------------------------------------

    def _test(self, node: NodeId, now: Instant, takes_over: bool, effects: list[Effect]) -> None:
        if node in self._tests:
            if takes_over:
                self._tests[node] = Asked(self._tests[node].number, True)
            return
        self._tested += 1
        self._tests[node] = Asked(self._tested, takes_over)
        packet = VCubeTestPacket(self._tested, False, self._view.events, self._have(), None)
        effects += [Send(packet, node, WIRED), SetTimer(("silent", node), now + self._timeout)]

    def _receive_test(
        self, packet: VCubeTestPacket, sender: NodeId, now: Instant, effects: list[Effect]
    ) -> None:
        if self._view.merge(packet.events):
            self._change_view(now, effects)
            if self._out:
                return
        urgent = False
        if not packet.answer:
            report = self._report(cluster(self._me, sender) - 1, now)
            answer = VCubeTestPacket(packet.number, True, self._view.events, self._have(), report)
            effects.append(Send(answer, sender, WIRED))
        elif sender in self._tests and self._tests[sender].number == packet.number:
            urgent = self._tests.pop(sender).takes_over
            effects.append(CancelTimer(("silent", sender)))
            if packet.report is not None:
                self._reports[cluster(self._me, sender) - 1] = packet.report
        if self._view.works(sender) and packet.have is not None:
            self._repair(sender, packet.have, urgent, now, effects)

    def _have(self) -> Vector | None:
        """What others need not send; a newcomer does not know yet what it needs."""
        return self._received() if self.joined else None

    def _miss(self, node: NodeId, now: Instant, effects: list[Effect]) -> None:
        """No answer in time."""
        if self._tests.pop(node, None) is not None and self._view.bury(node):
            self._change_view(now, effects)

    def _change_view(self, now: Instant, effects: list[Effect]) -> None:
        """Somebody crashed, left or came: other children, and those who take over are tested at once."""
        self._view_since = now
        self._reports = {}
        if self._view.buried(self._me) and not self._leaving:
            self._stop()
            return
        self._widen(self._view.positions)
        before = self._children
        self._build_trees(self._view.live | 1 << self._me)
        for node in [node for node in self._tests if not self._view.works(node)]:
            del self._tests[node]
            effects.append(CancelTimer(("silent", node)))
        for t, child in enumerate(self._children):
            if child is not None and (t >= len(before) or child != before[t]):
                self._test(child, now, True, effects)
        fed = [t for t, child in enumerate(self._children) if child is not None]
        self._keep_held(lambda held: held.t in fed)

    def _stop(self) -> None:
        """To the others this node is dead: nothing it holds will be of use."""
        self._out = True
        self._log, self._lobby, self._early, self._pending = {}, {}, {}, {}
        self._awaited, self._held_from = {}, {}

    def _repair(
        self, peer: NodeId, have: Sequence[int], urgent: bool, now: Instant, effects: list[Effect]
    ) -> None:
        """Send a neighbour what it lacks, unless it may still be on its way."""
        lacked = [
            logged.stamped
            for logged in self._log.values()
            if (urgent or now - logged.since >= self._timeout) and _is_beyond(logged.stamped, have)
        ]
        if lacked:
            self._send_packed(lacked, peer, effects)

    # -- messages ------------------------------------------------------------------------------------------

    def _stamp(self, payload: bytes, now: Instant) -> StampedMessage:
        stamped = super()._stamp(payload, now)
        self._log[stamped.prepared.slot] = Logged(stamped, len(self._children), now)
        return stamped

    def _take(
        self, stamped: StampedMessage, below: int, now: Instant, effects: list[Effect]
    ) -> Sequence[Slot] | None:
        message = stamped.prepared
        source, number, slot = message.source, message.number, message.slot
        named = max([source + 1, *(row.mask.bit_length() for row in message.rows)])
        if named > MOST_POSITIONS or number > self._limits.get(source, number):
            return None
        self._widen(named)
        if not self.joined:
            if slot not in self._lobby:
                self._lobby[slot] = stamped
                self._send_to_all(stamped, below, effects)
            return None
        covered = super()._take(stamped, below, now, effects)
        if covered is None:
            self._serve_more(slot, below, effects)
            return None
        self._log[slot] = Logged(stamped, below, now)
        return covered

    def _serve_more(self, slot: Slot, below: int, effects: list[Effect]) -> None:
        """A copy from somebody who took over may come with more clusters to serve than the first had."""
        logged = self._log.get(slot)
        if logged is not None and below > logged.below:
            for child in self._children[logged.below : below]:
                if child is not None:
                    effects.append(Send(self._alone(logged.stamped), child, WIRED))
            self._log[slot] = logged._replace(below=below)

    def _widen(self, positions: int) -> None:
        if positions > self._positions:
            self._positions = positions
            self._delivered.widen(positions)

    # -- what all of them have -----------------------------------------------------------------------------

    def _report(self, below: int, now: Instant) -> Report | None:
        """On this node and its first `below` clusters; None while a part of them has not reported yet."""
        parts = [self._own_report(now)]
        for t, child in enumerate(self._children[:below]):
            if child is not None:
                report = self._reports.get(t)
                if report is None or report.events != self._view.events:
                    return None
                parts.append(report)
        return combine(parts)

    def _received(self) -> Vector:
        """*vector_max*."""
        return tuple(self._ahead.received(self._delivered))

    def _own_report(self, now: Instant) -> Report:
        counts = self._received()
        return Report(
            self._view.events,
            now - self._view_since >= self._timeout,
            counts if self.joined else (),
            counts,
            tuple(sorted((*self._early, *self._lobby))),
        )

    def _conclude(self, now: Instant, effects: list[Effect]) -> None:
        """Once everybody has reported: forget what all have, give up what nobody has, join."""
        report = self._report(len(self._children), now)
        if report is None or self._leaving:
            return
        for slot in [slot for slot, logged in self._log.items() if not _is_beyond(logged.stamped, report.low)]:
            del self._log[slot]
        if report.settled:
            self._give_up_orphans(report, effects)
            if not self.joined and not self._asked:
                self._ask_to_join(now, effects)

    def _give_up_orphans(self, report: Report, effects: list[Effect]) -> None:
        """Whatever waits for what no working node has, and what waits for that in turn."""
        doomed: dict[Slot, StampedMessage] = {}
        found = True
        while found:
            found = False
            for slot, pending in self._pending.items():
                if slot not in doomed and self._waits_for_lost(pending.message, report):
                    doomed[slot] = pending.stamped
                    source, number = pending.message.source, pending.message.number
                    self._limits[source] = min(number - 1, self._limits.get(source, number))
                    found = True
        for stamped in doomed.values():
            self._forget(stamped)
            effects.append(Discard(stamped.message, ORPHANED))

    def _waits_for_lost(self, message: Prepared, report: Report) -> bool:
        for row in message.rows:
            for source in sources_of(row.mask & self._delivered.row(row.number)):
                if self._view.buried(source) and self._is_lost(source, row.number, report):
                    return True
        return False

    def _is_lost(self, source: NodeId, number: int, report: Report) -> bool:
        """Is one of a crashed source's messages up to this number in nobody's hands, or given up itself?"""
        if number > self._limits.get(source, number):
            return True
        last = report.high[source] if source < len(report.high) else 0
        return any(slot_of(source, lacked) not in report.early for lacked in range(last + 1, number + 1))

    def _forget(self, stamped: StampedMessage) -> None:
        message = stamped.prepared
        source, number, slot = message.source, message.number, message.slot
        self._ahead.cut(source, number)
        self._pending.pop(slot, None)
        self._early.pop(slot, None)
        self._log.pop(slot, None)
        for awaited in self._awaited.values():
            rest = [pending for pending in awaited.all_lacking() if pending.message.slot != slot]
            awaited.keep(awaited.all_held(), rest)
        self._keep_held(lambda held: held.stamped is not stamped)

    def _keep_held(self, wanted: Callable[[Held], bool]) -> None:
        self._held_from = {}
        for awaited in self._awaited.values():
            kept = [held for held in awaited.all_held() if wanted(held)]
            awaited.keep(kept, awaited.all_lacking())
            for held in kept:
                slot = held.message.slot
                self._held_from[slot] = self._held_from.get(slot, 0) | 1 << held.t
        self._awaited = {
            under: awaited for under, awaited in self._awaited.items() if awaited.held or awaited.lacking
        }

    # -- joining -------------------------------------------------------------------------------------------

    def _ask_to_join(self, now: Instant, effects: list[Effect]) -> None:
        """Everybody knows this node: ask the others in turn, nearest first, until one answers."""
        if self.joined:
            return
        live = self._view.live
        others = sorted(x ^ self._me for x in range(live.bit_length()) if live >> x & 1 and x != self._me)
        if others:
            effects.append(Send(VCubeJoinPacket(), others[self._asked % len(others)] ^ self._me, WIRED))
        self._asked += 1
        effects.append(SetTimer(_JOIN, now + self._timeout))

    def _sponsor(self, newcomer: NodeId, effects: list[Effect]) -> None:
        """What waits here, and what others may lack still: nobody else may have it when this node crashes."""
        if self.joined and self._view.works(newcomer):
            held = {slot: pending.stamped for slot, pending in self._pending.items()}
            held.update((slot, logged.stamped) for slot, logged in self._log.items())
            packet = VCubeStatePacket(tuple(self._delivered.counts()), tuple(held.values()))
            effects.append(Send(packet, newcomer, WIRED))

    def _begin(self, packet: VCubeStatePacket, now: Instant, effects: list[Effect]) -> None:
        """Take the sponsor's vector for one's own, then what it held, then what came meanwhile."""
        if not self.joined and self._asked and len(packet.delivered) <= MOST_POSITIONS:
            effects.append(CancelTimer(_JOIN))
            self._begin_with(packet, now, effects)

    def _begin_with(self, packet: VCubeStatePacket, now: Instant, effects: list[Effect]) -> None:
        """What lies before the beginning is not delivered, but kept for the others like everything else."""
        self.joined = True
        self._widen(len(packet.delivered))
        self.begins_after = {source: count for source, count in enumerate(packet.delivered) if count}
        for source, count in self.begins_after.items():
            self._delivered.jump(source, count)
        lobby, self._lobby = self._lobby, {}
        for stamped in (*packet.content, *lobby.values()):
            if _is_beyond(stamped, packet.delivered):
                self._take(stamped, 0, now, effects)
            else:
                self._log[stamped.prepared.slot] = Logged(stamped, 0, now)

    def sizes(self) -> Mapping[str, int]:
        return {**super().sizes(), "log": len(self._log), "lobby": len(self._lobby)}


def _is_beyond(stamped: StampedMessage, vector: Sequence[int]) -> bool:
    message = stamped.prepared
    return message.source >= len(vector) or message.number > vector[message.source]
