"""Virtual flooding (drift2006, sections 3 and 8): small data that travels on whatever else is being sent.

A node keeps, for every key, the freshest value it has seen, and attaches what it keeps to any packet at the
moment that packet leaves. Whoever hears the packet merges. No packet is ever sent for the data's own sake.
DRIFT carries clocks this way; anything small with a version (a sensor's reading, a battery's charge) can be.

How many entries a packet may carry can be limited. The paper does not say which entries are then chosen,
although that changes its result several times over, so there is a choice of four ways to choose.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from random import Random
from typing import Generic, Literal, TypeAlias, TypeVar

from msgspec import Struct

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

Policy: TypeAlias = Literal["least_sent", "round_robin", "random", "freshest"]


class Datum(Struct, Generic[K, V], frozen=True, gc=False, array_like=True):
    """One entry as it travels: of two with the same key the one with the higher version is the later one."""

    key: K
    version: int
    value: V


class VirtualFlooding(Generic[K, V]):
    """What one node knows and attaches. `limit` None: everything on every packet."""

    def __init__(self, random: Random, limit: int | None = None, policy: Policy = "least_sent") -> None:
        self._known: dict[K, Datum[K, V]] = {}
        self._limit = limit
        self._choice: Choice[K] | None = None if limit is None else choice(policy, random)

    def put(self, key: K, version: int, value: V) -> None:
        """This node's own datum, or a newer version of it: it will travel."""
        self._take(Datum(key, version, value))

    def attach(self) -> tuple[Datum[K, V], ...]:
        """What goes on the packet that leaves now."""
        if self._choice is None or self._limit is None:
            return tuple(self._known.values())
        return tuple(self._known[key] for key in self._choice.choose(self._limit))

    def merge(self, heard: Sequence[Datum[K, V]]) -> list[Datum[K, V]]:
        """What a packet brought along; returns what of it was news."""
        return [datum for datum in heard if self._take(datum)]

    def get(self, key: K) -> Datum[K, V] | None:
        """The freshest value seen."""
        return self._known.get(key)

    def __len__(self) -> int:
        return len(self._known)

    def _take(self, datum: Datum[K, V]) -> bool:
        known = self._known.get(datum.key)
        if known is not None and known.version >= datum.version:
            return False
        self._known[datum.key] = datum
        if self._choice is not None:
            self._choice.changed(datum.key)
        return True


def choice(policy: Policy, random: Random) -> Choice[K]:
    """A way to choose by name."""
    if policy == "random":
        return RandomChoice(random)
    if policy == "freshest":
        return Freshest()
    return LeastSent() if policy == "least_sent" else RoundRobin()


class Choice(ABC, Generic[K]):
    """Which keys go on a packet that has no room for all. It is told of every key, and when one changes."""

    @abstractmethod
    def changed(self, key: K) -> None:
        """This key is new, or has a new value."""

    @abstractmethod
    def choose(self, limit: int) -> list[K]:
        """At most `limit` keys for the packet that leaves now."""

    @abstractmethod
    def forget(self, key: K) -> None:
        """This key does not exist any more."""


class LeastSent(Choice[K]):
    """The values this node has sent least often, of those the ones that have waited longest."""

    def __init__(self) -> None:
        self._times: dict[K, int] = {}
        self._by_times: dict[int, dict[K, None]] = {}

    def changed(self, key: K) -> None:
        self.forget(key)
        self._put(key, 0)

    def choose(self, limit: int) -> list[K]:
        chosen: list[K] = []
        for times in sorted(self._by_times):
            for key in self._by_times[times]:
                if len(chosen) == limit:
                    break
                chosen.append(key)
        for key in chosen:
            times = self._times[key]
            self.forget(key)
            self._put(key, times + 1)
        return chosen

    def forget(self, key: K) -> None:
        times = self._times.pop(key, None)
        if times is not None:
            del self._by_times[times][key]
            if not self._by_times[times]:
                del self._by_times[times]

    def _put(self, key: K, times: int) -> None:
        self._times[key] = times
        self._by_times.setdefault(times, {})[key] = None


class RoundRobin(Choice[K]):
    """Every key in turn, changed or not."""

    def __init__(self) -> None:
        self._turn: dict[K, None] = {}

    def changed(self, key: K) -> None:
        self._turn.setdefault(key)

    def choose(self, limit: int) -> list[K]:
        chosen = list(self._turn)[:limit]
        for key in chosen:
            del self._turn[key]
            self._turn[key] = None
        return chosen

    def forget(self, key: K) -> None:
        self._turn.pop(key, None)


class RandomChoice(Choice[K]):
    """Any keys, drawn anew for every packet."""

    def __init__(self, random: Random) -> None:
        self._keys: dict[K, None] = {}
        self._random = random

    def changed(self, key: K) -> None:
        self._keys.setdefault(key)

    def choose(self, limit: int) -> list[K]:
        keys = list(self._keys)
        return self._random.sample(keys, limit) if limit < len(keys) else keys

    def forget(self, key: K) -> None:
        self._keys.pop(key, None)


class Freshest(Choice[K]):
    """Values not sent yet, the newest first; what room is left goes to the others in turn."""

    def __init__(self) -> None:
        self._news: dict[K, None] = {}
        self._turn: RoundRobin[K] = RoundRobin()

    def changed(self, key: K) -> None:
        self.forget(key)
        self._news[key] = None

    def choose(self, limit: int) -> list[K]:
        chosen = list(self._news)
        chosen.reverse()
        chosen = chosen[:limit]
        chosen += self._turn.choose(limit - len(chosen))
        for key in chosen:
            self._news.pop(key, None)
            self._turn.changed(key)
        return chosen

    def forget(self, key: K) -> None:
        self._news.pop(key, None)
        self._turn.forget(key)
