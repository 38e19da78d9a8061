"""Reliable FIFO floods: the machinery that DRIFT assumes (drift2006, sections 2.1 and 4.4) and `flooding` uses.

A flood is transmitted by its source and once more by every node that receives a first copy. Floods of one
source are numbered, so a node tells duplicates, holds back what comes early, and knows what it lacks: from a
later number, from virtual flooding, or from a neighbour's digest (Trickle decides when those are sent). What it
lacks it asks of its neighbours, who keep floods for that purpose and answer after a random while, unless they
hear another answer first. This is a piece of a node: it appends effects and is passed its timers and `sent`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from random import Random
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar

from mypy_extensions import mypyc_attr

from precede.core.effects import RADIO, Effect, Key, Send, SetTimer
from precede.core.identity import NEIGHBOURS, NodeId
from precede.core.instants import Duration, Instant
from precede.core.messages import Packet
from precede.protocols.floods.options import FloodOptions
from precede.protocols.floods.trickle import Trickle

F = TypeVar("F")

StreamId: TypeAlias = tuple[NodeId, int]
"""A source and one of its lives: the floods numbered 1, 2, 3 ... that it originates in it."""

Have: TypeAlias = tuple[NodeId, int, int]
"""Everything of a stream up to a number."""

Want: TypeAlias = tuple[NodeId, int, int, int]
"""The floods of a stream from a number to a number, both included."""

ASK: Final[Key] = ("net", "ask")
ANSWER: Final[Key] = ("net", "answer")
BEACON: Final[Key] = ("net", "beacon")
RELAY: Final = "relay"

_SLOWEST: Final = 16
_MOST_WANTS: Final = 64
_MOST_ANSWERS: Final = 32


class Stream(Generic[F]):
    """One source's floods at one node: all up to `received`, some `early`, the last ones `kept`.

    While something is missing, `since` says how long nothing of it has come.
    """

    __slots__ = ("early", "exists", "id", "kept", "received", "since")

    def __init__(self, id: StreamId, received: int = 0) -> None:
        self.id = id
        self.received = received
        self.exists = received
        self.since: Instant = 0
        self.early: dict[int, F] = {}
        self.kept: dict[int, F] = {}


class FloodUser(Protocol[F]):
    """How the node around the floods puts things into packets, and what it decides."""

    def flood_packet(self, flood: F) -> Packet:
        """A flood with what it carries along when it leaves now."""

    def want_packet(self, wants: tuple[Want, ...]) -> Packet: ...

    def digest_packet(self, haves: tuple[Have, ...]) -> Packet: ...

    def can_drop(self, stream: Stream[F], number: int, flood: F) -> bool:
        """May this node stop keeping a flood that is older than `retention`?"""

    def requested_dropped(self, stream: Stream[F], peer: NodeId, effects: list[Effect]) -> None:
        """A neighbour wants what this node had once and does not keep any more."""

    def nobody_has(self, stream: Stream[F], now: Instant, effects: list[Effect]) -> None:
        """Something has been missing for so long that everybody may have dropped it."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Floods(Generic[F]):
    """All streams at one node."""

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
        self._random = random
        self._user = user
        self._relays: dict[Key, F] = {}
        self._ages: deque[tuple[Instant, Stream[F], int]] = deque()
        self._asking = False
        self._ask_wait = options.ask_after
        self._answering = False

    # -- receiving ---------------------------------------------------------------------------------------

    def stream(self, id: StreamId, received: int = 0) -> Stream[F]:
        """The stream, begun behind `received` when it is new."""
        found = self.streams.get(id)
        if found is None:
            found = self.streams[id] = Stream(id, received)
        return found

    def received(self, id: StreamId) -> int:
        """How far this node has a stream."""
        found = self.streams.get(id)
        return 0 if found is None else found.received

    def first_copy(
        self, stream: Stream[F], number: int, flood: F, now: Instant, effects: list[Effect]
    ) -> Sequence[F]:
        """A flood that was not in hand; returns what is now in order, this one first if it is."""
        stream.kept[number] = flood
        self._ages.append((now, stream, number))
        if now - self._ages[0][0] > self._retention:
            self._drop_old(now)
        if number != stream.received + 1:
            stream.early[number] = flood
            self.heard_of(stream, number, now, effects)
            return ()
        stream.received = number
        if stream.id not in self.gaps:
            stream.exists = number
            return (flood,)
        stream.since = now
        return self._catch_up(stream, flood)

    def _catch_up(self, stream: Stream[F], flood: F) -> Sequence[F]:
        ready = [flood]
        while stream.received + 1 in stream.early:
            stream.received += 1
            ready.append(stream.early.pop(stream.received))
        self._closed(stream)
        return ready

    def skip_to(self, stream: Stream[F], number: int) -> Sequence[F]:
        """Do without everything up to a number; returns what is in order behind it."""
        if number <= stream.received:
            return ()
        for early in sorted(stream.early):
            if early <= number:
                del stream.early[early]
        stream.received = number
        ready = []
        while stream.received + 1 in stream.early:
            stream.received += 1
            ready.append(stream.early.pop(stream.received))
        self._closed(stream)
        return ready

    def _closed(self, stream: Stream[F]) -> None:
        """Something arrived that was missing: it is worth asking quickly for the rest."""
        stream.exists = max(stream.exists, stream.received)
        self._ask_wait = self._ask_after
        if stream.received >= stream.exists:
            self.gaps.pop(stream.id, None)

    def drop_stream(self, id: StreamId, behind: int) -> list[F]:
        """Forget what is behind a number for good; returns those floods, in order."""
        stream = self.streams.get(id)
        if stream is None:
            return []
        dropped = [stream.kept.pop(number) for number in sorted(stream.kept) if number > behind]
        for number in sorted(stream.early):
            if number > behind:
                del stream.early[number]
        stream.received = min(stream.received, behind)
        stream.exists = min(stream.exists, behind)
        if stream.received >= stream.exists:
            self.gaps.pop(id, None)
        return dropped

    def forget_all(self) -> None:
        """Begin anew, with no stream."""
        for kept in (self.streams, self.gaps, self.answers, self._relays, self._ages):
            kept.clear()

    # -- lacking and asking ------------------------------------------------------------------------------

    def heard_of(self, stream: Stream[F], number: int, now: Instant, effects: list[Effect]) -> None:
        """A flood with this number has been sent by its source."""
        stream.exists = max(stream.exists, number)
        if stream.exists > stream.received and stream.id not in self.gaps:
            self.gaps[stream.id] = stream
            stream.since = now
            if self._ask_after and not self._asking:
                self._asking = True
                self._ask_wait = self._ask_after
                effects.append(SetTimer(ASK, now + self._soon(self._ask_wait)))

    def is_hopeless(self, stream: Stream[F], now: Instant) -> bool:
        """Has it been missing for longer than anybody needs to keep it?"""
        return stream.id in self.gaps and now - stream.since >= self._retention

    def _soon(self, wait: Duration) -> Duration:
        """Between a half and the whole of a time, so that neighbours do not speak at once."""
        return wait // 2 + int(self._random.random() * (wait - wait // 2))

    def _ask(self, now: Instant, effects: list[Effect]) -> None:
        if not self.gaps:
            self._asking = False
            return
        wants: list[Want] = []
        for stream in list(self.gaps.values()):
            if self.is_hopeless(stream, now):
                self._user.nobody_has(stream, now, effects)
            if len(wants) < _MOST_WANTS:
                _add_missing(stream, wants)
        if wants:
            effects.append(Send(self._user.want_packet(tuple(wants)), NEIGHBOURS, RADIO))
        self._ask_wait = min(2 * self._ask_wait, _SLOWEST * self._ask_after)
        effects.append(SetTimer(ASK, now + self._soon(self._ask_wait)))

    def requested(self, wants: Sequence[Want], peer: NodeId, now: Instant, effects: list[Effect]) -> None:
        """A neighbour lacks these."""
        for source, serial, first, last in wants:
            stream = self.streams.get((source, serial))
            if stream is None:
                continue
            kept = stream.kept
            gone = False
            for number in range(first, min(last, max(stream.exists, first)) + 1):
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
        self._answering = False
        for key in list(self.answers)[:_MOST_ANSWERS]:
            flood = self.answers.pop(key)
            effects.append(Send(self._user.flood_packet(flood), NEIGHBOURS, RADIO))
        self._answer_soon(now, effects)

    # -- relaying ----------------------------------------------------------------------------------------

    def relay(self, id: StreamId, number: int, flood: F, now: Instant, effects: list[Effect]) -> None:
        """Transmit a flood once: at once, or after a random while."""
        key = ("net", RELAY, *id, number)
        if self._relay_wait:
            self._relays[key] = flood
            effects.append(SetTimer(key, now + int(self._random.random() * self._relay_wait)))
        else:
            self.transmit(key, flood, effects)

    def transmit(self, key: Key, flood: F, effects: list[Effect]) -> None:
        """Queue it at the radio; until it is `sent`, `refresh` can renew what it carries along."""
        self.queued[key] = flood
        effects.append(Send(self._user.flood_packet(flood), NEIGHBOURS, RADIO, key))

    def refresh(self, effects: list[Effect]) -> None:
        """What would be carried along has changed: renew the packet that leaves next."""
        for key, flood in self.queued.items():
            effects.append(Send(self._user.flood_packet(flood), NEIGHBOURS, RADIO, key))
            return

    def sent(self, key: Key, effects: list[Effect]) -> None:
        """A queued flood has left or was dropped: the next one is to carry what is known now."""
        if self.queued.pop(key, None) is not None and self.queued:
            self.refresh(effects)

    # -- digests -----------------------------------------------------------------------------------------

    def haves(self) -> tuple[Have, ...]:
        """How far this node has each stream."""
        return tuple(
            (source, serial, self.streams[source, serial].received) for source, serial in sorted(self.streams)
        )

    def compare(self, haves: Sequence[Have], now: Instant, effects: list[Effect]) -> None:
        """A neighbour's digest: ask for what it has, speak soon if it has less."""
        same = len(haves) == len(self.streams)
        for source, serial, received in haves:
            stream = self.streams.get((source, serial))
            mine = stream.received if stream is not None else 0
            if received != mine or stream is None:
                same = False
            if received > mine:
                self.heard_of(self.stream((source, serial)), received, now, effects)
        if same:
            self.trickle.alike()
        else:
            self.trickle.differs(now, effects)

    def timer(self, key: Key, now: Instant, effects: list[Effect]) -> None:
        """One of the timers whose keys begin with "net"."""
        flood = self._relays.pop(key, None)
        if flood is not None:
            self.transmit(key, flood, effects)
        elif key == ASK:
            self._ask(now, effects)
        elif key == ANSWER:
            self._answer(now, effects)
        elif key == BEACON and self.trickle.timer(now, effects):
            effects.append(Send(self._user.digest_packet(self.haves()), NEIGHBOURS, RADIO))

    def _drop_old(self, now: Instant) -> None:
        ages = self._ages
        while ages and now - ages[0][0] > self._retention:
            _, stream, number = ages[0]
            flood = stream.kept.get(number)
            if flood is not None:
                if not self._user.can_drop(stream, number, flood):
                    ages[0] = (now, stream, number)
                    ages.rotate(-1)
                    return
                del stream.kept[number]
            ages.popleft()

    def sizes(self) -> dict[str, int]:
        return {
            "early": sum(len(stream.early) for stream in self.streams.values()),
            "gaps": len(self.gaps),
            "answers": len(self.answers),
            "relays": len(self._relays),
            "kept": sum(len(stream.kept) for stream in self.streams.values()),
        }


def _add_missing(stream: Stream[Any], wants: list[Want]) -> None:
    """The holes of a stream as ranges."""
    first = stream.received + 1
    for number in [*sorted(stream.early), stream.exists + 1]:
        if number > first and len(wants) < _MOST_WANTS:
            wants.append((*stream.id, first, number - 1))
        first = number + 1
