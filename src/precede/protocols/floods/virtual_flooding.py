"""Virtual flooding (drift2006, sections 3 and 8): small data that spreads on packets sent for other reasons.

A node keeps the freshest value it has seen of every key, and attaches these values to any packet when it
leaves. Receivers merge them. No packet is ever sent for this data alone. DRIFT spreads clocks this way; any
small data with a version will do (a sensor's reading, a battery's charge).

The number of entries on a packet can be limited. The paper does not say which entries are chosen then, although
that changes its result several times over; we offer four policies.
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
    """One entry on a packet: of two with the same key, the one with the higher version is fresher."""

    key: K
    version: int
    value: V


class VirtualFlooding(Generic[K, V]):
    """The data that one node has seen, and attaches to packets. `limit` None: all of it on every packet."""

    def __init__(self, random: Random, limit: int | None = None, policy: Policy = "least_sent") -> None:
        self._freshest: dict[K, Datum[K, V]] = {}
        self._limit = limit
        self._choice: Choice[K] | None = None if limit is None else choice(policy, random)

    def put(self, key: K, version: int, value: V) -> None:
        """Set data of this node, or a newer version of it, which packets then carry."""
        self._take(Datum(key, version, value))

    def attach(self) -> tuple[Datum[K, V], ...]:
        if self._choice is None or self._limit is None:
            return tuple(self._freshest.values())
        return tuple(self._freshest[key] for key in self._choice.choose(self._limit))

    def merge(self, received: Sequence[Datum[K, V]]) -> list[Datum[K, V]]:
        """Merge the data of a received packet; returns the part that was fresher."""
        return [datum for datum in received if self._take(datum)]

    def get(self, key: K) -> Datum[K, V] | None:
        return self._freshest.get(key)

    def __len__(self) -> int:
        return len(self._freshest)

    def _take(self, datum: Datum[K, V]) -> bool:
        """Keep a datum if it is fresher; False if it is not."""
        current = self._freshest.get(datum.key)
        if current is not None and current.version >= datum.version:
            return False
        self._freshest[datum.key] = datum
        if self._choice is not None:
            self._choice.changed(datum.key)
        return True


def choice(policy: Policy, random: Random) -> Choice[K]:
    """Return a new instance of the policy with this name."""
    if policy == "random":
        return RandomChoice(random)
    if policy == "freshest":
        return Freshest()
    return LeastSent() if policy == "least_sent" else RoundRobin()


class Choice(ABC, Generic[K]):
    """A policy that chooses the keys for a packet when not all fit."""

    @abstractmethod
    def changed(self, key: K) -> None:
        """Record that a key is new or has a new value."""

    @abstractmethod
    def choose(self, limit: int) -> list[K]:
        """Choose at most `limit` keys for a packet that leaves now."""

    @abstractmethod
    def forget(self, key: K) -> None:
        """Forget a key that does not exist any more."""


class LeastSent(Choice[K]):
    """Chooses the values that this node has sent least often; of equal ones, those that waited longest."""

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
    """Chooses the keys in turn, changed or not."""

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
    """Draws random keys for every packet."""

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
    """Chooses values that were not sent yet, the newest first, and then the others in turn."""

    def __init__(self) -> None:
        self._unsent: dict[K, None] = {}
        self._turn: RoundRobin[K] = RoundRobin()

    def changed(self, key: K) -> None:
        self.forget(key)
        self._unsent[key] = None

    def choose(self, limit: int) -> list[K]:
        chosen = list(self._unsent)
        chosen.reverse()
        chosen = chosen[:limit]
        chosen += self._turn.choose(limit - len(chosen))
        for key in chosen:
            self._unsent.pop(key, None)
            self._turn.changed(key)
        return chosen

    def forget(self, key: K) -> None:
        self._unsent.pop(key, None)
        self._turn.forget(key)
