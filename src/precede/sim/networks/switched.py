"""The packet-switched network of vcube2018, section 5: t_pc + t_q + t_t + t_pp for every packet.

A node has one sending queue. A packet waits there for those before it (t_q), is put on the line (t_t), crosses
it (t_pp, drawn for each packet or once for each link), and is processed by its receiver (t_pc). There is no
broadcast medium: a packet for several nodes is queued as one copy for each. Links lose nothing and are not
FIFO. When a node goes down, packets still in its queue are lost, and packets that have left it arrive.

The wait is computed, not simulated: the time at which a packet leaves is known when it is queued, so its `sent`
row has the instant at which it was queued. A node draws from its own generator, in the order of its packets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias, final

import numpy as np
from mypy_extensions import mypyc_attr

from precede.core.effects import Key, Medium, Send
from precede.core.identity import NEIGHBOURS, NodeId
from precede.core.instants import SECOND, Duration, Instant
from precede.core.messages import Packet
from precede.sim.draws import MOST_AT_ONCE, Draws
from precede.sim.flight import Flight
from precede.sim.networks.network import Network, Simulator
from precede.sim.randomness import Distribution

Drawn: TypeAlias = Literal["packet", "link"]

_NEVER: Final[Instant] = 1 << 62


@mypyc_attr(allow_interpreted_subclasses=True)
class Switched(Network):
    """The packet-switched network. `propagation` is in seconds; `longest` is an upper bound for it."""

    def __init__(
        self,
        propagation: Distribution,
        transmission: Duration = 0,
        processing: Duration = 0,
        drawn: Drawn = "packet",
        longest: Duration | None = None,
    ) -> None:
        self._propagation = propagation
        self.transmission = transmission
        self.processing = processing
        self._drawn = drawn
        self._longest = _NEVER if longest is None else longest
        self._waited = 0
        self._packets = 0
        self._dropped = 0

    def attach(self, world: Simulator, nodes: int) -> None:
        super().attach(world, nodes)
        self._per_packet = self._drawn == "packet"
        self._ports = [_Port(self, node, self._delays(node)) for node in range(nodes)]

    def only_delays(self) -> bool:
        return True

    def flight(self, sender: NodeId) -> Flight | None:
        disturbed = self.crashes or not self._per_packet or type(self).send is not Switched.send
        return None if disturbed else self._ports[sender]

    def count(self, wait: Duration) -> None:
        """Count one more packet, which waits so long in the queue of its sender."""
        self._packets += 1
        self._waited += wait

    def send(self, sender: NodeId, send: Send) -> None:
        port = self._ports[sender]
        to, packet, over = send.to, send.packet, send.over
        if to != NEIGHBOURS:
            self.check_receiver(sender, to)
        if send.key is not None:
            self._send_keyed(port, send, send.key)
        elif to == NEIGHBOURS:
            for peer in range(self.nodes):
                if peer != sender:
                    self.send(sender, Send(packet, peer, over))
        else:
            world = self.world
            at = self.lands_at(sender, to, world.now)
            if self.crashes:
                world.transmitted(sender, packet, to, over)
                world.schedule(at, self._land, port, port.free, to, packet, over)
            else:
                world.dispatch(at, to, packet, sender, over)

    def lands_at(self, sender: NodeId, to: NodeId, now: Instant) -> Instant:
        """Queue one more packet of a node. Return when its receiver has processed it, if no node goes down."""
        port = self._ports[sender]
        leaves = port.leave(now)
        takes = port.delays.next() if self._per_packet else self._crossing(port, to)
        return leaves + takes + self.processing

    def cancel(self, sender: NodeId, key: Key) -> None:
        """Takes back a keyed packet that is still queued; its place in the queue stays empty."""
        self._ports[sender].keyed.pop(key, None)

    def node_up(self, node: NodeId) -> None:
        port = self._ports[node]
        if port.down_at != _NEVER:
            self._ports[node] = _Port(self, node, port.delays, port.links)

    def node_down(self, node: NodeId) -> None:
        port = self._ports[node]
        port.down_at = self.world.now
        port.keyed = {}

    def counters(self) -> Mapping[str, int]:
        return {
            "network_packets": self._packets,
            "network_queued_us": self._waited,
            "network_dropped": self._dropped,
        }

    def _delays(self, *name: NodeId) -> Draws:
        """Returns draws of the propagation time (t_pp), from the generator of that name."""
        generator = self.world.generators.numpy("propagation", *name)
        propagation, longest = self._propagation, self._longest

        def block(count: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
            drawn = propagation.block(generator, count)
            drawn *= SECOND
            whole = np.rint(drawn, out=drawn).astype(np.int64)
            return np.minimum(whole, longest, out=whole)

        return Draws(block, MOST_AT_ONCE if self._drawn == "packet" else 1)

    def _crossing(self, port: _Port, to: NodeId) -> Duration:
        """Returns the propagation time (t_pp) of a link, where it is drawn once per link."""
        if to not in port.links:
            port.links[to] = self._delays(port.node, to).next()
        return port.links[to]

    def _land(self, port: _Port, leaves: Instant, to: NodeId, packet: Packet, over: Medium) -> None:
        if leaves > port.down_at:
            self._dropped += 1
            return
        self.world.receive(to, packet, port.node, over)

    def _send_keyed(self, port: _Port, send: Send, key: Key) -> None:
        queued = key in port.keyed
        port.keyed[key] = send
        if not queued:
            self.world.schedule(port.leave(self.world.now), self._leave, port, key)

    def _leave(self, port: _Port, key: Key) -> None:
        """Transmits the latest packet with this key, which has now reached the front of the queue."""
        send = port.keyed.pop(key, None)
        if send is None:
            return
        now, packet, over = self.world.now, send.packet, send.over
        everybody = [node for node in range(self.nodes) if node != port.node]
        for to in everybody if send.to == NEIGHBOURS else [send.to]:
            self.world.transmitted(port.node, packet, to, over)
            takes = port.delays.next() if self._per_packet else self._crossing(port, to)
            self.world.schedule(now + takes + self.processing, self._land, port, now, to, packet, over)
        self.world.sent(port.node, key, True)


@final
class _Port(Flight):
    """The sending queue of a node in one incarnation: when it is free, and its keyed packets.

    As a `Flight` it queues and times the packets of the node in a network where no node goes down.
    """

    def __init__(
        self, network: Switched, node: NodeId, delays: Draws, links: dict[NodeId, Duration] | None = None
    ) -> None:
        self.free: Instant = 0
        self.delays = delays
        self.network = network
        self.node = node
        self.links: dict[NodeId, Duration] = {} if links is None else links
        self.down_at: Instant = _NEVER
        self.keyed: dict[Key, Send] = {}

    def takes(self, now: Instant) -> Duration:
        return self.leave(now) - now + self.delays.next() + self.network.processing

    def leave(self, now: Instant) -> Instant:
        """Queue one more packet. Return the instant at which it leaves the queue."""
        begins = self.free if self.free > now else now
        self.network.count(begins - now)
        self.free = leaves = begins + self.network.transmission
        return leaves
