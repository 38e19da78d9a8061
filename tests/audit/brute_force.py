"""All orders that a small log allows, one by one: the fewest and the most late copies among them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations, product
from random import Random
from typing import NamedTuple


class Seen(NamedTuple):
    """A first copy (message) or a creation at a node."""

    message: str
    earliest: int
    latest: int
    is_creation: bool


class SmallLog(NamedTuple):
    """Events by node, and the source and rank of each message."""

    events: dict[str, list[Seen]]
    source: dict[str, str]
    rank: dict[str, int]

    def columns(self) -> tuple[list[str], list[str], list[str], list[int], list[int], list[int]]:
        """The copies as the columns of `copies.encode`."""
        rows = [
            (node, seen) for node, all_seen in self.events.items() for seen in all_seen if not seen.is_creation
        ]
        created = {
            s.message: s.earliest for all_seen in self.events.values() for s in all_seen if s.is_creation
        }
        return (
            [node for node, _ in rows],
            [seen.message for _, seen in rows],
            [self.source[seen.message] for _, seen in rows],
            [created[seen.message] for _, seen in rows],
            [seen.earliest for _, seen in rows],
            [seen.latest for _, seen in rows],
        )


def draw(seed: int, intervals: bool) -> SmallLog:
    """Three nodes, up to four messages, instants that often coincide."""
    random = Random(seed)
    nodes = ["a", "b", "c"]
    events: dict[str, list[Seen]] = {node: [] for node in nodes}
    source, created = {}, {}
    for number in range(random.randint(2, 4)):
        message, author, at = f"m{number}", random.choice(nodes), random.randint(0, 3)
        source[message], created[message] = author, at
        events[author].append(Seen(message, at, at, True))
        for node in nodes:
            if node != author and random.random() < 0.75:
                early = random.randint(0, 4)
                late = early + random.choice((0, 0, 2)) if intervals else early
                events[node].append(Seen(message, early, late, False))
    rank = {
        m: sorted((created[n], n) for n in source if source[n] == source[m]).index((created[m], m))
        for m in source
    }
    return SmallLog(events, source, rank)


def orders(log: SmallLog, node: str, margin: int) -> Iterator[Sequence[Seen]]:
    """Yield the orders of a node's events that its clock allows."""
    for order in permutations(log.events[node]):
        pairs = [(one, other) for place, one in enumerate(order) for other in order[place + 1 :]]
        if any(
            log.rank[other.message] < log.rank[one.message]
            if one.is_creation and other.is_creation
            else other.latest + margin < one.earliest
            for one, other in pairs
        ):
            continue
        yield order


def late_counts(log: SmallLog, order: str, margin: int) -> list[int]:
    """Return the late copies in each order of all events in which no message depends on itself."""
    counts = []
    for world in product(*(list(orders(log, node, margin)) for node in log.events)):
        before: dict[str, set[str]] = {m: set() for m in log.source}
        for sequence in world:
            for place, seen in enumerate(sequence):
                if seen.is_creation:
                    before[seen.message] |= {earlier.message for earlier in sequence[:place]}
        for _ in log.source:
            for m, past in before.items():
                before[m] = past.union(*(before[other] for other in past))
        if any(m in past for m, past in before.items()):
            continue
        if order == "fifo":
            before = {
                m: {n for n in log.source if log.source[n] == log.source[m] and log.rank[n] < log.rank[m]}
                for m in log.source
            }
        copies = [[seen.message for seen in sequence if not seen.is_creation] for sequence in world]
        counts.append(
            sum(any(m in before[n] for n in line[:place]) for line in copies for place, m in enumerate(line))
        )
    return counts
