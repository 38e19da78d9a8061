"""`TimedWorld`: moves messages between carriers, over contacts whose transfers take time.

It does what `Epidemic` and `ContactNetwork` do together when transfers take time, in the same order: the same
rows, the same random draws, the same events. Nodes enter, leave, broadcast and have timers as in any world.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

from mypy_extensions import i64

from precede.core.effects import RADIO, Discard, Effect, Medium
from precede.core.identity import NodeId
from precede.core.instants import Duration, Instant
from precede.eventlog.recorder import Recorder
from precede.eventlog.rows import BLOCK_BYTES
from precede.eventlog.schema import PACKET_RECEIVED, SENT
from precede.experiments.timed_contacts.carried import Carried
from precede.experiments.timed_contacts.carrier import Carrier, ExpiryTimer
from precede.experiments.timed_contacts.links import Link
from precede.experiments.timed_contacts.marks import Marks
from precede.protocols.layered.epidemic.packets import (
    HEADER_BYTES,
    ID_BYTES,
    HavePacket,
    MessagesPacket,
    SummaryPacket,
)
from precede.protocols.layered.node import LayeredNode
from precede.protocols.layered.parsed_envelopes import NEVER
from precede.sim.clocks import Clock
from precede.sim.hosted_node import HostedNode
from precede.sim.networks.contacts import ContactNetwork
from precede.sim.networks.network import Network
from precede.sim.queue import LAST_PHASE, PHASE_BITS, Call
from precede.sim.world import MakeNode, World

_BATCH: Final = 2048
_HAVE_BYTES: Final = HEADER_BYTES + ID_BYTES
_SWEPT: Final = 1024
"""Every so many births the messages that have expired everywhere are forgotten."""


@final
class TimedWorld(World):
    """A world of contacts with timed transfers, whose nodes are an ordering joined to a `Carrier`.

    `_messages` has the messages by serial number; those below `_first_alive` have expired. `_arriving` are the
    links on which a packet arrives at this instant, and `_announced` what it says: that the link's owner has
    this message, or, if None, which messages it has (a summary).
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
        assert isinstance(network, ContactNetwork)
        self._contacts = network
        self._messages: list[Carried | None] = []
        self._first_alive: i64 = 0
        self._arriving: list[Link] = []
        self._announced: list[Carried | None] = []
        self._summary_code = self._have_code = self._messages_code = -1  # known from the first packet on

    # -- nodes and links ---------------------------------------------------------------------------------

    def _carrier(self, node: NodeId) -> Carrier:
        layered = self.nodes[node].node
        assert isinstance(layered, LayeredNode)
        carrier = layered.dissemination
        assert isinstance(carrier, Carrier)
        if carrier.hosted is None:
            carrier.join(self.nodes[node], self._contacts.jitter_of(node))
        return carrier

    def broadcast(
        self,
        node: NodeId,
        payload: bytes,
        to: tuple[NodeId, ...] | None = None,
        lifetime: Duration | None = None,
    ) -> None:
        super().broadcast(node, payload, to, lifetime)
        if not self.nodes[node].up:
            return
        carrier = self._carrier(node)
        envelope, carrier.born = carrier.born, None
        if envelope is not None and (envelope.deadline is None or envelope.deadline > self.now):
            message = Carried(envelope, len(self._messages))
            message.takes = self._contacts.least_time(message.size_bytes, 1)
            self._messages.append(message)
            if message.serial % _SWEPT == 0:
                self._forget_expired()
            carrier.keep(message, self._first_alive)
            self._pass_on(carrier, message, None)
            self._set_expiry(carrier)
            self._note(carrier)

    def _forget_expired(self) -> None:
        """Forget messages that no node can carry any more, up to the first that may be alive."""
        serial = self._first_alive
        while serial < len(self._messages):
            message = self._messages[serial]
            if message is not None and message.deadline > self.now:
                break
            self._messages[serial] = None
            serial += 1
        self._first_alive = serial

    def take_down(self, hosted: HostedNode) -> None:
        carrier = self._carrier(hosted.id)
        super().take_down(hosted)
        carrier.present = False
        for link in carrier.links:
            self._end(link)
        carrier.links = []

    def link_up(self, node: NodeId, peer: NodeId, over: Medium) -> None:
        if self.on_link is not None:
            self.on_link(node, peer, over, True)
        carrier = self._carrier(node)
        self._expire(carrier)
        link = Link(carrier, self._carrier(peer))
        for other in link.peer.links:
            if other.peer is carrier:
                link.back = other
                other.back = link
        carrier.links.append(link)
        self._note(carrier)
        link.summary_bytes = HEADER_BYTES + ID_BYTES * len(carrier.log)
        self._announce(link, None)

    def link_down(self, node: NodeId, peer: NodeId, over: Medium) -> None:
        if self.on_link is not None:
            self.on_link(node, peer, over, False)
        if not self.nodes[node].up:
            return  # `take_down` ends its links
        carrier = self._carrier(node)
        for link in carrier.links:
            if link.peer.id == peer:
                if link.in_flight is not None:
                    carrier.rank(link.in_flight)  # the message is queued again, in vain
                self._end(link)
                carrier.links.remove(link)
                break
        self._note(carrier)

    def _end(self, link: Link) -> None:
        if link.in_flight is not None:
            self._contacts.count_cuts(1)
        link.up = False
        link.back = link.in_flight = link.lacked = None

    def _note(self, carrier: Carrier) -> None:
        """Raise the peaks of a node's sizes at the end of an input."""
        hosted = carrier.hosted
        if self.gauged and hosted is not None:
            hosted.node.note_sizes(hosted.peaks)

    # -- the event loop ----------------------------------------------------------------------------------

    def _take_events(self, until: Instant) -> bool:
        queue = self.queue
        limit = until << PHASE_BITS | LAST_PHASE
        if not queue.open(limit):
            return False
        for _ in range(_BATCH):
            if queue.place == len(queue.current):
                return True
            event = queue.current[queue.place]
            if event.when > limit:
                return False
            queue.place += 1
            self.now = event.when >> PHASE_BITS
            if isinstance(event, Link):
                if event.up:
                    self._complete(event)
            elif isinstance(event, ExpiryTimer):
                if event.carrier.present:
                    event.is_set = False
                    self._expire(event.carrier)
                    self._note(event.carrier)
            elif isinstance(event, Call):
                event.function(*event.arguments)
            if self._arriving:
                self._take_arriving()
        return True

    def _take_arriving(self) -> None:
        """Let the packets that take no time arrive, in the order in which they were sent."""
        for place, link in enumerate(self._arriving):
            back = link.back
            if link.up and back is not None:
                message = self._announced[place]
                if self._log_packets:
                    self._control_row(PACKET_RECEIVED, link.peer, link.owner.id, message, link.summary_bytes)
                if message is None:
                    self._offer(back)
                elif back.lacked is not None:
                    back.lacked.remove(message.serial)
            self.at_once += 1
            if self.rows.size() >= BLOCK_BYTES:
                self.recorder.flush_if_full()
        self._arriving.clear()
        self._announced.clear()

    # -- messages ----------------------------------------------------------------------------------------

    def _complete(self, link: Link) -> None:
        """End a transfer: the peer receives the message, and the next one follows."""
        message = link.in_flight
        assert message is not None
        if self._log_packets:
            self._message_row(PACKET_RECEIVED, link.peer, link.owner.id, message)
        self._receive(link.peer, message, link.back)
        link.in_flight = None
        self._send_next(link)

    def _receive(self, carrier: Carrier, message: Carried, back: Link | None) -> None:
        """Take a message into the cache if it is new, hand it to the ordering and pass it on."""
        if back is not None and back.lacked is not None:
            back.lacked.remove(message.serial)
        if carrier.held.has(message.serial):
            return
        hosted, now = carrier.hosted, self.now
        assert hosted is not None
        if message.deadline <= now:
            self.carry_out_plain(hosted, [Discard(message.parsed.message, "late")], now)
            return
        carrier.keep(message, self._first_alive)
        effects: list[Effect] = [message.arrival]
        carrier.ordering.arrive_batch(message.batch, now, effects)
        self.carry_out_plain(hosted, effects, now)
        self._pass_on(carrier, message, back)
        self._set_expiry(carrier)
        self._note(carrier)

    def _pass_on(self, carrier: Carrier, message: Carried, back: Link | None) -> None:
        """Announce a new message to all peers but the one it came from, and queue it for them."""
        for link in carrier.links:
            if link is not back:
                self._announce(link, message)
                if link.lacked is not None:
                    link.enqueue(carrier.rank(message), message.serial)
                    link.lacked.add(message.serial, self._first_alive)
                    self._send_next(link)

    def _announce(self, link: Link, message: Carried | None) -> None:
        self._control_row(SENT, link.owner, link.peer.id, message, link.summary_bytes)
        self._arriving.append(link)
        self._announced.append(message)

    def _offer(self, link: Link) -> None:
        """Begin to send a peer the messages that its summary does not list."""
        carrier, peer_held = link.owner, link.peer.held
        self._expire(carrier)
        lacked = link.lacked = Marks(self._first_alive, len(self._messages))
        for message in carrier.log:
            if not peer_held.has(message.serial):
                link.enqueue(carrier.rank(message), message.serial)
                lacked.add(message.serial, self._first_alive)
        self._send_next(link)
        self._note(carrier)

    def _send_next(self, link: Link) -> None:
        """Begin the next transfer of a link, if none is under way."""
        lacked, held = link.lacked, link.owner.held
        if link.in_flight is not None or lacked is None:
            return
        now: i64 = self.now
        serial = link.take()
        while serial >= 0:
            if lacked.has(serial) and held.has(serial):
                message = self._messages[serial]
                if message is not None and message.deadline > now:
                    lacked.remove(serial)
                    self._begin(link, message, now)
                    return
            serial = link.take()

    def _begin(self, link: Link, message: Carried, now: i64) -> None:
        link.in_flight = message
        self._message_row(SENT, link.owner, link.peer.id, message)
        until = now + message.takes
        if link.owner.jitter is not None:
            until += link.owner.jitter.next()
        link.when = until << PHASE_BITS | LAST_PHASE
        self.queue.insert(link)

    def _expire(self, carrier: Carrier) -> None:
        """Remove the messages of a cache whose deadline has passed."""
        now: i64 = self.now
        if carrier.first_deadline <= now:
            hosted = carrier.hosted
            assert hosted is not None
            effects: list[Effect] = []
            for message in carrier.take_expired(now):
                if carrier.notifies:
                    carrier.ordering.dropped(message.parsed.envelope, now, effects)
                effects.append(message.parsed.discard("expired_cached"))
            self.carry_out_plain(hosted, effects, now)
        self._set_expiry(carrier)

    def _set_expiry(self, carrier: Carrier) -> None:
        timer = carrier.expiry
        if not timer.is_set and carrier.first_deadline != NEVER:
            timer.is_set = True
            due = max(carrier.first_deadline, self.now) + carrier.sweep
            timer.when = due << PHASE_BITS | LAST_PHASE
            self.queue.insert(timer)

    # -- rows --------------------------------------------------------------------------------------------

    def _message_row(self, kind: int, carrier: Carrier, peer: NodeId, message: Carried) -> None:
        if self._messages_code < 0:
            self._messages_code = self.packet_codes[MessagesPacket.kind]
        size, control, entries = message.size_bytes, message.control_bytes, message.control_entries
        self.rows.sized_packet(
            kind, self._messages_code, carrier.process, self.now, peer, RADIO, size, control, entries, 1
        )

    def _control_row(
        self, kind: int, carrier: Carrier, peer: NodeId, message: Carried | None, summary_bytes: int
    ) -> None:
        """Write a row about the notice that a node has a message, or, if that is None, about a summary."""
        if message is None:
            if self._summary_code < 0:
                self._summary_code = self.packet_codes[SummaryPacket.kind]
            code, size = self._summary_code, summary_bytes
        else:
            if self._have_code < 0:
                self._have_code = self.packet_codes[HavePacket.kind]
            code, size = self._have_code, _HAVE_BYTES
        self.rows.sized_packet(kind, code, carrier.process, self.now, peer, RADIO, size, size, 0, 0)
