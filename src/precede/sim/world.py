"""The deterministic world: nodes in seats, one queue, one dispatch over effects (DESIGN sections 2 and 4).

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
from precede.sim.networks.network import Network
from precede.sim.queue import LAST_PHASE, PHASE_BITS, EventQueue, Landing
from precede.sim.randomness import Streams
from precede.sim.seat import Seat
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
        self.seats = [Seat(node, (clocks or {}).get(node)) for node in range(nodes)]
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
        for seat in self.seats:
            seat.flight = network.flight(seat.id)
        self._turn = Turn(self)

    # -- what scenarios, workloads and faults ask for ---------------------------------------------------

    def enter(self, node: NodeId) -> None:
        """A node begins to live for the first time, or comes back after it left."""
        seat = self.seats[node]
        if seat.up:
            return
        seat.gone = False
        if seat.incarnation < 0 or not seat.store:
            self._new_life(seat)
        self._start(seat)

    def leave(self, node: NodeId, linger: Duration = 0) -> None:
        """The application leaves; the node is gone `linger` later, in which it may still say so."""
        seat = self.seats[node]
        if not seat.up or seat.gone:
            return
        clock = self._clock(seat)
        self.recorder.life(LEFT, seat.process, self.now, clock)
        seat.gone = True
        self._carry_out(seat, seat.node.leave(clock), clock)
        if linger:
            self.schedule(self.now + linger, self._depart, seat)
        else:
            self._depart(seat)

    def broadcast(
        self,
        node: NodeId,
        payload: bytes,
        to: tuple[NodeId, ...] | None = None,
        lifetime: Duration | None = None,
    ) -> None:
        """The application of a node sends. A node that is down is not asked; a refusal is counted."""
        seat = self.seats[node]
        if not seat.up or seat.gone:
            self.unborn += 1
            return
        if seat.stalled:
            seat.deferred.append((self.broadcast, (node, payload, to, lifetime)))
            return
        clock = self._clock(seat)
        try:
            effects = seat.node.broadcast(payload, clock, to, lifetime)
        except Refused:
            self.refused += 1
            return
        self._carry_out(seat, effects, clock)
        if self.on_broadcast is not None:
            self.on_broadcast(node, payload, to, lifetime)

    def crash(self, node: NodeId, after: int | None = None) -> None:
        """Down at once, or after `after` more atomic steps of effects, in the middle of a list."""
        seat = self.seats[node]
        if not seat.up:
            return
        if after is not None:
            seat.crash_after = after
            seat.plain = False
            return
        self.recorder.life(CRASHED, seat.process, self.now, self._clock(seat))
        self._down(seat)

    def restart(self, node: NodeId, keep: bool, again: int | None = None) -> None:
        """Up again, with everything that was persisted, or (`keep` false) as a new incarnation with nothing.

        `again`: it crashes once more, so many atomic steps later, which may be in the middle of its recovery.
        """
        seat = self.seats[node]
        if seat.up or seat.gone or seat.incarnation < 0:
            return
        if not keep:
            self._new_life(seat)
        seat.crash_after = again
        self._start(seat)

    def stall(self, node: NodeId, duration: Duration) -> None:
        """The node does nothing for a while; what happens to it meanwhile it learns afterwards, in order."""
        seat = self.seats[node]
        if seat.up and not seat.stalled:
            seat.stalled = True
            seat.plain = False
            self.schedule(self.now + duration, self._unstall, seat, seat.process)

    def heal(self, dead: Sequence[NodeId] = ()) -> None:
        """Act two of a swarm world: the network is whole and everybody is back, but for the dead."""
        self.network.heal()
        for seat in self.seats:
            seat.crash_after = None
            if seat.stalled:
                self._unstall(seat, seat.process)
            seat.plain = self._is_plain(seat)
            if seat.id not in dead:
                self.restart(seat.id, keep=True)

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
        for seat in self.seats:
            if seat.up:
                for name, value in seat.node.sizes().items():
                    self.recorder.gauge(seat.id, self.now, name, value, seat.peaks.get(name, value))
                seat.peaks = {}

    def check_gauges(self) -> None:
        """Remember peaks between two samples."""
        for seat in self.seats:
            if seat.up:
                peaks = seat.peaks
                for name, value in seat.node.sizes().items():
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
        return self.seats[node].up

    def receive(self, to: NodeId, packet: Packet, sender: NodeId, over: Medium) -> None:
        seat = self.seats[to]
        if seat.stalled:
            seat.deferred.append((self.receive, (to, packet, sender, over)))
            return
        if not seat.up:
            return
        clock = self.now if seat.clock is None else seat.clock.read(self.now)
        if self._log_packets:
            code = self._codes[packet.kind]
            self._rows.packet(PACKET_RECEIVED, code, seat.process, self.now, clock, packet, sender, over)
        self._carry_out(seat, seat.node.receive(packet, sender, clock, over), clock)

    def receive_all(self, nodes: Sequence[NodeId], packet: Packet, sender: NodeId, over: Medium) -> None:
        now, seats, logged = self.now, self.seats, self._log_packets
        for to in nodes:
            seat = seats[to]
            if seat.plain and not logged:
                effects = seat.node.receive(packet, sender, now, over)
                if effects:
                    self._turn.carry_out(seat, effects, now)
            else:
                self.receive(to, packet, sender, over)

    def transmitted(self, node: NodeId, packet: Packet, to: NodeId, over: Medium) -> None:
        seat = self.seats[node]
        now = self.now
        clock = now if seat.clock is None else seat.clock.read(now)
        self._rows.packet(SENT, self._codes[packet.kind], seat.process, now, clock, packet, to, over)

    def sent(self, node: NodeId, key: Key, ok: bool) -> None:
        seat = self.seats[node]
        if seat.stalled:
            seat.deferred.append((self.sent, (node, key, ok)))
        elif seat.up:
            clock = self.now if seat.clock is None else seat.clock.read(self.now)
            effects = seat.node.sent(key, clock, ok)
            if effects:
                self._carry_out(seat, effects, clock)

    def link_up(self, node: NodeId, peer: NodeId, over: Medium) -> None:
        if self.on_link is not None:
            self.on_link(node, peer, over, True)
        seat = self.seats[node]
        if seat.stalled:
            seat.deferred.append((self.link_up, (node, peer, over)))
        elif seat.up:
            clock = self._clock(seat)
            self._carry_out(seat, seat.node.link_up(peer, clock, over), clock)

    def link_down(self, node: NodeId, peer: NodeId, over: Medium) -> None:
        if self.on_link is not None:
            self.on_link(node, peer, over, False)
        seat = self.seats[node]
        if seat.stalled:
            seat.deferred.append((self.link_down, (node, peer, over)))
        elif seat.up:
            clock = self._clock(seat)
            self._carry_out(seat, seat.node.link_down(peer, clock, over), clock)

    # -- the dispatch ------------------------------------------------------------------------------------

    def _carry_out(self, seat: Seat, effects: Effects, clock: Instant) -> None:
        """Effects, in their order."""
        if seat.plain:
            self._turn.carry_out(seat, effects, clock)
            return
        if seat.crash_after is not None and effects:
            self._carry_out_until_crash(seat, effects, clock)
            return
        now, process, rows, answer = self.now, seat.process, self._rows, self.on_deliver
        effect: Any
        for effect in effects:
            kind = type(effect)
            if kind is Deliver:
                rows.message(DELIVERED, 0, process, now, clock, effect.message.id)
                if answer is not None:
                    answer(seat.id, effect.message)
            elif kind is Send:
                self._send(seat.id, effect)
            elif kind is Arrive:
                for message in effect.messages:
                    rows.message(RECEIVED, 0, process, now, clock, message.id)
            elif kind is Discard:
                self.recorder.message(DISCARDED, process, now, clock, effect.message.id, effect.reason)
            else:
                self.carry_out_rare(seat, effect, clock)

    def carry_out_rare(self, seat: Seat, effect: Effect, clock: Instant) -> None:
        if type(effect) is SetTimer:
            due = effect.at if seat.clock is None else seat.clock.world_time(effect.at)
            if due <= self.now:
                due = self._now_again(seat, effect.key)
            token = seat.timers[effect.key] = object()
            self.schedule(due, self._timer, seat, effect.key, token)
            return
        match effect:
            case CancelTimer(key):
                seat.timers.pop(key, None)
            case Persist(key, value):
                if value is None:
                    seat.store.pop(key, None)
                else:
                    seat.store[key] = value
            case Accept(message, destinations, deadline):
                if message.id.number > seat.accepted:
                    seat.accepted = message.id.number
                    self.recorder.broadcast(seat.process, self.now, clock, message.id, destinations, deadline)
            case Observe(name, message):
                self.recorder.message(OBSERVED, seat.process, self.now, clock, message.id, name)
            case CancelSend(key):
                self.network.cancel(seat.id, key)
            case _:
                raise TypeError(f"node {seat.id} returned {effect!r}, which is no effect")

    def _now_again(self, seat: Seat, key: Key) -> Instant:
        """A timer that is due at once; a node that sets nothing else stops the clock, and is told so."""
        if seat.standing_at != self.now:
            seat.standing_at, seat.standing = self.now, 0
        seat.standing += 1
        if seat.standing > MOST_TIMERS:
            raise RuntimeError(
                f"node {seat.id} has set {MOST_TIMERS:,} timers that were due at once (the last one: {key!r}): "
                f"time stands still at {format_duration(self.now)}"
            )
        return self.now

    def _carry_out_until_crash(self, seat: Seat, effects: Effects, clock: Instant) -> None:
        """Atomic steps one by one; the crash falls behind the last one allowed."""
        assert seat.crash_after is not None
        steps = atomic_steps(effects)
        allowed = steps[: seat.crash_after]
        crashes = len(steps) > seat.crash_after
        seat.crash_after = None if crashes else seat.crash_after - len(steps)
        left, seat.crash_after = seat.crash_after, None
        for step in allowed:
            if seat.up:
                self._carry_out(seat, step, clock)
        seat.crash_after = left
        if crashes:
            self.crash(seat.id)

    # -- lives ---------------------------------------------------------------------------------------------

    def _new_life(self, seat: Seat) -> None:
        seat.incarnation += 1
        seat.accepted = 0
        seat.store = {}
        seat.process = self.recorder.process_of(seat.id, seat.incarnation)

    def _start(self, seat: Seat) -> None:
        random = self.streams.python("node", seat.id, seat.incarnation)
        seat.node = self._make_node(seat.id, seat.incarnation, random)
        seat.up = True
        seat.plain = self._is_plain(seat)
        clock = self._clock(seat)
        self.recorder.life(STARTED, seat.process, self.now, clock)
        self._carry_out(seat, seat.node.start(clock, round_trip(seat.store)), clock)
        if seat.up:
            self.network.node_up(seat.id)

    def _depart(self, seat: Seat) -> None:
        if seat.up and seat.gone:
            self._down(seat)

    def _down(self, seat: Seat) -> None:
        seat.node = Node()  # a world that thousands pass through keeps nothing of them but their store
        seat.up = seat.stalled = seat.plain = False
        seat.crash_after = None
        seat.timers = {}
        seat.deferred = []
        self.network.node_down(seat.id)

    def _unstall(self, seat: Seat, process: int) -> None:
        if seat.process != process or not seat.stalled:
            return
        seat.stalled = False
        seat.plain = self._is_plain(seat)
        deferred, seat.deferred = seat.deferred, []
        for function, arguments in deferred:
            if seat.up:
                function(*arguments)

    def _timer(self, seat: Seat, key: Key, token: object) -> None:
        if seat.timers.get(key) is not token:
            return
        if seat.stalled:
            seat.deferred.append((self._timer, (seat, key, token)))
            return
        del seat.timers[key]
        clock = self._clock(seat)
        self._carry_out(seat, seat.node.timer(key, clock), clock)

    def _is_plain(self, seat: Seat) -> bool:
        """Does what arrives at this node take the quick way?"""
        return seat.up and seat.clock is None and seat.crash_after is None and not seat.stalled

    def _clock(self, seat: Seat) -> Instant:
        return self.now if seat.clock is None else seat.clock.read(self.now)


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
