"""The point-to-point network: delay, loss, duplication, bandwidth, partitions between any two nodes.

Each node has its own random generators. A draw depends on the number of the transmission and never on what is
in the packet, so two protocols that send alike meet the same network. Without `fifo`, packets overtake each
other as their delays fall. With a finite bandwidth each directed link has a queue, in which a send replaces a
queued one with its key.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence

from mypy_extensions import mypyc_attr

from precede.core.effects import RADIO, Key, Medium, Send
from precede.core.identity import NEIGHBOURS, NodeId
from precede.core.instants import SECOND, Duration, Instant
from precede.core.messages import Packet
from precede.sim.draws import Draws
from precede.sim.flight import Flight
from precede.sim.networks.network import REST, Network, Simulator
from precede.sim.networks.partition import Partition
from precede.sim.randomness import Distribution


@mypyc_attr(allow_interpreted_subclasses=True)
class PointToPoint(Network):
    """The point-to-point network: delays as distributions in seconds, loss and duplication as probabilities."""

    def __init__(
        self,
        delay: Distribution,
        loss: float = 0.0,
        duplication: float = 0.0,
        fifo: bool = False,
        bandwidth: float = float("inf"),
        overhead: Duration = 0,
        partitions: Sequence[Partition] = (),
        link_events: bool = False,
    ) -> None:
        self._delay = delay
        self._loss = loss
        self._duplication = duplication
        self._fifo = fifo
        self._bandwidth = bandwidth
        self._overhead = overhead
        self._partitions = list(partitions)
        self._link_events = link_events
        self._links: list[dict[NodeId, _Link]] = []
        self._healed = False
        self._lost = 0
        self._duplicated = 0
        self._cut = 0

    def attach(self, world: Simulator, nodes: int) -> None:
        super().attach(world, nodes)
        self._links = [{} for _ in range(nodes)]
        self._instant = self._takes_no_time()
        self._delays: list[Draws | None] = [None] * nodes
        self._chances: list[Callable[[], int] | None] = [None] * nodes

    def only_delays(self) -> bool:
        disturbed = self._loss or self._duplication or self._partitions or self._fifo
        return self._takes_no_time() and not disturbed

    def flight(self, sender: NodeId) -> Flight | None:
        sends_itself = type(self).send is not PointToPoint.send
        return self._delay_of(sender) if self.only_delays() and not sends_itself else None

    def begin(self) -> None:
        for partition in self._partitions:
            if self._link_events:
                self.world.schedule_phase(REST - 5, partition.start, self._partition_edge, partition, False)
                self.world.schedule_phase(REST - 2, partition.end, self._partition_edge, partition, True)

    def send(self, sender: NodeId, send: Send) -> None:
        if send.to == NEIGHBOURS:
            self.world.transmitted(sender, send.packet, NEIGHBOURS, send.over)
            for peer in range(self.nodes):
                if peer != sender:
                    link = self._links[sender].get(peer) or self._link(sender, peer)
                    self._fly(link, send.packet, send.over)
            if send.key is not None:
                self.world.soon(self.world.sent, sender, send.key, True)
            return
        to, packet, world = send.to, send.packet, self.world
        link = self._links[sender].get(to) or self._link(sender, to)
        if self._instant:
            world.transmitted(sender, packet, to, send.over)
            self._fly(link, packet, send.over)
            if send.key is not None:
                self.world.soon(self.world.sent, sender, send.key, True)
            return
        link.enqueue(send)
        if not link.busy:
            self._transmit(link)

    def cancel(self, sender: NodeId, key: Key) -> None:
        for link in self._links[sender].values():
            link.remove(key)

    def node_up(self, node: NodeId) -> None:
        if self._link_events:
            for peer in range(self.nodes):
                if peer != node and self.world.is_up(peer) and not self._separated(node, peer):
                    self.world.link_up(node, peer, RADIO)
                    self.world.link_up(peer, node, RADIO)

    def node_down(self, node: NodeId) -> None:
        for link in self._links[node].values():
            link.queue.clear()
        if self._link_events:
            for peer in range(self.nodes):
                if peer != node and self.world.is_up(peer):
                    self.world.link_down(peer, node, RADIO)

    def heal(self) -> None:
        separated = [
            (a, b) for a in range(self.nodes) for b in range(self.nodes) if a != b and self._separated(a, b)
        ]
        self._healed = True
        self._loss = self._duplication = 0.0
        if self._link_events:
            for node, peer in separated:
                self.world.link_up(node, peer, RADIO)

    def counters(self) -> Mapping[str, int]:
        return {
            "network_lost": self._lost,
            "network_duplicated": self._duplicated,
            "network_cut": self._cut,
        }

    def _takes_no_time(self) -> bool:
        """True if a packet is on its way as soon as it is sent."""
        return self._bandwidth == float("inf") and self._overhead == 0

    def _link(self, sender: NodeId, to: NodeId) -> _Link:
        self.check_receiver(sender, to)
        link = self._links[sender][to] = _Link(sender, to, self._delay_of(sender), self._chance_of(sender))
        return link

    def _delay_of(self, sender: NodeId) -> Draws:
        """Returns the draws of a node's delays, from its own generator, made when first needed."""
        draw = self._delays[sender]
        if draw is None:
            draw = self._delays[sender] = self._delay.draws(self.world.generators, "delay", sender)
        return draw

    def _chance_of(self, sender: NodeId) -> Callable[[], int]:
        """Returns a function that draws whole numbers below 2^32.

        It is called twice per packet, for its loss and its duplication. If both are 0, it returns a constant.
        """
        if not self._loss and not self._duplication:
            return lambda: 1 << 31
        draw = self._chances[sender]
        if draw is None:
            generator = self.world.generators.numpy("chance", sender)
            draw = self._chances[sender] = Draws(lambda count: generator.integers(0, 1 << 32, count)).next
        return draw

    def _fly(self, link: _Link, packet: Packet, over: Medium) -> None:
        lost = link.chance() < self._loss * (1 << 32)
        doubled = link.chance() < self._duplication * (1 << 32)
        delay = link.delay.next()
        if self._partitions and self._separated(link.sender, link.to):
            self._cut += 1
            return
        if lost:
            self._lost += 1
            return
        at = self.world.now + delay
        if self._fifo:
            at = link.last = max(at, link.last)
        self.world.schedule(at, self._land, link, packet, over)
        if doubled:
            self._duplicated += 1
            self.world.schedule(self.world.now + 2 * delay + 1, self._land, link, packet, over)

    def _land(self, link: _Link, packet: Packet, over: Medium) -> None:
        if self._partitions and self._separated(link.sender, link.to):
            self._cut += 1
            return
        self.world.receive(link.to, packet, link.sender, over)

    def _transmit(self, link: _Link) -> None:
        if not link.queue:
            link.busy = False
            return
        link.busy = True
        send = link.queue.popleft()
        self.world.transmitted(link.sender, send.packet, link.to, send.over)
        took = self._overhead + round(send.packet.size_bytes * SECOND / self._bandwidth)
        self.world.schedule(self.world.now + took, self._transmitted, link, send)

    def _transmitted(self, link: _Link, send: Send) -> None:
        self._fly(link, send.packet, send.over)
        if send.key is not None:
            self.world.sent(link.sender, send.key, True)
        self._transmit(link)

    def _separated(self, a: NodeId, b: NodeId) -> bool:
        if self._healed:
            return False
        now = self.world.now
        return any(cut.start <= now < cut.end and cut.cuts(a, b) for cut in self._partitions)

    def _partition_edge(self, partition: Partition, joined: bool) -> None:
        report = self.world.link_up if joined else self.world.link_down
        if self._healed:
            return
        for a in range(self.nodes):
            for b in range(self.nodes):
                if a != b and (partition.cuts(a, b) or partition.cuts(b, a)):
                    report(a, b, RADIO)


class _Link:
    """One directed link: its draws, its queue, and when its last packet arrives."""

    __slots__ = ("busy", "chance", "delay", "last", "queue", "sender", "to")

    def __init__(self, sender: NodeId, to: NodeId, delay: Draws, chance: Callable[[], int]) -> None:
        self.sender = sender
        self.to = to
        self.delay = delay
        self.chance = chance
        self.queue: deque[Send] = deque()
        self.busy = False
        self.last: Instant = 0

    def enqueue(self, send: Send) -> None:
        """Queues a send at the end, or in the place of a queued one with the same key."""
        if send.key is not None:
            for place, queued in enumerate(self.queue):
                if queued.key == send.key:
                    self.queue[place] = send
                    return
        self.queue.append(send)

    def remove(self, key: Key) -> None:
        self.queue = deque(send for send in self.queue if send.key != key)
