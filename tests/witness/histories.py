"""Histories for tests: made correct by construction, made at random, or written by hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random


@dataclass
class Log:
    """Each process's rows in its own order: ("broadcast" | "delivered", "source:number")."""

    rows: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    destinations: dict[str, list[str]] = field(default_factory=dict)

    def table(self) -> list[dict[str, object]]:
        """As rows of a log, interleaved so that nothing can be read from their order in the file."""
        rows = []
        for node, events in self.rows.items():
            for step, (kind, message) in enumerate(events, 1):
                source, number = message.split(":")
                row: dict[str, object] = {
                    "node": node,
                    "step": step,
                    "kind": kind,
                    "message_source": source,
                    "message_number": int(number),
                }
                if self.destinations:
                    to = self.destinations.get(message) if kind == "broadcast" else None
                    row["destinations"] = to
                rows.append(row)
        Random(len(rows)).shuffle(rows)
        return rows


def parse(text: str) -> Log:
    """`a: +1 b1` is: a broadcasts a:1, delivers b:1. One process per line."""
    log = Log()
    for line in text.strip().splitlines():
        node, _, events = line.strip().partition(":")
        rows = []
        for word in events.split():
            if word.startswith("+"):
                rows.append(("broadcast", f"{node}:{word[1:]}"))
            else:
                rows.append(("delivered", f"{word[0]}:{word[1:]}"))
        log.rows[node] = rows
    return log


def correct(random: Random, order: str = "causal", processes: int = 0, broadcasts: int = 0) -> Log:
    """A random execution that keeps its order, with messages that some never deliver.

    `causal`: a process delivers a message only when all of its past that it will ever deliver is delivered.
    `total`: everybody delivers along one sequence, with holes.
    """
    count = processes or random.randint(2, 6)
    nodes = [f"n{i}" for i in range(count)]
    log = Log({node: [] for node in nodes})
    if order == "total":
        return _correct_total(random, log, nodes, broadcasts or random.randint(3, 15))
    past: dict[str, set[str]] = {}
    delivered_before: dict[str, set[str]] = {node: set() for node in nodes}
    gone: dict[str, set[str]] = {node: set() for node in nodes}
    numbers = dict.fromkeys(nodes, 0)
    drop = random.choice([0.0, 0.2, 0.6])
    left = broadcasts or random.randint(3, 15)
    while True:
        possible = []
        for node in nodes:
            waiting = [m for m in past if m not in delivered_before[node] and m not in gone[node]]
            possible += [(node, m) for m in waiting if not (past[m] & set(waiting))]
        if not left and not possible:
            return log
        if left and (not possible or random.random() < 0.3):
            left -= 1
            node = random.choice(nodes)
            numbers[node] += 1
            message = f"{node}:{numbers[node]}"
            inherited = set().union(*(past[m] | {m} for m in delivered_before[node]))
            own = {f"{node}:{k}" for k in range(1, numbers[node])}
            past[message] = inherited | own | set().union(*(past[m] for m in own))
            log.rows[node].append(("broadcast", message))
            continue
        node, message = random.choice(possible)
        if random.random() < drop:
            gone[node].add(message)
        else:
            delivered_before[node].add(message)
            log.rows[node].append(("delivered", message))


def _correct_total(random: Random, log: Log, nodes: list[str], broadcasts: int) -> Log:
    sequence = []
    numbers = dict.fromkeys(nodes, 0)
    for _ in range(broadcasts):
        node = random.choice(nodes)
        numbers[node] += 1
        sequence.append((node, f"{node}:{numbers[node]}"))
    for at, (source, message) in enumerate(sequence):
        log.rows[source].append(("broadcast", message))
        if at % 3 == 2 or at == len(sequence) - 1:
            for node in nodes:
                for _, earlier in sequence[at - at % 3 : at + 1]:
                    if random.random() < 0.8:
                        log.rows[node].append(("delivered", earlier))
    return log


def scrambled(random: Random) -> Log:
    """A random execution that keeps no order: deliveries swapped, repeated, lost."""
    log = correct(random)
    for _ in range(random.randint(0, 6)):
        rows = random.choice(list(log.rows.values()))
        places = [at for at, (kind, _) in enumerate(rows) if kind == "delivered"]
        if not places:
            continue
        at = random.choice(places)
        what = random.random()
        if what < 0.6 and len(places) > 1:
            # Only deliveries are moved, and only later, so none comes before its broadcast.
            kind, message = rows.pop(at)
            rows.insert(random.randint(at, len(rows)), (kind, message))
        elif what < 0.8:
            rows.insert(random.randint(at, len(rows)), rows[at])
        else:
            del rows[at]
    return log
