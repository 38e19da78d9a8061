"""`Router`: the part that routing protocols share. A protocol of your own overrides `gives` and little else.

On contact both nodes send a `HelloPacket`: the ids that they hold or have received, and what the protocol adds
(`hello`). Then each sends the messages that the other lacks and that `gives` allows, by `rank`, one at a time.
A `GotPacket` confirms that the receiver has stored the message; only then the sender changes its copy (`gave`).
So a crash or a contact that ends loses no copy.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from mypy_extensions import mypyc_attr

from precede.core.effects import (
    NOTHING,
    RADIO,
    Arrive,
    Discard,
    Effect,
    Effects,
    Key,
    Medium,
    Persist,
    Send,
    SetTimer,
)
from precede.core.identity import MessageId, NodeId
from precede.core.instants import Instant
from precede.core.messages import Packet
from precede.core.node import Context, Saved
from precede.protocols.layered.dissemination import Dissemination
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.ordering import Ordering
from precede.protocols.layered.own_messages import own_key
from precede.protocols.layered.saved_state import restored_envelope, saved_under
from precede.protocols.options import Durable, option
from precede.protocols.routing.copies import (
    MOST_HOPS,
    Contact,
    Copy,
    GotPacket,
    HelloPacket,
    RoutedPacket,
    without_payload,
)

_EXPIRE: Final = ("net", "expire")
MOST_RECEIVED: Final = 1 << 15
"""How many ids of messages that it no longer carries a node remembers: so many fit into a hello."""


class RoutingOptions(Durable, frozen=True, kw_only=True):
    """The options that every routing protocol has."""

    buffer: Annotated[int, option("bytes of messages that a node carries for others; 0: unlimited")] = 0
    cache: Annotated[int, option("how many messages a node carries for others; 0: unlimited")] = 0


@mypyc_attr(allow_interpreted_subclasses=True)
class Router(Dissemination):
    """Stores messages, carries them, and gives copies to nodes in contact."""

    initial_copies: int = 1

    def __init__(self, context: Context[Any], ordering: Ordering) -> None:
        super().__init__(ordering)
        self.me = context.node
        self.members = tuple(context.members)
        self._member_set = frozenset(context.members)
        self.contacts: dict[NodeId, Contact] = {}
        self.held: dict[MessageId, Copy] = {}
        self._received: dict[MessageId, Envelope | None] = {}
        """Every id that came or was spread, until its deadline. None for a message without a deadline."""
        self._early_hellos: dict[NodeId, HelloPacket] = {}
        self._durable: bool = context.options.durable
        self._buffer: int = context.options.buffer
        self._cache: int = context.options.cache
        self._bytes = 0
        self._number = 0
        self._expiry: Instant | None = None

    # -- what a protocol decides -------------------------------------------------------------------------

    def gives(self, copy: Copy, peer: NodeId) -> bool:
        """May a node in contact, which lacks the message, get a copy? It may always if it is a destination."""
        return copy.is_for(peer)

    def carries(self, copy: Copy) -> bool:
        """Should this node carry a message of another node that it received? It always carries its own."""
        return True

    def copies_given(self, copy: Copy) -> int:
        """Return how many of this node's copies a peer gets when it takes the message."""
        return 1

    def gave(self, copy: Copy, peer: NodeId) -> bool:
        """Update a copy after a peer has taken it. Return False to carry the message no longer."""
        return True

    def evicts(self, copy: Copy) -> Any:
        """Return the rank of a copy when the buffer is full. Lower ranks go first, then the oldest copies."""
        return 0

    def rank(self, copy: Copy, peer: NodeId) -> Any:
        """Return the rank of a copy. Lower ranks go first; messages for the peer go before all others."""
        return copy.envelope.born

    def hello(self, now: Instant) -> dict[NodeId, dict[NodeId, float]]:
        """Return what this node tells a peer: for some nodes, the likelihoods with which each meets others."""
        return {}

    def met(self, peer: NodeId, hello: HelloPacket, now: Instant, effects: list[Effect]) -> None:
        """Called when a contact has begun and the hello of the peer has arrived."""

    def is_member(self, node: NodeId) -> bool:
        return node in self._member_set

    # -- inputs ------------------------------------------------------------------------------------------

    def start(self, now: Instant, saved: Saved) -> Effects:
        effects: list[Effect] = []
        for key, value in saved_under(saved, "seen"):
            id = MessageId(*map(int, key[1:]))
            self._received[id] = restored_envelope(value[0], self.ordering.stamp_type) if value else None
        copies = [
            Copy(restored_envelope(value[0], self.ordering.stamp_type), int(value[1]), int(value[2]))
            for _, value in saved_under(saved, "copy")
        ]
        for copy in sorted(copies, key=lambda copy: copy.id):
            self.held[copy.id] = copy
            self._bytes += copy.size_bytes
            self._remember(copy.envelope, now, effects)
            # a crash may have fallen between the store and the ordering
            if copy.is_for(self.me) and not self.ordering.knows(copy.id) and _is_alive(copy, now):
                self.ordering.arrive((copy.envelope,), now, effects)
        self._expire(now, effects)
        return effects

    def spread(self, envelope: Envelope, now: Instant, effects: list[Effect]) -> None:
        id = envelope.message.id
        if id not in self._received and (envelope.deadline is None or envelope.deadline > now):
            self._store(Copy(envelope, self.initial_copies, 0), effects)
            self._remember(envelope, now, effects)
            self._make_room(now, effects)
            self._offer_all(now, effects)
        if self._durable:
            effects.append(Persist(own_key(id), None))

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        effects: list[Effect] = []
        contact = self.contacts.get(sender)
        if type(packet) is RoutedPacket:
            self._receive_message(packet, sender, now, effects)
        elif type(packet) is HelloPacket:
            if contact is None:
                self._early_hellos[sender] = packet
            else:
                self._hear(contact, sender, packet, now, effects)
        elif type(packet) is GotPacket and contact is not None:
            self._confirm(contact, sender, packet, now, effects)
        return effects

    def link_up(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        effects: list[Effect] = []
        self._expire(now, effects)
        self._number += 1
        contact = self.contacts[peer] = Contact(self._number)
        ids = frozenset(self._received)
        effects.append(Send(HelloPacket(ids, self.hello(now), self.delivered()), peer, RADIO))
        early = self._early_hellos.pop(peer, None)
        if early is not None:
            self._hear(contact, peer, early, now, effects)
        return effects

    def link_down(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        self.contacts.pop(peer, None)
        self._early_hellos.pop(peer, None)
        return NOTHING

    def sent(self, key: Key, now: Instant, ok: bool) -> Effects:
        assert type(key) is tuple
        peer = int(key[1])
        contact = self.contacts.get(peer)
        if contact is None or contact.number != key[2] or contact.in_flight is None:
            return NOTHING  # sent in an earlier contact with this peer
        effects: list[Effect] = []
        if not ok:
            contact.in_flight = None
            self._offer_all(now, effects)
        return effects

    def timer(self, key: Key, now: Instant) -> Effects:
        effects: list[Effect] = []
        if key == _EXPIRE:
            self._expiry = None
            self._expire(now, effects)
        return effects

    def delivered(self) -> frozenset[MessageId]:
        """Return the messages that this node knows to have reached their only destination; none by default."""
        return frozenset()

    def sizes(self) -> Mapping[str, int]:
        return {"buffer": len(self.held), "buffer_bytes": self._bytes, "links": len(self.contacts)}

    # -- transfers ---------------------------------------------------------------------------------------

    def _hear(
        self, contact: Contact, peer: NodeId, hello: HelloPacket, now: Instant, effects: list[Effect]
    ) -> None:
        contact.learn(hello.ids, self.held)
        self.met(peer, hello, now, effects)
        self._offer(peer, now, effects)

    def _confirm(
        self, contact: Contact, peer: NodeId, got: GotPacket, now: Instant, effects: list[Effect]
    ) -> None:
        """Record that a peer has a message. If it took the copy sent from here, update or remove that copy."""
        contact.note(got.id)
        copy = contact.in_flight
        if copy is None or copy.id != got.id:
            return
        contact.in_flight = None
        if got.taken and copy.id in self.held:
            if self.gave(copy, peer):
                self._persist(copy, effects)
            else:
                self.remove(copy.id, "handed_over", now, effects)
        self._offer_all(now, effects)

    def _offer(self, peer: NodeId, now: Instant, effects: list[Effect]) -> None:
        """Send a peer the next message that it lacks and that it may get."""
        contact = self.contacts.get(peer)
        if contact is None or contact.in_flight is not None or not contact.lacks:
            return
        on_the_way = [other.in_flight for other in self.contacts.values()]
        candidates = [
            copy
            for copy in contact.lacks.values()
            if copy not in on_the_way and _is_alive(copy, now) and (copy.is_for(peer) or self.gives(copy, peer))
        ]
        if candidates:
            copy = min(candidates, key=lambda copy: (not copy.is_for(peer), self.rank(copy, peer), copy.id))
            contact.in_flight = copy
            packet = RoutedPacket(copy.envelope, self.copies_given(copy), min(copy.hops + 1, MOST_HOPS))
            effects.append(Send(packet, peer, RADIO, ("net", peer, contact.number)))

    def _offer_all(self, now: Instant, effects: list[Effect]) -> None:
        for peer in self.contacts:
            self._offer(peer, now, effects)

    def _receive_message(
        self, packet: RoutedPacket, sender: NodeId, now: Instant, effects: list[Effect]
    ) -> None:
        copy = Copy(packet.envelope, max(packet.copies, 1), packet.hops)
        contact = self.contacts.get(sender)
        if contact is not None:
            contact.note(copy.id)
        if not _is_alive(copy, now):
            effects.append(Discard(copy.envelope.message, "late"))
        is_new = _is_alive(copy, now) and copy.id not in self._received and not self.ordering.knows(copy.id)
        if is_new:
            effects.append(Arrive((copy.envelope.message,)))
            self._store(copy, effects)
            if copy.is_for(self.me):
                self.ordering.arrive((copy.envelope,), now, effects)
            self._remember(copy.envelope, now, effects)
            self._make_room(now, effects)
        effects.append(Send(GotPacket(copy.id, is_new), sender, RADIO))
        if is_new:
            effects += [
                Send(GotPacket(copy.id, False), peer, RADIO) for peer in self.contacts if peer != sender
            ]
            self._offer_all(now, effects)

    # -- the store ---------------------------------------------------------------------------------------

    def _store(self, copy: Copy, effects: list[Effect]) -> None:
        """Carry and persist an own message, or one that `carries` allows; set the timer of its deadline.

        The only destination of a message does not carry it: nobody else needs it.
        """
        deadline, to = copy.envelope.deadline, copy.envelope.destinations
        if copy.id.source == self.me or (to != (self.me,) and self.carries(copy)):
            self.held[copy.id] = copy
            for contact in self.contacts.values():
                contact.offer(copy)
            self._bytes += copy.size_bytes
            self._persist(copy, effects)
        if deadline is not None and (self._expiry is None or deadline < self._expiry):
            self._expiry = deadline
            effects.append(SetTimer(_EXPIRE, deadline))

    def _remember(self, envelope: Envelope, now: Instant, effects: list[Effect]) -> None:
        """Record and persist that a message was received. If a crash comes first, its sender sends it again."""
        id, deadline = envelope.message.id, envelope.deadline
        kept = envelope if id in self.held else without_payload(envelope)
        self._received[id] = None if deadline is None else kept
        if self._durable:
            effects.append(Persist(_key("seen", id), [] if deadline is None else [kept]))
        if len(self._received) - len(self.held) > MOST_RECEIVED:
            self._forget(now, effects)

    def _forget(self, now: Instant, effects: list[Effect]) -> None:
        """Forget the oldest ids of messages that are not carried; the ordering knows what it has delivered."""
        gone = [id for id in self._received if id not in self.held][: MOST_RECEIVED // 8]
        for id in gone:
            self._drop(id, now, effects)

    def _drop(self, id: MessageId, now: Instant, effects: list[Effect]) -> None:
        """Forget the id of a message, after the ordering was told that it will not come again."""
        envelope = self._received.pop(id)
        if envelope is not None and Copy(envelope, 1, 0).is_for(self.me):
            self.ordering.dropped(envelope, now, effects)
        if self._durable:
            effects.append(Persist(_key("seen", id), None))

    def _make_room(self, now: Instant, effects: list[Effect]) -> None:
        """Evict copies of other nodes' messages, by `evicts`, until the buffer is within its bounds."""
        if not self._is_full():
            return
        of_others = [copy for copy in self.held.values() if copy.id.source != self.me]
        for copy in sorted(of_others, key=self.evicts):
            if not self._is_full():
                return
            self.remove(copy.id, "evicted", now, effects)

    def _is_full(self) -> bool:
        return 0 < self._buffer < self._bytes or 0 < self._cache < len(self.held)

    def _persist(self, copy: Copy, effects: list[Effect]) -> None:
        if self._durable:
            effects.append(Persist(_key("copy", copy.id), [copy.envelope, copy.copies, copy.hops]))

    def remove(self, id: MessageId, reason: str, now: Instant, effects: list[Effect]) -> None:
        """Stop carrying a message: erase its copy, and log it as discarded for this reason."""
        copy = self.held.pop(id)
        for contact in self.contacts.values():
            contact.lacks.pop(id, None)
        self._bytes -= copy.size_bytes
        if self._received.get(id) is not None:
            self._received[id] = without_payload(copy.envelope)
        if reason == "evicted" and copy.is_for(self.me):
            self.ordering.dropped(copy.envelope, now, effects)
        effects.append(Discard(copy.envelope.message, reason))
        if self._durable:
            effects.append(Persist(_key("copy", id), None))

    def _expire(self, now: Instant, effects: list[Effect]) -> None:
        """Remove messages past their deadline, notify the ordering, and forget their ids."""
        if self._expiry is not None and now < self._expiry:
            return
        self._expiry = None
        deadlines = []
        for id, envelope in list(self._received.items()):
            if envelope is None or envelope.deadline is None:
                continue
            if envelope.deadline > now:
                deadlines.append(envelope.deadline)
                continue
            del self._received[id]
            if Copy(envelope, 1, 0).is_for(self.me):
                self.ordering.dropped(envelope, now, effects)
            if id in self.held:
                self.remove(id, "expired_cached", now, effects)
            if self._durable:
                effects.append(Persist(_key("seen", id), None))
        if deadlines:
            self._expiry = min(deadlines)
            effects.append(SetTimer(_EXPIRE, self._expiry))


def _is_alive(copy: Copy, now: Instant) -> bool:
    return copy.envelope.deadline is None or copy.envelope.deadline > now


def _key(kind: str, id: MessageId) -> Key:
    return (kind, id.source, id.incarnation, id.number)
