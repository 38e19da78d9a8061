"""Causal multicast: the cost of a message with 100 and with 1,000 processes, in groups of 10.

Two worlds, by direct calls (no simulator):

* `idle`: 100 processes in overlapping groups of 10 take part, all others are known and silent;
* `disjoint`: all take part, in disjoint groups of 10. What a message carries stays; its CPU ratio also shows
  that ten times as much state goes through the processor's caches.

Beside them the bytes of RST, whose matrix grows with everybody known, and the gain of the optimal pruning.
`python -m benchmarks.prs --json`
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from random import Random
from typing import Any

from benchmarks.measuring import interleaved
from precede.core.effects import Deliver, Effects, Send
from precede.core.node import Context, Node
from precede.protocols import registry

FEW, MANY = 100, 1_000
GROUP = 10
Sending = tuple[int, int, tuple[int, ...]]
Destinations = Callable[[int, int, Random], tuple[int, ...]]


def overlapping(source: int, processes: int, random: Random) -> tuple[int, ...]:
    """Nine others of one of two groups of the source: ten neighbours on a ring of 100 form a group."""
    first = (source // GROUP) * GROUP + random.choice((0, GROUP // 2))
    group = [(first + place) % FEW for place in range(GROUP)]
    return tuple(member for member in group if member != source)


def disjoint(source: int, processes: int, random: Random) -> tuple[int, ...]:
    """The other nine members of a group."""
    first = (source // GROUP) * GROUP
    return tuple(member for member in range(first, first + GROUP) if member != source)


def schedule(senders: int, processes: int, messages: int, to: Destinations) -> list[Sending]:
    """Messages at random instants, one per process and second on average."""
    random = Random(1)
    spread = max(1, 1_000_000 * messages // senders)
    instants = sorted(random.randrange(spread) for _ in range(messages))
    sources = [random.randrange(senders) for _ in range(messages)]
    return [(at, source, to(source, processes, random)) for at, source in zip(instants, sources, strict=True)]


def make_nodes(protocol: str, processes: int, **options: Any) -> list[Node]:
    """All processes, on reliable channels."""
    members = tuple(range(processes))
    settled = {"rto": 0, **options}
    return [
        registry.make(protocol, "node", Context(process, members, settled, Random(process)))
        for process in range(processes)
    ]


class Played:
    """Counts of what the messages of a run carried."""

    def __init__(self) -> None:
        self.messages = 0
        self.deliveries = 0
        self.entries = 0
        self.integers = 0
        self.order_bytes = 0

    def count(self, effects: Effects) -> None:
        sends = [effect.packet for effect in effects if type(effect) is Send]
        self.messages += 1
        for packet in sends:
            stamp = packet.stamp  # type: ignore[attr-defined]
            self.entries += stamp.entries / len(sends)  # type: ignore[assignment]
            self.integers += stamp.integers / len(sends)  # type: ignore[assignment]
            self.order_bytes += stamp.order_bytes / len(sends)  # type: ignore[assignment]


def play(nodes: Sequence[Node], sendings: Sequence[Sending]) -> Played:
    """A plain loop; copies take 0.1 s on average and overtake each other."""
    delay = Random(2).expovariate
    played = Played()
    flying: list[tuple[int, int, int, Any]] = []
    tie = 0
    for at, source, to in [*sendings, (1 << 62, -1, ())]:
        while flying and flying[0][0] < at:
            now, _, process, packet = heappop(flying)
            effects = nodes[process].receive(packet, packet.message.id.source, now, 0)
            played.deliveries += sum([type(effect) is Deliver for effect in effects])
        if source < 0:
            break
        effects = nodes[source].broadcast(b"", at, to)
        played.count(effects)
        for effect in effects:
            if type(effect) is Send:
                tie += 1
                heappush(flying, (at + 1 + int(delay(1e-5)), tie, effect.to, effect.packet))
    return played


class Contender:
    """One world; nodes are made outside the measured time, which is that of messages alone."""

    def __init__(self, protocol: str, processes: int, sendings: Sequence[Sending], **options: Any) -> None:
        self._make = lambda: make_nodes(protocol, processes, **options)
        self._sendings = sendings
        self._nodes = self._make()
        self.played = Played()

    def fresh(self) -> None:
        self._nodes = self._make()

    def __call__(self) -> None:
        self.played = play(self._nodes, self._sendings)


def contenders(messages: int) -> dict[str, Contender]:
    """Runs every world at both sizes."""
    found = {}
    for name, to, senders in (
        ("idle", overlapping, (FEW, FEW)),
        ("disjoint", disjoint, (FEW, MANY)),
    ):
        for processes, sending in zip((FEW, MANY), senders, strict=True):
            # As many messages per process that takes part: barriers are as settled in both.
            sendings = schedule(sending, processes, messages * sending // FEW, to)
            found[f"{name}_{processes}"] = Contender("prs", processes, sendings)
    sendings = schedule(FEW, FEW, messages, overlapping)
    for processes in (FEW, MANY):
        found[f"rst_idle_{processes}"] = Contender("rst", processes, sendings)
    found["optimal_idle_100"] = Contender("prs", FEW, sendings, pruning="optimal")
    return found


def measure(messages: int, rounds: int) -> dict[str, float]:
    """CPU per message as ratios of 1,000 processes to 100, and what messages carry."""
    worlds = contenders(messages)
    best: dict[str, float] = {}
    for _ in range(rounds):
        for world in worlds.values():
            world.fresh()
        for name, took in interleaved(worlds, rounds=1).items():
            best[name] = min(took, best.get(name, took))
    found: dict[str, float] = {}
    for name, world in worlds.items():
        sent = world.played.messages
        found[f"us_per_message_{name}"] = round(1e6 * best[name] / sent, 2)
        found[f"entries_{name}"] = round(world.played.entries / sent, 2)
        found[f"order_bytes_{name}"] = round(world.played.order_bytes / sent, 1)
    for name in ("idle", "disjoint"):
        for measured in ("us_per_message", "entries"):
            key = f"ratio_{name}_{measured}_1000_to_100"
            found[key] = round(found[f"{measured}_{name}_{MANY}"] / found[f"{measured}_{name}_{FEW}"], 3)
    found["ratio_rst_bytes_1000_to_100"] = round(
        found["order_bytes_rst_idle_1000"] / found["order_bytes_rst_idle_100"], 3
    )
    found["ratio_rst_bytes_to_prs_1000"] = round(
        found["order_bytes_rst_idle_1000"] / found["order_bytes_idle_1000"], 1
    )
    found["ratio_optimal_to_printed_entries"] = round(
        found["entries_optimal_idle_100"] / found["entries_idle_100"], 3
    )
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--messages", type=int, default=1_000, help="in the worlds of 100 processes")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    found = measure(given.messages, given.rounds)
    if given.json:
        print(json.dumps(found))
    else:
        for name, value in found.items():
            print(f"{name:48} {value:>14}")


if __name__ == "__main__":
    main()
