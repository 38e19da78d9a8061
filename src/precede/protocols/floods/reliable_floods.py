"""Reliable FIFO floods, which DRIFT assumes (drift2006, sections 2.1 and 4.4) and `flooding` uses.

The source of a flood transmits it, and every node that receives a first copy transmits it once more. The floods
of a source are numbered, so a node recognises duplicates, holds back early floods, and detects missing ones: by
a later number, by virtual flooding, or by a neighbour's digest (`trickle` decides when digests are sent). A
node requests missing floods from its neighbours. These keep floods for that purpose and answer after a random
time, unless they receive another neighbour's answer first. `Floods` is a part of a node: it appends effects,
and the node passes it its timers and `sent`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from random import Random
from typing import Any, Final, Generic, Protocol, TypeVar

from mypy_extensions import mypyc_attr

from precede.core.effects import RADIO, Effect, Key, Send, SetTimer
from precede.core.identity import NEIGHBOURS, NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Packet
from precede.protocols.floods.options import FloodOptions
from precede.protocols.floods.running_time import RunningTime
from precede.protocols.floods.stream import Have, Stream, StreamId, Want
from precede.protocols.floods.trickle import Trickle

F = TypeVar("F")

ASK: Final[Key] = ("net", "ask")
ANSWER: Final[Key] = ("net", "answer")
BEACON: Final[Key] = ("net", "beacon")
RELAY: Final = "relay"

_SLOWEST_FACTOR: Final = 16
_MOST_WANTS: Final = 64
_MOST_ANSWERS: Final = 32

MOST_REQUESTED: Final = 1 << 13
"""How many numbers of one request this node looks up. The neighbour requests the rest again later."""
MOST_ANNOUNCED: Final = 1 << 10
"""How many streams a neighbour's digests can make this node keep before a flood of them has arrived."""


class FloodUser(Protocol[F]):
    """What `Floods` needs from its user: packets, and decisions about old floods."""

    def flood_packet(self, flood: F) -> Packet:
        """Return a packet with this flood, for a transmission that leaves now."""

    def want_packet(self, wants: tuple[Want, ...]) -> Packet:
        """Return a packet that requests floods from neighbours."""

    def digest_packet(self, haves: tuple[Have, ...]) -> Packet:
        """Return a packet that tells neighbours how far this node has each stream."""

    def payload_bytes(self, flood: F) -> int:
        """Return the size of a flood's payload."""

    def can_drop(self, stream: Stream[F], number: int, flood: F) -> bool:
        """May this node drop a flood that it has kept for `retention`? If so, it is dropped at once."""

    def requested_dropped(self, stream: Stream[F], peer: NodeId, effects: list[Effect]) -> None:
        """Called when a neighbour requests floods that this node has dropped."""

    def nobody_has(self, stream: Stream[F], now: Instant, effects: list[Effect]) -> None:
        """Called when a flood has been missing for so long that every node may have dropped it."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Floods(Generic[F]):
    """Relays, requests, answers and drops the floods of all streams at one node.

    `gaps`: the streams with missing floods. `answers`: floods that neighbours have requested, to be sent soon.
    `queued`: floods that wait at the radio, by the key of their packet.
    """

    def __init__(self, options: FloodOptions, random: Random, user: FloodUser[F]) -> None:
        self.streams: dict[StreamId, Stream[F]] = {}
        self.gaps: dict[StreamId, Stream[F]] = {}
        self.answers: dict[tuple[StreamId, int], F] = {}
        self.queued: dict[Key, F] = {}
        self.trickle = Trickle(
            options.beacon, options.beacon_longest, options.beacon_redundancy, random, BEACON
        )
        self._relay_wait = options.relay_wait
        self._ask_after = options.ask_after
        self._answer_within = options.answer_within
        self._retention = options.retention
        self._most_bytes = options.keep_bytes
        self._random = random
        self._user = user
        self._relays: dict[Key, F] = {}
        self._ages: deque[tuple[Duration, Stream[F], int]] = deque()
        self._running = RunningTime(max(options.beacon, options.beacon_longest) if options.beacon else 0)
        self._asking = False
        self._ask_wait = options.ask_after
        self._answering = False
        self._kept_count = 0
        self._kept_bytes = 0
        self._announced: dict[NodeId, dict[StreamId, None]] = {}

    # -- receiving ---------------------------------------------------------------------------------------

    def stream(self, id: StreamId, received: int = 0) -> Stream[F]:
        """Return the stream with this id. An unknown one is made, and begins behind the number `received`."""
        stream = self.streams.get(id)
        if stream is None:
            stream = self.streams[id] = Stream(id, received)
        return stream

    def received(self, id: StreamId) -> int:
        """Return the number up to which all floods of a stream have arrived; 0 for an unknown stream."""
        stream = self.streams.get(id)
        return 0 if stream is None else stream.received

    def first_copy(
        self, stream: Stream[F], number: int, flood: F, now: Instant, effects: list[Effect]
    ) -> Sequence[F]:
        """Keep the first copy of a flood. Returns the floods now in order: it and early ones, or none."""
        self.keep(stream, number, flood)
        ran = self._running.at(now)
        self._ages.append((ran, stream, number))
        if ran - self._ages[0][0] > self._retention or self._keeps_too_much():
            self._drop_old(ran)
        if number != stream.received + 1:
            stream.set_early(number, flood)
            self.heard_of(stream, number, now, effects)
            return ()
        stream.received = number
        if stream.id not in self.gaps:
            stream.exists = number
            return (flood,)
        stream.since = ran
        return [flood, *self._catch_up(stream)]

    def keep(self, stream: Stream[F], number: int, flood: F) -> None:
        if number not in stream.kept:
            self._kept_count += 1
            if self._most_bytes:
                self._kept_bytes += self._user.payload_bytes(flood)
        stream.keep(number, flood)

    def _take_kept(self, stream: Stream[F], number: int) -> F:
        flood = stream.kept.pop(number)
        self._kept_count -= 1
        if self._most_bytes:
            self._kept_bytes -= self._user.payload_bytes(flood)
        return flood

    def _keeps_too_much(self) -> bool:
        return 0 < self._most_bytes < self._kept_bytes

    def skip_to(self, stream: Stream[F], number: int) -> Sequence[F]:
        """Stop waiting for the floods up to a number. Return the early floods that are in order behind it."""
        if number <= stream.received:
            return ()
        for early in sorted(stream.early):
            if early <= number:
                del stream.early[early]
        stream.received = number
        return self._catch_up(stream)

    def _catch_up(self, stream: Stream[F]) -> list[F]:
        """Remove and return the early floods that are in order now that earlier ones have arrived."""
        ready = []
        while stream.received + 1 in stream.early:
            stream.received += 1
            ready.append(stream.early.pop(stream.received))
        stream.exists = max(stream.exists, stream.received)
        self._ask_wait = self._ask_after  # a neighbour answers, so request the rest soon
        if stream.received >= stream.exists:
            self.gaps.pop(stream.id, None)
        return ready

    def drop_stream(self, id: StreamId, behind: int) -> list[F]:
        """Forget the floods of a stream above number `behind`, as if never heard of.

        Returns those that were stored here, by number. The caller must refuse later copies of them.
        """
        stream = self.streams.get(id)
        if stream is None:
            return []
        dropped = [self._take_kept(stream, number) for number in sorted(stream.kept) if number > behind]
        for number in sorted(stream.early):
            if number > behind:
                del stream.early[number]
        stream.received = min(stream.received, behind)
        stream.exists = min(stream.exists, behind)
        if stream.received >= stream.exists:
            self.gaps.pop(id, None)
        return dropped

    def forget_all(self) -> None:
        for collection in (self.streams, self.gaps, self.answers, self._relays, self._ages, self._announced):
            collection.clear()
        self._kept_count = self._kept_bytes = 0

    # -- missing floods ----------------------------------------------------------------------------------

    def heard_of(self, stream: Stream[F], number: int, now: Instant, effects: list[Effect]) -> None:
        """Record that a flood with this number exists; if it is missing here, request it soon."""
        stream.exists = max(stream.exists, number)
        if stream.exists > stream.received and stream.id not in self.gaps:
            self.gaps[stream.id] = stream
            stream.since = self._running.at(now)
            if self._ask_after and not self._asking:
                self._asking = True
                self._ask_wait = self._ask_after
                effects.append(SetTimer(ASK, now + self._soon(self._ask_wait)))

    def is_hopeless(self, stream: Stream[F], now: Instant) -> bool:
        """Has a flood of this stream been missing for longer than nodes keep floods?"""
        return stream.id in self.gaps and self.missing_for(stream, now) >= self._retention

    def missing_for(self, stream: Stream[F], now: Instant) -> Duration:
        """Return for how long a flood of this stream, which is one of `gaps`, has been missing."""
        return self._running.at(now) - stream.since

    def _soon(self, wait: Duration) -> Duration:
        """Return a random time from half of `wait` to all of it, so that neighbours do not send at once."""
        return wait // 2 + int(self._random.random() * (wait - wait // 2))

    def _request(self, now: Instant, effects: list[Effect]) -> None:
        """Request missing floods from neighbours, and set the timer to do so again, at growing intervals."""
        if not self.gaps:
            self._asking = False
            return
        wants: list[Want] = []
        for stream in list(self.gaps.values()):
            if self.is_hopeless(stream, now):
                self._user.nobody_has(stream, now, effects)
            if len(wants) < _MOST_WANTS:
                _add_missing(stream, wants)
                if len(self.gaps) > _MOST_WANTS and stream.id in self.gaps:
                    self.gaps[stream.id] = self.gaps.pop(stream.id)  # the others are requested next time
        if wants:
            effects.append(Send(self._user.want_packet(tuple(wants)), NEIGHBOURS, RADIO))
        self._ask_wait = min(2 * self._ask_wait, _SLOWEST_FACTOR * self._ask_after)
        effects.append(SetTimer(ASK, now + self._soon(self._ask_wait)))

    def requested(self, wants: Sequence[Want], peer: NodeId, now: Instant, effects: list[Effect]) -> None:
        """Answer a neighbour's request soon with the kept floods; tell the user if some were dropped."""
        most = MOST_REQUESTED
        for source, serial, first, last in wants[:_MOST_WANTS]:
            stream = self.streams.get((source, serial))
            if stream is None:
                continue
            kept = stream.kept
            gone = False
            highest = max(stream.early) if stream.early else stream.received
            numbers = range(first, min(last, highest, first + most - 1) + 1)
            most -= len(numbers)
            for number in numbers:
                flood = kept.get(number)
                if flood is not None:
                    self.answers[stream.id, number] = flood
                elif number <= stream.received:
                    gone = True
            if gone:
                self._user.requested_dropped(stream, peer, effects)
        self._answer_soon(now, effects)

    def _answer_soon(self, now: Instant, effects: list[Effect]) -> None:
        if self.answers and not self._answering:
            self._answering = True
            wait = int(self._random.random() * self._answer_within)
            effects.append(SetTimer(ANSWER, now + wait))

    def _answer(self, now: Instant, effects: list[Effect]) -> None:
        """Send requested floods, a limited number at once. The rest follow soon."""
        self._answering = False
        for key in list(self.answers)[:_MOST_ANSWERS]:
            flood = self.answers.pop(key)
            effects.append(Send(self._user.flood_packet(flood), NEIGHBOURS, RADIO))
        self._answer_soon(now, effects)

    # -- relaying ----------------------------------------------------------------------------------------

    def relay(self, id: StreamId, number: int, flood: F, now: Instant, effects: list[Effect]) -> None:
        key = ("net", RELAY, *id, number)
        if self._relay_wait:
            self._relays[key] = flood
            effects.append(SetTimer(key, now + int(self._random.random() * self._relay_wait)))
        else:
            self.transmit(key, flood, effects)

    def transmit(self, key: Key, flood: F, effects: list[Effect]) -> None:
        """Queue a flood at the radio; until it is `sent`, `refresh` can replace its packet."""
        self.queued[key] = flood
        effects.append(Send(self._user.flood_packet(flood), NEIGHBOURS, RADIO, key))

    def refresh(self, effects: list[Effect]) -> None:
        """Replace the packet that leaves next, because the data that packets carry has changed."""
        for key, flood in self.queued.items():
            effects.append(Send(self._user.flood_packet(flood), NEIGHBOURS, RADIO, key))
            return

    def sent(self, key: Key, effects: list[Effect]) -> None:
        """Forget a queued packet that has left or was dropped, and renew the next one."""
        if self.queued.pop(key, None) is not None and self.queued:
            self.refresh(effects)

    # -- digests -----------------------------------------------------------------------------------------

    def haves(self) -> tuple[Have, ...]:
        """Return, for each stream, the number up to which this node has all floods."""
        return tuple(
            (source, serial, self.streams[source, serial].received) for source, serial in sorted(self.streams)
        )

    def compare(self, haves: Sequence[Have], peer: NodeId, now: Instant, effects: list[Effect]) -> None:
        """Compare with a neighbour's digest: request floods that only it has; if different, send ours soon."""
        same = len(haves) == len(self.streams)
        announced = self._announcements(peer)
        for source, serial, received in haves:
            stream = self.streams.get((source, serial))
            own = stream.received if stream is not None else 0
            if received != own or stream is None:
                same = False
            if received > own and (stream is not None or len(announced) < MOST_ANNOUNCED):
                if stream is None:
                    announced[source, serial] = None
                self.heard_of(self.stream((source, serial)), received, now, effects)
        if same:
            self.trickle.same_digest()
        else:
            self.trickle.differs(now, effects)

    def _announcements(self, peer: NodeId) -> dict[StreamId, None]:
        """Return the streams that a neighbour's digests began. If they are many, only those without a flood."""
        announced = self._announced.setdefault(peer, {})
        if len(announced) >= MOST_ANNOUNCED:
            for other in [other for other in announced if self._has_floods(other)]:
                del announced[other]
        return announced

    def _has_floods(self, id: StreamId) -> bool:
        stream = self.streams.get(id)
        return stream is None or stream.received > 0 or bool(stream.kept)

    def timer(self, key: Key, now: Instant, effects: list[Effect]) -> None:
        """Handle a timer whose key begins with "net"."""
        self._running.at(now)
        flood = self._relays.pop(key, None)
        if flood is not None:
            self.transmit(key, flood, effects)
        elif key == ASK:
            self._request(now, effects)
        elif key == ANSWER:
            self._answer(now, effects)
        elif key == BEACON and self.trickle.timer(now, effects):
            effects.append(Send(self._user.digest_packet(self.haves()), NEIGHBOURS, RADIO))

    def _drop_old(self, ran: Duration) -> None:
        """Drop floods kept for `retention` or beyond `keep_bytes`, until the user refuses to drop one."""
        ages = self._ages
        while ages and (ran - ages[0][0] > self._retention or self._keeps_too_much()):
            _, stream, number = ages[0]
            flood = stream.kept.get(number)
            if flood is not None:
                if not self._user.can_drop(stream, number, flood):
                    ages[0] = (ran, stream, number)
                    ages.rotate(-1)
                    return
                self._take_kept(stream, number)
            ages.popleft()

    def sizes(self) -> dict[str, int]:
        """Return the sizes of the buffers. Drivers call it after every input: it visits few streams."""
        return {
            "early": sum([len(stream.early) for stream in self.gaps.values()]) if self.gaps else 0,
            "gaps": len(self.gaps),
            "answers": len(self.answers),
            "relays": len(self._relays),
            "kept": self._kept_count,
        }


def _add_missing(stream: Stream[Any], wants: list[Want]) -> None:
    """Append the missing floods of a stream to `wants` as ranges, as far as they fit into one packet."""
    first = stream.received + 1
    for number in [*sorted(stream.early), stream.exists + 1]:
        if number > first and len(wants) < _MOST_WANTS:
            wants.append((*stream.id, first, number - 1))
        first = number + 1
