"""`epidemic`: the dissemination of opportunistic networks: store, carry and forward (guidec2021, section III).

Every node keeps a cache. On contact both nodes send a summary of their cache, and then the messages that the
other lacks; while the contact lasts, they pass new messages on. A message enters a cache once. A message past
its deadline does not enter; one that expires in the cache is removed after the ordering was notified.

Transfers. The network decides how long a packet takes. A node tests it with a single message. If that took no
time, or if a peer sends several messages in one packet, the node sends everything in batches, one packet each.
If it took time, messages follow one by one, each after the one before has left. A contact that ends then loses
one message, and a message that the peer received meanwhile (`HavePacket`) is not sent again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final

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
from precede.core.peaks import Sizes
from precede.protocols.layered.dissemination import Dissemination
from precede.protocols.layered.envelope import Envelope
from precede.protocols.layered.epidemic.cache import Cache, EvictedIds
from precede.protocols.layered.epidemic.links import Link
from precede.protocols.layered.epidemic.options import EpidemicOptions, EvictionPolicy
from precede.protocols.layered.epidemic.packets import (
    BatchPacket,
    HavePacket,
    MessagesPacket,
    SummaryPacket,
    packet_of,
)
from precede.protocols.layered.epidemic.transfer_order import TransferOrder, arranged
from precede.protocols.layered.ordering import Ordering
from precede.protocols.layered.own_messages import own_key
from precede.protocols.layered.parsed_envelopes import NEVER, Batch, ParsedEnvelope, batch_of
from precede.protocols.layered.saved_state import saved_envelopes
from precede.protocols.registry import DisseminationEntry

_EXPIRE: Final = ("net", "expire")
_REFRESH: Final = ("net", "refresh")
_SUMMARY: Final = "summary"


@mypyc_attr(allow_interpreted_subclasses=True)
class Epidemic(Dissemination):
    """A cache of messages and the links to the peers in contact.

    `_immediate` is True if transfers take no time, False if they take time, None until the node knows. If they
    take time, `_single_packets` has packets of one message each, by its id: those in which messages came are
    sent on, so that a packet is built, and its messages are parsed, once for all nodes of a simulation.
    """

    def __init__(self, context: Context[Any], ordering: Ordering) -> None:
        super().__init__(ordering)
        options: EpidemicOptions = context.options
        self._me = context.node
        self._generator: Random = context.random
        self._durable: bool = options.durable
        self._capacity: int = options.cache
        self._most_bytes: int = options.cache_bytes
        self._eviction_policy: EvictionPolicy = options.evict
        self._sweep: Duration = options.sweep
        self._refresh: Duration = options.refresh
        self._order = TransferOrder(options.order, context.random)
        self._cache = Cache()
        self._evicted = EvictedIds(self._capacity, ordering.knows_for_ever)
        self._links: dict[NodeId, Link] = {}
        self._early_summaries: dict[NodeId, frozenset[MessageId]] = {}
        self._single_packets: dict[MessageId, MessagesPacket] = {}
        self._immediate: bool | None = None
        self._restarted = False
        self._notifies = type(ordering).dropped is not Ordering.dropped
        self._contacts = 0
        self._timer_set = False
        self._sizes = Sizes("cache", "cache_bytes", "evicted", "links")

    # -- inputs ------------------------------------------------------------------------------------------

    def start(self, now: Instant, saved: Saved) -> Effects:
        effects: list[Effect] = []
        self._restarted = bool(saved)
        for envelope in saved_envelopes(saved, "net", self.ordering.stamp_type):
            self._cache.add(batch_of((envelope,)))
        # A crash may have fallen between a message's entry into the cache and its hand-over to the ordering.
        # The ordering gets all such messages before the cache evicts any of them.
        alive = [parsed for parsed in self._cache if parsed.deadline > now]
        unknown = [
            parsed.envelope for parsed in alive if self._is_mine(parsed) and not self.ordering.knows(parsed.id)
        ]
        self.ordering.arrive(unknown, now, effects)
        self._expire(now, effects)
        if self._refresh:
            effects.append(SetTimer(_REFRESH, now + self._refresh))
        return effects

    def spread(self, envelope: Envelope, now: Instant, effects: list[Effect]) -> None:
        id = envelope.message.id
        alive = envelope.deadline is None or envelope.deadline > now
        if alive and id not in self._cache.ids and id not in self._evicted.ids:
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
                self._early_summaries[sender] = packet.ids
            else:
                self._offer(link, sender, packet.ids, now, effects)
        elif type(packet) is HavePacket:
            self._mark_held(packet.ids, sender)
        return effects

    def sent(self, key: Key, now: Instant, ok: bool) -> Effects:
        assert type(key) is tuple
        peer = int(key[1])
        link = self._links.get(peer)
        if link is None or link.number != key[2]:
            return NOTHING  # it was sent in an earlier contact with this peer
        if key[-1] == _SUMMARY:
            link.summary_queued = False
            return NOTHING
        if link.in_flight is None:
            return NOTHING
        parsed, link.in_flight = link.in_flight, None
        effects: list[Effect] = []
        if not ok:
            link.enqueue(parsed)
            return effects
        if self._immediate is None:
            self._immediate = now == link.sent_at
        self._send_next(link, peer, now, effects)
        return effects

    def timer(self, key: Key, now: Instant) -> Effects:
        effects: list[Effect] = []
        if key == _EXPIRE:
            self._timer_set = False
            self._expire(now, effects)
        elif key == _REFRESH:
            self._expire(now, effects)
            self._repeat_summary(effects)
            effects.append(SetTimer(_REFRESH, now + self._refresh))
        return effects

    def link_up(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        effects: list[Effect] = []
        self._expire(now, effects)
        self._contacts += 1
        link = self._links[peer] = Link(self._contacts, self._order)
        effects.append(Send(self._summary(), peer, RADIO))
        early_summary = self._early_summaries.pop(peer, None)
        if early_summary is not None:
            self._offer(link, peer, early_summary, now, effects)
        return effects

    def link_down(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        self._links.pop(peer, None)
        self._early_summaries.pop(peer, None)
        return NOTHING

    def sizes(self) -> Mapping[str, int]:
        return self.counted_sizes().mapping()

    def counted_sizes(self) -> Sizes:
        cache = self._cache
        return self._sizes.set(len(cache.ids), cache.payload_bytes, len(self._evicted.ids), len(self._links))

    # -- receiving messages ------------------------------------------------------------------------------

    def _receive_messages(
        self, packet: BatchPacket, sender: NodeId, now: Instant, effects: list[Effect]
    ) -> None:
        """Take the new messages of a packet into the cache, hand them to the ordering and pass them on."""
        whole = packet.batch
        if self._immediate is not True:
            self._immediate = True if self._immediate is None and len(whole.ids) > 1 else self._immediate
            self._mark_held(whole.ids, sender)
        if whole.set_token is self._cache.held_token:
            return  # among many nodes in contact each receives the same messages from every other
        batch = whole.without(self._cache.ids)
        if self._evicted.ids or batch.first_deadline <= now:
            batch = self._acceptable(batch, now, effects)
        else:
            self._cache.held_token = whole.set_token
        if not batch.ids:
            return
        self._cache.add(batch)
        if (
            self._immediate is False
            and batch is whole
            and packet.messages == 1
            and type(packet) is MessagesPacket
        ):
            self._single_packets[batch.ids[0]] = packet
        self._hand_over(batch, now, effects)
        self._pass_on(batch, packet, sender, now, effects)
        self._tidy(now, effects)

    def _acceptable(self, batch: Batch, now: Instant, effects: list[Effect]) -> Batch:
        """Return the messages that were not evicted before and not past their deadline. Discard late ones."""
        positions = []
        for position, parsed in enumerate(batch.contents):
            if parsed.deadline <= now:
                effects.append(Discard(parsed.message, "late"))
            elif parsed.id not in self._evicted.ids and not self._was_forgotten(parsed):
                positions.append(position)
        return batch.select(positions)

    def _was_forgotten(self, parsed: ParsedEnvelope) -> bool:
        """Was the message evicted so long ago that only the ordering still knows its id?"""
        return self._evicted.forgot and parsed.deadline == NEVER and self.ordering.knows(parsed.id)

    def _hand_over(self, batch: Batch, now: Instant, effects: list[Effect]) -> None:
        """Pass new messages to the ordering. Messages that it knows from before a restart are only carried."""
        new = batch
        if self._restarted:
            knows = self.ordering.knows
            new = batch.select([position for position, id in enumerate(batch.ids) if not knows(id)])
        if new.ids:
            effects.append(new.arrival())
        if self._durable:
            effects += [Persist(_key(parsed.id), parsed.envelope) for parsed in batch.contents]
        if new.ids and new.addressed:  # relays carry, destinations deliver
            new = new.select([k for k, parsed in enumerate(new.contents) if self._is_mine(parsed)])
        if new.ids:
            self.ordering.arrive_batch(new, now, effects)

    def _is_mine(self, parsed: ParsedEnvelope) -> bool:
        destinations = parsed.envelope.destinations
        return destinations is None or self._me in destinations

    def _mark_held(self, ids: Sequence[MessageId], peer: NodeId) -> None:
        """Record that a peer holds these messages, so that they are not sent to it."""
        link = self._links.get(peer)
        if link is not None and link.lacked:
            for id in ids:
                link.lacked.pop(id, None)

    # -- sending messages --------------------------------------------------------------------------------

    def _summary(self) -> Packet:
        held = self._cache.summary()
        return SummaryPacket(held.union(self._evicted.ids) if self._evicted.ids else held)

    def _repeat_summary(self, effects: list[Effect]) -> None:
        """Send each peer a summary, unless the last one is still queued: messages must get their turn too."""
        summary = self._summary()
        for peer, link in self._links.items():
            if self._immediate:
                effects.append(Send(summary, peer, RADIO))
            elif not link.summary_queued:
                link.summary_queued = True
                effects.append(Send(summary, peer, RADIO, ("net", peer, link.number, _SUMMARY)))

    def _offer(
        self, link: Link, peer: NodeId, peer_ids: frozenset[MessageId], now: Instant, effects: list[Effect]
    ) -> None:
        """Begin to send a peer all messages that its summary does not list."""
        self._expire(now, effects)
        link.synced = True
        lacked = self._cache.lacked_by(peer_ids, now)
        if self._immediate:
            if lacked.ids:
                effects.append(Send(packet_of(arranged(lacked, self._order.ranks(lacked))), peer, RADIO))
            return
        link.replace_queue(lacked)
        self._send_next(link, peer, now, effects)

    def _pass_on(
        self, batch: Batch, packet: BatchPacket | None, sender: NodeId, now: Instant, effects: list[Effect]
    ) -> None:
        """Send new messages, which came in `packet`, to all other peers; if that takes time, queue them."""
        if self._immediate:
            ranks = self._order.ranks(batch) if len(batch.ids) > 1 else None
            peers = [peer for peer, link in self._links.items() if peer != sender and link.synced]
            if peers:
                if ranks is not None or packet is None or packet.batch is not batch:
                    packet = packet_of(arranged(batch, ranks))
                effects += [Send(packet, peer, RADIO) for peer in peers]
            return
        have = HavePacket(tuple(batch.ids))
        for peer, link in self._links.items():
            if peer == sender:
                continue
            effects.append(Send(have, peer, RADIO))
            if link.synced:
                for parsed in batch.contents:
                    link.enqueue(parsed)
                self._send_next(link, peer, now, effects)

    def _send_next(self, link: Link, peer: NodeId, now: Instant, effects: list[Effect]) -> None:
        """Send a peer its next message, or all of them at once if transfers take no time."""
        if link.in_flight is not None:
            return
        if self._immediate:
            due = link.take_all(self._cache.ids, now)
            if due:
                effects.append(Send(packet_of(Batch(due)), peer, RADIO))
            return
        parsed = link.take_next(self._cache.ids, now)
        if parsed is not None:
            link.in_flight, link.sent_at = parsed, now
            packet = self._single_packets.get(parsed.id)
            if packet is None:
                packet = self._single_packets[parsed.id] = packet_of(Batch([parsed]))
            effects.append(Send(packet, peer, RADIO, ("net", peer, link.number)))

    # -- the cache ---------------------------------------------------------------------------------------

    def _tidy(self, now: Instant, effects: list[Effect]) -> None:
        if self._is_over_full():
            self._evict(now, effects)
        if not self._timer_set:
            first_deadline = self._cache.first_deadline()
            if first_deadline != NEVER:
                self._timer_set = True
                effects.append(SetTimer(_EXPIRE, max(first_deadline, now) + self._sweep))

    def _expire(self, now: Instant, effects: list[Effect]) -> None:
        """Remove messages past their deadline, and notify the ordering of them (the paper's oppnet_discard)."""
        if self._cache.first_deadline() <= now:
            expired, held = self._cache.expired(now), self._cache.ids
            if self._evicted.ids:
                for parsed in expired:
                    if parsed.id not in held:
                        self._evicted.ids.pop(parsed.id, None)
            dropped = [parsed for parsed in expired if parsed.id in held]
            self._cache.remove_all(dropped)
            if self._notifies or self._durable or self._single_packets:
                for parsed in dropped:
                    self._drop(parsed, "expired_cached", now, effects)
            else:
                effects += [parsed.discard("expired_cached") for parsed in dropped]
        self._tidy(now, effects)

    def _evict(self, now: Instant, effects: list[Effect]) -> None:
        """Remove messages until the cache is within its capacity, and remember their ids."""
        while self._is_over_full():
            self._evict_one(now, effects)
        self._evicted.trim()

    def _is_over_full(self) -> bool:
        return 0 < self._capacity < len(self._cache.ids) or 0 < self._most_bytes < self._cache.payload_bytes

    def _evict_one(self, now: Instant, effects: list[Effect]) -> None:
        parsed = self._cache.evict(self._eviction_policy, self._generator)
        self._evicted.add(parsed)
        self._drop(parsed, "evicted", now, effects)

    def _drop(self, parsed: ParsedEnvelope, reason: str, now: Instant, effects: list[Effect]) -> None:
        """Notify the ordering of a removed message, log it as discarded and erase it from the saved state."""
        if self._notifies and self._is_mine(parsed):
            self.ordering.dropped(parsed.envelope, now, effects)
        effects.append(parsed.discard(reason))
        if self._single_packets:
            self._single_packets.pop(parsed.id, None)
        if self._durable:
            effects.append(Persist(_key(parsed.id), None))


def _key(id: MessageId) -> Key:
    return ("net", id.source, id.incarnation, id.number)


DISSEMINATION: Final = DisseminationEntry(
    name="epidemic",
    title="store, carry and forward: peers in contact exchange the messages they lack",
    worlds=("contacts",),
    options=EpidemicOptions,
    build=Epidemic,
    packets=(SummaryPacket, HavePacket, MessagesPacket),
)
