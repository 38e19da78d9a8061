"""The simulator's side of the effects: what each effect of a node does to rows, queue, network and disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mypy_extensions import mypyc_attr

from precede.core.dispatch import EffectHandler, store_value
from precede.core.effects import (
    Accept,
    Arrive,
    CancelSend,
    CancelTimer,
    Deliver,
    Discard,
    Key,
    Observe,
    Persist,
    Send,
    SetTimer,
)
from precede.core.identity import NodeId
from precede.core.instants import Instant, format_duration
from precede.core.messages import Message
from precede.core.node import Node
from precede.eventlog.recorder import Recorder
from precede.eventlog.schema import CRASHED, DELIVERED, DISCARDED, OBSERVED, RECEIVED
from precede.sim.hosted_node import HostedNode
from precede.sim.networks.network import Network
from precede.sim.queue import EventQueue

MOST_TIMERS = 1_000_000
"""The most timers, due at once, that a node may set within one instant. More would stop the world's clock."""


@mypyc_attr(allow_interpreted_subclasses=True)
class NodeEffects(EffectHandler):
    """Carries out effects of simulated nodes; crashes a node in the middle of a list if a fault plans it.

    The attribute `now` is the world's time; the argument `now` of a method is the reading of the node's own
    clock. `on_deliver` is called for every delivery, with the node and the message. If `gauged`, the peaks of
    all sizes are counted.
    """

    def __init__(self, nodes: list[HostedNode], network: Network, recorder: Recorder) -> None:
        self.now: Instant = 0
        self.queue = EventQueue()
        self.nodes = nodes
        self.network = network
        self.recorder = recorder
        self.rows = recorder.units
        self.gauged = False
        self.on_deliver: Callable[[NodeId, Message], None] | None = None

    def push(self, at: Instant, function: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        """Call a function later, in the last phase of an instant."""
        if at < self.now:
            raise ValueError(f"an event at {at}, before the present instant, {self.now}")
        self.put(at, function, arguments)

    def put(self, at: Instant, function: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        """Do the same for an instant that is not past."""
        self.queue.push(at, function, arguments)

    def begin_step(self, node: NodeId) -> bool:
        """Counts down to the planned crash of a node, and crashes it when due. Returns whether it is up."""
        hosted = self.nodes[node]
        if hosted.crash_after is not None:
            if hosted.crash_after == 0:
                self.crash_now(hosted)
            else:
                hosted.crash_after -= 1
        return hosted.up

    def crash_now(self, hosted: HostedNode) -> None:
        self.recorder.node_event(CRASHED, hosted.process, self.now, hosted.clock_at(self.now))
        self.take_down(hosted)

    def take_down(self, hosted: HostedNode) -> None:
        """Stop the node after writing its sizes and peaks; the network drops its queues."""
        if self.gauged:
            self.write_gauges(hosted)
        hosted.node = Node()  # a world that thousands of nodes pass through keeps only their stores
        hosted.up = hosted.stalled = hosted.plain = False
        hosted.writing = None
        hosted.crash_after = None
        hosted.timers = {}
        hosted.deferred = []
        self.network.node_down(hosted.id)

    def write_gauges(self, hosted: HostedNode) -> None:
        hosted.node.note_sizes(hosted.peaks)
        self.recorder.gauges(hosted.id, self.now, hosted.peaks.sample())

    def accept(self, node: NodeId, effect: Accept, now: Instant) -> None:
        hosted, id = self.nodes[node], effect.message.id
        if id.number > hosted.accepted:
            hosted.accepted = id.number
            self.recorder.broadcast(hosted.process, self.now, now, id, effect.destinations, effect.deadline)

    def arrive(self, node: NodeId, effect: Arrive, now: Instant) -> None:
        process = self.nodes[node].process
        for message in effect.messages:
            self.rows.message(RECEIVED, 0, process, self.now, now, message.id)

    def send(self, node: NodeId, effect: Send, now: Instant) -> None:
        self.network.send(node, effect)

    def cancel_send(self, node: NodeId, effect: CancelSend, now: Instant) -> None:
        self.network.cancel(node, effect.key)

    def deliver(self, node: NodeId, effect: Deliver, now: Instant) -> None:
        self.rows.message(DELIVERED, 0, self.nodes[node].process, self.now, now, effect.message.id)
        if self.on_deliver is not None:
            self.on_deliver(node, effect.message)

    def discard(self, node: NodeId, effect: Discard, now: Instant) -> None:
        process = self.nodes[node].process
        self.recorder.message(DISCARDED, process, self.now, now, effect.message.id, effect.reason)

    def observe(self, node: NodeId, effect: Observe, now: Instant) -> None:
        process = self.nodes[node].process
        self.recorder.message(OBSERVED, process, self.now, now, effect.message.id, effect.name)

    def set_timer(self, node: NodeId, effect: SetTimer, now: Instant) -> None:
        hosted, key, at = self.nodes[node], effect.key, effect.at
        due: Instant = hosted.world_time(at)
        if due <= self.now:
            self._count_immediate_timer(hosted, key)
            due = self.now
        token = hosted.timers[key] = object()
        self.push(due, self.timer_due, (hosted, key, token))

    def cancel_timer(self, node: NodeId, effect: CancelTimer, now: Instant) -> None:
        self.nodes[node].timers.pop(effect.key, None)

    def persist(self, node: NodeId, effect: Persist, now: Instant) -> None:
        store_value(self.nodes[node].store, effect)

    def timer_due(self, hosted: HostedNode, key: Key, token: object) -> None:
        """Calls the node's `timer`, unless that timer was cancelled or replaced (its token differs)."""
        if hosted.timers.get(key) is not token:
            return
        if hosted.stalled:
            hosted.deferred.append((self.timer_due, (hosted, key, token)))
            return
        del hosted.timers[key]
        clock = hosted.clock_at(self.now)
        effects = hosted.node.timer(key, clock)
        if self.gauged:
            hosted.node.note_sizes(hosted.peaks)
        self.carry_out(hosted.id, effects, clock)

    def _count_immediate_timer(self, hosted: HostedNode, key: Key) -> None:
        """Counts a timer that is due at once. Raises RuntimeError for too many: time would never pass."""
        if hosted.immediate_at != self.now:
            hosted.immediate_at, hosted.immediate_timers = self.now, 0
        hosted.immediate_timers += 1
        if hosted.immediate_timers > MOST_TIMERS:
            raise RuntimeError(
                f"node {hosted.id} has set {MOST_TIMERS:,} timers that were due at once (the last one: {key!r})"
                f": time stands still at {format_duration(self.now)}"
            )
