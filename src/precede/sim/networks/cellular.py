"""The cellular network (was2021, section 5): stations on a wired tree, one radio cell each, hosts that move.

Nodes 0 .. stations-1 are stations, the rest are hosts. The tree's links are reliable and first-in first-out,
with bandwidth and delay; control packets queue with messages. A host gets `link_up` and `link_down` over RADIO
for its cell, a station over WIRED for its tree neighbours; it does not know which hosts are in its cell.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import final

from precede.core.effects import RADIO, WIRED, Key, Send
from precede.core.identity import NodeId
from precede.core.instants import SECOND, Duration, Instant
from precede.sim.networks.journeys import Journey, Move, WireCut
from precede.sim.networks.network import CONTACTS_BEGIN, Network, Simulator
from precede.sim.networks.radio import Radio
from precede.sim.randomness import Distribution
from precede.traces.cells import OUTSIDE


class Cellular(Network):
    """The cellular network. `links` are the wired tree; hosts move by `moves` or by a `journey`."""

    def __init__(
        self,
        radio: Radio,
        stations: int,
        links: Sequence[tuple[NodeId, NodeId]],
        delay: Distribution,
        bandwidth: float = float("inf"),
        moves: Sequence[Move] = (),
        journey: Journey | None = None,
        station_places: Sequence[tuple[float, float]] | None = None,
        wire_cuts: Sequence[WireCut] = (),
    ) -> None:
        self.stations = stations
        self._radio = radio
        self._links = list(links)
        self._delay = delay
        self._bandwidth = bandwidth
        self._moves = list(moves)
        self._journey = journey
        self._station_places = station_places or [(0.0, 0.0)] * stations
        self._wires: dict[tuple[NodeId, NodeId], _Wire] = {}
        self._wire_cuts = list(wire_cuts)
        self._handovers = 0

    @property
    def has_journey(self) -> bool:
        """True if hosts have positions of their own, not only cells."""
        return self._journey is not None

    def attach(self, world: Simulator, nodes: int) -> None:
        super().attach(world, nodes)
        hosts = nodes - self.stations
        self.cell: list[NodeId] = [*range(self.stations), *([OUTSIDE] * hosts)]
        self.hosts_in: list[dict[NodeId, None]] = [{} for _ in range(self.stations)]
        self.place: list[tuple[float, float]] = [*self._station_places, *([(0.0, 0.0)] * hosts)]
        self._last_cell: dict[NodeId, NodeId] = {}
        for one, other in self._links:
            for sender, to in ((one, other), (other, one)):
                draw = self._delay.drawing(world.generators, "wire", sender, to)
                self._wires[sender, to] = _Wire(sender, to, draw)
        self._radio.attach(self, nodes)

    def begin(self) -> None:
        for move in self._moves:
            self.world.schedule_phase(CONTACTS_BEGIN, move.at, self._move, move)
        if self._journey is not None:
            self._step(0)
        for cut in self._wire_cuts:
            self.world.schedule(cut.start, self._cut, cut)

    def send(self, sender: NodeId, send: Send) -> None:
        if send.over == RADIO:
            self._radio.send(sender, send)
            return
        wire = self._wires[sender, send.to]
        wire.queue.append(send)
        if not wire.busy:
            self._transmit(wire)

    def cancel(self, sender: NodeId, key: Key) -> None:
        self._radio.cancel(sender, key)

    def node_up(self, node: NodeId) -> None:
        if node >= self.stations:
            if self.cell[node] >= 0:
                self.hosts_in[self.cell[node]][node] = None
                self.world.link_up(node, self.cell[node], RADIO)
            return
        for one, other in self._links:
            if node in (one, other) and self.world.is_up(one) and self.world.is_up(other):
                self.world.link_up(one, other, WIRED)
                self.world.link_up(other, one, WIRED)

    def node_down(self, node: NodeId) -> None:
        self._radio.drop(node)
        if node >= self.stations:
            if self.cell[node] >= 0:
                self.hosts_in[self.cell[node]].pop(node, None)
            return
        for wire in self._wires.values():
            if wire.sender == node:
                wire.queue.clear()
            if wire.to == node:
                self.world.link_down(wire.sender, node, WIRED)

    def heal(self) -> None:
        """End all faults: nothing is lost from now on, and hosts out of coverage return to their last cell."""
        self._radio.heal()
        for host in range(self.stations, self.nodes):
            if self.cell[host] < 0:
                self._enter(host, self._last_cell.get(host, host % self.stations))

    def counters(self) -> Mapping[str, int]:
        return {"cell_changes": self._handovers, **self._radio.counters()}

    # -- cells -------------------------------------------------------------------------------------------

    def _move(self, move: Move) -> None:
        self._enter(move.host, OUTSIDE if move.cell is None else move.cell)

    def _enter(self, host: NodeId, cell: NodeId) -> None:
        """Moves a host: first out of its old cell, which drops its queue, then into the new one."""
        old = self.cell[host]
        if old == cell:
            return
        up = self.world.is_up(host)
        self.cell[host] = OUTSIDE
        if old >= 0:
            self._last_cell[host] = old
            self.hosts_in[old].pop(host, None)
            self._radio.drop(host)
            self.world.link_down(host, old, RADIO)
        self.cell[host] = cell
        if cell >= 0:
            self._handovers += old >= 0
            if up and self.world.is_up(host):
                self.hosts_in[cell][host] = None
                self.world.link_up(host, cell, RADIO)

    def _step(self, number: int) -> None:
        """Moves all hosts by one step and into the cells they are now in, and schedules the next step."""
        assert self._journey is not None
        positions, cells = self._journey.positions, self._journey.cells
        first = self.stations
        self.place[first:] = zip(positions.x[number].tolist(), positions.y[number].tolist(), strict=True)
        for host, cell in enumerate(cells[number].tolist(), first):
            if cell != self.cell[host]:
                self._enter(host, cell)
        if number + 1 < len(cells):
            at = (number + 1) * positions.step
            self.world.schedule_phase(CONTACTS_BEGIN, at, self._step, number + 1)

    # -- wires -------------------------------------------------------------------------------------------

    def _cut(self, cut: WireCut) -> None:
        for sender, to in (cut.link, cut.link[::-1]):
            wire = self._wires[sender, to]
            wire.cut_until = max(wire.cut_until, cut.end)

    def _transmit(self, wire: _Wire) -> None:
        if not wire.queue:
            wire.busy = False
            return
        if self.world.now < wire.cut_until:
            wire.busy = True
            self.world.schedule(wire.cut_until, self._transmit, wire)
            return
        send = wire.queue.popleft()
        self.world.transmitted(wire.sender, send.packet, wire.to, WIRED)
        took = round(send.packet.size_bytes * 8 * SECOND / self._bandwidth)
        if send.key is not None:
            self.world.soon(self.world.sent, wire.sender, send.key, True)
        over = self.world.now + took
        wire.last = max(wire.last, over + wire.delay())
        self.world.schedule(wire.last, self.world.receive, wire.to, send.packet, wire.sender, WIRED)
        wire.busy = took > 0
        if took > 0:
            self.world.schedule(over, self._transmit, wire)
        elif wire.queue:
            self._transmit(wire)


@final
class _Wire:
    """One direction of a wired link; packets arrive in order."""

    def __init__(self, sender: NodeId, to: NodeId, delay: Callable[[], Duration]) -> None:
        self.sender = sender
        self.to = to
        self.delay = delay
        self.queue: deque[Send] = deque()
        self.busy: bool = False
        self.last: Instant = 0
        self.cut_until: Instant = 0
