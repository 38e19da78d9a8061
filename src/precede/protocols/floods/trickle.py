"""Trickle: when a node sends its digest (the algorithm beneath Deluge, reference [17] of drift2006).

A node sends once in an interval, at a random instant of its second half, unless enough neighbours have sent an
equal digest. While all agree, the interval grows by a factor, up to a longest one. When a neighbour has more or
less than this node, the interval falls back to the shortest. So news spreads fast, and agreement is cheap.
"""

from random import Random

from precede.core.effects import Effect, Key, SetTimer
from precede.core.instants import Duration, Instant


class Trickle:
    """Decides when a node sends its digest. If `shortest` is 0, it never does.

    Its timer fires twice per interval: at the instant to send, and at the end.
    """

    def __init__(
        self,
        shortest: Duration,
        longest: Duration,
        redundancy: int,
        random: Random,
        key: Key,
        growth: int = 2,
    ) -> None:
        self._shortest = shortest
        self._longest = max(longest, shortest)
        self._redundancy = redundancy
        self._random = random
        self._key = key
        self._growth = growth
        self._interval = shortest
        self._ends: Instant = 0
        self._sent = False
        self._equal_digests = 0

    def start(self, now: Instant, effects: list[Effect]) -> None:
        """Begin with the shortest interval, unless that is 0."""
        if self._shortest:
            self._interval = self._shortest
            self._begin(now, effects)

    def same_digest(self) -> None:
        """Count an equal digest from a neighbour: enough of them suppress this node's own digest."""
        self._equal_digests += 1

    def differs(self, now: Instant, effects: list[Effect]) -> None:
        """Fall back to the shortest interval, because a neighbour has more or less than this node."""
        if self._shortest and self._interval > self._shortest:
            self._interval = self._shortest
            self._begin(now, effects)

    def timer(self, now: Instant, effects: list[Effect]) -> bool:
        """Handle the timer and set it again. True when the digest is to be sent now."""
        if self._sent:
            self._interval = min(self._growth * self._interval, self._longest)
            self._begin(now, effects)
            return False
        self._sent = True
        effects.append(SetTimer(self._key, self._ends))
        return self._equal_digests < self._redundancy

    def _begin(self, now: Instant, effects: list[Effect]) -> None:
        """Begin an interval: set the timer to a random instant of its second half."""
        half = self._interval // 2
        self._equal_digests = 0
        self._sent = False
        self._ends = now + self._interval
        effects.append(SetTimer(self._key, now + half + int(self._random.random() * half)))
