"""The interface between the simulator and its networks.

A network owns queues, air time, transfer time, loss and links, on both sides of a link. It draws only from
its own named generators, by link and transmission number, never by what is in a packet: then two protocols on
one seed meet one world. Each kind of network is one module of this package.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from mypy_extensions import mypyc_attr

from precede.core.effects import Key, Medium, Send
from precede.core.identity import NodeId
from precede.core.instants import Instant
from precede.core.messages import Packet
from precede.sim.flight import Flight
from precede.sim.randomness import Generators

CONTACTS_END, NODES_LEAVE, NODES_ENTER, CONTACTS_BEGIN, MESSAGES_BORN, REST = range(6)
"""The phases of one instant, in order; within a phase events keep the order in which they were scheduled."""


class Simulator(Protocol):
    """The simulator as a network sees it.

    Calls take effect before they return, except `schedule`, `schedule_phase`, `soon` and `dispatch`.
    """

    now: Instant
    generators: Generators

    def schedule(self, at: Instant, function: Callable[..., None], *arguments: Any) -> None:
        """Calls a function later, in phase REST. `at` is not before `now`."""

    def dispatch(self, at: Instant, to: NodeId, packet: Packet, sender: NodeId, over: Medium) -> None:
        """Write the `sent` row now and let the packet arrive at `at`: faster, for a packet nothing can stop."""

    def schedule_phase(self, phase: int, at: Instant, function: Callable[..., None], *arguments: Any) -> None:
        """Calls a function later, in a phase of that instant."""

    def soon(self, function: Callable[..., None], *arguments: Any) -> None:
        """Calls a function at this instant, after the current call and before anything scheduled, in order."""

    def receive(self, to: NodeId, packet: Packet, sender: NodeId, over: Medium) -> None:
        """Give a node a packet that has arrived whole; a node that is down does not receive it."""

    def receive_all(self, nodes: Sequence[NodeId], packet: Packet, sender: NodeId, over: Medium) -> None:
        """Give several nodes, in this order, a transmission that has arrived whole at this instant."""

    def transmitted(self, node: NodeId, packet: Packet, to: NodeId, over: Medium) -> None:
        """Writes the `sent` row of a packet. Call it once per transmission, when it begins."""

    def sent(self, node: NodeId, key: Key, ok: bool) -> None:
        """Report to a node that its keyed send has left its queue (`ok`) or was dropped before it left."""

    def link_up(self, node: NodeId, peer: NodeId, over: Medium) -> None:
        """Tells one node that it can reach a peer. Call it for both sides of a link."""

    def link_down(self, node: NodeId, peer: NodeId, over: Medium) -> None:
        """Tells one node that it can no longer reach a peer."""

    def is_up(self, node: NodeId) -> bool:
        """True if the node has entered and has neither crashed nor left."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Network(ABC):
    """A network. The simulator calls these methods; nodes never see a network."""

    crashes = True
    """Whether nodes may go down in this run; if not, a network may save work."""

    def attach(self, world: Simulator, nodes: int) -> None:
        """Keep the simulator and make the generators, once, before anything happens. Ids are 0 to nodes - 1."""
        self.world = world
        self.nodes = nodes

    def begin(self) -> None:
        """Schedules the events that are known in advance (contacts, partitions, movements)."""

    def only_delays(self) -> bool:
        """True if links only delay packets: they lose, duplicate and cut none."""
        return False

    def flight(self, sender: NodeId) -> Flight | None:
        """Returns how long a node's packets take, if this network only delays them; else None.

        If it is not None, the fast path carries out unkeyed sends to one node without calling `send`.
        """
        return None

    @abstractmethod
    def send(self, sender: NodeId, send: Send) -> None:
        """Carries out one `Send`; a node's sends come in order."""

    def check_receiver(self, sender: NodeId, to: NodeId) -> None:
        """Raise KeyError if the receiver of a packet does not exist."""
        if not 0 <= to < self.nodes:
            raise KeyError(f"node {sender} sends to node {to}, which does not exist")

    @abstractmethod
    def cancel(self, sender: NodeId, key: Key) -> None:
        """Takes back a keyed send that is still queued."""

    def node_up(self, node: NodeId) -> None:
        """Brings up the links of a node that has entered or restarted, after its `start` was carried out."""

    def node_down(self, node: NodeId) -> None:
        """Drops the queues of a node that has crashed or left, and takes down its links."""

    def cut(self, a: NodeId, b: NodeId) -> None:
        """Takes the link of two nodes down until `mend`, if this network has links (`precede.play`)."""

    def mend(self, a: NodeId, b: NodeId) -> None:
        """Ends a `cut`: the link comes up if the network has it now."""

    def heal(self) -> None:
        """Ends all disturbances, for the second half of a swarm world: nothing is lost or cut any more."""

    def counters(self) -> Mapping[str, int]:
        """Return the counters of the network (lost, duplicated, collided and so on), for run.json."""
        return {}
