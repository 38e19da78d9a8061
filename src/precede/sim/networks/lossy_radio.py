"""A radio that loses, delays and reorders frames, without capacity or geometry; the swarm uses it.

Each reception is lost or delayed by its own draw. A host's frame that is on the air when the host moves still
arrives at its station; a station's frame reaches a host only if the host is still in the station's cell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, final

from precede.core.effects import RADIO, Key, Send
from precede.core.identity import NodeId
from precede.core.instants import Instant
from precede.core.messages import Packet
from precede.sim.draws import Draws
from precede.sim.networks.radio import Cells, Radio
from precede.sim.randomness import Distribution

_WHOLE: Final = 1 << 32


class LossyRadio(Radio):
    """A radio that loses receptions with probability `loss`. With `fifo`, frames of a pair keep their order."""

    def __init__(self, delay: Distribution, loss: float = 0.0, fifo: bool = False) -> None:
        self._delay = delay
        self._loss = loss
        self._fifo = fifo
        self._counts = {"radio_frames": 0, "radio_lost": 0, "radio_missed": 0}

    def attach(self, cells: Cells, nodes: int) -> None:
        super().attach(cells, nodes)
        self._paths: dict[tuple[NodeId, NodeId], _Path] = {}

    def send(self, sender: NodeId, send: Send) -> None:
        cell = self.cells.cell[sender]
        if cell < 0 or (sender >= self.cells.stations and send.to != cell):
            if send.key is not None:
                self.world.soon(self.world.sent, sender, send.key, False)
            return
        self._counts["radio_frames"] += 1
        self.world.transmitted(sender, send.packet, send.to, RADIO)
        for receiver in self.receivers(sender, send.to):
            self._fly(self._path(sender, receiver), send.packet)
        if send.key is not None:
            self.world.soon(self.world.sent, sender, send.key, True)

    def cancel(self, sender: NodeId, key: Key) -> None:
        """Nothing to do: frames are never queued."""

    def heal(self) -> None:
        self._loss = 0.0

    def counters(self) -> Mapping[str, int]:
        return self._counts

    def _fly(self, path: _Path, packet: Packet) -> None:
        lost = path.chance() < self._loss * _WHOLE
        at = self.world.now + path.delay()
        if lost:
            self._counts["radio_lost"] += 1
            return
        if self._fifo:
            at = path.last = max(at, path.last)
        self.world.schedule(at, self._land, path, packet)

    def _land(self, path: _Path, packet: Packet) -> None:
        if path.sender < self.cells.stations and self.cells.cell[path.to] != path.sender:
            self._counts["radio_missed"] += 1
            return
        self.world.receive(path.to, packet, path.sender, RADIO)

    def _path(self, sender: NodeId, to: NodeId) -> _Path:
        path = self._paths.get((sender, to))
        if path is None:
            generators = self.world.generators
            generator = generators.numpy("radio-chance", sender, to)
            path = self._paths[sender, to] = _Path(
                sender,
                to,
                self._delay.drawing(generators, "radio-delay", sender, to),
                Draws(lambda count: generator.integers(0, _WHOLE, count)).next,
            )
        return path


@final
class _Path:
    """One direction between two nodes, with its own draws."""

    def __init__(self, sender: NodeId, to: NodeId, delay: Callable[[], int], chance: Callable[[], int]) -> None:
        self.sender = sender
        self.to = to
        self.delay = delay
        self.chance = chance
        self.last: Instant = 0
