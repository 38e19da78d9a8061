"""Small random logs with everything that the page about orders speaks of: see `draw`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

Row = dict[str, Any]


@dataclass
class Drawn:
    """A log, whether rows of it are missing, and a membership that may or may not be its own."""

    rows: list[Row]
    holed: bool
    members: list[str] = field(default_factory=list)
    situations: set[str] = field(default_factory=set)


def draw(random: Random) -> Drawn:
    """Draw a log of up to 45 rows.

    Incarnations that count steps anew or go on counting, destinations, deadlines, repetitions, ghosts,
    deliveries before the broadcast (at the source and in rings), rows of other kinds, missing rows, nodes
    without rows.
    """
    nodes = [f"n{i}" for i in range(random.randint(1, 5))]
    addressed, timed, restarts, wild = (random.random() < share for share in (0.4, 0.4, 0.4, 0.3))
    spread = random.choice([1.0, 4.0, 30.0])
    steps: dict[str, int] = {}
    incarnation = dict.fromkeys(nodes, 0)
    number: dict[tuple[str, int], int] = {}
    messages: list[tuple[str, int, int]] = []
    rows: list[Row] = []
    situations: set[str] = set()
    for now in range(random.randint(2, 45)):
        node = random.choice(nodes)
        if restarts and random.random() < 0.04 and node in steps:
            incarnation[node] += 1
            if random.random() < 0.5:
                steps[node] = random.choice([-1, 0])
            situations.add("restart")
        steps[node] = steps.get(node, -1) + 1
        process = (node, incarnation[node])
        row: Row = {"node": node, "incarnation": process[1], "step": steps[node], "clock_us": now}
        chance = random.random()
        if chance < 0.3 or not messages:
            number[process] = number.get(process, 0) + random.choice([1, 1, 3])
            messages.append((*process, number[process]))
            row |= _named(messages[-1]) | {"kind": "broadcast"}
            if addressed and random.random() < 0.6:
                row["destinations"] = [name for name in nodes if random.random() < 0.7]
            if timed and random.random() < 0.8:
                row["deadline_us"] = now + random.randrange(25)
        elif chance < 0.35:
            row["kind"] = "other"
        else:
            back = min(int(random.expovariate(1 / spread)), len(messages) - 1)
            message = messages[len(messages) - 1 - back]
            if wild and random.random() < 0.04:
                message = (random.choice([*nodes, "nobody"]), random.choice([0, 0, 1]), 900)
                situations.add("ghost")
            row |= _named(message) | {"kind": "delivered"}
        rows.append(row)
    if wild and random.random() < 0.4:
        situations.add("moved")
        _move_a_broadcast(random, rows)
    holed = random.random() < 0.3 and _lose_rows(random, rows, nodes, situations)
    members = random.choice([[], nodes, nodes[: len(nodes) // 2 + 1], [*nodes, "absent"]])
    if addressed:
        rows = [{"destinations": None, **row} for row in rows]
        situations.add("destinations")
    random.shuffle(rows)
    return Drawn(rows, holed, members, situations)


def _named(message: tuple[str, int, int]) -> Row:
    names = ("message_source", "message_incarnation", "message_number")
    return dict(zip(names, message, strict=True))


def _move_a_broadcast(random: Random, rows: Sequence[Row]) -> None:
    """Swap a broadcast with a later delivery of its process, so that deliveries come before it."""
    places = [
        (a, b)
        for a, first in enumerate(rows)
        for b, then in enumerate(rows)
        if a < b
        and first["kind"] == "broadcast"
        and then["kind"] == "delivered"
        and (first["node"], first["incarnation"]) == (then["node"], then["incarnation"])
        and not any(row["kind"] == "broadcast" and row["node"] == first["node"] for row in rows[a + 1 : b + 1])
    ]
    if places:
        a, b = random.choice(places)
        for name in ("step", "clock_us"):
            rows[a][name], rows[b][name] = rows[b][name], rows[a][name]


def _lose_rows(random: Random, rows: list[Row], nodes: Sequence[str], situations: set[str]) -> bool:
    """Take away a few rows, or all rows of a node. Returns whether anything is missing."""
    if random.random() < 0.3:
        lost = random.choice(nodes)
        situations.add("node without rows")
        kept = [row for row in rows if row["node"] != lost]
    else:
        situations.add("gap")
        gone = set(random.sample(range(len(rows)), min(len(rows) - 1, random.randint(1, 3))))
        kept = [row for place, row in enumerate(rows) if place not in gone]
    missing = len(kept) < len(rows)
    if any(row["kind"] != "other" for row in kept):
        rows[:] = kept
        return missing
    return False
