"""The inputs of simulated nodes: what networks call when a packet arrives or a link changes.

Each input reads the node's clock, calls the node, and carries out the effects it returns. The inputs of a
stalled node wait until the stall is over. `sim.networks.network.Simulator` documents what networks may call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mypy_extensions import mypyc_attr

from precede.core.effects import Key, Medium
from precede.core.identity import NodeId
from precede.core.instants import Instant
from precede.core.messages import Packet
from precede.eventlog.recorder import Recorder
from precede.eventlog.schema import PACKET_RECEIVED, SENT
from precede.sim.fast_path import FastPath
from precede.sim.hosted_node import HostedNode
from precede.sim.networks.network import Network
from precede.sim.queue import Landing


@mypyc_attr(allow_interpreted_subclasses=True)
class NodeInputs(FastPath):
    """Gives inputs to nodes. `on_link` is called for every link that comes up or goes down at a node."""

    def __init__(self, nodes: list[HostedNode], network: Network, recorder: Recorder) -> None:
        super().__init__(nodes, network, recorder)
        self.on_link: Callable[[NodeId, NodeId, Medium, bool], None] | None = None
        self._log_packets = recorder.packets_received

    def schedule(self, at: Instant, function: Callable[..., None], *arguments: Any) -> None:
        self.push(at, function, arguments)

    def schedule_phase(self, phase: int, at: Instant, function: Callable[..., None], *arguments: Any) -> None:
        self.queue.push_phase(phase, at, function, arguments)

    def soon(self, function: Callable[..., None], *arguments: Any) -> None:
        self.queue.soon.append((function, arguments))

    def is_up(self, node: NodeId) -> bool:
        return self.nodes[node].up

    def dispatch(self, at: Instant, to: NodeId, packet: Packet, sender: NodeId, over: Medium) -> None:
        self.transmitted(sender, packet, to, over)
        self.writer.under_way.launch(at, to, self.writer.measured(packet), sender, over)

    def transmitted(self, node: NodeId, packet: Packet, to: NodeId, over: Medium) -> None:
        hosted, clock = self.nodes[node], self.nodes[node].clock_at(self.now)
        self.rows.packet(SENT, hosted.process, self.now, clock, self.writer.measured(packet), to, over)

    def land(self, landing: Landing) -> None:
        """Gives a packet to a node. If the node forwards it as it is, its sizes are not read again."""
        self.writer.last = landing.packet
        self.receive(landing.to, landing.packet.packet, landing.sender, landing.over)

    def receive(self, to: NodeId, packet: Packet, sender: NodeId, over: Medium) -> None:
        """Gives a packet to a node. A stalled node gets it after the stall, a node that is down never."""
        hosted = self.nodes[to]
        clock = self.now
        if not hosted.plain:
            if hosted.stalled:
                hosted.deferred.append((self.receive, (to, packet, sender, over)))
                return
            if not hosted.up:
                return
            clock = hosted.clock_at(clock)
        if self._log_packets:
            measured = self.writer.measured(packet)
            self.rows.packet(PACKET_RECEIVED, hosted.process, self.now, clock, measured, sender, over)
        if hosted.plain and hosted.writing is not None and self.on_deliver is None:
            writer = self.writer
            writer.measured(packet)
            writer.begin(hosted, clock)
            hosted.writing.take(packet, sender, clock, over, writer)
            if self.gauged:
                hosted.node.note_sizes(hosted.peaks)
            return
        effects = hosted.node.receive(packet, sender, clock, over)
        if self.gauged:
            hosted.node.note_sizes(hosted.peaks)
        if effects:
            self.carry_out(to, effects, clock)

    def receive_all(self, nodes: Sequence[NodeId], packet: Packet, sender: NodeId, over: Medium) -> None:
        for to in nodes:
            self.receive(to, packet, sender, over)

    def sent(self, node: NodeId, key: Key, ok: bool) -> None:
        hosted = self.nodes[node]
        if hosted.stalled:
            hosted.deferred.append((self.sent, (node, key, ok)))
        elif hosted.up:
            clock = hosted.clock_at(self.now)
            effects = hosted.node.sent(key, clock, ok)
            if self.gauged:
                hosted.node.note_sizes(hosted.peaks)
            if effects:
                self.carry_out(node, effects, clock)

    def link_up(self, node: NodeId, peer: NodeId, over: Medium) -> None:
        if self.on_link is not None:
            self.on_link(node, peer, over, True)
        hosted = self.nodes[node]
        if hosted.stalled:
            hosted.deferred.append((self.link_up, (node, peer, over)))
        elif hosted.up:
            clock = hosted.clock_at(self.now)
            effects = hosted.node.link_up(peer, clock, over)
            if self.gauged:
                hosted.node.note_sizes(hosted.peaks)
            self.carry_out(node, effects, clock)

    def link_down(self, node: NodeId, peer: NodeId, over: Medium) -> None:
        if self.on_link is not None:
            self.on_link(node, peer, over, False)
        hosted = self.nodes[node]
        if hosted.stalled:
            hosted.deferred.append((self.link_down, (node, peer, over)))
        elif hosted.up:
            clock = hosted.clock_at(self.now)
            effects = hosted.node.link_down(peer, clock, over)
            if self.gauged:
                hosted.node.note_sizes(hosted.peaks)
            self.carry_out(node, effects, clock)
