"""`VCubeWorld`: hands packets from vertex to vertex, in the order of a wheel.

Nodes enter and broadcast as in any world, from the simulator's queue. Packets and what is scheduled for the
last phase of an instant are in the wheel: events of one phase keep the order in which they were scheduled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, final

from mypy_extensions import i64

from precede.core.identity import NodeId
from precede.core.instants import Duration, Instant
from precede.eventlog.recorder import Recorder
from precede.experiments.plain_vcube.output import NODE_BITS, Output
from precede.experiments.plain_vcube.vertex import Vertex
from precede.experiments.plain_vcube.wheel import NEVER
from precede.protocols.vcube2018.packets import VCubePacket
from precede.sim.clocks import Clock
from precede.sim.networks.network import Network
from precede.sim.networks.switched import Switched
from precede.sim.queue import LAST_PHASE, PHASE_BITS, Call
from precede.sim.world import FOREVER, MakeNode, World

_BATCH: Final = 2048
_NODES: Final = (1 << NODE_BITS) - 1


@final
class VCubeWorld(World):
    """A world whose nodes are `Vertex`es that are always up.

    `_calls` are the functions that the wheel has for the last phase, by number; their words are negative.
    `_next_call` is the instant of the first event in the simulator's queue.
    """

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
        self._output = Output(self.rows, self.packet_codes[VCubePacket.kind], network)
        self._vertices: list[Vertex] = []
        self._calls: dict[int, tuple[Callable[..., None], tuple[Any, ...]]] = {}
        self._last_call = 0
        self._next_call: i64 = 0

    @property
    def handled(self) -> int:
        return super().handled + self._output.wheel.taken

    def busy(self) -> bool:
        return super().busy() or self._output.wheel.is_waiting()

    def schedule(self, at: Instant, function: Callable[..., None], *arguments: Any) -> None:
        self._last_call += 1
        self._calls[self._last_call] = function, arguments
        self._output.wheel.add(at, -self._last_call)

    def schedule_phase(self, phase: int, at: Instant, function: Callable[..., None], *arguments: Any) -> None:
        if phase == LAST_PHASE:
            self.schedule(at, function, *arguments)
        else:
            self.queue.push_phase(phase, at, function, arguments)
            self._next_call = min(self._next_call, at)

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
        """Handle up to `_BATCH` events that are due by an instant. Return False when none is left."""
        queue = self.queue
        limit = until << PHASE_BITS | LAST_PHASE
        self._output.on_deliver = self.on_deliver
        left: i64 = _BATCH
        while True:
            self._next_call = NEVER
            if queue.open(FOREVER << PHASE_BITS):
                self._next_call = queue.current[queue.place].when >> PHASE_BITS
            left = self._take_from_wheel(until, left)
            if left <= 0:
                return True
            if not queue.open(limit):
                return False
            event = queue.current[queue.place]
            queue.place += 1
            self.now = event.when >> PHASE_BITS
            assert isinstance(event, Call)
            event.function(*event.arguments)
            left -= 1

    def _take_from_wheel(self, until: i64, left: i64) -> i64:
        """Handle events of the wheel up to the next call from the queue. Return how many may still follow."""
        output, vertices = self._output, self._vertices
        wheel = output.wheel
        while left > 0 and wheel.seek(min(until, self._next_call - 1)):
            word = wheel.take()
            left -= 1
            now: int = wheel.at
            self.now = output.now = now
            if word < 0:
                function, arguments = self._calls.pop(-word)
                function(*arguments)
                continue
            to = (word >> NODE_BITS) & _NODES
            vertex = vertices[to]
            if self._log_packets:
                output.packet_received(to, word >> (2 * NODE_BITS), word & _NODES)
            vertex.take_packet(output, word >> (2 * NODE_BITS), word & _NODES)
            if self.gauged:
                vertex.note_sizes(self.nodes[to].peaks)
        return left
