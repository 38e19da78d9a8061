"""`epidemic`: store, carry and forward (guidec2021, section III: what its opportunistic layer must do).

Every node keeps a cache. On contact both sides say what they hold (a summary) and send what the other lacks;
while the contact lasts, what is new is passed on. A message enters a cache once; what is past its deadline is
not taken, and leaves with notice to the ordering before it is removed.

Transfers. Time per packet belongs to the network. A node tries the network with one message. If that took no
time, or when a batch comes in, everything goes in batches, one packet each. If it took time, messages follow
one by one, each when the one before has left: a cut loses one message, and what a peer got meanwhile
(`HavePacket`) is not sent again.

The paper leaves the order of transfer open. Sending in the order of one's own reception keeps what a peer
receives causally closed, so that almost nothing waits: our default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from random import Random
from typing import Any, Final

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
from precede.core.instants import SECOND, Duration, Instant
from precede.core.messages import Packet
from precede.core.node import Context, Saved
from precede.protocols.direct import own_key
from precede.protocols.epidemic_cache import Cache
from precede.protocols.epidemic_packets import HavePacket, MessagesPacket, SummaryPacket, packed
from precede.protocols.layers import Dissemination, Envelope, Ordering
from precede.protocols.registry import DisseminationEntry, Option
from precede.protocols.sequences import restored_envelope

try:
    from mypy_extensions import mypyc_attr
except ImportError:
    from precede.core.compiling import mypyc_attr

ORDERS: Final = ("received", "random", "oldest", "newest", "per_source")
VICTIMS: Final = ("first", "random", "deadline")

_EXPIRE: Final = ("net", "expire")
_REFRESH: Final = ("net", "refresh")


class Link:
    """One peer in contact: what it lacks as far as we know, first to go first."""

    __slots__ = ("flying", "lacks", "line", "sent_at", "synced")

    def __init__(self) -> None:
        self.synced = False
        self.lacks: dict[MessageId, Envelope] = {}
        self.line: list[tuple[Any, int, Envelope]] = []
        self.flying: Envelope | None = None
        self.sent_at: Instant = 0


@mypyc_attr(allow_interpreted_subclasses=True)
class Epidemic(Dissemination):
    """A cache in the order of reception, and the peers in contact."""

    def __init__(self, context: Context, ordering: Ordering) -> None:
        super().__init__(ordering)
        options = context.options
        self._me = context.node
        self._incarnation = context.incarnation
        self._random: Random = context.random
        self._durable: bool = options["durable"]
        self._capacity: int = options["cache"]
        self._victim: str = options["evict"]
        self._sweep: Duration = options["sweep"]
        self._refresh: Duration = options["refresh"]
        self._rank = rank_of(options["order"], context.random)
        self._cache = Cache()
        self._evicted: dict[MessageId, None] = {}
        self._links: dict[NodeId, Link] = {}
        self._early: dict[NodeId, frozenset[MessageId]] = {}
        self._instant: bool | None = None
        self._returned = False
        self._gives_notice = type(ordering).dropped is not Ordering.dropped
        self._serial = 0
        self._timer_set = False

    # -- inputs ------------------------------------------------------------------------------------------

    def start(self, now: Instant, saved: Saved) -> Effects:
        effects: list[Effect] = []
        self._returned = bool(saved)
        found = [
            restored_envelope(value, self.ordering.stamp_type)
            for key, value in saved.items()
            if type(key) is tuple and key[0] == "net"
        ]
        for envelope in sorted(found, key=lambda envelope: envelope.message.id):
            self._cache.add((envelope.message.id,), (envelope,), envelope.deadline)
        self._expire(now, effects)
        # a crash may have fallen between a message's entry here and its hand-over: the ordering must have all
        unknown = [envelope for envelope in self._cache if not self.ordering.knows(envelope.message.id)]
        self.ordering.arrive(unknown, now, effects)
        if self._refresh:
            effects.append(SetTimer(_REFRESH, now + self._refresh))
        return effects

    def spread(self, envelope: Envelope, now: Instant, effects: list[Effect]) -> None:
        id = envelope.message.id
        alive = envelope.deadline is None or envelope.deadline > now
        if alive and id not in self._cache.ids and id not in self._evicted:
            self._cache.add((id,), (envelope,), envelope.deadline)
            if self._durable:
                effects.append(Persist(_key(id), envelope))
            self._pass_on(packed((envelope,)), self._me, now, effects)
            self._tidy(now, effects)
        if self._durable:
            effects.append(Persist(own_key(id), None))

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        effects: list[Effect] = []
        if type(packet) is MessagesPacket:
            self._receive_messages(packet, sender, now, effects)
        elif type(packet) is SummaryPacket:
            link = self._links.get(sender)
            if link is None:
                self._early[sender] = packet.ids
            else:
                self._offer(link, sender, packet.ids, now, effects)
        elif type(packet) is HavePacket:
            self._mark_known(packet.ids, sender)
        return effects

    def sent(self, key: Key, now: Instant, ok: bool) -> Effects:
        assert type(key) is tuple
        peer = int(key[1])
        link = self._links.get(peer)
        if link is None or link.flying is None:
            return NOTHING
        envelope, link.flying = link.flying, None
        effects: list[Effect] = []
        if not ok:
            link.lacks[envelope.message.id] = envelope
            self._line_up(link, envelope)
            return effects
        if self._instant is None:
            self._instant = now == link.sent_at
        self._proceed(link, peer, now, effects)
        return effects

    def timer(self, key: Key, now: Instant) -> Effects:
        effects: list[Effect] = []
        if key == _EXPIRE:
            self._timer_set = False
            self._expire(now, effects)
        elif key == _REFRESH:
            self._expire(now, effects)
            summary = self._summary()
            effects += [Send(summary, peer, RADIO) for peer in self._links]
            effects.append(SetTimer(_REFRESH, now + self._refresh))
        return effects

    def link_up(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        effects: list[Effect] = []
        self._expire(now, effects)
        link = self._links[peer] = Link()
        effects.append(Send(self._summary(), peer, RADIO))
        early = self._early.pop(peer, None)
        if early is not None:
            self._offer(link, peer, early, now, effects)
        return effects

    def link_down(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        self._links.pop(peer, None)
        self._early.pop(peer, None)
        return NOTHING

    def sizes(self) -> Mapping[str, int]:
        return {"cache": len(self._cache), "evicted": len(self._evicted), "links": len(self._links)}

    # -- messages come in --------------------------------------------------------------------------------

    def _receive_messages(
        self, packet: MessagesPacket, sender: NodeId, now: Instant, effects: list[Effect]
    ) -> None:
        """Once-only entry; the deadline is checked on arrival."""
        held, envelopes = self._cache.ids, packet.envelopes
        if self._instant is not True:
            self._instant = True if self._instant is None and len(envelopes) > 1 else self._instant
            self._mark_known(packet.ids, sender)
        if not held.keys().isdisjoint(packet.ids):
            envelopes = tuple([envelope for envelope in envelopes if envelope.message.id not in held])
        if self._evicted or (packet.first_end is not None and packet.first_end <= now):
            envelopes = self._acceptable(envelopes, now, effects)
        if not envelopes:
            return
        if len(envelopes) < len(packet.envelopes):
            packet = packed(envelopes)
        self._cache.add(packet.ids, envelopes, packet.first_end)
        self._hand_over(packet, now, effects)
        self._pass_on(packet, sender, now, effects)
        self._tidy(now, effects)

    def _acceptable(
        self, envelopes: Sequence[Envelope], now: Instant, effects: list[Effect]
    ) -> tuple[Envelope, ...]:
        """Neither evicted before nor past the deadline."""
        alive = []
        for envelope in envelopes:
            if envelope.deadline is not None and envelope.deadline <= now:
                effects.append(Discard(envelope.message, "late"))
            elif envelope.message.id not in self._evicted:
                alive.append(envelope)
        return tuple(alive)

    def _hand_over(self, packet: MessagesPacket, now: Instant, effects: list[Effect]) -> None:
        """First copies; after a restart some are not, and are only carried again."""
        new, arrival = packet.envelopes, packet.arrival
        if self._returned:
            knows = self.ordering.knows
            new = tuple([envelope for envelope in new if not knows(envelope.message.id)])
            arrival = Arrive(tuple([envelope.message for envelope in new]))
        if new:
            effects.append(arrival)
        if self._durable:
            effects += [Persist(_key(envelope.message.id), envelope) for envelope in packet.envelopes]
        if new:
            self.ordering.arrive(new, now, effects)

    def _mark_known(self, ids: Sequence[MessageId], sender: NodeId) -> None:
        link = self._links.get(sender)
        if link is not None and link.lacks:
            for id in ids:
                link.lacks.pop(id, None)

    # -- messages go out -----------------------------------------------------------------------------------

    def _summary(self) -> SummaryPacket:
        held = self._cache.summary()
        return SummaryPacket(held.union(self._evicted) if self._evicted else held)

    def _offer(
        self, link: Link, peer: NodeId, held: frozenset[MessageId], now: Instant, effects: list[Effect]
    ) -> None:
        """The peer has said what it holds: it lacks the rest."""
        self._expire(now, effects)
        link.synced = True
        lacked = self._cache.lacked_by(held)
        if self._instant:
            if lacked:
                effects.append(Send(packed(self._arranged(lacked)), peer, RADIO))
            return
        link.line = []
        link.lacks = {envelope.message.id: envelope for envelope in lacked}
        if link.flying is not None:
            link.lacks.pop(link.flying.message.id, None)
        for envelope in link.lacks.values():
            self._serial += 1
            link.line.append((self._rank(envelope) if self._rank else 0, self._serial, envelope))
        heapify(link.line)
        self._proceed(link, peer, now, effects)

    def _arranged(self, envelopes: list[Envelope]) -> list[Envelope]:
        return envelopes if self._rank is None else sorted(envelopes, key=self._rank)

    def _pass_on(self, packet: MessagesPacket, sender: NodeId, now: Instant, effects: list[Effect]) -> None:
        """What is new here, to everybody else in contact."""
        if self._instant:
            if self._rank is not None and len(packet.envelopes) > 1:
                packet = packed(self._arranged(list(packet.envelopes)))
            for peer, link in self._links.items():
                if peer != sender and link.synced:
                    effects.append(Send(packet, peer, RADIO))
            return
        have = HavePacket(tuple([envelope.message.id for envelope in packet.envelopes]))
        for peer, link in self._links.items():
            if peer == sender:
                continue
            effects.append(Send(have, peer, RADIO))
            if link.synced:
                for envelope in packet.envelopes:
                    link.lacks[envelope.message.id] = envelope
                    self._line_up(link, envelope)
                self._proceed(link, peer, now, effects)

    def _line_up(self, link: Link, envelope: Envelope) -> None:
        self._serial += 1
        heappush(link.line, (self._rank(envelope) if self._rank else 0, self._serial, envelope))

    def _proceed(self, link: Link, peer: NodeId, now: Instant, effects: list[Effect]) -> None:
        """The next message to this peer; all of them where transfers take no time."""
        if link.flying is not None:
            return
        if self._instant:
            waiting = [envelope for _, _, envelope in sorted(link.line) if self._still(link, envelope, now)]
            link.line, link.lacks = [], {}
            if waiting:
                effects.append(Send(packed(waiting), peer, RADIO))
            return
        while link.line:
            envelope = heappop(link.line)[2]
            if self._still(link, envelope, now):
                del link.lacks[envelope.message.id]
                link.flying, link.sent_at = envelope, now
                effects.append(Send(packed((envelope,)), peer, RADIO, ("net", peer)))
                return

    def _still(self, link: Link, envelope: Envelope, now: Instant) -> bool:
        """Does the peer still lack it, do we still hold it, and does it still live?"""
        id = envelope.message.id
        alive = envelope.deadline is None or envelope.deadline > now
        return alive and id in link.lacks and id in self._cache.ids

    # -- the cache --------------------------------------------------------------------------------------------

    def _tidy(self, now: Instant, effects: list[Effect]) -> None:
        """Within capacity, and woken when something has expired."""
        if self._capacity and len(self._cache) > self._capacity:
            self._evict(now, effects)
        if not self._timer_set:
            first = self._cache.first_end()
            if first is not None:
                self._timer_set = True
                effects.append(SetTimer(_EXPIRE, max(first, now) + self._sweep))

    def _expire(self, now: Instant, effects: list[Effect]) -> None:
        """Remove what is past its deadline, with notice to the ordering first (oppnet_discard)."""
        first = self._cache.first_end()
        if first is not None and first <= now:
            for envelope in self._cache.ended(now):
                if envelope.message.id in self._cache.ids:
                    self._remove(envelope, "expired_cached", now, effects)
                else:
                    self._evicted.pop(envelope.message.id, None)
        self._tidy(now, effects)

    def _evict(self, now: Instant, effects: list[Effect]) -> None:
        """Make room. The id is remembered until the deadline, so that the message never enters again."""
        while len(self._cache) > self._capacity:
            envelope = self._cache.victim(self._victim, self._random)
            self._evicted[envelope.message.id] = None
            self._remove(envelope, "evicted", now, effects)

    def _remove(self, envelope: Envelope, reason: str, now: Instant, effects: list[Effect]) -> None:
        if self._gives_notice:
            self.ordering.dropped(envelope, now, effects)
        id = envelope.message.id
        self._cache.remove(id)
        effects.append(Discard(envelope.message, reason))
        if self._durable:
            effects.append(Persist(_key(id), None))


def rank_of(order: str, random: Random) -> Callable[[Envelope], Any] | None:
    """Smaller goes first; None is the order of one's own reception."""
    if order == "random":
        return lambda envelope: random.random()
    if order == "oldest":
        return lambda envelope: envelope.born
    if order == "newest":
        return lambda envelope: -envelope.born
    if order == "per_source":
        return lambda envelope: envelope.message.id
    return None


def _key(id: MessageId) -> Key:
    return ("net", id.source, id.incarnation, id.number)


DISSEMINATION: Final = DisseminationEntry(
    name="epidemic",
    title="store, carry, forward: to whoever is met, what it lacks",
    worlds=("contacts",),
    options={
        "order": Option("choice", "received", "which messages of a transfer go first", ORDERS),
        "cache": Option("int", 0, "most messages carried; 0: unlimited"),
        "evict": Option("choice", "first", "who leaves a full cache: first in, random, next deadline", VICTIMS),
        "sweep": Option("duration", 10 * SECOND, "expired messages may stay in the cache this much longer"),
        "refresh": Option("duration", 0, "say again what is held this often; 0s: on contact only (no loss)"),
        "durable": Option("bool", False, "persist what a restart needs"),
    },
    build=Epidemic,
    packets=(SummaryPacket, HavePacket, MessagesPacket),
)
