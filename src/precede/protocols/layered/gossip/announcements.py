"""When a node announces what it holds.

The rules are those of Trickle (`floods.trickle`): one digest in an interval, at a random instant of its second
half, unless a neighbour has announced the same in that interval. The intervals differ. The source of a message
announces it soon; its neighbours wait for that, so a message without loss is followed by one digest. They wait
longer the more they are, because the first of many draws comes early. While messages follow each other,
intervals stay as long as that wait. Then they grow to the longest:
slowly while messages get lost and where not everybody hears everybody, at once otherwise.

A timer that fires late is a sign of a busy machine. There the timers of many nodes are late together, and all
of them would announce the same before any has heard another. So a late digest is put off by another random
time, longer each time, and at most four times.
"""

from random import Random
from typing import Final, final

from precede.core.effects import Effect, Key, SetTimer
from precede.core.instants import MILLISECOND, SECOND, Duration, Instant

DIGEST: Final[Key] = ("net", "digest")
_BUSY: Final = 4
_FEW_NEIGHBOURS: Final = 10
_GROWTH_AFTER_LOSS: Final = 4
_GROWTH: Final = 32
_LOSS_COUNTS_FOR: Final = 10 * SECOND
_LATE: Final = 30 * MILLISECOND
_MOST_DELAYS: Final = 4


@final
class Announcements:
    """The timer of a node's digests: it fires at the instant to send, and at the end of the interval.

    `announced`: the instant to send has passed, so the timer next fires at the end of the interval.
    """

    def __init__(self, shortest: Duration, longest: Duration, random: Random) -> None:
        self._shortest = shortest
        self._longest = max(longest, shortest)
        self._busy = shortest
        self.neighbours(0)
        self._random = random
        self._interval = shortest
        self._due: Instant = 0
        self._delays = 0
        self._ends: Instant = 0
        self.announced = False
        self._equal = False
        self._fresh = False
        self._lost_at: Instant = -_LOSS_COUNTS_FOR

    def neighbours(self, count: int) -> None:
        busy = _BUSY * self._shortest * max(count, _FEW_NEIGHBOURS) // _FEW_NEIGHBOURS
        self._busy = min(busy, self._longest)

    def start(self, now: Instant, effects: list[Effect]) -> None:
        self._begin(self._shortest, now, effects)

    def transmitted(self, now: Instant, effects: list[Effect]) -> None:
        """Have a digest follow soon, unless a neighbour announces the same: messages were transmitted."""
        self._news(self._shortest, now, effects)

    def received(self, now: Instant, effects: list[Effect]) -> None:
        """Announce received messages, unless their source does so first."""
        self._news(self._busy, now, effects)

    def _news(self, interval: Duration, now: Instant, effects: list[Effect]) -> None:
        if self._interval > self._busy:
            self._begin(interval, now, effects)
        elif self.announced or self._equal:
            self._fresh = True

    def differs(self, now: Instant, effects: list[Effect]) -> None:
        """Fall back to the shortest interval, because a neighbour has more or less than this node."""
        if self._interval > self._shortest:
            self._begin(self._shortest, now, effects)

    def same(self, speaks_for_all: bool) -> None:
        """Record that a neighbour has announced what this node would, perhaps to all its neighbours."""
        self._equal = self._equal or speaks_for_all

    def lost(self, now: Instant) -> None:
        """Record that a node requests messages: intervals grow slowly for a while."""
        self._lost_at = now

    def timer(self, one_room: bool, now: Instant, effects: list[Effect]) -> bool:
        """Handle the timer and set it again. True when the digest is to be sent now.

        `one_room`, which matters at the end of an interval only: every neighbour hears every other.
        """
        if not self.announced:
            if now > self._due + _LATE and not self._equal and self._delays < _MOST_DELAYS:
                self._delays += 1
                self._send_within(self._interval << self._delays, now, effects)
                self._ends = max(self._ends, self._due)
                return False
            self.announced = True
            effects.append(SetTimer(DIGEST, self._ends))
            return not self._equal
        nothing_lost = one_room and now >= self._lost_at + _LOSS_COUNTS_FOR
        growth = _GROWTH if nothing_lost else _GROWTH_AFTER_LOSS
        longer = min(growth * self._interval, self._longest)
        self._begin(self._busy if self._fresh else longer, now, effects)
        return False

    def _begin(self, interval: Duration, now: Instant, effects: list[Effect]) -> None:
        """Begin an interval: set the timer to a random instant of its second half."""
        half = interval // 2
        self._interval = interval
        self.announced = self._equal = self._fresh = False
        self._ends = now + interval
        self._delays = 0
        self._send_within(half, now + half, effects)

    def _send_within(self, time: Duration, begin: Instant, effects: list[Effect]) -> None:
        """Set the timer of the digest to a random instant within some time from `begin` on."""
        self._due = begin + int(self._random.random() * time)
        effects.append(SetTimer(DIGEST, self._due))
