"""What the world asks of a network, and what a network may ask of the world.

A network owns queues, air time, transfer time, loss and links, on both sides of a link. It draws only from
its own named generators, by link and transmission number, never by what is in a packet: then two protocols on
one seed meet one world. Each world kind is one file beside this one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from mypy_extensions import mypyc_attr

from precede.core.effects import Key, Medium, Send
from precede.core.identity import NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Packet
from precede.sim.randomness import Generators

CONTACTS_END, NODES_LEAVE, NODES_ENTER, CONTACTS_BEGIN, MESSAGES_BORN, REST = range(6)
"""At one instant things happen in this order; within one phase in the order in which they were scheduled."""


class Simulator(Protocol):
    """The world as a network sees it. Calls are carried out before they return, but for `schedule`, `soon`."""

    now: Instant
    generators: Generators

    def schedule(self, at: Instant, function: Callable[..., None], *arguments: Any) -> None:
        """Call later, in phase REST. `at` is not before `now`."""

    def dispatch(self, at: Instant, to: NodeId, packet: Packet, sender: NodeId, over: Medium) -> None:
        """`transmitted` now, `receive` at `at`: the quick way for a packet that nothing can stop."""

    def schedule_phase(self, phase: int, at: Instant, function: Callable[..., None], *arguments: Any) -> None:
        """Call later, in a phase of that instant."""

    def soon(self, function: Callable[..., None], *arguments: Any) -> None:
        """Call at this instant, after what is being done, before anything scheduled: first in, first out."""

    def receive(self, to: NodeId, packet: Packet, sender: NodeId, over: Medium) -> None:
        """A packet arrives whole. A node that is down hears nothing."""

    def receive_all(self, nodes: Sequence[NodeId], packet: Packet, sender: NodeId, over: Medium) -> None:
        """One transmission arrives whole at several nodes at this instant, in this order."""

    def transmitted(self, node: NodeId, packet: Packet, to: NodeId, over: Medium) -> None:
        """A packet leaves its node: writes the `sent` row. Call it once per transmission, when it begins."""

    def sent(self, node: NodeId, key: Key, ok: bool) -> None:
        """A keyed send has left its queue (`ok`) or was dropped before it left."""

    def link_up(self, node: NodeId, peer: NodeId, over: Medium) -> None:
        """Tell one node that a peer can be reached. (Call it for both sides.)"""

    def link_down(self, node: NodeId, peer: NodeId, over: Medium) -> None:
        """Tell one node that a peer is gone."""

    def is_up(self, node: NodeId) -> bool:
        """Has the node entered, and neither crashed nor left?"""


@mypyc_attr(allow_interpreted_subclasses=True)
class Flight(ABC):
    """The flights of one node's packets."""

    @abstractmethod
    def takes(self, now: Instant) -> Duration:
        """A packet is sent now: after how long does it land?"""


@mypyc_attr(allow_interpreted_subclasses=True)
class Network(ABC):
    """One world kind's links. The world calls these; nodes never see a network."""

    crashes = True
    """May nodes go down in this run? A network that is told not may take a shorter way."""

    def attach(self, world: Simulator, nodes: int) -> None:
        """Called once, before anything happens: remember the world, open the random generators.

        Node ids are 0 .. nodes-1.
        """
        self.world = world
        self.nodes = nodes

    def begin(self) -> None:
        """Schedule what this network knows in advance (contacts, partitions, movements)."""

    def flight(self, sender: NodeId) -> Flight | None:
        """How long a node's packets fly, if that is all that ever happens to its packets here.

        The world then carries out its plain sends (to one node, without a key) itself; None: ask `send`.
        """
        return None

    @abstractmethod
    def send(self, sender: NodeId, send: Send) -> None:
        """Carry out one `Send`, in the order in which the node asked."""

    @abstractmethod
    def cancel(self, sender: NodeId, key: Key) -> None:
        """Take back a keyed send that is still queued."""

    def node_up(self, node: NodeId) -> None:
        """A node has entered or restarted (its `start` has been carried out): bring up the links it has now."""

    def node_down(self, node: NodeId) -> None:
        """A node has crashed or left: drop its queues and what flies to it, tell its peers as a link would."""

    def heal(self) -> None:
        """Act two of a swarm world: from now on nothing is lost, cut, duplicated or collided."""

    def counters(self) -> Mapping[str, int]:
        """What the network counted (lost, duplicated, collided, ...), for run.json."""
        return {}
