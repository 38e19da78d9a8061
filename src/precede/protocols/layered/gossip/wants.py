"""What neighbours offer that this node lacks, and whom it asks for it.

Requests go in rounds. A round names one answerer for each message and waits for the answers; the next round
begins when all have arrived, when no answer came for a while, or soon after another digest. A false offer costs
rounds, which become rare; it removes nothing.

Answers take long where the network or a machine is slow. A node that asks again too early doubles the load, and
the answers take longer still. So a node waits for twice the time that answers took lately, and twice as long
after each round in vain; and such a round halves the number of messages that the next one asks for.
"""

from random import Random
from typing import Final, final

from precede.core.effects import RADIO, Effect, Key, Send, SetTimer
from precede.core.identity import NEIGHBOURS, MessageId, NodeId
from precede.core.instants import MILLISECOND, SECOND, Duration, Instant
from precede.protocols.layered.gossip.holdings import Holdings
from precede.protocols.layered.gossip.packets import DigestPacket, Want, WantPacket
from precede.protocols.layered.gossip.ranges import StreamId, flat_ranges
from precede.protocols.layered.ordering import Ordering

ASK: Final[Key] = ("net", "ask")
MOST_MESSAGES: Final = 256
"""Most messages that one round asks for."""
MOST_RANGES: Final = 64
_MOST_OFFERED: Final = 1_024
_MOST_CHECKED: Final = 4_096
_MOST_NEIGHBOURS: Final = 1_024
_JITTER: Final = 20 * MILLISECOND
_FEWEST_MESSAGES: Final = 8
_FIRST_WAIT: Final = 50 * MILLISECOND
_LONGEST_WAIT: Final = 8 * SECOND
_MOST_VAIN: Final = 8


@final
class Wants:
    """Keeps which messages neighbours offer and this node lacks, and requests them in rounds.

    `offers`: by neighbour and stream, the ranges in its digest that this node did not know then. `requested`:
    the messages of the present round that have not arrived. `_asked_at`: when the round began, or when its
    latest answer arrived; `_since`: the same for the first of several rounds in vain, which an answer may
    belong to. `_answer_time`: how long answers took lately. `_most`: how many messages a round asks for.

    At most `_MOST_OFFERED` ranges are kept of one neighbour. After `_MOST_VAIN` rounds without an answer all
    offers are dropped, until the next digest.
    """

    def __init__(
        self, holdings: Holdings, ordering: Ordering, random: Random, unicast: bool, pace: int = 1
    ) -> None:
        self._holdings = holdings
        self._ordering = ordering
        self._random = random
        self._unicast = unicast
        self._pace = pace
        self.offers: dict[NodeId, dict[StreamId, tuple[int, ...]]] = {}
        self.requested: dict[MessageId, None] = {}
        self._due: Instant | None = None
        self._asked_at: Instant = 0
        self._since: Instant = 0
        self._answer_time: Duration = 0
        self._most = MOST_MESSAGES
        self._vain = 0
        self._postponed = False

    def offered(self, packet: DigestPacket, peer: NodeId, now: Instant, effects: list[Effect]) -> bool:
        """Note the messages that a digest offers, and request them soon. False if this node lacks none."""
        offers = self.offers.pop(peer, {})
        if packet.full:
            offers = {}
        count = 0
        for source, incarnation, ranges in packet.streams:
            lacking = self._lacking(source, incarnation, ranges)
            offers.pop((source, incarnation), None)
            count += len(lacking) // 2
            if lacking and count <= _MOST_OFFERED:
                offers[source, incarnation] = lacking
        while len(offers) > _MOST_OFFERED:
            del offers[next(iter(offers))]
        if not offers:
            return False
        self.offers[peer] = offers
        if len(self.offers) > _MOST_NEIGHBOURS:
            del self.offers[next(iter(self.offers))]
        if self._due is None or not self.requested or now >= self._asked_at + self._patience():
            self._ask_at(now + self._jitter(), now, effects)
        return True

    def _lacking(self, source: NodeId, incarnation: int, ranges: tuple[int, ...]) -> tuple[int, ...]:
        """Return the parts of some ranges that this node does not know.

        After a restart the ordering above may know messages that are not carried any more. At the beginning of
        each part those are marked as known and left out. Ranges and messages beyond a bound are not looked at.
        """
        lacking = self._holdings.lacking(source, incarnation, ranges[: 2 * _MOST_OFFERED])
        if not lacking:
            return ()
        checked = 0
        for first, last in lacking:
            for number in range(first, last + 1):
                id = MessageId(source, incarnation, number)
                checked += 1
                if checked > _MOST_CHECKED or not self._ordering.knows(id):
                    break
                self._holdings.know(id)
        if checked > len(lacking):
            lacking = self._holdings.lacking(source, incarnation, ranges[: 2 * _MOST_OFFERED])
        return tuple(number for pair in lacking for number in pair)

    def _patience(self) -> Duration:
        return min(
            max(self._pace * _FIRST_WAIT, 2 * self._answer_time) << self._vain, self._pace * _LONGEST_WAIT
        )

    def _jitter(self) -> Duration:
        return int(self._random.random() * self._pace * _JITTER)

    def _ask_at(self, at: Instant, now: Instant, effects: list[Effect]) -> None:
        if self._due is None or at < self._due:
            self._due = at
            effects.append(SetTimer(ASK, at))

    def gone(self, peer: NodeId) -> None:
        """Forget the offers of a neighbour that cannot be asked any more."""
        self.offers.pop(peer, None)

    def arrived(self, id: MessageId, now: Instant, effects: list[Effect]) -> None:
        """Record that a message has arrived. After the last one of a round the next round begins at once."""
        if id in self.requested:
            del self.requested[id]
            took = now - self._since
            self._answer_time = max(took, (3 * self._answer_time + took) // 4)
            self._asked_at = self._since = now
            self._vain = 0
            self._most = min(2 * self._most, MOST_MESSAGES)
            if not self.requested and self.offers:
                self._ask_at(now, now, effects)

    def overheard(self, wants: tuple[Want, ...], now: Instant, effects: list[Effect]) -> None:
        """Postpone this node's next round if another node asks for messages of a stream that it lacks too.

        A round is postponed only once, so that wants that a liar repeats do not stop this node.
        """
        if self._due is None or self._postponed or self.requested:
            return
        for _, source, incarnation, ranges in wants:
            if any((source, incarnation) in offers for offers in self.offers.values()) and ranges:
                self._postponed = True
                self._due = now + self._pace * _FIRST_WAIT + self._jitter()
                effects.append(SetTimer(ASK, self._due))
                return

    def timer(self, now: Instant, effects: list[Effect]) -> None:
        """Begin a round of requests, if messages are lacking and answers have ceased to arrive.

        After too many rounds in vain drop all offers.
        """
        self._due = None
        self._postponed = False
        if self.requested:
            if now < self._asked_at + self._patience():
                self._ask_at(self._asked_at + self._patience(), now, effects)
                return
            self._vain += 1
            self._most = max(self._most // 2, _FEWEST_MESSAGES)
        self.requested = {}
        if self._vain >= _MOST_VAIN:
            self.offers.clear()
            self._vain = 0
            return
        wants = self._round()
        if not wants:
            self._vain = 0
            return
        if self._unicast:
            for answerer in dict.fromkeys(want[0] for want in wants):
                requested = tuple(want for want in wants if want[0] == answerer)
                effects.append(Send(WantPacket(requested), answerer, RADIO))
        else:
            effects.append(Send(WantPacket(wants), NEIGHBOURS, RADIO))
        self._asked_at = now
        if not self._vain:
            self._since = now
        self._ask_at(now + self._patience() + self._jitter(), now, effects)

    def _round(self) -> tuple[Want, ...]:
        """Choose an answerer for each lacking message, beginning with a random neighbour."""
        wants: list[Want] = []
        peers = list(self.offers)
        start = self._random.randrange(len(peers)) if peers else 0
        ranges_left = MOST_RANGES
        for peer in peers[start:] + peers[:start]:
            offers = self.offers[peer]
            for stream in list(offers):
                lacking = self._holdings.lacking(*stream, offers[stream])
                if not lacking:
                    del offers[stream]
                    continue
                ids = self._choose(stream, lacking, ranges_left)
                if ids:
                    chosen = flat_ranges([id.number for id in ids])
                    ranges_left -= len(chosen) // 2
                    wants.append((peer, *stream, chosen))
                    self.requested.update(dict.fromkeys(ids))
                if ranges_left <= 0 or len(self.requested) >= self._most:
                    return tuple(wants)
            if not offers:
                del self.offers[peer]
        return tuple(wants)

    def _choose(self, stream: StreamId, lacking: list[tuple[int, int]], ranges_left: int) -> list[MessageId]:
        """Choose lacking messages of a stream that are not requested yet, as far as the round has room."""
        chosen: list[MessageId] = []
        for first, last in lacking[:ranges_left]:
            for number in range(first, last + 1):
                if len(self.requested) + len(chosen) >= self._most:
                    return chosen
                id = MessageId(*stream, number)
                if id not in self.requested:
                    chosen.append(id)
        return chosen
