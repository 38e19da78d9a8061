"""The flood radio: one transmission is heard by all in range (drift2006, sections 1 and 5.1).

A node's transmissions wait in its queue for a random access time and, with carrier sense, for a free channel;
there a keyed one can be replaced. A transmission takes its air time (overhead plus bytes over bandwidth) and a
hop delay. Each link may add a jitter of its own, so packets of one link can overtake each other. A transmission
can be lost on each link. With collisions, a receiver that hears two overlapping transmissions, or is sending,
loses them. Every draw depends only on sender, receiver and transmission number.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from mypy_extensions import mypyc_attr

from precede.core.effects import RADIO, Key, Send
from precede.core.identity import NEIGHBOURS, NodeId
from precede.core.instants import SECOND, Duration, Instant
from precede.core.messages import Packet
from precede.sim.networks.motion import Motion
from precede.sim.networks.network import Network, Simulator
from precede.sim.networks.partition import Partition
from precede.sim.randomness import Distribution

_ROWS: Final = 64


@mypyc_attr(allow_interpreted_subclasses=True)
class FloodRadio(Network):
    """The flood radio. `reach` is in metres, `bandwidth` in bytes per second, distributions in seconds."""

    def __init__(
        self,
        motion: Motion,
        reach: float,
        delay: Distribution | None = None,
        jitter: Distribution | None = None,
        access: Distribution | None = None,
        bandwidth: float = float("inf"),
        overhead: Duration = 0,
        loss: float = 0.0,
        collisions: bool = False,
        carrier_sense: bool = False,
        partitions: Sequence[Partition] = (),
    ) -> None:
        self.motion = motion
        self.reach = reach
        self._delay = delay or Distribution(0.001)
        self._jitter = jitter
        self._access = access
        self._bandwidth = bandwidth
        self._is_endless = bandwidth == float("inf")
        self._overhead = overhead
        self._loss = loss
        self._collisions = collisions
        self._carrier_sense = carrier_sense
        self._at_once = access is None and not carrier_sense
        self._partitions = list(partitions)
        self._lost = 0
        self._collided = 0
        self._cut = 0
        self._transmissions = 0

    def attach(self, world: Simulator, nodes: int) -> None:
        super().attach(world, nodes)
        self._radios = [_Radio(node, self) for node in range(nodes)]
        self._everybody = [[peer for peer in range(nodes) if peer != node] for node in range(nodes)]
        self._healed = False

    def in_range(self, node: NodeId) -> list[NodeId]:
        """Return the nodes in range of a node at the beginning."""
        return list(self.motion.in_range(node, self.reach, 0))

    def send(self, sender: NodeId, send: Send) -> None:
        radio = self._radios[sender]
        if self._at_once and not radio.busy:
            self._leave(radio, send)
            return
        if send.key is not None and radio.replace(send):
            return
        radio.queue.append(send)
        if not radio.busy:
            self._access_channel(radio)

    def cancel(self, sender: NodeId, key: Key) -> None:
        radio = self._radios[sender]
        radio.queue = deque(send for send in radio.queue if send.key != key)

    def node_down(self, node: NodeId) -> None:
        """Drops the queue of the node; a transmission on the air is still received."""
        self._radios[node].queue.clear()

    def heal(self) -> None:
        """End all faults: nothing is lost or collides from now on, and all nodes are in range of each other."""
        self._healed = True
        self._loss = 0.0
        self._collisions = False
        self._carrier_sense = False
        self._partitions = []
        for radio in self._radios:
            radio.heard.clear()

    def counters(self) -> Mapping[str, int]:
        return {
            "network_transmissions": self._transmissions,
            "network_lost": self._lost,
            "network_collided": self._collided,
            "network_cut": self._cut,
        }

    # -- the channel -------------------------------------------------------------------------------------

    def _access_channel(self, radio: _Radio) -> None:
        """Transmits the first packet after the access time and, with carrier sense, on a free channel."""
        radio.busy = True
        wait = radio.access.next() if self._access is not None else 0
        if wait or self._carrier_sense:
            self.world.schedule(self.world.now + wait, self._try_channel, radio)
        else:
            self._transmit(radio)

    def _try_channel(self, radio: _Radio) -> None:
        if not radio.queue:
            radio.busy = False
            return
        now = self.world.now
        free_at = max((air.ends for air in radio.heard), default=now) if self._carrier_sense else now
        if free_at > now:
            self.world.schedule(free_at + 1 + radio.backoff.next(), self._try_channel, radio)
        else:
            self._transmit(radio)

    def _transmit(self, radio: _Radio) -> None:
        self._leave(radio, radio.queue.popleft())

    def _leave(self, radio: _Radio, send: Send) -> None:
        world, sender, packet = self.world, radio.node, send.packet
        self._transmissions += 1
        world.transmitted(sender, packet, send.to, send.over)
        if send.key is not None:
            world.soon(world.sent, sender, send.key, True)
        air_time = self._overhead
        if not self._is_endless:
            air_time += round(packet.size_bytes * SECOND / self._bandwidth)
        air = _Air(sender, packet, world.now + air_time)
        self._put_on_air(radio, air, send.to)
        if air_time:
            radio.busy = True
            world.schedule(air.ends, self._next, radio)
        elif radio.busy:
            self._next(radio)

    def _next(self, radio: _Radio) -> None:
        if radio.queue:
            self._access_channel(radio)
        else:
            radio.busy = False

    def _put_on_air(self, radio: _Radio, air: _Air, to: NodeId) -> None:
        world, sender = self.world, radio.node
        near = self._everybody[sender] if self._healed else self.motion.in_range(sender, self.reach, world.now)
        if self._partitions:
            near = self._not_separated(sender, near)
        if self._collisions:
            self._collide(radio, air, near)
        receivers = near if to == NEIGHBOURS else [node for node in near if node == to]
        if self._loss:
            receivers = self._survivors(radio, receivers)
        lands = air.ends + radio.delay.next()
        if self._jitter is None or self._healed:
            world.schedule(lands, self._land, air, receivers)
        else:
            row = radio.jitters()
            for node in receivers:
                world.schedule(lands + int(row[node]), self._land, air, [node])
        if air.spoils is not None:
            world.schedule(air.ends, self._off_air, radio, air, near)

    def _land(self, air: _Air, receivers: Sequence[NodeId]) -> None:
        if air.spoils:
            kept = [node for node in receivers if node not in air.spoils]
            self._collided += len(receivers) - len(kept)
            receivers = kept
        self.world.receive_all(receivers, air.packet, air.sender, RADIO)

    def _survivors(self, radio: _Radio, receivers: Sequence[NodeId]) -> list[NodeId]:
        row, loss = radio.chances(), self._loss
        kept = [node for node in receivers if row[node] >= loss]
        self._lost += len(receivers) - len(kept)
        return kept

    def _not_separated(self, sender: NodeId, near: Sequence[NodeId]) -> list[NodeId]:
        now = self.world.now
        for cut in self._partitions:
            if cut.start <= now < cut.end:
                kept = [node for node in near if not cut.cuts(sender, node)]
                self._cut += len(near) - len(kept)
                near = kept
        return list(near)

    # -- collisions --------------------------------------------------------------------------------------

    def _collide(self, radio: _Radio, air: _Air, near: Sequence[NodeId]) -> None:
        """Marks the collisions that a new transmission causes, also of what the sender hears.

        A node in range that hears another transmission loses both; one that sends loses the new one.
        """
        spoils: dict[NodeId, None] = {}
        air.spoils = spoils
        for other in radio.heard:
            if other.spoils is not None:
                other.spoils[radio.node] = None
        radio.sending = air
        for node in near:
            receiver = self._radios[node]
            if receiver.heard or receiver.sending is not None:
                spoils[node] = None
            for other in receiver.heard:
                if other.spoils is not None:
                    other.spoils[node] = None
            receiver.heard[air] = None

    def _off_air(self, radio: _Radio, air: _Air, near: Sequence[NodeId]) -> None:
        radio.sending = None
        for node in near:
            self._radios[node].heard.pop(air, None)


class _Air:
    """One transmission on the air. `spoils` has the nodes that lose it because of a collision."""

    __slots__ = ("ends", "packet", "sender", "spoils")

    def __init__(self, sender: NodeId, packet: Packet, ends: Instant) -> None:
        self.sender = sender
        self.packet = packet
        self.ends = ends
        self.spoils: dict[NodeId, None] | None = None


class _Radio:
    """One node's transmitter: its queue, its draws, and the transmissions it hears now."""

    __slots__ = (
        "access",
        "backoff",
        "busy",
        "chances",
        "delay",
        "heard",
        "jitters",
        "node",
        "queue",
        "sending",
    )

    def __init__(self, node: NodeId, network: FloodRadio) -> None:
        generators = network.world.generators
        self.node = node
        self.queue: deque[Send] = deque()
        self.busy = False
        self.heard: dict[_Air, None] = {}
        self.sending: _Air | None = None
        self.delay = network._delay.draws(generators, "delay", node)
        access = network._access or Distribution(0)
        self.access = access.draws(generators, "access", node)
        self.backoff = Distribution("uniform(0, 0.002)").draws(generators, "backoff", node)
        self.chances = _rows(Distribution("uniform(0, 1)"), network, "loss", node, 1)
        self.jitters = _rows(network._jitter or Distribution(0), network, "jitter", node, SECOND)

    def replace(self, send: Send) -> bool:
        """Puts a send in the place of a queued one with the same key; False if there is none."""
        for place, queued in enumerate(self.queue):
            if queued.key == send.key:
                self.queue[place] = send
                return True
        return False


def _rows(
    distribution: Distribution, network: FloodRadio, name: str, node: NodeId, unit: int
) -> Callable[[], list[float]]:
    """Returns a function that draws, for each transmission, one value per receiver."""
    width = network.nodes
    generator = network.world.generators.numpy(name, node)

    def forever() -> object:
        while True:
            yield from (distribution.block(generator, _ROWS * width) * unit).reshape(_ROWS, width).tolist()

    rows: Callable[[], list[float]] = forever().__next__  # type: ignore[attr-defined]
    return rows
