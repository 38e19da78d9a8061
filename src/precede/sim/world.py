"""The deterministic world: nodes, a network, one event queue, and the faults that happen to nodes.

A world is given a function that makes nodes, a network and a recorder; it knows no protocol. It builds on
`NodeInputs` (what networks call), `FastPath` and `NodeEffects` (what the effects of nodes do). This module has
what scenarios, workloads and faults call: nodes enter and leave, crash between two effects of one list, restart
with or without what they persisted, and stall.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import ClassVar, Final, TypeAlias

from mypy_extensions import mypyc_attr

from precede.core.errors import Refused
from precede.core.identity import NodeId
from precede.core.instants import Duration, Instant
from precede.core.memory import keep_freed_memory
from precede.core.node import Node, round_trip
from precede.core.peaks import Peaks
from precede.eventlog.recorder import Recorder
from precede.eventlog.rows import BLOCK_BYTES
from precede.eventlog.schema import LEFT, STARTED
from precede.sim.clocks import Clock
from precede.sim.hosted_node import HostedNode
from precede.sim.networks.network import Network
from precede.sim.node_inputs import NodeInputs
from precede.sim.queue import LAST_PHASE, PHASE_BITS, TAKEN, Call, Landing, Soon
from precede.sim.randomness import Generators

MakeNode: TypeAlias = Callable[[NodeId, int, Random], Node]
"""Builds a node from its id, its incarnation and its own random generator."""

OnBroadcast: TypeAlias = Callable[[NodeId, bytes, tuple[NodeId, ...] | None, Duration | None], None]

FOREVER: Final[Instant] = 1 << 58
"""Later than any instant. With its phase it fits a machine word, which every event is compared with."""
_BATCH: Final = 2048
"""The number of events after which the world checks whether the recorder's block is full."""


@mypyc_attr(allow_interpreted_subclasses=True)
class World(NodeInputs):
    """Runs nodes over a network until nothing is left to do.

    `on_broadcast` is called for every message that a node has accepted. `refused` counts broadcasts that a node
    refused, `refusal` is the first reason; `unborn` counts those that found their node down.
    """

    may_crash: ClassVar[bool] = False
    """Whether nodes may crash that no fault of the run names; a subclass sets it."""

    def __init__(
        self,
        seed: int,
        nodes: int,
        make_node: MakeNode,
        network: Network,
        recorder: Recorder,
        clocks: Mapping[NodeId, Clock] | None = None,
    ) -> None:
        hosted_nodes = [HostedNode(node, (clocks or {}).get(node)) for node in range(nodes)]
        super().__init__(hosted_nodes, network, recorder)
        self.generators = Generators(seed)
        self.on_broadcast: OnBroadcast | None = None
        self.at_once = 0
        self.refused = 0
        self.refusal = ""
        self.unborn = 0
        self._make_node = make_node
        network.attach(self, nodes)

    # -- the event loop ----------------------------------------------------------------------------------

    def run(self, until: Instant = FOREVER) -> None:
        """Runs until nothing is left to do, or until an instant (inclusive); `now` is then that instant."""
        keep_freed_memory()
        collecting = gc.isenabled()
        gc.disable()  # effects, packets and events make no cycles; a collection would walk the whole world
        try:
            while self._take_events(until):
                self.recorder.flush_if_full()
        finally:
            if collecting:
                gc.enable()
        if until != FOREVER:
            self.now = max(self.now, until)

    def _take_events(self, until: Instant) -> bool:
        """Handles up to `_BATCH` events that are due by an instant. Returns False when none is left."""
        queue, soon = self.queue, self.queue.soon
        limit = until << PHASE_BITS | LAST_PHASE
        if soon:
            self._call_soon()
        if not queue.open(limit):
            return False
        for _ in range(_BATCH):
            if queue.place == len(queue.current):
                return True
            event = queue.current[queue.place]
            if event.when > limit:
                return False
            queue.current[queue.place] = TAKEN
            queue.place += 1
            self.now = event.when >> PHASE_BITS
            if isinstance(event, Landing):
                self.land(event)
            elif isinstance(event, Call):
                event.function(*event.arguments)
            if soon:
                self._call_soon()
        return True

    def _call_soon(self) -> None:
        """Does what was requested for this instant, and what follows from it at this instant."""
        soon = self.queue.soon
        while soon:
            next_one = soon.popleft()
            if isinstance(next_one, Soon):
                next_one.happen()
            else:
                function, arguments = next_one
                function(*arguments)
            self.at_once += 1
            if self.rows.size() >= BLOCK_BYTES:
                self.recorder.flush_if_full()

    @property
    def handled(self) -> int:
        return self.queue.taken + self.at_once

    def busy(self) -> bool:
        return self.queue.is_waiting()

    # -- what applications do ----------------------------------------------------------------------------

    def enter(self, node: NodeId) -> None:
        """Start a node that is down, for the first time or again; without saved state as a new incarnation."""
        hosted = self.nodes[node]
        if hosted.up:
            return
        hosted.gone = False
        if hosted.incarnation < 0 or not hosted.store:
            self._new_incarnation(hosted)
        self._start(hosted)

    def leave(self, node: NodeId, linger: Duration = 0) -> None:
        """Let a node's application leave. The node goes down `linger` later and may send packets until then."""
        hosted = self.nodes[node]
        if not hosted.up or hosted.gone:
            return
        clock = hosted.clock_at(self.now)
        self.recorder.node_event(LEFT, hosted.process, self.now, clock)
        hosted.gone = True
        effects = hosted.node.leave(clock)
        if self.gauged:
            hosted.node.note_sizes(hosted.peaks)
        self.carry_out(node, effects, clock)
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
        """Let the application of a node broadcast a message. Count it if the node is down or refuses it."""
        hosted = self.nodes[node]
        if not hosted.up or hosted.gone:
            self.unborn += 1
            return
        if hosted.stalled:
            hosted.deferred.append((self.broadcast, (node, payload, to, lifetime)))
            return
        clock = hosted.clock_at(self.now)
        try:
            effects = hosted.node.broadcast(payload, clock, to, lifetime)
        except Refused as error:
            self.refused += 1
            self.refusal = self.refusal or str(error)
            return
        if self.gauged:
            hosted.node.note_sizes(hosted.peaks)
        self.carry_out(node, effects, clock)
        if self.on_broadcast is not None:
            self.on_broadcast(node, payload, to, lifetime)

    # -- faults ------------------------------------------------------------------------------------------

    def crash(self, node: NodeId, after: int | None = None) -> None:
        """Crash a node now, or after `after` more atomic steps, even in the middle of a list of effects."""
        hosted = self.nodes[node]
        if not hosted.up:
            return
        if after is None:
            self.crash_now(hosted)
        else:
            hosted.crash_after = after
            hosted.plain = False

    def restart(self, node: NodeId, keep: bool, again: int | None = None) -> None:
        """Restart a crashed node with all it persisted or, if not `keep`, with nothing as a new incarnation.

        With `again` it crashes once more after so many atomic steps, which may cut its recovery short.
        """
        hosted = self.nodes[node]
        if hosted.up or hosted.gone or hosted.incarnation < 0:
            return
        if not keep:
            self._new_incarnation(hosted)
        hosted.crash_after = again
        self._start(hosted)

    def stall(self, node: NodeId, duration: Duration) -> None:
        """Stall a node for a while; it gets the inputs of that time afterwards, in order."""
        hosted = self.nodes[node]
        if hosted.up and not hosted.stalled:
            hosted.stalled = True
            hosted.plain = False
            self.schedule(self.now + duration, self._end_stall, hosted, hosted.process)

    def heal(self, dead: Sequence[NodeId] = ()) -> None:
        """End all faults. Crashed nodes restart with their saved state, except the `dead` (swarm worlds)."""
        self.network.heal()
        for hosted in self.nodes:
            hosted.crash_after = None
            if hosted.stalled:
                self._end_stall(hosted, hosted.process)
            hosted.update_plain()
            if hosted.id not in dead:
                self.restart(hosted.id, keep=True)

    # -- gauges ------------------------------------------------------------------------------------------

    def sample_gauges(self) -> None:
        """Writes the sizes and peaks of every node that is up. Nodes that go down write theirs then."""
        for hosted in self.nodes:
            if hosted.up:
                self.write_gauges(hosted)

    # -- incarnations ------------------------------------------------------------------------------------

    def _new_incarnation(self, hosted: HostedNode) -> None:
        hosted.incarnation += 1
        hosted.accepted = 0
        hosted.store = {}
        hosted.process = self.recorder.process_of(hosted.id, hosted.incarnation)

    def _start(self, hosted: HostedNode) -> None:
        generator = self.generators.python("node", hosted.id, hosted.incarnation)
        hosted.node = self._make_node(hosted.id, hosted.incarnation, generator)
        hosted.up = True
        hosted.flight = self.network.flight(hosted.id)
        hosted.update_plain()
        clock = hosted.clock_at(self.now)
        self.recorder.node_event(STARTED, hosted.process, self.now, clock)
        effects = hosted.node.start(clock, round_trip(hosted.store))
        if self.gauged:
            hosted.peaks = Peaks()
            hosted.node.note_sizes(hosted.peaks)
        self.carry_out(hosted.id, effects, clock)
        if hosted.up:
            self.network.node_up(hosted.id)
            hosted.flight = self.network.flight(hosted.id)  # a node that was down has a new queue

    def _depart(self, hosted: HostedNode) -> None:
        if hosted.up and hosted.gone:
            self.take_down(hosted)

    def _end_stall(self, hosted: HostedNode, process: int) -> None:
        """End a stall of the incarnation `process`, and give the node the inputs that came in the meantime."""
        if hosted.process != process or not hosted.stalled:
            return
        hosted.stalled = False
        hosted.update_plain()
        deferred, hosted.deferred = hosted.deferred, []
        for function, arguments in deferred:
            if hosted.up:
                function(*arguments)
