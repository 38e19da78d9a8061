"""`InstantWorld`: moves messages between carriers, over contacts whose transfers take no time.

It does what `Epidemic` and `ContactNetwork` do together when transfers take no time, in the same order: the
same rows, the same random draws and the same events.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

from precede.core.effects import Effect
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Instant
from precede.eventlog.recorder import Recorder
from precede.eventlog.rows import BLOCK_BYTES
from precede.eventlog.schema import PACKET_RECEIVED, SENT
from precede.experiments.contact_worlds.carrier import ContactCarrier, ContactLink
from precede.experiments.contact_worlds.world import ContactWorld
from precede.experiments.instant_contacts.carrier import Carrier, Link
from precede.experiments.instant_contacts.store import Parcel, chosen, parcel_of
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.epidemic.packets import HEADER_BYTES, ID_BYTES
from precede.protocols.layered.parsed_envelopes import Batch, ParsedEnvelope, batch_of
from precede.sim.clocks import Clock
from precede.sim.networks.network import Network
from precede.sim.world import MakeNode

_SWEPT: Final = 512
"""Every so many births the base of all bits rises to the first message that has not expired."""


@final
class Arrival:
    """A packet that arrives at this instant over a link: a summary, a notice, or messages in a parcel.

    `bits` are those of the summary; `ids` are those of the notice. A `first` message tells its sender, when it
    has arrived, that transfers take no time.
    """

    __slots__ = ("bits", "first", "ids", "link", "parcel", "size_bytes")

    def __init__(self, link: Link, parcel: Parcel | None, ids: list[MessageId] | None) -> None:
        self.link = link
        self.parcel = parcel
        self.ids = ids
        self.bits = 0
        self.size_bytes = 0
        self.first = False


@final
class InstantWorld(ContactWorld):
    """A world of contacts with instant transfers.

    Bit n of a set of messages stands for the serial number `_base` + n. `_deadlines` are those of the messages
    from `_base` on. `_arriving` are the packets that arrive at this instant, in the order of sending.
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
        self._base = 0
        self._deadlines: list[Instant] = []
        self._arriving: list[Arrival] = []

    # -- births, links, expiry ---------------------------------------------------------------------------

    def _take_up(self, carrier: ContactCarrier, envelope: Envelope) -> None:
        assert isinstance(carrier, Carrier)
        batch = batch_of((envelope,))
        if len(self._deadlines) % _SWEPT == _SWEPT - 1:
            self._raise_base()
        batch.contents[0].serial = self._base + len(self._deadlines)
        bits = 1 << len(self._deadlines)
        self._deadlines.append(batch.first_deadline)
        carrier.store.add(batch, bits)
        self._pass_on(carrier, parcel_of(batch, bits), None)
        self._evict(carrier)

    def _raise_base(self) -> None:
        """Raise the base to the first message that has not expired, if that is far behind it."""
        expired = 0
        while expired < len(self._deadlines) and self._deadlines[expired] <= self.now:
            expired += 1
        if expired >= _SWEPT:
            self._base += expired
            del self._deadlines[:expired]
            for hosted in self.nodes:
                if hosted.up:
                    carrier = self._carrier(hosted.id)
                    assert isinstance(carrier, Carrier)
                    carrier.store.raise_base(expired)

    def _take_expired(self, carrier: ContactCarrier) -> list[ParsedEnvelope]:
        assert isinstance(carrier, Carrier)
        return carrier.store.take_expired(self.now, self._base)

    def _evict(self, carrier: Carrier) -> None:
        """Remove the messages received first until the cache is within its capacity."""
        if not carrier.is_over_full():
            return
        effects: list[Effect] = []
        while carrier.is_over_full():
            parsed = carrier.store.evict_first(self._base)
            if carrier.notifies:
                carrier.ordering.dropped(parsed.envelope, self.now, effects)
            effects.append(parsed.discard("evicted"))
        assert carrier.hosted is not None
        self.carry_out_plain(carrier.hosted, effects, self.now)

    def _new_link(self, owner: ContactCarrier, peer: ContactCarrier) -> ContactLink:
        assert isinstance(owner, Carrier)
        assert isinstance(peer, Carrier)
        return Link(owner, peer)

    def _greet(self, link: ContactLink) -> None:
        assert isinstance(link, Link)
        carrier = link.owner
        assert isinstance(carrier, Carrier)
        arrival = Arrival(link, None, None)
        store = carrier.store
        arrival.bits = store.known
        arrival.size_bytes = HEADER_BYTES + ID_BYTES * (store.count + len(store.evicted))
        self._send(arrival)

    def _end(self, link: ContactLink) -> None:
        link.back = None  # garbage is not collected while a world runs

    def _take_arriving(self) -> None:
        arriving = self._arriving
        place = 0
        while place < len(arriving):
            self._arrive(arriving[place])
            place += 1
            self.at_once += 1
            if self.rows.size() >= BLOCK_BYTES:
                self.recorder.flush_if_full()
        if place:
            arriving.clear()

    # -- packets -----------------------------------------------------------------------------------------

    def _send(self, arrival: Arrival) -> None:
        self._row(SENT, arrival.link.owner, arrival.link.peer.id, arrival)
        self._arriving.append(arrival)

    def _send_parcel(self, link: Link, parcel: Parcel, first: bool) -> None:
        arrival = Arrival(link, parcel, None)
        arrival.first = first
        self._send(arrival)

    def _arrive(self, arrival: Arrival) -> None:
        link = arrival.link
        carrier, back = link.peer, link.back
        assert isinstance(carrier, Carrier)
        assert isinstance(back, Link)
        if self._log_packets:
            self._row(PACKET_RECEIVED, carrier, link.owner.id, arrival)
        if arrival.parcel is not None:
            self._receive(carrier, arrival.parcel, back)
            if arrival.first:
                self._has_left(link)
        elif arrival.ids is None:
            self._offer(back, arrival.bits)
        else:
            _mark_held(back, arrival.ids)
            self._note(carrier)

    def _receive(self, carrier: Carrier, parcel: Parcel, back: Link) -> None:
        """Take the new messages of a parcel into the store, hand them to the ordering and pass them on."""
        if not carrier.immediate:
            carrier.immediate = parcel.count > 1
            _mark_held(back, parcel.batch().ids)
        bits = parcel.bits ^ (parcel.bits & carrier.store.known)
        if bits:
            if bits != parcel.bits:
                parcel = parcel_of(Batch(chosen(parcel.batch().contents, bits, self._base)), bits)
            hosted, now, batch = carrier.hosted, self.now, parcel.batch()
            assert hosted is not None
            carrier.store.add(batch, bits)
            effects: list[Effect] = [batch.arrival()]
            carrier.ordering.arrive_batch(batch, now, effects)
            self.carry_out_plain(hosted, effects, now)
            self._pass_on(carrier, parcel, back)
            self._evict(carrier)
            self._set_expiry(carrier)
        self._note(carrier)

    def _pass_on(self, carrier: Carrier, parcel: Parcel, back: Link | None) -> None:
        """Send new messages to all peers but the one they came from."""
        batch = parcel.batch()
        if carrier.immediate:
            if parcel.count > 1 and not carrier.order.is_received:
                parcel = parcel_of(batch, parcel.bits)
                parcel.arrange(carrier.order)
            for link in carrier.links:
                assert isinstance(link, Link)
                if link is not back and link.synced:
                    self._send_parcel(link, parcel, False)
            return
        for link in carrier.links:
            assert isinstance(link, Link)
            if link is back:
                continue
            arrival = Arrival(link, None, batch.ids)
            arrival.size_bytes = HEADER_BYTES + ID_BYTES * len(batch.ids)
            self._send(arrival)
            if link.synced:
                if link.queue is None:
                    link.queue = carrier.new_queue()
                for parsed in batch.contents:
                    link.queue.enqueue(parsed)
                self._send_next(link)

    def _offer(self, link: Link, peer_bits: int) -> None:
        """Begin to send a peer all messages that its summary does not list."""
        carrier = link.owner
        assert isinstance(carrier, Carrier)
        self._expire(carrier)
        link.synced = True
        parcel = carrier.store.lacked_by(peer_bits, self._base, self.now)
        if carrier.immediate:
            if parcel is not None:
                parcel.arrange(carrier.order)
                self._send_parcel(link, parcel, False)
        else:
            if link.queue is None:
                link.queue = carrier.new_queue()
            link.queue.replace_queue(Batch([]) if parcel is None else parcel.batch())
            self._send_next(link)
        self._note(carrier)

    def _send_next(self, link: Link) -> None:
        """Send a peer the first message, or all that are queued if it is known that this takes no time."""
        queue, carrier = link.queue, link.owner
        assert isinstance(carrier, Carrier)
        if queue is None or queue.in_flight is not None:
            return
        held = carrier.store.ids(self.now)
        if carrier.immediate:
            due = queue.take_all(held, self.now)
            if due:
                self._send_parcel(link, parcel_of(Batch(due), self._bits_of(due)), False)
            return
        parsed = queue.take_next(held, self.now)
        if parsed is not None:
            queue.in_flight = parsed
            self._send_parcel(link, parcel_of(Batch([parsed]), self._bits_of([parsed])), True)

    def _has_left(self, link: Link) -> None:
        """The first message has left: it took no time, so all others follow at once."""
        queue, carrier = link.queue, link.owner
        assert isinstance(carrier, Carrier)
        if queue is not None and queue.in_flight is not None:
            queue.in_flight = None
            carrier.immediate = True
            self._send_next(link)
            self._note(carrier)

    def _bits_of(self, contents: list[ParsedEnvelope]) -> int:
        bits = 0
        for parsed in contents:
            bits |= 1 << (parsed.serial - self._base)
        return bits

    def _row(self, kind: int, carrier: ContactCarrier, peer: NodeId, arrival: Arrival) -> None:
        parcel = arrival.parcel
        if parcel is not None:
            size, control, entries = parcel.size_bytes, parcel.control_bytes, parcel.control_entries
            self._messages_row(kind, carrier, peer, size, control, entries, parcel.count)
        elif arrival.ids is None:
            self._summary_row(kind, carrier, peer, arrival.size_bytes)
        else:
            self._have_row(kind, carrier, peer, arrival.size_bytes)


def _mark_held(link: Link, ids: list[MessageId]) -> None:
    """Record that the peer of a link holds these messages, so that they are not sent to it."""
    if link.queue is not None:
        for id in ids:
            link.queue.lacked.pop(id, None)
