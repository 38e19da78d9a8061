"""`ContactWorld`: nodes, links, births, expiry and rows of an epidemic over contacts, for both engines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mypy_extensions import i32, i64

from precede.core.effects import RADIO, Effect, Medium
from precede.core.identity import NodeId
from precede.core.instants import Duration, Instant
from precede.eventlog.recorder import Recorder
from precede.experiments.contact_worlds.carrier import ContactCarrier, ContactLink, ExpiryTimer
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.epidemic.packets import HavePacket, MessagesPacket, SummaryPacket
from precede.protocols.layered.node import LayeredNode
from precede.protocols.layered.parsed_envelopes import NEVER, ParsedEnvelope
from precede.sim.clocks import Clock
from precede.sim.hosted_node import HostedNode
from precede.sim.networks.network import Network
from precede.sim.queue import LAST_PHASE, PHASE_BITS, Call, Event
from precede.sim.world import MakeNode, World

BATCH: Final = 2048
"""The number of events after which the world checks whether the recorder's block is full."""


class ContactWorld(World):
    """A world of contacts whose nodes are an ordering joined to a `ContactCarrier`.

    A subclass moves the messages: it says what a link and the cache of a carrier are.
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
        self._summary_code: i32 = -1  # these are known from the first packet on
        self._have_code: i32 = -1
        self._messages_code: i32 = -1

    # -- what a subclass does ----------------------------------------------------------------------------

    def _new_link(self, owner: ContactCarrier, peer: ContactCarrier) -> ContactLink:
        raise NotImplementedError

    def _greet(self, link: ContactLink) -> None:
        """Send a peer the summary of the cache, because the link has come up."""
        raise NotImplementedError

    def _end(self, link: ContactLink) -> None:
        """End a link: what is on its way is lost."""
        raise NotImplementedError

    def _take_up(self, carrier: ContactCarrier, envelope: Envelope) -> None:
        """Take a new message of a node into its cache and pass it on."""
        raise NotImplementedError

    def _take_expired(self, carrier: ContactCarrier) -> list[ParsedEnvelope]:
        """Remove and return the messages of a cache whose deadline has passed, in the order of their rows."""
        raise NotImplementedError

    def _happen(self, event: Event) -> None:
        """Carry out an event that is neither a call nor the expiry of messages."""
        raise NotImplementedError

    def _take_arriving(self) -> None:
        """Let the packets that arrive at this instant arrive, and those that follow from them."""
        raise NotImplementedError

    # -- nodes and links ---------------------------------------------------------------------------------

    def _carrier(self, node: NodeId) -> ContactCarrier:
        layered = self.nodes[node].node
        assert isinstance(layered, LayeredNode)
        carrier = layered.dissemination
        assert isinstance(carrier, ContactCarrier)
        if carrier.hosted is None:
            self._join(carrier, self.nodes[node])
        return carrier

    def _join(self, carrier: ContactCarrier, hosted: HostedNode) -> None:
        carrier.join(hosted)

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
            self._take_up(carrier, envelope)
            self._set_expiry(carrier)
            self._note(carrier)

    def take_down(self, hosted: HostedNode) -> None:
        carrier = self._carrier(hosted.id)
        super().take_down(hosted)
        for link in carrier.links:
            self._end(link)
        carrier.retire()

    def link_up(self, node: NodeId, peer: NodeId, over: Medium) -> None:
        if self.on_link is not None:
            self.on_link(node, peer, over, True)
        carrier = self._carrier(node)
        self._expire(carrier)
        link = self._new_link(carrier, self._carrier(peer))
        for other in link.peer.links:
            if other.peer is carrier:
                link.back = other
                other.back = link
        carrier.links.append(link)
        self._note(carrier)
        self._greet(link)

    def link_down(self, node: NodeId, peer: NodeId, over: Medium) -> None:
        if self.on_link is not None:
            self.on_link(node, peer, over, False)
        if not self.nodes[node].up:
            return  # `take_down` ends its links
        carrier = self._carrier(node)
        for link in carrier.links:
            if link.peer.id == peer:
                self._end(link)
                carrier.links.remove(link)
                break
        self._note(carrier)

    def _note(self, carrier: ContactCarrier) -> None:
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
        left: i64 = BATCH
        while left > 0:
            left -= 1
            if queue.place == len(queue.current):
                return True
            if queue.current[queue.place].when > limit:
                return False
            self._take_next()
        return True

    def _take_next(self) -> None:
        """Carry out the next event of the queue, which is open, and what follows from it at this instant."""
        queue = self.queue
        event = queue.current[queue.place]
        queue.place += 1
        self.now = event.when >> PHASE_BITS
        if isinstance(event, ExpiryTimer):
            if event.carrier.present:
                event.is_set = False
                self._expire(event.carrier)
                self._note(event.carrier)
        elif isinstance(event, Call):
            event.function(*event.arguments)
        else:
            self._happen(event)
        self._take_arriving()

    # -- expiry ------------------------------------------------------------------------------------------

    def _expire(self, carrier: ContactCarrier) -> None:
        """Remove the messages of a cache whose deadline has passed."""
        now = self.now
        if carrier.first_deadline() <= now:
            hosted = carrier.hosted
            assert hosted is not None
            effects: list[Effect] = []
            for parsed in self._take_expired(carrier):
                if carrier.notifies:
                    carrier.ordering.dropped(parsed.envelope, now, effects)
                effects.append(parsed.discard("expired_cached"))
            self.carry_out_plain(hosted, effects, now)
        self._set_expiry(carrier)

    def _set_expiry(self, carrier: ContactCarrier) -> None:
        timer = carrier.expiry
        if not timer.is_set:
            first = carrier.first_deadline()
            if first != NEVER:
                timer.is_set = True
                due = max(first, self.now) + carrier.sweep
                timer.when = due << PHASE_BITS | LAST_PHASE
                self.queue.insert(timer)

    # -- rows --------------------------------------------------------------------------------------------

    def _messages_row(
        self,
        kind: i32,
        carrier: ContactCarrier,
        peer: i32,
        size: i64,
        control: i64,
        entries: i64,
        messages: i32,
    ) -> None:
        """Write a row about a packet with messages."""
        if self._messages_code < 0:
            self._messages_code = self.packet_codes[MessagesPacket.kind]
        code, process = self._messages_code, carrier.process
        self.rows.sized_packet(kind, code, process, self.now, peer, RADIO, size, control, entries, messages)

    def _summary_row(self, kind: i32, carrier: ContactCarrier, peer: i32, size: i64) -> None:
        if self._summary_code < 0:
            self._summary_code = self.packet_codes[SummaryPacket.kind]
        code, process = self._summary_code, carrier.process
        self.rows.sized_packet(kind, code, process, self.now, peer, RADIO, size, size, 0, 0)

    def _have_row(self, kind: i32, carrier: ContactCarrier, peer: i32, size: i64) -> None:
        """Write a row about the notice that a node has messages."""
        if self._have_code < 0:
            self._have_code = self.packet_codes[HavePacket.kind]
        code, process = self._have_code, carrier.process
        self.rows.sized_packet(kind, code, process, self.now, peer, RADIO, size, size, 0, 0)
