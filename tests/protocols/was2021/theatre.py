"""A small deterministic world for directed WAS schedules: 10 ms per wired hop, 1 ms per radio frame.

Times are in milliseconds. A schedule says which host moves where and when, and which frames are lost or late.
`Theatre.verdict` judges the broadcasts and deliveries by their payloads; it knows nothing of the protocol.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any

from precede.core.dispatch import EffectHandler, store_value
from precede.core.effects import RADIO, WIRED, Accept, CancelTimer, Deliver, Effects, Persist, Send, SetTimer
from precede.core.identity import NEIGHBOURS
from precede.core.messages import Packet
from precede.core.node import Context, Node, round_trip
from precede.protocols.registry import make_entry
from tests.protocols.was2021.literal import literal_entry

MS = 1000
LINE = ((1, 0), (0, 2))
"""s1 - s0 - s2."""


class Steady(Random):
    """A generator without jitter: every draw is 0.5."""

    def random(self) -> float:
        return 0.5


@dataclass
class Rule:
    """Radio frames sent between two times (ms) that match are lost, or late by `late` milliseconds."""

    start: float
    end: float
    matches: Callable[[int, int, Packet], bool]
    late: float | None = None


@dataclass
class Verdict:
    """What went wrong, as a list of hosts, messages or stations for each kind.

    `causal`, `duplicates` and `missing` are deliveries; `zombies` are records at stations where no such host
    is, `kept` stations that have not discarded everything, `unconnected` hosts in a cell without a connection.
    """

    causal: list[str] = field(default_factory=list)
    duplicates: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    zombies: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    unconnected: list[str] = field(default_factory=list)

    def clean(self) -> bool:
        return not (
            self.causal or self.duplicates or self.missing or self.zombies or self.kept or self.unconnected
        )


class Theatre(EffectHandler):
    """Stations and hosts, a heap of events, and a log of broadcasts and deliveries."""

    def __init__(
        self,
        hosts: Sequence[int] = (10,),
        tree: Sequence[tuple[int, int]] = LINE,
        without: str = "",
        **options: Any,
    ) -> None:
        self.now = 0
        self.heap: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self.order = count()
        self.stations = sorted({end for link in tree for end in link})
        self.hosts = list(hosts)
        self.entry = literal_entry(without)
        self.options = {"stations": len(self.stations), "down_after": "20s", **options}
        self.rules: list[Rule] = []
        self.cell: dict[int, int | None] = {}
        self.up: dict[int, bool] = {}
        self.store: dict[int, dict[Any, Any]] = {}
        self.timers: dict[tuple[int, Any], int] = {}
        self.wired_at: dict[tuple[int, int], int] = {}
        self.log: list[tuple[int, str, int, bytes]] = []
        self.frames: list[tuple[float, int, int, Packet]] = []
        self.left: list[int] = []
        self.words: set[bytes] = set()
        self.nodes: dict[int, Node] = {}
        for node in (*self.stations, *self.hosts):
            self._make(node)
        for one, other in tree:
            self._do(one, self.nodes[one].link_up(other, 0, WIRED))
            self._do(other, self.nodes[other].link_up(one, 0, WIRED))

    # The schedule -------------------------------------------------------------------------------------------

    def at(self, ms: float, action: Callable[..., None], *arguments: Any) -> None:
        """Schedule an action."""
        self._push(round(ms * MS), action, *arguments)

    def enter(self, host: int, station: int | None) -> None:
        """Move a host to this cell (None: out of coverage)."""
        old = self.cell.get(host)
        self.cell[host] = station
        if self.up[host]:
            if old is not None:
                self._do(host, self.nodes[host].link_down(old, self.now, RADIO))
            if station is not None:
                self._do(host, self.nodes[host].link_up(station, self.now, RADIO))

    def say(self, host: int, word: str) -> None:
        """Broadcast a message; each payload is used once."""
        self._do(host, self.nodes[host].broadcast(word.encode(), self.now))

    def leave(self, host: int) -> None:
        self.left.append(host)
        self._do(host, self.nodes[host].leave(self.now))

    def crash(self, host: int) -> None:
        """Stop a host and its timers; what it persisted stays."""
        self.up[host] = False
        self.timers = {key: token for key, token in self.timers.items() if key[0] != host}

    def restart(self, host: int) -> None:
        """Start a crashed host with what it persisted."""
        self._make(host)
        cell = self.cell.get(host)
        if cell is not None:
            self._do(host, self.nodes[host].link_up(cell, self.now, RADIO))

    def lose(self, start: float, end: float, *kinds: str, **where: Any) -> None:
        """Lose radio frames of these kinds in this time; `host`, `at` (station) and `word` restrict it."""
        self.rules.append(Rule(start, end, matching(kinds, **where)))

    def delay(self, start: float, end: float, by: float, *kinds: str, **where: Any) -> None:
        """Delay radio frames by `by` milliseconds, selected as in `lose`."""
        self.rules.append(Rule(start, end, matching(kinds, **where), by))

    def run(self, until: float) -> None:
        """Run all events up to an instant."""
        while self.heap and self.heap[0][0] <= round(until * MS):
            self.now, _, action, arguments = heapq.heappop(self.heap)
            action(*arguments)
        self.now = round(until * MS)

    # The judgement ------------------------------------------------------------------------------------------

    def delivered(self, host: int) -> list[str]:
        """The payloads that a host delivered, in order."""
        return [word.decode() for _, kind, node, word in self.log if kind == "deliver" and node == host]

    def verdict(self, due: Sequence[int] = ()) -> Verdict:
        """Judge the run; the hosts in `due` must have delivered every message."""
        verdict = Verdict()
        self._judge_order(verdict)
        words = [word for _, kind, _, word in self.log if kind == "broadcast"]
        for host in due:
            had = set(self.delivered(host))
            verdict.missing += [f"{host}:{word.decode()}" for word in words if word.decode() not in had]
        for host in self.hosts:
            home = self.cell.get(host) if self.up[host] and host not in self.left else None
            verdict.zombies += [
                f"{host}@{station}"
                for station in self.stations
                if station != home and host in self.nodes[station].records  # type: ignore[attr-defined]
            ]
            if home is not None and not self.nodes[host].connected:  # type: ignore[attr-defined]
                verdict.unconnected.append(str(host))
        verdict.kept = [
            f"{station}:{size}"
            for station in self.stations
            if (size := self.nodes[station].sizes()["sbuffer"]) > 0
        ]
        return verdict

    def _judge_order(self, verdict: Verdict) -> None:
        """Find duplicates and causal violations, by vectors of the numbers of broadcasts."""
        clock: dict[int, dict[int, int]] = {host: {} for host in self.hosts}
        stamp: dict[bytes, tuple[int, int, dict[int, int]]] = {}
        past: dict[int, dict[int, int]] = {host: {} for host in self.hosts}
        had: set[tuple[int, bytes]] = set()
        for _, kind, host, word in self.log:
            if kind == "broadcast":
                clock[host][host] = clock[host].get(host, 0) + 1
                stamp[word] = (host, clock[host][host], dict(clock[host]))
                continue
            source, number, vector = stamp[word]
            name = f"{host}:{word.decode()}"
            if (host, word) in had:
                verdict.duplicates.append(name)
            elif past[host].get(source, 0) >= number:
                verdict.causal.append(name)
            had.add((host, word))
            for target in (clock[host], past[host]):
                for other, value in vector.items():
                    target[other] = max(target.get(other, 0), value)

    # The machinery ------------------------------------------------------------------------------------------

    def _make(self, node: int) -> None:
        role = "station" if node in self.stations else "host"
        self.nodes[node] = make_entry(self.entry, role, Context(node, (), self.options, Steady(0)))
        self.up[node] = True
        saved = round_trip(self.store.setdefault(node, {}))
        self._do(node, self.nodes[node].start(self.now, saved))

    def _push(self, at: int, action: Callable[..., None], *arguments: Any) -> None:
        heapq.heappush(self.heap, (at, next(self.order), action, arguments))

    def _do(self, node: int, effects: Effects) -> None:
        """Carry out the effects of one input."""
        self.carry_out(node, effects, self.now)

    def set_timer(self, node: int, effect: SetTimer, now: int) -> None:
        token = self.timers[node, effect.key] = next(self.order)
        self._push(max(effect.at, now), self._timer, node, effect.key, token)

    def cancel_timer(self, node: int, effect: CancelTimer, now: int) -> None:
        self.timers.pop((node, effect.key), None)

    def deliver(self, node: int, effect: Deliver, now: int) -> None:
        self.log.append((now, "deliver", node, effect.message.payload))

    def accept(self, node: int, effect: Accept, now: int) -> None:
        payload = effect.message.payload
        if payload not in self.words:
            self.words.add(payload)
            self.log.append((now, "broadcast", node, payload))

    def persist(self, node: int, effect: Persist, now: int) -> None:
        store_value(self.store[node], effect)

    def _timer(self, node: int, key: Any, token: int) -> None:
        if self.timers.get((node, key)) == token:
            del self.timers[node, key]
            self._do(node, self.nodes[node].timer(key, self.now))

    def send(self, node: int, effect: Send, now: int) -> None:
        if effect.over == WIRED:
            at = max(self.now + 10 * MS, self.wired_at.get((node, effect.to), 0))
            self.wired_at[node, effect.to] = at
            self.frames.append((self.now / MS, node, effect.to, effect.packet))
            self._push(at, self._receive, effect.to, effect.packet, node, WIRED)
            return
        if effect.key is not None:
            self._push(self.now, self._sent, node, effect.key)
        targets = [effect.to]
        if effect.to == NEIGHBOURS:
            targets = [host for host in self.hosts if self.cell.get(host) == node]
        for target in targets:
            self._fly(node, target, effect.packet)

    def _fly(self, node: int, target: int, packet: Packet) -> None:
        """Transmit a radio frame, unless a rule loses it."""
        self.frames.append((self.now / MS, node, target, packet))
        late = 0.0
        for rule in self.rules:
            if rule.start * MS <= self.now <= rule.end * MS and rule.matches(node, target, packet):
                if rule.late is None:
                    return
                late += rule.late
        self._push(self.now + round((1 + late) * MS), self._land, node, target, packet)

    def _land(self, node: int, target: int, packet: Packet) -> None:
        if target in self.stations or self.cell.get(target) == node:
            self._receive(target, packet, node, RADIO)

    def _receive(self, target: int, packet: Packet, sender: int, over: Any) -> None:
        if self.up[target]:
            self._do(target, self.nodes[target].receive(packet, sender, self.now, over))

    def _sent(self, node: int, key: Any) -> None:
        if self.up[node]:
            self._do(node, self.nodes[node].sent(key, self.now, True))


def matching(
    kinds: Sequence[str], host: int | None = None, at: int | None = None, word: str | None = None
) -> Callable[[int, int, Packet], bool]:
    """A predicate over sender, receiver and packet: all conditions that are given must hold."""

    def matches(node: int, target: int, packet: Packet) -> bool:
        message = getattr(packet, "message", None)
        return (
            (not kinds or packet.kind in kinds)
            and (host is None or host in (node, target))
            and (at is None or at in (node, target))
            and (word is None or (message is not None and message.payload == word.encode()))
        )

    return matches
