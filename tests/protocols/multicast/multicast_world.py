"""Multicast schedules for tests: drawn before any node runs, so that all protocols get the same.

`play` runs a schedule by calling nodes directly. `oracle` computes causal order from its definition: each
message carries the set of all messages in its causal past, and is delivered as soon as the receiver has those
that are addressed to it. The oracle uses no barrier, matrix or vector.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random
from typing import Any

from precede.core.dispatch import EffectHandler
from precede.core.effects import Accept, Deliver, Send
from precede.core.node import Context, Node
from precede.protocols import registry

Id = tuple[int, int]
"""Source and number."""


@dataclass(frozen=True)
class Sending:
    """A process sends a message to its destinations at an instant; each copy has its own delay."""

    at: int
    source: int
    to: tuple[int, ...]
    delays: tuple[int, ...]


class Played(EffectHandler):
    """Plays a schedule. Result: deliveries (instant, message) by process; packets by message and receiver."""

    def __init__(self, nodes: Sequence[Any]) -> None:
        self.nodes = nodes
        self.deliveries: dict[int, list[tuple[int, Id]]] = {process: [] for process in range(len(nodes))}
        self.packets: dict[Id, dict[int, Any]] = {}
        self.queue: list[tuple[int, int, int, Any]] = []
        self.sending: Sending | None = None
        """The sending that is carried out now; None while a packet is received."""
        self._tie = 0

    def push(self, at: int, process: int, event: Any) -> None:
        """Something happens to a process; events of one instant keep their order."""
        self._tie += 1
        heappush(self.queue, (at, self._tie, process, event))

    def send(self, node: int, effect: Send, now: int) -> None:
        assert self.sending is not None
        id = effect.packet.message.id  # type: ignore[attr-defined]
        self.packets.setdefault((id.source, id.number), {})[effect.to] = effect.packet
        delay = self.sending.delays[self.sending.to.index(effect.to)]
        self.push(now + delay, effect.to, (effect.packet, node))

    def deliver(self, node: int, effect: Deliver, now: int) -> None:
        id = effect.message.id
        self.deliveries[node].append((now, (id.source, id.number)))

    def accept(self, node: int, effect: Accept, now: int) -> None:
        assert self.sending is not None
        assert effect.destinations == self.sending.to


def draw(
    seed: int, processes: int, messages: int, largest: int | None = None, spread: int | None = None
) -> list[Sending]:
    """A random schedule: destination sets overlap, copies overtake each other, no two events coincide."""
    random = Random(seed)
    spread = spread if spread is not None else random.choice((2, 20, 200))
    instants = random.sample(range(1, 40 * messages * processes), messages)
    taken: set[int] = set(instants)
    schedule = []
    for at in sorted(instants):
        source = random.randrange(processes)
        others = [process for process in range(processes) if process != source]
        to = tuple(random.sample(others, random.randint(1, min(largest or len(others), len(others)))))
        delays = []
        for _ in to:
            delay = 1 + int(random.expovariate(1 / (spread * processes)))
            while at + delay in taken:
                delay += 1
            taken.add(at + delay)
            delays.append(delay)
        schedule.append(Sending(at, source, to, tuple(delays)))
    return schedule


def make(protocol: str, process: int, processes: int, **options: Any) -> Node:
    """A node with reliable channels."""
    settled = {"rto": 0, **options}
    return registry.make(protocol, "node", Context(process, tuple(range(processes)), settled, Random(process)))


def play(
    schedule: Sequence[Sending],
    processes: int,
    protocol: str,
    watch: Callable[[Played, int], None] | None = None,
    **options: Any,
) -> Played:
    """Run a schedule. `watch` is called after each event with the process of the event."""
    played = Played([make(protocol, process, processes, **options) for process in range(processes)])
    for sending in schedule:
        played.push(sending.at, sending.source, sending)
    while played.queue:
        now, _, process, event = heappop(played.queue)
        node = played.nodes[process]
        if isinstance(event, Sending):
            played.sending = event
            effects = node.broadcast(b"", now, event.to)
        else:
            packet, sender = event
            played.sending = None
            effects = node.receive(packet, sender, now, 0)
        played.carry_out(process, effects, now)
        if watch is not None:
            watch(played, process)
    return played


@dataclass
class History:
    """The causal order of a schedule by definition. A set of messages is a number: bit k is `messages[k]`."""

    deliveries: dict[int, list[tuple[int, Id]]]
    messages: list[Id] = field(default_factory=list)
    bit: dict[Id, int] = field(default_factory=dict)
    to: dict[Id, tuple[int, ...]] = field(default_factory=dict)
    past: dict[Id, int] = field(default_factory=dict)
    """By message: the messages in its causal past."""
    delivered_before: dict[Id, list[int]] = field(default_factory=dict)
    """By message and process: the deliveries to the process in the causal past of the message."""

    def set_of(self, bits: int) -> list[Id]:
        """The messages of a set as a list."""
        return [message for place, message in enumerate(self.messages) if bits >> place & 1]

    def maximal(self, bits: int) -> list[Id]:
        """The messages of a set that precede no other message of the set."""
        members = self.set_of(bits)
        return [one for one in members if not any(self.past[other] & self.bit[one] for other in members)]


class _Process:
    def __init__(self, processes: int) -> None:
        self.number = 0
        self.past = 0
        self.delivered_before = [0] * processes
        self.got = 0
        self.waiting: list[Id] = []


def oracle(schedule: Sequence[Sending], processes: int) -> History:
    """The deliveries of a schedule in causal order, computed with whole sets of messages."""
    state = [_Process(processes) for _ in range(processes)]
    addressed = [0] * processes
    history = History({process: [] for process in range(processes)})
    sendings = sorted(schedule, key=lambda sending: sending.at, reverse=True)
    arrivals: list[tuple[int, int, Id]] = []
    while sendings or arrivals:
        if sendings and (not arrivals or sendings[-1].at < arrivals[0][0]):
            sending = sendings.pop()
            here = state[sending.source]
            here.number += 1
            message = (sending.source, here.number)
            history.bit[message] = 1 << len(history.messages)
            history.messages.append(message)
            history.past[message] = here.past
            history.delivered_before[message] = list(here.delivered_before)
            history.to[message] = sending.to
            here.past |= history.bit[message]
            for to, delay in zip(sending.to, sending.delays, strict=True):
                addressed[to] |= history.bit[message]
                heappush(arrivals, (sending.at + delay, to, message))
            continue
        now, process, message = heappop(arrivals)
        here = state[process]
        here.waiting.append(message)
        while free := [one for one in here.waiting if not history.past[one] & addressed[process] & ~here.got]:
            here.waiting.remove(free[0])
            bit = history.bit[free[0]]
            here.got |= bit
            here.past |= history.past[free[0]] | bit
            here.delivered_before = [
                mine | theirs
                for mine, theirs in zip(here.delivered_before, history.delivered_before[free[0]], strict=True)
            ]
            here.delivered_before[process] |= bit
            history.deliveries[process].append((now, free[0]))
    assert not any(process.waiting for process in state)
    return history


def necessary(history: History, message: Id) -> set[tuple[int, Id]]:
    """The (destination, message) pairs of a message's causal past that it must carry.

    It need not carry a pair if the delivery is in its causal past, or if a later message to the destination is.
    """
    latest: dict[int, int] = {}
    for earlier in history.set_of(history.past[message]):
        for to in history.to[earlier]:
            latest[to] = latest.get(to, 0) | history.bit[earlier]
    return {
        (to, earlier)
        for to, sent in latest.items()
        for earlier in history.maximal(sent)
        if not history.delivered_before[message][to] & history.bit[earlier]
    }


def barrier_pairs(barrier: Mapping[int, Mapping[int, int]]) -> set[tuple[int, Id]]:
    """The tuples of a causal barrier as (destination, message)."""
    return {(to, (source, number)) for to, row in barrier.items() for source, number in row.items()}


def log_pairs(log: Mapping[int, Mapping[int, Sequence[int]]]) -> set[tuple[int, Id]]:
    """The entries of a log of the optimal pruning as (destination, message)."""
    return {
        (to, (source, number))
        for source, entries in log.items()
        for number, remaining in entries.items()
        for to in remaining
    }
