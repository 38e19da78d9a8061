"""The messages that a node holds (it can send them) and those that it knows (it does not request them).

A digest lists what its sender holds, never what it lacks or what is gone. So a lying digest cannot make a node
skip or drop a message; it can only offer what its sender does not have.
"""

from collections import deque
from typing import Final, final

from precede.core.identity import MessageId
from precede.core.instants import MILLISECOND, SECOND, Instant
from precede.protocols.layered.gossip.ranges import Ranges, StreamId, StreamRanges, is_in, pairs
from precede.protocols.layered.parsed_envelopes import ParsedEnvelope

RECENT: Final = 2 * SECOND
IN_FLIGHT: Final = 250 * MILLISECOND
"""For so long a message may be held by some neighbours and not yet by others."""
MOST_RANGES: Final = 2_048
"""Most ranges in one digest; a longer one is sent in parts."""
_MOST_COMPARED: Final = 256
_MOST_EXPIRED: Final = 10_000
_MOST_SILENT_STREAMS: Final = 4_096
_MASK: Final = (1 << 64) - 1


@final
class Holdings:
    """Records which messages a node holds, and which it knows and therefore does not request.

    `carried`: the held messages by id; `places`: their positions in the order of reception. `hash`: a hash of
    their ids. Known are all held messages, the evicted ones, and the latest that expired here: the clock of a
    neighbour may be behind, and it would offer these again. `may_forget`: the ordering knows evicted messages
    for ever, so streams of which nothing is held may be forgotten.
    """

    def __init__(self, may_forget: bool, pace: int = 1) -> None:
        self._may_forget = may_forget
        self._pace = pace
        self.carried: dict[MessageId, ParsedEnvelope] = {}
        self.places: dict[MessageId, int] = {}
        self.hash = 0
        self._held: dict[StreamId, Ranges] = {}
        self._known: dict[StreamId, Ranges] = {}
        self._changed: dict[StreamId, Instant] = {}
        self._lately: deque[tuple[Instant, MessageId]] = deque()
        self._expired: deque[MessageId] = deque()
        self._serial = 0

    def add(self, parsed: ParsedEnvelope, now: Instant) -> None:
        id = parsed.id
        self._serial += 1
        self.carried[id] = parsed
        self.places[id] = self._serial
        stream = (id.source, id.incarnation)
        held = self._held.get(stream)
        if held is None:
            held = self._held[stream] = Ranges()
        held.add(id.number)
        self._know(stream, id.number)
        self._change(stream, id, now)

    def drop(self, parsed: ParsedEnvelope, now: Instant) -> None:
        """Record that a message is no longer held. It stays known."""
        id = parsed.id
        if self.carried.pop(id, None) is None:
            return
        del self.places[id]
        stream = (id.source, id.incarnation)
        held = self._held[stream]
        held.remove(id.number)
        if not held:
            del self._held[stream]
        self._change(stream, id, now)

    def _change(self, stream: StreamId, id: MessageId, now: Instant) -> None:
        self.hash ^= _hash(id)
        is_new = self._changed.pop(stream, None) is None
        self._changed[stream] = now
        self._lately.append((now, id))
        while self._lately[0][0] < now - self._pace * IN_FLIGHT or len(self._lately) > _MOST_COMPARED:
            self._lately.popleft()
        while is_new and next(iter(self._changed.values())) < now - self._pace * RECENT:
            del self._changed[next(iter(self._changed))]

    def know(self, id: MessageId) -> None:
        """Record a message as known, so that this node does not ask for it."""
        self._know((id.source, id.incarnation), id.number)

    def _know(self, stream: StreamId, number: int) -> None:
        known = self._known.get(stream)
        if known is None:
            known = self._known[stream] = Ranges()
            self._forget_silent_streams()
        known.add(number)

    def expired(self, id: MessageId) -> None:
        """Record a message past its deadline as known. Only a limited number of such ids is remembered."""
        self.know(id)
        self._expired.append(id)
        if len(self._expired) > _MOST_EXPIRED:
            old = self._expired.popleft()
            stream = (old.source, old.incarnation)
            known = self._known.get(stream)
            if known is not None:
                known.remove(old.number)
                if not known:
                    del self._known[stream]

    def _forget_silent_streams(self) -> None:
        """Forget a stream of which nothing is held, if there are too many: any member can invent streams."""
        if self._may_forget and len(self._known) > len(self._held) + _MOST_SILENT_STREAMS:
            silent = next(stream for stream in self._known if stream not in self._held)
            del self._known[silent]

    def knows(self, id: MessageId) -> bool:
        known = self._known.get((id.source, id.incarnation))
        return known is not None and id.number in known

    def lacking(self, source: int, incarnation: int, ranges: tuple[int, ...]) -> list[tuple[int, int]]:
        """Return the parts of these number ranges of a stream that this node does not know."""
        known = self._known.get((source, incarnation))
        return pairs(ranges) if known is None else known.lacks(ranges)

    def requested(self, source: int, incarnation: int, ranges: tuple[int, ...], most: int) -> list[MessageId]:
        """Return the ids of held messages in these number ranges of a stream, at most `most` of them."""
        held = self._held.get((source, incarnation))
        if held is None:
            return []
        numbers = held.common(ranges)
        return [MessageId(source, incarnation, number) for number, _ in zip(numbers, range(most), strict=False)]

    def streams(self, now: Instant, full: bool, offset: int) -> tuple[tuple[StreamRanges, ...], bool]:
        """Return the held ranges of all streams (`full`) or of those changed lately, and whether all fitted.

        `offset` rotates the streams: if they do not fit, another digest lists others.
        """
        names = (
            list(self._held)
            if full
            else [name for name in self._changed if self._changed[name] > now - self._pace * RECENT]
        )
        start = offset % len(names) if names else 0
        listed: list[StreamRanges] = []
        count = 0
        for stream in names[start:] + names[:start]:
            held = self._held.get(stream)
            flat = () if held is None else held.flat()[: 2 * MOST_RANGES]
            count += max(len(flat) // 2, 1)
            if count > MOST_RANGES and listed:
                return tuple(listed), False
            listed.append((*stream, flat))
        return tuple(listed), full

    def differs_only_lately(
        self, hash: int, streams: tuple[StreamRanges, ...], full: bool, now: Instant
    ) -> bool:
        """Do this node and the sender of a digest differ only in messages that are on their way?

        These are messages that this node began or ceased to hold lately, and messages that the digest lists and
        this node does not know. If they explain the difference of the hashes, there is no other difference.
        """
        listed = {(source, incarnation): ranges for source, incarnation, ranges in streams}
        lately = dict.fromkeys(id for at, id in self._lately if at >= now - self._pace * IN_FLIGHT)
        difference = self.hash ^ hash
        for id in lately:
            ranges = listed.get((id.source, id.incarnation))
            held = id in self.carried
            theirs = not full and not held if ranges is None else is_in(id.number, ranges)
            if theirs != held:
                difference ^= _hash(id)
        unknown = 0
        for stream, ranges in listed.items():
            for first, last in self.lacking(*stream, ranges):
                unknown += last - first + 1
                if unknown > _MOST_COMPARED:
                    return False
                for number in range(first, last + 1):
                    difference ^= _hash(MessageId(*stream, number))
        return difference == 0

    def sizes(self) -> dict[str, int]:
        return {"known_ranges": sum(map(len, self._known.values()))}


def _hash(id: MessageId) -> int:
    """Hash an id to 63 bits, the same at every node (splitmix64). The hash of a set is the XOR of these."""
    value = (id.source * 0x9E3779B97F4A7C15 + id.incarnation * 0xD1B54A32D192ED03 + id.number) & _MASK
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return (value ^ (value >> 31)) >> 1
