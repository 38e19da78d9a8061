"""The contact network: two nodes hear each other while a contact lasts (guidec2021, sections III and VI).

A contact is (a, b, start, end); its start is included, its end is not. A link is up while there is a contact
and both nodes are up. A transfer takes `size / bandwidth + overhead` per message in the packet, and with
`jitter` a time that is drawn for each message, from the sender's own generator. With `share="link"` each
direction of a link has its own transmitter; with `share="node"` a node has one for all its links. `link_down`
drops packets that are queued or in flight to that peer. Packets without messages (summaries) take no time
unless `summaries="timed"`; then they queue like the others and take `size / bandwidth`. Packets that take no
time cross any number of hops within one instant.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast, final

from mypy_extensions import mypyc_attr

from precede.core.effects import RADIO, Key, Send
from precede.core.identity import NEIGHBOURS, NodeId
from precede.core.instants import SECOND, Duration, Instant
from precede.core.messages import Packet
from precede.sim.draws import Draws
from precede.sim.networks.network import CONTACTS_BEGIN, CONTACTS_END, Network, Simulator
from precede.sim.queue import Soon
from precede.sim.randomness import Generators

if TYPE_CHECKING:
    from precede.sim.node_inputs import NodeInputs
    from precede.sim.randomness import Distribution

Contact: TypeAlias = tuple[NodeId, NodeId, Instant, Instant]
INFINITE: Final = float("inf")


@mypyc_attr(allow_interpreted_subclasses=True)
class ContactNetwork(Network):
    """Links from a list of contacts in any order. Contacts of no duration are counted and ignored."""

    def __init__(
        self,
        contacts: Sequence[Contact],
        bandwidth: float = INFINITE,
        overhead: Duration = 0,
        share: Literal["link", "node"] = "link",
        summaries: Literal["free", "timed"] = "free",
        jitter: Distribution | None = None,
    ) -> None:
        lasting = [contact for contact in contacts if contact[3] > contact[2]]
        self._begins = sorted(lasting, key=lambda contact: (contact[2], contact[0], contact[1]))
        self._ends = sorted(lasting, key=lambda contact: (contact[3], contact[0], contact[1]))
        self._begun = self._ended = 0
        self._bandwidth = bandwidth
        self._overhead = overhead
        self._share = share
        self._free_summaries = summaries == "free"
        self._jitter = jitter
        self._jitters: dict[NodeId, Draws] = {}
        self._instant = bandwidth == INFINITE and overhead == 0 and jitter is None
        self._in_range: dict[NodeId, dict[NodeId, int]] = {}
        self._lanes: dict[NodeId, dict[NodeId, Lane]] = {}
        self._transmitters: dict[NodeId, Transmitter] = {}
        self._cuts: dict[tuple[NodeId, NodeId], None] = {}
        self._counts = {
            "contacts": 0,
            "contacts_empty": len(contacts) - len(lasting),
            "transfers_cut": 0,
            "transfers_unheard": 0,
        }

    def attach(self, world: Simulator, nodes: int) -> None:
        super().attach(world, nodes)
        self._engine = cast("NodeInputs", world)  # for compiled code: its methods are called without a lookup
        self._end_transmission = self._transmitted  # bound once, not for every packet
        self._in_range = {node: {} for node in range(nodes)}
        self._lanes = {node: {} for node in range(nodes)}

    def begin(self) -> None:
        self._await_begin()
        self._await_end()

    # -- contacts and nodes come and go ----------------------------------------------------------------------

    def _await_begin(self) -> None:
        """Schedules only the next beginning of a contact. So the queue holds one event for the whole list."""
        if self._begun < len(self._begins):
            at = max(self._begins[self._begun][2], self.world.now)
            self.world.schedule_phase(CONTACTS_BEGIN, at, self._begin_contacts)

    def _await_end(self) -> None:
        if self._ended < len(self._ends):
            at = max(self._ends[self._ended][3], self.world.now)
            self.world.schedule_phase(CONTACTS_END, at, self._end_contacts)

    def _begin_contacts(self) -> None:
        while self._begun < len(self._begins) and self._begins[self._begun][2] <= self.world.now:
            a, b, _, _ = self._begins[self._begun]
            self._begun += 1
            self._counts["contacts"] += 1
            self._count(a, b, +1)
            if self._in_range[a][b] == 1:
                self._link(a, b)
        self._await_begin()

    def _end_contacts(self) -> None:
        while self._ended < len(self._ends) and self._ends[self._ended][3] <= self.world.now:
            a, b, _, _ = self._ends[self._ended]
            self._ended += 1
            self._count(a, b, -1)
            if not self._in_range[a][b]:
                del self._in_range[a][b], self._in_range[b][a]
                self._unlink(a, b)
        self._await_end()

    def _count(self, a: NodeId, b: NodeId, change: int) -> None:
        """Changes the number of contacts that a pair has now. Contacts that overlap are one link."""
        self._in_range[a][b] = self._in_range[a].get(b, 0) + change
        self._in_range[b][a] = self._in_range[a][b]

    def _link(self, a: NodeId, b: NodeId) -> None:
        if not (self.world.is_up(a) and self.world.is_up(b)) or (min(a, b), max(a, b)) in self._cuts:
            return
        # if `a` crashes while it handles link_up, `b` never gets its link_up
        self._lanes[a][b] = Lane(a, b, self._transmitter(a))
        self._lanes[b][a] = Lane(b, a, self._transmitter(b))
        self.world.link_up(a, b, RADIO)
        if self.world.is_up(a):
            self.world.link_up(b, a, RADIO)

    def _unlink(self, a: NodeId, b: NodeId) -> None:
        """Take a link down. Each node gets `sent` for its dropped packets, then `link_down`."""
        for node, peer in ((a, b), (b, a)):
            lane = self._lanes[node].pop(peer, None)
            if lane is not None:
                self._drop(lane)
                self.world.link_down(node, peer, RADIO)

    def node_up(self, node: NodeId) -> None:
        for peer in list(self._in_range[node]):
            self._link(node, peer)

    def node_down(self, node: NodeId) -> None:
        for peer in list(self._lanes[node]):
            self._unlink(node, peer)

    def cut(self, a: NodeId, b: NodeId) -> None:
        self._cuts[min(a, b), max(a, b)] = None
        self._unlink(a, b)

    def mend(self, a: NodeId, b: NodeId) -> None:
        del self._cuts[min(a, b), max(a, b)]
        if b in self._in_range[a]:
            self._link(a, b)

    def heal(self) -> None:
        """Bring all nodes into contact with each other, for good."""
        self._begun, self._ended = len(self._begins), len(self._ends)
        for a in range(self.nodes):
            for b in range(a + 1, self.nodes):
                self._in_range[a][b] = self._in_range[b][a] = 1
                if b not in self._lanes[a]:
                    self._link(a, b)

    # -- packets ------------------------------------------------------------------------------------------

    def send(self, sender: NodeId, send: Send) -> None:
        if send.to == NEIGHBOURS:
            self._send_to_all(sender, send)
            return
        lane = self._lanes[sender].get(send.to)
        if lane is None:
            self._counts["transfers_unheard"] += 1
            if send.key is not None:
                self._engine.soon(self._engine.sent, sender, send.key, False)
        elif self._instant or (self._free_summaries and not send.packet.messages):
            self._engine.transmitted(sender, send.packet, send.to, send.over)
            self._engine.queue.soon.append(Handover(self, lane, send))
        else:
            lane.transmitter.enqueue(lane, send)
            self._transmit(lane.transmitter)

    def _send_to_all(self, sender: NodeId, send: Send) -> None:
        """Transmits to all nodes that are in range when the transmission ends; it occupies no link."""
        self.world.transmitted(sender, send.packet, NEIGHBOURS, send.over)
        self.world.schedule(self.world.now + self._time(sender, send.packet), self._all_hear, sender, send)

    def _all_hear(self, sender: NodeId, send: Send) -> None:
        for peer in list(self._lanes[sender]):
            self.world.receive(peer, send.packet, sender, send.over)
        if send.key is not None:
            self.world.sent(sender, send.key, True)

    def cancel(self, sender: NodeId, key: Key) -> None:
        for lane in self._lanes[sender].values():
            lane.transmitter.remove(key)

    def counters(self) -> Mapping[str, int]:
        return self._counts

    def contact_list(self) -> Sequence[Contact]:
        """Return all contacts of some duration, by their beginning."""
        return self._begins

    def _transmitter(self, node: NodeId) -> Transmitter:
        if self._share == "link":
            return Transmitter()
        return self._transmitters.setdefault(node, Transmitter())

    def _time(self, sender: NodeId, packet: Packet) -> Duration:
        took = self.least_time(packet.size_bytes, packet.messages)
        if self._jitter is not None and packet.messages:
            draws = self.jitter_of(sender)
            assert draws is not None
            for _ in range(packet.messages):
                took += draws.next()
        return took

    def least_time(self, size_bytes: int, messages: int) -> Duration:
        """Return how long the transfer of a packet takes without jitter."""
        return round(size_bytes * SECOND / self._bandwidth) + self._overhead * messages

    def jitter_of(self, sender: NodeId) -> Draws | None:
        """Return the draws of the jitter of a sender's transfers, or None if there is no jitter."""
        draws = self._jitters.get(sender)
        if draws is None and self._jitter is not None:
            draws = self._jitters[sender] = self._jitter.draws(self.world.generators, "jitter", sender)
        return draws

    @property
    def takes_no_time(self) -> bool:
        return self._instant

    def always_takes_time(self, seed: int) -> bool:
        """True if each link direction transmits alone, summaries are free, and no first transfer takes no time.

        A sender's first transfer to end is one of its first draws, as many as it has contacts.
        """
        if self._share != "link" or not self._free_summaries:
            return False
        if self._jitter is None or self.least_time(1, 1) > 0:
            return self.least_time(1, 1) > 0
        contacts = Counter([node for a, b, _, _ in self._begins for node in (a, b)])
        for node, count in contacts.items():
            draws = self._jitter.draws(Generators(seed), "jitter", node)
            if min([draws.next() for _ in range(count)]) == 0:
                return False
        return True

    def count_cuts(self, transfers: int) -> None:
        """Count transfers that a link cut short, for a world that carries them out itself."""
        self._counts["transfers_cut"] += transfers

    def _transmit(self, transmitter: Transmitter) -> None:
        if transmitter.flying is not None or not transmitter.queue:
            return
        lane, send = transmitter.flying = transmitter.queue.popleft()
        transmitter.flight += 1
        self._engine.transmitted(lane.sender, send.packet, lane.to, send.over)
        over = self._engine.now + self._time(lane.sender, send.packet)
        self._engine.queue.push(over, self._end_transmission, (transmitter, transmitter.flight))

    def _transmitted(self, transmitter: Transmitter, flight: int) -> None:
        if transmitter.flying is not None and transmitter.flight == flight:
            lane, send = transmitter.flying
            transmitter.flying = None
            self.arrive(lane, send)
            self._transmit(transmitter)

    def arrive(self, lane: Lane, send: Send) -> None:
        """Give a packet to the node at the end of a lane, if the link is still up."""
        if not lane.up:
            return
        self._engine.receive(lane.to, send.packet, lane.sender, send.over)
        if send.key is not None:
            self._engine.sent(lane.sender, send.key, True)

    def _drop(self, lane: Lane) -> None:
        """Drop the packets queued or in flight on one direction of a link (a lane) that ends."""
        lane.up = False
        transmitter = lane.transmitter
        if transmitter.flying is None and not transmitter.queue:
            return
        lost = [send for other, send in transmitter.queue if other is lane]
        transmitter.queue = deque(item for item in transmitter.queue if item[0] is not lane)
        if transmitter.flying is not None and transmitter.flying[0] is lane:
            lost.insert(0, transmitter.flying[1])
            transmitter.flying = None
        self._counts["transfers_cut"] += len(lost)
        for send in lost:
            if send.key is not None:
                self.world.sent(lane.sender, send.key, False)
        self._transmit(transmitter)


class Lane:
    """One direction of a link while it is up: the packets queued or in flight on it."""

    __slots__ = ("sender", "to", "transmitter", "up")

    def __init__(self, sender: NodeId, to: NodeId, transmitter: Transmitter) -> None:
        self.sender = sender
        self.to = to
        self.transmitter = transmitter
        self.up = True


class Transmitter:
    """Sends one packet at a time, in order."""

    __slots__ = ("flight", "flying", "queue")

    def __init__(self) -> None:
        self.queue: deque[tuple[Lane, Send]] = deque()
        self.flying: tuple[Lane, Send] | None = None
        self.flight = 0

    def enqueue(self, lane: Lane, send: Send) -> None:
        """Queues a send at the end, or in the place of a queued one with the same key."""
        if send.key is not None:
            for place, (_, queued) in enumerate(self.queue):
                if queued.key == send.key:
                    self.queue[place] = (lane, send)
                    return
        self.queue.append((lane, send))

    def remove(self, key: Key) -> None:
        self.queue = deque(item for item in self.queue if item[1].key != key)


@final
class Handover(Soon):
    """A packet that takes no time crosses a link."""

    __slots__ = ("lane", "network", "send")

    def __init__(self, network: ContactNetwork, lane: Lane, send: Send) -> None:
        self.network = network
        self.lane = lane
        self.send = send

    def happen(self) -> None:
        self.network.arrive(self.lane, self.send)
