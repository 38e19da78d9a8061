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

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from random import Random
from typing import Any, ClassVar, Final

from mypy_extensions import mypyc_attr

from precede.core.effects import (
    NOTHING,
    RADIO,
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
from precede.core.instants import Duration, Instant
from precede.core.messages import Packet
from precede.core.node import Context, Saved
from precede.protocols.layered.direct import own_key
from precede.protocols.layered.dissemination import Dissemination
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.epidemic.cache import Cache
from precede.protocols.layered.epidemic.options import EpidemicOptions
from precede.protocols.layered.epidemic.packets import HavePacket, MessagesPacket, SummaryPacket, packet_of
from precede.protocols.layered.ordering import Ordering
from precede.protocols.layered.own_messages import restored_envelope
from precede.protocols.layered.parsed_envelopes import NEVER, Batch, Opened, batch_of
from precede.protocols.registry import DisseminationEntry

_EXPIRE: Final = ("net", "expire")
_REFRESH: Final = ("net", "refresh")


class Link:
    """One peer in contact: what it lacks as far as we know, first to go first."""

    __slots__ = ("flying", "lacks", "line", "number", "sent_at", "synced")

    def __init__(self, number: int) -> None:
        self.number = number
        self.synced = False
        self.lacks: dict[MessageId, Opened] = {}
        self.line: list[tuple[Any, int, Opened]] = []
        self.flying: Opened | None = None
        self.sent_at: Instant = 0


@mypyc_attr(allow_interpreted_subclasses=True)
class Epidemic(Dissemination):
    """A cache in the order of reception, and the peers in contact."""

    takes_destinations: ClassVar[bool] = False

    def __init__(self, context: Context[EpidemicOptions], ordering: Ordering) -> None:
        super().__init__(ordering)
        options = context.options
        self._me = context.node
        self._incarnation = context.incarnation
        self._random: Random = context.random
        self._durable: bool = options.durable
        self._capacity: int = options.cache
        self._victim: str = options.evict
        self._sweep: Duration = options.sweep
        self._refresh: Duration = options.refresh
        self._rank = rank_of(options.order, context.random)
        self._at_random: bool = options.order == "random"
        self._cache = Cache()
        self._evicted: dict[MessageId, None] = {}
        self._undying: deque[MessageId] = deque()
        self._may_forget = ordering.knows_for_ever
        self._forgot = False
        self._links: dict[NodeId, Link] = {}
        self._early: dict[NodeId, frozenset[MessageId]] = {}
        self._instant: bool | None = None
        self._returned = False
        self._gives_notice = type(ordering).dropped is not Ordering.dropped
        self._serial = 0
        self._met = 0
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
            self._cache.add(batch_of((envelope,)))
        # a crash may have fallen between a message's entry here and its hand-over: the ordering must have all,
        # and before one of them makes room for the others
        alive = [opened for opened in self._cache if opened.deadline > now]
        unknown = [opened.envelope for opened in alive if not self.ordering.knows(opened.id)]
        self.ordering.arrive(unknown, now, effects)
        self._expire(now, effects)
        if self._refresh:
            effects.append(SetTimer(_REFRESH, now + self._refresh))
        return effects

    def spread(self, envelope: Envelope, now: Instant, effects: list[Effect]) -> None:
        id = envelope.message.id
        alive = envelope.deadline is None or envelope.deadline > now
        if alive and id not in self._cache.ids and id not in self._evicted:
            batch = batch_of((envelope,))
            self._cache.add(batch)
            if self._durable:
                effects.append(Persist(_key(id), envelope))
            self._pass_on(batch, None, self._me, now, effects)
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
        if link is None or link.flying is None or link.number != key[2]:
            return NOTHING  # also where it was given to an earlier contact with the same peer
        opened, link.flying = link.flying, None
        effects: list[Effect] = []
        if not ok:
            link.lacks[opened.id] = opened
            self._line_up(link, opened)
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
        self._met += 1
        link = self._links[peer] = Link(self._met)
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
        whole = packet.batch
        if self._instant is not True:
            self._instant = True if self._instant is None and len(whole.ids) > 1 else self._instant
            self._mark_known(whole.ids, sender)
        if whole.load is self._cache.load:
            return  # in a crowd everybody passes the same messages on to everybody
        batch = whole.without(self._cache.ids)
        if self._evicted or batch.first_end <= now:
            batch = self._acceptable(batch, now, effects)
        else:
            self._cache.load = whole.load
        if not batch.ids:
            return
        self._cache.add(batch)
        self._hand_over(batch, now, effects)
        self._pass_on(batch, packet if batch is whole else None, sender, now, effects)
        self._tidy(now, effects)

    def _acceptable(self, batch: Batch, now: Instant, effects: list[Effect]) -> Batch:
        """Neither evicted before nor past the deadline."""
        alive = []
        for place, opened in enumerate(batch.contents):
            if opened.deadline <= now:
                effects.append(Discard(opened.message, "late"))
            elif opened.id not in self._evicted and not self._was_forgotten(opened):
                alive.append(place)
        return batch.chosen(alive)

    def _was_forgotten(self, opened: Opened) -> bool:
        return self._forgot and opened.deadline == NEVER and self.ordering.knows(opened.id)

    def _hand_over(self, batch: Batch, now: Instant, effects: list[Effect]) -> None:
        """First copies; after a restart some are not, and are only carried again."""
        new = batch
        if self._returned:
            knows = self.ordering.knows
            new = batch.chosen([place for place, id in enumerate(batch.ids) if not knows(id)])
        if new.ids:
            effects.append(new.arrival())
        if self._durable:
            effects += [Persist(_key(opened.id), opened.envelope) for opened in batch.contents]
        if new.ids:
            self.ordering.arrive_batch(new, now, effects)

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
        lacked = self._cache.lacked_by(held, now)
        if self._instant:
            if lacked.ids:
                effects.append(Send(packet_of(arranged(lacked, self._ranks(lacked))), peer, RADIO))
            return
        link.line = []
        link.lacks = {opened.id: opened for opened in lacked.contents}
        if link.flying is not None:
            link.lacks.pop(link.flying.id, None)
        for opened in link.lacks.values():
            self._serial += 1
            link.line.append((self._rank(opened) if self._rank else 0, self._serial, opened))
        heapify(link.line)
        self._proceed(link, peer, now, effects)

    def _ranks(self, batch: Batch) -> list[Any] | None:
        """Smaller goes first; None is the order in which they are."""
        rank = self._rank
        if rank is None:
            return None
        if self._at_random:
            draw = self._random.random
            return [draw() for _ in batch.ids]
        return [rank(opened) for opened in batch.contents]

    def _pass_on(
        self, batch: Batch, packet: MessagesPacket | None, sender: NodeId, now: Instant, effects: list[Effect]
    ) -> None:
        """What is new here, to everybody else in contact: as it came, if all of it is new."""
        if self._instant:
            ranks = self._ranks(batch) if len(batch.ids) > 1 else None
            peers = [peer for peer, link in self._links.items() if peer != sender and link.synced]
            if peers:
                if ranks is not None or packet is None:
                    packet = packet_of(arranged(batch, ranks))
                effects += [Send(packet, peer, RADIO) for peer in peers]
            return
        have = HavePacket(tuple(batch.ids))
        for peer, link in self._links.items():
            if peer == sender:
                continue
            effects.append(Send(have, peer, RADIO))
            if link.synced:
                for opened in batch.contents:
                    link.lacks[opened.id] = opened
                    self._line_up(link, opened)
                self._proceed(link, peer, now, effects)

    def _line_up(self, link: Link, opened: Opened) -> None:
        self._serial += 1
        heappush(link.line, (self._rank(opened) if self._rank else 0, self._serial, opened))

    def _proceed(self, link: Link, peer: NodeId, now: Instant, effects: list[Effect]) -> None:
        """The next message to this peer; all of them where transfers take no time."""
        if link.flying is not None:
            return
        if self._instant:
            waiting = [opened for _, _, opened in sorted(link.line) if self._still(link, opened, now)]
            link.line, link.lacks = [], {}
            if waiting:
                effects.append(Send(packet_of(Batch(waiting)), peer, RADIO))
            return
        while link.line:
            opened = heappop(link.line)[2]
            if self._still(link, opened, now):
                del link.lacks[opened.id]
                link.flying, link.sent_at = opened, now
                effects.append(Send(packet_of(Batch([opened])), peer, RADIO, ("net", peer, link.number)))
                return

    def _still(self, link: Link, opened: Opened, now: Instant) -> bool:
        """Does the peer still lack it, do we still hold it, and does it still live?"""
        id = opened.id
        return opened.deadline > now and id in link.lacks and id in self._cache.ids

    # -- the cache --------------------------------------------------------------------------------------------

    def _tidy(self, now: Instant, effects: list[Effect]) -> None:
        """Within capacity, and woken when something has expired."""
        if self._capacity and len(self._cache) > self._capacity:
            self._evict(now, effects)
        if not self._timer_set:
            first = self._cache.first_end()
            if first != NEVER:
                self._timer_set = True
                effects.append(SetTimer(_EXPIRE, max(first, now) + self._sweep))

    def _expire(self, now: Instant, effects: list[Effect]) -> None:
        """Remove what is past its deadline, with notice to the ordering first (oppnet_discard)."""
        if self._cache.first_end() <= now:
            for opened in self._cache.ended(now):
                if opened.id in self._cache.ids:
                    self._cache.remove(opened.id)
                    self._give_up(opened, "expired_cached", now, effects)
                else:
                    self._evicted.pop(opened.id, None)
        self._tidy(now, effects)

    def _evict(self, now: Instant, effects: list[Effect]) -> None:
        """Make room. The id is remembered until the deadline, so that the message never enters again.

        Without a deadline the ids would fill the memory, and every summary. Only the last are kept, a quarter
        of the cache, so that peers do not send them; what came before the ordering knows by its counters.
        """
        while len(self._cache) > self._capacity:
            opened = self._cache.evict(self._victim, self._random)
            self._evicted[opened.id] = None
            if opened.deadline == NEVER and self._may_forget:
                self._undying.append(opened.id)
            self._give_up(opened, "evicted", now, effects)
        while len(self._undying) > max(self._capacity // 4, 1):
            del self._evicted[self._undying.popleft()]
            self._forgot = True

    def _give_up(self, opened: Opened, reason: str, now: Instant, effects: list[Effect]) -> None:
        if self._gives_notice:
            self.ordering.dropped(opened.envelope, now, effects)
        effects.append(Discard(opened.message, reason))
        if self._durable:
            effects.append(Persist(_key(opened.id), None))


def rank_of(order: str, random: Random) -> Callable[[Opened], Any] | None:
    """Smaller goes first; None is the order of one's own reception."""
    if order == "random":
        return lambda opened: random.random()
    if order == "oldest":
        return lambda opened: opened.envelope.born
    if order == "newest":
        return lambda opened: -opened.envelope.born
    if order == "per_source":
        return lambda opened: opened.id
    return None


def arranged(batch: Batch, ranks: list[Any] | None) -> Batch:
    """In the order of transfer."""
    return batch if ranks is None else batch.reordered(sorted(range(len(ranks)), key=ranks.__getitem__))


def _key(id: MessageId) -> Key:
    return ("net", id.source, id.incarnation, id.number)


DISSEMINATION: Final = DisseminationEntry(
    name="epidemic",
    title="store, carry, forward: to whoever is met, what it lacks",
    worlds=("contacts",),
    options=EpidemicOptions,
    build=Epidemic,
    packets=(SummaryPacket, HavePacket, MessagesPacket),
)
