"""The deterministic world: nodes in nodes, one queue, one dispatch over effects (DESIGN sections 2 and 4).

The world is handed a function that makes nodes, a network and a recorder; it knows no protocol. It can crash a
node between any two effects of one list, restart it with or without what it persisted, stall it, and give it a
clock of its own.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, Final, TypeAlias

import msgspec
from mypy_extensions import mypyc_attr

from precede.core.effects import (
    Accept,
    Arrive,
    CancelSend,
    CancelTimer,
    Deliver,
    Discard,
    Effect,
    Effects,
    Key,
    Medium,
    Observe,
    Persist,
    Send,
    SetTimer,
)
from precede.core.errors import Refused
from precede.core.identity import NodeId
from precede.core.instants import Duration, Instant, format_duration
from precede.core.messages import Message, Packet
from precede.core.node import Node
from precede.eventlog.recorder import Recorder
from precede.eventlog.schema import (
    CRASHED,
    DELIVERED,
    DISCARDED,
    LEFT,
    OBSERVED,
    PACKET_RECEIVED,
    RECEIVED,
    SENT,
    STARTED,
)
from precede.sim.clocks import Clock
from precede.sim.hosted_node import HostedNode
from precede.sim.networks.network import Network
from precede.sim.queue import LAST_PHASE, PHASE_BITS, EventQueue, Landing
from precede.sim.randomness import Streams
from precede.sim.turn import Turn

MakeNode: TypeAlias = Callable[[NodeId, int, Random], Node]
"""Builds a node from its id, its incarnation and its own random stream."""

OnBroadcast: TypeAlias = Callable[[NodeId, bytes, tuple[NodeId, ...] | None, Duration | None], None]

FOREVER: Final[Instant] = 1 << 62
MOST_TIMERS: Final = 1_000_000
"""Who sets so many timers that are due at once, all at one instant, will never let the next one come."""


@mypyc_attr(allow_interpreted_subclasses=True)
class World:
    """Runs nodes over a network. The public inputs are what scenarios, workloads and faults call."""

    def __init__(
        self,
        seed: int,
        nodes: int,
        make_node: MakeNode,
        network: Network,
        recorder: Recorder,
        clocks: Mapping[NodeId, Clock] | None = None,
    ) -> None:
        self.now: Instant = 0
        self.streams = Streams(seed)
        self.recorder = recorder
        self.network = network
        self.nodes = [HostedNode(node, (clocks or {}).get(node)) for node in range(nodes)]
        self.on_deliver: Callable[[NodeId, Message], None] | None = None
        self.on_broadcast: OnBroadcast | None = None
        self.on_link: Callable[[NodeId, NodeId, Medium, bool], None] | None = None
        self.at_once = 0
        self.refused = 0
        self.unborn = 0
        self._make_node = make_node
        self.queue = EventQueue()
        self._rows = recorder.units
        self._codes = recorder.packet_kinds
        self._log_packets = recorder.packets_received
        network.attach(self, nodes)
        self._send = network.send
        for hosted in self.nodes:
            hosted.flight = network.flight(hosted.id)
        self._turn = Turn(self)

    # -- what scenarios, workloads and faults ask for ---------------------------------------------------

    def enter(self, node: NodeId) -> None:
        """A node begins to live for the first time, or comes back after it left."""
        hosted = self.nodes[node]
        if hosted.up:
            return
        hosted.gone = False
        if hosted.incarnation < 0 or not hosted.store:
            self._new_incarnation(hosted)
        self._start(hosted)

    def leave(self, node: NodeId, linger: Duration = 0) -> None:
        """The application leaves; the node is gone `linger` later, in which it may still say so."""
        hosted = self.nodes[node]
        if not hosted.up or hosted.gone:
            return
        clock = self._clock(hosted)
        self.recorder.node_event(LEFT, hosted.process, self.now, clock)
        hosted.gone = True
        self._carry_out(hosted, hosted.node.leave(clock), clock)
        if linger:
            self.schedule(self.now + linger, self._depart, hosted)
        else:
            self._depart(hosted)

    def broadcast(
        self,
        node: NodeId,
        payload: bytes,
        to: tuple[NodeId, ...] | None = None,
        lifetime: Duration | None = None,
    ) -> None:
        """The application of a node sends. A node that is down is not asked; a refusal is counted."""
        hosted = self.nodes[node]
        if not hosted.up or hosted.gone:
            self.unborn += 1
            return
        if hosted.stalled:
            hosted.deferred.append((self.broadcast, (node, payload, to, lifetime)))
            return
        clock = self._clock(hosted)
        try:
            effects = hosted.node.broadcast(payload, clock, to, lifetime)
        except Refused:
            self.refused += 1
            return
        self._carry_out(hosted, effects, clock)
        if self.on_broadcast is not None:
            self.on_broadcast(node, payload, to, lifetime)

    def crash(self, node: NodeId, after: int | None = None) -> None:
        """Down at once, or after `after` more atomic steps of effects, in the middle of a list."""
        hosted = self.nodes[node]
        if not hosted.up:
            return
        if after is not None:
            hosted.crash_after = after
            hosted.plain = False
            return
        self.recorder.node_event(CRASHED, hosted.process, self.now, self._clock(hosted))
        self._down(hosted)

    def restart(self, node: NodeId, keep: bool, again: int | None = None) -> None:
        """Up again, with everything that was persisted, or (`keep` false) as a new incarnation with nothing.

        `again`: it crashes once more, so many atomic steps later, which may be in the middle of its recovery.
        """
        hosted = self.nodes[node]
        if hosted.up or hosted.gone or hosted.incarnation < 0:
            return
        if not keep:
            self._new_incarnation(hosted)
        hosted.crash_after = again
        self._start(hosted)

    def stall(self, node: NodeId, duration: Duration) -> None:
        """The node does nothing for a while; what happens to it meanwhile it learns afterwards, in order."""
        hosted = self.nodes[node]
        if hosted.up and not hosted.stalled:
            hosted.stalled = True
            hosted.plain = False
            self.schedule(self.now + duration, self._unstall, hosted, hosted.process)

    def heal(self, dead: Sequence[NodeId] = ()) -> None:
        """Act two of a swarm world: the network is whole and everybody is back, but for the dead."""
        self.network.heal()
        for hosted in self.nodes:
            hosted.crash_after = None
            if hosted.stalled:
                self._unstall(hosted, hosted.process)
            hosted.plain = self._is_plain(hosted)
            if hosted.id not in dead:
                self.restart(hosted.id, keep=True)

    def run(self, until: Instant = FOREVER) -> None:
        """Until nothing is left to do, or until an instant (inclusive); the clock then stands there."""
        collecting = gc.isenabled()
        gc.disable()  # effects, packets and events make no cycles; collections only walk the whole world
        try:
            while self._turn.turn(until):
                self.recorder.flush_if_full()
        finally:
            if collecting:
                gc.enable()
        if until != FOREVER:
            self.now = max(self.now, until)

    @property
    def handled(self) -> int:
        """How many events there were."""
        return self.queue.taken + self.at_once

    def busy(self) -> bool:
        """Is anything left to happen?"""
        return len(self.queue) > 0

    def sample_gauges(self) -> None:
        """Write `sizes()` of every node that is up."""
        self.check_gauges()
        for hosted in self.nodes:
            if hosted.up:
                for name, value in hosted.node.sizes().items():
                    self.recorder.gauge(hosted.id, self.now, name, value, hosted.peaks.get(name, value))
                hosted.peaks = {}

    def check_gauges(self) -> None:
        """Remember peaks between two samples."""
        for hosted in self.nodes:
            if hosted.up:
                peaks = hosted.peaks
                for name, value in hosted.node.sizes().items():
                    if value > peaks.get(name, -1):
                        peaks[name] = value

    # -- what the network asks for (sim.network.World) ---------------------------------------------------

    def schedule(self, at: Instant, function: Callable[..., None], *arguments: Any) -> None:
        self.queue.push(at, function, arguments)

    def dispatch(self, at: Instant, to: NodeId, packet: Packet, sender: NodeId, over: Medium) -> None:
        self.transmitted(sender, packet, to, over)
        self.queue.insert(Landing(at << PHASE_BITS | LAST_PHASE, to, packet, sender, over))

    def schedule_phase(self, phase: int, at: Instant, function: Callable[..., None], *arguments: Any) -> None:
        self.queue.push_phase(phase, at, function, arguments)

    def soon(self, function: Callable[..., None], *arguments: Any) -> None:
        self.queue.soon.append((function, arguments))

    def is_up(self, node: NodeId) -> bool:
        return self.nodes[node].up

    def receive(self, to: NodeId, packet: Packet, sender: NodeId, over: Medium) -> None:
        hosted = self.nodes[to]
        if hosted.stalled:
            hosted.deferred.append((self.receive, (to, packet, sender, over)))
            return
        if not hosted.up:
            return
        clock = self.now if hosted.clock is None else hosted.clock.read(self.now)
        if self._log_packets:
            code = self._codes[packet.kind]
            self._rows.packet(PACKET_RECEIVED, code, hosted.process, self.now, clock, packet, sender, over)
        self._carry_out(hosted, hosted.node.receive(packet, sender, clock, over), clock)

    def receive_all(self, nodes: Sequence[NodeId], packet: Packet, sender: NodeId, over: Medium) -> None:
        now, logged = self.now, self._log_packets
        for to in nodes:
            hosted = self.nodes[to]
            if hosted.plain and not logged:
                effects = hosted.node.receive(packet, sender, now, over)
                if effects:
                    self._turn.carry_out(hosted, effects, now)
            else:
                self.receive(to, packet, sender, over)

    def transmitted(self, node: NodeId, packet: Packet, to: NodeId, over: Medium) -> None:
        hosted = self.nodes[node]
        now = self.now
        clock = now if hosted.clock is None else hosted.clock.read(now)
        self._rows.packet(SENT, self._codes[packet.kind], hosted.process, now, clock, packet, to, over)

    def sent(self, node: NodeId, key: Key, ok: bool) -> None:
        hosted = self.nodes[node]
        if hosted.stalled:
            hosted.deferred.append((self.sent, (node, key, ok)))
        elif hosted.up:
            clock = self.now if hosted.clock is None else hosted.clock.read(self.now)
            effects = hosted.node.sent(key, clock, ok)
            if effects:
                self._carry_out(hosted, effects, clock)

    def link_up(self, node: NodeId, peer: NodeId, over: Medium) -> None:
        if self.on_link is not None:
            self.on_link(node, peer, over, True)
        hosted = self.nodes[node]
        if hosted.stalled:
            hosted.deferred.append((self.link_up, (node, peer, over)))
        elif hosted.up:
            clock = self._clock(hosted)
            self._carry_out(hosted, hosted.node.link_up(peer, clock, over), clock)

    def link_down(self, node: NodeId, peer: NodeId, over: Medium) -> None:
        if self.on_link is not None:
            self.on_link(node, peer, over, False)
        hosted = self.nodes[node]
        if hosted.stalled:
            hosted.deferred.append((self.link_down, (node, peer, over)))
        elif hosted.up:
            clock = self._clock(hosted)
            self._carry_out(hosted, hosted.node.link_down(peer, clock, over), clock)

    # -- the dispatch ------------------------------------------------------------------------------------

    def _carry_out(self, hosted: HostedNode, effects: Effects, clock: Instant) -> None:
        """Effects, in their order."""
        if hosted.plain:
            self._turn.carry_out(hosted, effects, clock)
            return
        if hosted.crash_after is not None and effects:
            self._carry_out_until_crash(hosted, effects, clock)
            return
        now, process, rows, answer = self.now, hosted.process, self._rows, self.on_deliver
        effect: Any
        for effect in effects:
            kind = type(effect)
            if kind is Deliver:
                rows.message(DELIVERED, 0, process, now, clock, effect.message.id)
                if answer is not None:
                    answer(hosted.id, effect.message)
            elif kind is Send:
                self._send(hosted.id, effect)
            elif kind is Arrive:
                for message in effect.messages:
                    rows.message(RECEIVED, 0, process, now, clock, message.id)
            elif kind is Discard:
                self.recorder.message(DISCARDED, process, now, clock, effect.message.id, effect.reason)
            else:
                self.carry_out_rare(hosted, effect, clock)

    def carry_out_rare(self, hosted: HostedNode, effect: Effect, clock: Instant) -> None:
        if type(effect) is SetTimer:
            due = effect.at if hosted.clock is None else hosted.clock.world_time(effect.at)
            if due <= self.now:
                due = self._now_again(hosted, effect.key)
            token = hosted.timers[effect.key] = object()
            self.schedule(due, self._timer, hosted, effect.key, token)
            return
        match effect:
            case CancelTimer(key):
                hosted.timers.pop(key, None)
            case Persist(key, value):
                if value is None:
                    hosted.store.pop(key, None)
                else:
                    hosted.store[key] = value
            case Accept(message, destinations, deadline):
                if message.id.number > hosted.accepted:
                    hosted.accepted = message.id.number
                    self.recorder.broadcast(hosted.process, self.now, clock, message.id, destinations, deadline)
            case Observe(name, message):
                self.recorder.message(OBSERVED, hosted.process, self.now, clock, message.id, name)
            case CancelSend(key):
                self.network.cancel(hosted.id, key)
            case _:
                raise TypeError(f"node {hosted.id} returned {effect!r}, which is no effect")

    def _now_again(self, hosted: HostedNode, key: Key) -> Instant:
        """A timer that is due at once; a node that sets nothing else stops the clock, and is told so."""
        if hosted.standing_at != self.now:
            hosted.standing_at, hosted.standing = self.now, 0
        hosted.standing += 1
        if hosted.standing > MOST_TIMERS:
            raise RuntimeError(
                f"node {hosted.id} has set {MOST_TIMERS:,} timers that were due at once (the last one: {key!r})"
                f": time stands still at {format_duration(self.now)}"
            )
        return self.now

    def _carry_out_until_crash(self, hosted: HostedNode, effects: Effects, clock: Instant) -> None:
        """Atomic steps one by one; the crash falls behind the last one allowed."""
        assert hosted.crash_after is not None
        steps = atomic_steps(effects)
        allowed = steps[: hosted.crash_after]
        crashes = len(steps) > hosted.crash_after
        hosted.crash_after = None if crashes else hosted.crash_after - len(steps)
        left, hosted.crash_after = hosted.crash_after, None
        for step in allowed:
            if hosted.up:
                self._carry_out(hosted, step, clock)
        hosted.crash_after = left
        if crashes:
            self.crash(hosted.id)

    # -- lives ---------------------------------------------------------------------------------------------

    def _new_incarnation(self, hosted: HostedNode) -> None:
        hosted.incarnation += 1
        hosted.accepted = 0
        hosted.store = {}
        hosted.process = self.recorder.process_of(hosted.id, hosted.incarnation)

    def _start(self, hosted: HostedNode) -> None:
        random = self.streams.python("node", hosted.id, hosted.incarnation)
        hosted.node = self._make_node(hosted.id, hosted.incarnation, random)
        hosted.up = True
        hosted.plain = self._is_plain(hosted)
        clock = self._clock(hosted)
        self.recorder.node_event(STARTED, hosted.process, self.now, clock)
        self._carry_out(hosted, hosted.node.start(clock, round_trip(hosted.store)), clock)
        if hosted.up:
            self.network.node_up(hosted.id)

    def _depart(self, hosted: HostedNode) -> None:
        if hosted.up and hosted.gone:
            self._down(hosted)

    def _down(self, hosted: HostedNode) -> None:
        hosted.node = Node()  # a world that thousands pass through keeps nothing of them but their store
        hosted.up = hosted.stalled = hosted.plain = False
        hosted.crash_after = None
        hosted.timers = {}
        hosted.deferred = []
        self.network.node_down(hosted.id)

    def _unstall(self, hosted: HostedNode, process: int) -> None:
        if hosted.process != process or not hosted.stalled:
            return
        hosted.stalled = False
        hosted.plain = self._is_plain(hosted)
        deferred, hosted.deferred = hosted.deferred, []
        for function, arguments in deferred:
            if hosted.up:
                function(*arguments)

    def _timer(self, hosted: HostedNode, key: Key, token: object) -> None:
        if hosted.timers.get(key) is not token:
            return
        if hosted.stalled:
            hosted.deferred.append((self._timer, (hosted, key, token)))
            return
        del hosted.timers[key]
        clock = self._clock(hosted)
        self._carry_out(hosted, hosted.node.timer(key, clock), clock)

    def _is_plain(self, hosted: HostedNode) -> bool:
        """Does what arrives at this node take the quick way?"""
        return hosted.up and hosted.clock is None and hosted.crash_after is None and not hosted.stalled

    def _clock(self, hosted: HostedNode) -> Instant:
        return self.now if hosted.clock is None else hosted.clock.read(self.now)


def round_trip(store: Mapping[Key, Any]) -> dict[Key, Any]:
    """What a disk gives back: plain data, tuples as lists; keys keep their form."""
    return {key: msgspec.msgpack.decode(msgspec.msgpack.encode(value)) for key, value in store.items()}


def atomic_steps(effects: Effects) -> Sequence[Effects]:
    """Single effects, but a Persist directly followed by a Deliver is one step."""
    steps: list[list[Effect]] = []
    for effect in effects:
        if steps and type(effect) is Deliver and type(steps[-1][-1]) is Persist:
            steps[-1].append(effect)
        else:
            steps.append([effect])
    return steps
