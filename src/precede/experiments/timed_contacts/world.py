"""`TimedWorld`: moves messages between carriers, over contacts whose transfers take time.

It does what `Epidemic` and `ContactNetwork` do together when transfers take time, in the same order: the same
rows, the same random draws, the same events.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

from mypy_extensions import i32, i64

from precede.core.effects import RADIO, Discard, Effect
from precede.core.identity import NodeId
from precede.core.instants import Instant
from precede.eventlog.recorder import Recorder
from precede.eventlog.rows import BLOCK_BYTES
from precede.eventlog.schema import PACKET_RECEIVED, SENT
from precede.experiments.contact_worlds.carrier import ContactCarrier, ContactLink
from precede.experiments.contact_worlds.world import BATCH, ContactWorld
from precede.experiments.timed_contacts.carried import Carried, Catalogue
from precede.experiments.timed_contacts.carrier import Carrier
from precede.experiments.timed_contacts.links import Link
from precede.experiments.timed_contacts.marks import Marks
from precede.experiments.timed_contacts.transfers import TransferQueue
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.epidemic.packets import HEADER_BYTES, ID_BYTES, MessagesPacket
from precede.protocols.layered.parsed_envelopes import ParsedEnvelope
from precede.sim.clocks import Clock
from precede.sim.hosted_node import HostedNode
from precede.sim.networks.contacts import ContactNetwork
from precede.sim.networks.network import Network
from precede.sim.queue import LAST_PHASE, PHASE_BITS, Event
from precede.sim.world import MakeNode

_HAVE_BYTES: Final = HEADER_BYTES + ID_BYTES


@final
class TimedWorld(ContactWorld):
    """A world of contacts with timed transfers.

    `_arriving` are the links on which a packet arrives at this instant, and `_announced` what it says: that the
    link's owner has broadcast this message, or, if None, which messages it has (a summary). Notices of messages
    that it has received arrive at the end of `_complete`.
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
        self.queue = self._transfers = TransferQueue()
        self._contacts = network
        self._catalogue = Catalogue()
        self._arriving: list[Link] = []
        self._announced: list[Carried | None] = []

    # -- births, links, expiry ---------------------------------------------------------------------------

    def _join(self, carrier: ContactCarrier, hosted: HostedNode) -> None:
        assert isinstance(carrier, Carrier)
        carrier.enter(hosted, self._catalogue, self._contacts.jitter_of(hosted.id))

    def _take_up(self, carrier: ContactCarrier, envelope: Envelope) -> None:
        assert isinstance(carrier, Carrier)
        message = self._catalogue.add(envelope, self.now)
        message.takes = self._contacts.least_time(message.size_bytes, 1)
        carrier.keep(message)
        for link in carrier.links:
            assert isinstance(link, Link)
            self._arriving.append(link)
            self._announced.append(message)
        self._pass_on(carrier, message, None)

    def _take_expired(self, carrier: ContactCarrier) -> list[ParsedEnvelope]:
        assert isinstance(carrier, Carrier)
        self._note(carrier)  # between two of these a cache only grows, so its peak is what it is now
        return carrier.take_expired(self.now)

    def _new_link(self, owner: ContactCarrier, peer: ContactCarrier) -> ContactLink:
        assert isinstance(owner, Carrier)
        assert isinstance(peer, Carrier)
        return Link(owner, peer)

    def _greet(self, link: ContactLink) -> None:
        assert isinstance(link, Link)
        link.summary_bytes = HEADER_BYTES + ID_BYTES * link.owner.count()
        self._summary_row(SENT, link.owner, link.peer.id, link.summary_bytes)
        self._arriving.append(link)
        self._announced.append(None)

    def _end(self, link: ContactLink) -> None:
        assert isinstance(link, Link)
        if link.in_flight is not None:
            owner = link.owner
            assert isinstance(owner, Carrier)
            owner.rank(link.in_flight.serial)  # the message is queued again, in vain
            self._contacts.count_cuts(1)
        link.up = False
        link.back = link.in_flight = link.lacked = None

    def _take_events(self, until: Instant) -> bool:
        queue = self._transfers
        limit: i64 = until << PHASE_BITS | LAST_PHASE
        left: i64 = BATCH
        while left > 0:
            left -= 1
            when = queue.next_when(limit)
            if when >= 0:
                self.now = when >> PHASE_BITS
                self._happen(queue.take_transfer())
                self._take_arriving()
            elif queue.open(limit):
                self._take_next()
                queue.note_others()
            else:
                return False
        return True

    def _happen(self, event: Event) -> None:
        if isinstance(event, Link) and event.up:
            self._complete(event)

    def _take_arriving(self) -> None:
        if not self._arriving:
            return
        for place, link in enumerate(self._arriving):
            message, back = self._announced[place], link.back
            if message is not None:
                self._hear(link, message)
            elif link.up and isinstance(back, Link):
                if self._log_packets:
                    self._summary_row(PACKET_RECEIVED, link.peer, link.owner.id, link.summary_bytes)
                self._offer(back)
        self.at_once += len(self._arriving)
        self._arriving.clear()
        self._announced.clear()
        if self.rows.size() >= BLOCK_BYTES:
            self.recorder.flush_if_full()

    def _hear(self, link: Link, message: Carried) -> None:
        """Let the peer of a link receive the notice that its owner has a message."""
        back = link.back
        if link.up and isinstance(back, Link):
            if self._log_packets:
                self._have_row(PACKET_RECEIVED, link.peer, link.owner.id, _HAVE_BYTES)
            if back.lacked is not None:
                back.lacked.remove(message.serial)

    # -- messages ----------------------------------------------------------------------------------------

    def _complete(self, link: Link) -> None:
        """End a transfer: the peer receives the message, and the next one follows."""
        message, peer, back = link.in_flight, link.peer, link.back
        assert message is not None
        assert isinstance(peer, Carrier)
        assert isinstance(back, Link)
        if self._log_packets:
            self._message_row(PACKET_RECEIVED, peer, link.owner.id, message)
        if back.lacked is not None:
            back.lacked.remove(message.serial)
        is_new = not peer.held.has(message.serial)
        if is_new:
            self._receive(peer, message, back)
        link.in_flight = None
        self._send_next(link)
        if is_new and message.deadline > self.now:
            self._take_arriving()  # of messages that were broadcast in reply
            for other in peer.links:
                if other is not back:
                    assert isinstance(other, Link)
                    self._hear(other, message)
                    self.at_once += 1
            if self.rows.size() >= BLOCK_BYTES:
                self.recorder.flush_if_full()

    def _receive(self, carrier: Carrier, message: Carried, back: Link) -> None:
        """Take a new message into the cache, hand it to the ordering and pass it on."""
        hosted, now = carrier.hosted, self.now
        assert hosted is not None
        if message.deadline <= now:
            self.carry_out_plain(hosted, [Discard(message.parsed.message, "late")], now)
            return
        carrier.keep(message)
        effects: list[Effect] = []
        carrier.ordering.arrive_batch(message.batch, now, effects)
        if len(effects) == 1 and effects[0] is message.deliver and self.on_deliver is None:
            self.rows.received_and_delivered(carrier.process, now, message.deliver)
        else:
            self.carry_out_plain(hosted, [message.arrival, *effects], now)
        self._pass_on(carrier, message, back)
        self._set_expiry(carrier)
        if self.gauged:
            if hosted.peaks.parts:
                carrier.ordering.counted_sizes()
            else:
                self._note(carrier)

    def _pass_on(self, carrier: Carrier, message: Carried, back: Link | None) -> None:
        """Announce a new message to all peers but the one it came from, and queue it for them."""
        for link in carrier.links:
            assert isinstance(link, Link)
            if link is not back:
                self._have_row(SENT, carrier, link.peer.id, _HAVE_BYTES)
                if link.lacked is not None:
                    link.enqueue(carrier.rank(message.serial), message.serial)
                    link.lacked.add(message.serial, self._catalogue.first_alive)
                    if link.in_flight is None:
                        self._send_next(link)

    def _offer(self, link: Link) -> None:
        """Begin to send a peer the messages that its summary does not list."""
        carrier, peer = link.owner, link.peer
        assert isinstance(carrier, Carrier)
        assert isinstance(peer, Carrier)
        peer_held, catalogue = peer.held, self._catalogue
        self._expire(carrier)
        first_alive = catalogue.first_alive
        lacked = link.lacked = Marks(first_alive, len(catalogue))
        serials = carrier.serials
        place: i64 = 0
        while place < carrier.length:
            serial = serials[place]
            if not peer_held.has(serial):
                link.enqueue(carrier.rank(serial), serial)
                lacked.add(serial, first_alive)
            place += 1
        if link.in_flight is None:
            self._send_next(link)
        self._note(carrier)

    def _send_next(self, link: Link) -> None:
        """Begin the next transfer of a link on which none is under way."""
        lacked, owner = link.lacked, link.owner
        assert isinstance(owner, Carrier)
        if lacked is None:
            return
        now: i64 = self.now
        serial = link.take()
        while serial >= 0:
            if lacked.has(serial) and owner.held.has(serial):
                message = self._catalogue.message(serial)
                if message.deadline > now:
                    lacked.remove(serial)
                    self._begin(link, owner, message, now)
                    return
            serial = link.take()

    def _begin(self, link: Link, owner: Carrier, message: Carried, now: i64) -> None:
        link.in_flight = message
        self._message_row(SENT, owner, link.peer.id, message)
        until = now + message.takes
        if owner.jitter is not None:
            until += owner.jitter.next()
        self._transfers.begin(link, until << PHASE_BITS | LAST_PHASE)

    # -- rows --------------------------------------------------------------------------------------------

    def _message_row(self, kind: i32, carrier: ContactCarrier, peer: i32, message: Carried) -> None:
        size, control, entries = message.size_bytes, message.control_bytes, message.control_entries
        if self._messages_code < 0:
            self._messages_code = self.packet_codes[MessagesPacket.kind]
        code, process = self._messages_code, carrier.process
        self.rows.sized_packet(kind, code, process, self.now, peer, RADIO, size, control, entries, 1)
