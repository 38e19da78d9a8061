"""`VCubeWorld`: hands packets from vertex to vertex, in the order of the wheel of `WheelWorld`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

from mypy_extensions import i64

from precede.core.identity import NodeId
from precede.core.instants import Duration, Instant
from precede.eventlog.recorder import Recorder
from precede.experiments.plain_vcube.output import Output
from precede.experiments.plain_vcube.vertex import Vertex
from precede.protocols.vcube2018.packets import VCubePacket
from precede.sim.clocks import Clock
from precede.sim.networks.network import Network
from precede.sim.networks.switched import Switched
from precede.sim.wheel_world import NODE_BITS, NODE_MASK, WheelWorld
from precede.sim.world import MakeNode


@final
class VCubeWorld(WheelWorld):
    """A world whose nodes are `Vertex`es that are always up."""

    def __init__(
        self,
        seed: int,
        nodes: int,
        make_node: MakeNode,
        network: Network,
        recorder: Recorder,
        clocks: Mapping[NodeId, Clock] | None = None,
    ) -> None:
        super().__init__(seed, nodes, make_node, network, recorder, clocks)
        assert isinstance(network, Switched)
        self._output = Output(self.rows, self.packet_codes[VCubePacket.kind], network, self.wheel)
        self._vertices: list[Vertex] = []

    # -- nodes -------------------------------------------------------------------------------------------

    def enter(self, node: NodeId) -> None:
        super().enter(node)
        vertex = self.nodes[node].node
        assert isinstance(vertex, Vertex)
        assert node == self.nodes[node].process == len(self._vertices), "nodes enter in order, and once"
        vertex.join(self._output, self.network.flight(node))
        self._vertices.append(vertex)

    def broadcast(
        self,
        node: NodeId,
        payload: bytes,
        to: tuple[NodeId, ...] | None = None,
        lifetime: Duration | None = None,
    ) -> None:
        super().broadcast(node, payload, to, lifetime)
        self._output.now = self.now
        self._vertices[node].send_born()

    # -- the event loop ----------------------------------------------------------------------------------

    def _take_events(self, until: Instant) -> bool:
        self._output.on_deliver = self.on_deliver
        return super()._take_events(until)

    def land_word(self, word: i64) -> None:
        output, to = self._output, (word >> NODE_BITS) & NODE_MASK
        now: int = self.wheel.at
        output.now = now
        vertex = self._vertices[to]
        if self._log_packets:
            output.packet_received(to, word >> (2 * NODE_BITS), word & NODE_MASK)
        vertex.take_packet(output, word >> (2 * NODE_BITS), word & NODE_MASK)
        if self.gauged:
            vertex.note_sizes(self.nodes[to].peaks)
