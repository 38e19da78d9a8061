"""Trickle: when to tell the neighbours what one has (the scheme beneath Deluge, which drift2006 cites as [17]).

A node speaks once in an interval, at a random moment of its second half, unless enough neighbours have already
said the same. When all agree the interval doubles up to a longest one; when somebody has more or less than
this node, it falls back to the shortest. So news travels fast, and agreement costs almost nothing.
"""

from __future__ import annotations

from random import Random

from precede.core.effects import CancelTimer, Effect, Key, SetTimer
from precede.core.instants import Duration, Instant


class Trickle:
    """One timer, twice per interval: the moment to speak, then the end. `shortest` 0: never speak."""

    def __init__(
        self, shortest: Duration, longest: Duration, redundancy: int, random: Random, key: Key
    ) -> None:
        self._shortest = shortest
        self._longest = max(longest, shortest)
        self._redundancy = redundancy
        self._random = random
        self._key = key
        self._interval = shortest
        self._ends: Instant = 0
        self._spoken = False
        self._alike = 0

    def start(self, now: Instant, effects: list[Effect]) -> None:
        """Begin with the shortest interval."""
        if self._shortest:
            self._interval = self._shortest
            self._begin(now, effects)

    def stop(self, effects: list[Effect]) -> None:
        """Say nothing any more."""
        if self._shortest:
            effects.append(CancelTimer(self._key))

    def alike(self) -> None:
        """A neighbour has said what this node would say."""
        self._alike += 1

    def differs(self, now: Instant, effects: list[Effect]) -> None:
        """A neighbour has more or less than this node: speak soon."""
        if self._shortest and self._interval > self._shortest:
            self._interval = self._shortest
            self._begin(now, effects)

    def timer(self, now: Instant, effects: list[Effect]) -> bool:
        """Its timer is due; True: speak now."""
        if self._spoken:
            self._interval = min(2 * self._interval, self._longest)
            self._begin(now, effects)
            return False
        self._spoken = True
        effects.append(SetTimer(self._key, self._ends))
        return self._alike < self._redundancy

    def _begin(self, now: Instant, effects: list[Effect]) -> None:
        half = self._interval // 2
        self._alike = 0
        self._spoken = False
        self._ends = now + self._interval
        effects.append(SetTimer(self._key, now + half + int(self._random.random() * half)))
