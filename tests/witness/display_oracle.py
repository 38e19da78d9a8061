"""A slow, literal reading of display order: every screen after every delivery, every pair on it looked at.

It shares nothing with the witness but the rows. A log here has, for each process, what it does in order:
("broadcast", m), ("delivered", m) or ("above", m); the last says where the next delivery is inserted.
"""

from __future__ import annotations

from itertools import combinations, pairwise
from random import Random

from tests.witness.histories import Log, scrambled
from tests.witness.second_witness import happened_before, read


def screens_of(rows: list[tuple[str, str]], exist: set[str]) -> list[list[str]]:
    """The screen after each delivery; a repeated delivery, or one of an unknown message, changes nothing."""
    screens: list[list[str]] = [[]]
    above = None
    for kind, message in rows:
        if kind == "above":
            above = message
        elif kind == "delivered":
            before = screens[-1]
            if message in exist and message not in before:
                place = len(before) if above is None else before.index(above)
                screens.append([*before[:place], message, *before[place:]])
            above = None
    return screens


def judge(log: Log) -> dict[str, int]:
    """The counts that the definitions give: answers first, answers above, revisions, moved messages."""
    plain = Log({node: [row for row in rows if row[0] != "above"] for node, rows in log.rows.items()})
    pairs = happened_before(read(plain.table()))
    before = {(f"{one[0]}:{one[2]}", f"{other[0]}:{other[2]}") for one, other in pairs}
    exist = {message for rows in log.rows.values() for kind, message in rows if kind == "broadcast"}
    counts = {"answer_first": 0, "answer_above": 0, "revisions": 0, "moved": 0}
    for rows in log.rows.values():
        screens = screens_of(rows, exist)
        for old, new in pairwise(screens):
            (inserted,) = set(new) - set(old)
            inverted = [pair for pair in combinations(new, 2) if (pair[1], pair[0]) in before]
            counts["answer_first"] += any((inserted, answer) in before for answer in old)
            counts["answer_above"] += any(inserted in pair for pair in inverted)
            below = len(new) - 1 - new.index(inserted)
            counts["revisions"] += below > 0
            counts["moved"] += below
    return counts


def displayed(random: Random) -> Log:
    """A random execution that keeps no order, and random places on the screens."""
    log = scrambled(random)
    often = random.choice((0.0, 0.1, 0.5, 0.9))
    for node, rows in log.rows.items():
        placed: list[tuple[str, str]] = []
        shown: list[str] = []
        for kind, message in rows:
            if kind == "delivered" and shown and random.random() < often:
                placed.append(("above", random.choice(shown)))
            placed.append((kind, message))
            if kind == "delivered" and message not in shown:
                shown.append(message)
        log.rows[node] = placed
    return log


def table(log: Log) -> list[dict[str, object]]:
    """The rows as the event log has them, shuffled: a place is an `observed` row with the reason `above`."""
    rows = log.table()
    for row in rows:
        row["reason"] = None
        if row["kind"] == "above":
            row |= {"kind": "observed", "reason": "above"}
    return rows
