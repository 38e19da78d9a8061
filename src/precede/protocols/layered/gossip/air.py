"""`gossip` on a medium where all neighbours hear a transmission, or where each gets a datagram of its own.

Data: a message is transmitted once. A node that receives a first copy relays it after a random time, and only
if it has a neighbour that no transmitter it heard reaches (`coverage`). Digests: a node announces what it holds
soon after a change and then ever more rarely (`announcements`), unless a neighbour has announced the same. A
digest has the hash of everything and the ranges of the streams that changed lately; it has all streams after a
new link or if the hashes still differ. Repair: a node asks one neighbour for what it lacks (`wants`); a few
messages are answered to all neighbours, many to the one that asked. Without a broadcast medium (`unicast`)
requests and answers go to one neighbour.

Two nodes may differ for good, if one has evicted what the other holds. Then a difference of hashes no longer
hastens digests.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from mypy_extensions import mypyc_attr

from precede.core.effects import NOTHING, RADIO, Effect, Effects, Key, Medium, Send, SetTimer
from precede.core.identity import NEIGHBOURS, MessageId, NodeId
from precede.core.instants import MILLISECOND, SECOND, Instant
from precede.core.messages import Packet
from precede.core.node import Context, Saved
from precede.protocols.layered.epidemic.node import Epidemic
from precede.protocols.layered.epidemic.packets import BatchPacket
from precede.protocols.layered.epidemic.transfer_order import arranged
from precede.protocols.layered.gossip.announcements import DIGEST, Announcements
from precede.protocols.layered.gossip.coverage import Coverage
from precede.protocols.layered.gossip.holdings import Holdings
from precede.protocols.layered.gossip.options import GossipOptions
from precede.protocols.layered.gossip.packets import (
    FRAME_BYTES,
    DataPacket,
    DigestPacket,
    WantPacket,
    data_packet,
)
from precede.protocols.layered.gossip.ranges import are_ranges
from precede.protocols.layered.gossip.wants import ASK, MOST_MESSAGES, MOST_RANGES, Wants
from precede.protocols.layered.ordering import Ordering
from precede.protocols.layered.parsed_envelopes import Batch, ParsedEnvelope

RELAY: Final[Key] = ("net", "relay")

_FEW: Final = 8
_LARGE_PACKET_BYTES: Final = 16_000
_SAME_ANSWER_WITHIN: Final = 30 * MILLISECOND
_VAIN_COMPARISONS: Final = 4
_MOST_PEERS: Final = 1_024


@mypyc_attr(allow_interpreted_subclasses=True)
class Gossip(Epidemic):
    """Carries messages in the cache of `Epidemic`, and spreads them by transmissions, digests and requests.

    `_mismatches`: digests with another hash since the last full digest of this node. `_compared`: for each
    neighbour the last pair of hashes that differed, and how often. `_transmitted`: when a message was
    transmitted to all for the last time, the oldest first.
    """

    draining: ClassVar[tuple[str, ...]] = ("relays",)

    def __init__(self, context: Context[GossipOptions], ordering: Ordering) -> None:
        super().__init__(context, ordering)
        options = context.options
        self._immediate = True
        self._relay_wait = options.relay_wait
        self._pace = options.pace
        self._holdings = Holdings(ordering.knows_for_ever, options.pace)
        self._unicast = options.medium == "unicast"
        self._wants = Wants(self._holdings, ordering, context.random, self._unicast, options.pace)
        self._coverage = Coverage(context.node)
        self._announcements = Announcements(options.digest, options.digest_longest, context.random)
        self._full_next = True
        self._mismatches = 0
        self._relay_due: Instant | None = None
        self._compared: dict[NodeId, tuple[int, int, int]] = {}
        self._transmitted: dict[MessageId, Instant] = {}

    # -- inputs ------------------------------------------------------------------------------------------

    def start(self, now: Instant, saved: Saved) -> Effects:
        effects = list(super().start(now, saved))
        for parsed in self._cache:
            self._holdings.add(parsed, now)
        self._announcements.start(now, effects)
        return effects

    def receive(self, packet: Packet, sender: NodeId, now: Instant, over: Medium) -> Effects:
        effects: list[Effect] = []
        if type(packet) is DataPacket:
            self._receive_data(packet, sender, now, effects)
        elif type(packet) is DigestPacket:
            self._receive_digest(packet, sender, now, effects)
        elif type(packet) is WantPacket:
            self._receive_wants(packet, sender, now, effects)
        return effects

    def sent(self, key: Key, now: Instant, ok: bool) -> Effects:
        return NOTHING

    def timer(self, key: Key, now: Instant) -> Effects:
        effects: list[Effect] = []
        if key == DIGEST:
            one_room = self._announcements.announced and self._coverage.is_one_room(now)
            if self._announcements.timer(one_room, now, effects):
                self._send_digest(now, effects)
        elif key == ASK:
            self._wants.timer(now, effects)
        elif key == RELAY:
            self._relay(now, effects)
        else:
            effects += super().timer(key, now)
        return effects

    def link_up(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        effects: list[Effect] = []
        self._coverage.link_up(peer)
        self._full_next = True
        self._announcements.differs(now, effects)
        return effects

    def link_down(self, peer: NodeId, now: Instant, over: Medium) -> Effects:
        self._coverage.link_down(peer)
        self._wants.gone(peer)
        self._compared.pop(peer, None)
        return NOTHING

    def sizes(self) -> Mapping[str, int]:
        return {
            "cache": len(self._cache),
            "evicted": len(self._evicted.ids),
            "relays": len(self._coverage.relays),
            "asked": len(self._wants.requested),
            **self._holdings.sizes(),
        }

    def history_packet(self, batch: Batch) -> Packet | None:
        return data_packet(batch, 0, None)

    # -- data --------------------------------------------------------------------------------------------

    def _receive_data(self, packet: DataPacket, sender: NodeId, now: Instant, effects: list[Effect]) -> None:
        reached = self._coverage.heard(sender, packet.list_version, packet.neighbours, now)
        whole = packet.batch
        for parsed in whole.contents:
            if parsed.deadline <= now:
                self._holdings.expired(parsed.id)
            if self._wants.requested:
                self._wants.arrived(parsed.id, now, effects)
        reached = reached | {sender}
        if self._coverage.is_covered(reached, now):  # in a dense group nearly always
            self._receive_messages(packet, sender, now, effects)
            if self._coverage.relays:
                for id in whole.ids:
                    self._coverage.relays.pop(id, None)
        else:
            new = [id for id in whole.ids if id not in self._holdings.carried]
            self._receive_messages(packet, sender, now, effects)
            fresh = [id for id in new if id in self._holdings.carried]
            if len(fresh) <= _FEW:
                for id in fresh:
                    self._coverage.relays[id] = set()
            for id in whole.ids:
                heard_by = self._coverage.relays.get(id)
                if heard_by is not None:
                    heard_by |= reached
                    if self._coverage.is_covered(heard_by, now):
                        del self._coverage.relays[id]
        if self._coverage.relays and self._relay_due is None:
            self._relay_due = now + int(self._generator.random() * self._relay_wait)
            effects.append(SetTimer(RELAY, self._relay_due))

    def _pass_on(
        self,
        batch: Batch,
        packet: BatchPacket | None,
        sender: NodeId,
        now: Instant,
        effects: list[Effect],
    ) -> None:
        """Register new messages of the cache. Transmit own ones at once; `_relay` transmits the others."""
        for parsed in batch.contents:
            self._holdings.add(parsed, now)
        if sender == self._me:
            self._transmit(batch.contents, now, effects)
            self._announcements.transmitted(now, effects)
        else:
            self._announcements.neighbours(len(self._coverage.neighbours(now)))
            self._announcements.received(now, effects)

    def _relay(self, now: Instant, effects: list[Effect]) -> None:
        """Transmit the messages that some neighbour has not heard; announce them if they are many."""
        self._relay_due = None
        relays, self._coverage.relays = self._coverage.relays, {}
        carried = self._holdings.carried
        due = [
            carried[id]
            for id, heard_by in relays.items()
            if id in carried and not self._coverage.is_covered(heard_by, now)
        ]
        if len(due) <= _FEW:
            self._transmit(due, now, effects)
        if due:
            self._announcements.transmitted(now, effects)

    def _transmit(self, contents: Sequence[ParsedEnvelope], now: Instant, effects: list[Effect]) -> None:
        """Transmit messages to all neighbours, in as few packets as the size of a frame allows."""
        while self._transmitted and next(iter(self._transmitted.values())) < now - self._pace * SECOND:
            del self._transmitted[next(iter(self._transmitted))]
        if self._coverage.is_alone():
            return  # the digest of the next contact announces them
        alive = [parsed for parsed in contents if parsed.deadline > now]
        for parsed in alive:
            self._transmitted.pop(parsed.id, None)
            self._transmitted[parsed.id] = now
        for part in _parts(alive, FRAME_BYTES):
            packet = data_packet(Batch(part), *self._coverage.own_list(now))
            effects.append(Send(packet, NEIGHBOURS, RADIO))

    # -- digests -----------------------------------------------------------------------------------------

    def _send_digest(self, now: Instant, effects: list[Effect]) -> None:
        if self._coverage.is_alone():
            return
        self._expire(now, effects)
        full = self._full_next or self._mismatches > 1
        offset = int(self._generator.random() * (1 << 30)) if full else 0
        if full:
            self._full_next = False
            self._mismatches = 0
        streams, full = self._holdings.streams(now, full, offset)
        packet = DigestPacket(self._holdings.hash, full, streams, *self._coverage.own_list(now))
        effects.append(Send(packet, NEIGHBOURS, RADIO))

    def _receive_digest(
        self, packet: DigestPacket, sender: NodeId, now: Instant, effects: list[Effect]
    ) -> None:
        if not packet.is_well_formed:
            return
        reached = self._coverage.heard(sender, packet.list_version, packet.neighbours, now)
        speaks_for_all = self._coverage.is_covered(reached | {sender}, now)
        self._expire(now, effects)
        own = self._holdings.hash
        if packet.hash == own:
            self._compared.pop(sender, None)
            self._announcements.same(speaks_for_all)
            return
        lacking = self._wants.offered(packet, sender, now, effects)
        if self._holdings.differs_only_lately(packet.hash, packet.streams, packet.full, now):
            self._announcements.same(speaks_for_all)
            return
        self._mismatches += 1
        if not self._is_settled(packet, sender, own, lacking):
            self._announcements.differs(now, effects)

    def _is_settled(self, packet: DigestPacket, sender: NodeId, own: int, lacking: bool) -> bool:
        """Have these two hashes differed so often without effect that the difference must not hasten digests?

        Digests are then sent at the longest interval, with all streams: the neighbour may lack our messages.
        """
        last_own, last_theirs, times = self._compared.pop(sender, (0, 0, 0))
        if (last_own, last_theirs) != (own, packet.hash) or lacking:
            times = 0
        times += packet.full
        self._compared[sender] = (own, packet.hash, times)
        if len(self._compared) > _MOST_PEERS:
            del self._compared[next(iter(self._compared))]
        return times > _VAIN_COMPARISONS

    # -- repair ------------------------------------------------------------------------------------------

    def _receive_wants(self, packet: WantPacket, sender: NodeId, now: Instant, effects: list[Effect]) -> None:
        """Send the messages this node is asked for. If another node is asked, postpone own requests."""
        wants = packet.wants[:MOST_RANGES]
        if not all(are_ranges(ranges) for _, _, _, ranges in wants):
            return
        self._announcements.lost(now)
        self._coverage.repeat_list()
        self._wants.overheard(wants, now, effects)
        self._expire(now, effects)
        chosen: list[MessageId] = []
        for answerer, source, incarnation, ranges in wants:
            if answerer == self._me:
                most = MOST_MESSAGES - len(chosen)
                chosen += self._holdings.requested(source, incarnation, ranges, most)
        if not chosen:
            return
        chosen.sort(key=self._holdings.places.__getitem__)
        batch = Batch([self._holdings.carried[id] for id in chosen])
        batch = arranged(batch, self._order.ranks(batch))
        if len(chosen) > _FEW or self._unicast:
            for part in _parts(batch.contents, _LARGE_PACKET_BYTES):
                effects.append(Send(data_packet(Batch(part), 0, None), sender, RADIO))
            return
        just_sent = now - self._pace * _SAME_ANSWER_WITHIN
        late = [
            parsed
            for parsed in batch.contents
            if self._transmitted.get(parsed.id, -self._pace * SECOND) < just_sent
        ]
        self._transmit(late, now, effects)

    # -- the cache ---------------------------------------------------------------------------------------

    def _drop(self, parsed: ParsedEnvelope, reason: str, now: Instant, effects: list[Effect]) -> None:
        self._holdings.drop(parsed, now)
        if parsed.deadline <= now:
            self._holdings.expired(parsed.id)
        super()._drop(parsed, reason, now, effects)


def _parts(contents: Sequence[ParsedEnvelope], most_bytes: int) -> list[list[ParsedEnvelope]]:
    """Split messages into parts of at most `most_bytes` bytes each. A larger message is a part alone."""
    parts: list[list[ParsedEnvelope]] = []
    size = 0
    for parsed in contents:
        own = parsed.envelope.size_bytes
        if not parts or size + own > most_bytes:
            parts.append([])
            size = 0
        parts[-1].append(parsed)
        size += own
    return parts
