"""A slow, literal reading of the definitions: happened-before as a transitive closure, every pair looked at.

Written apart from the witness and sharing nothing with it but the rows.
"""

from __future__ import annotations

from itertools import combinations

from tests.witness.histories import Log


def closure(log: Log) -> set[tuple[str, str]]:
    """m -> m': the source of m' had broadcast or delivered m before; and transitively."""
    messages = [event[1] for rows in log.rows.values() for event in rows if event[0] == "broadcast"]
    before = set()
    for rows in log.rows.values():
        for at, (kind, message) in enumerate(rows):
            if kind == "broadcast":
                before.update((earlier, message) for _, earlier in rows[:at] if earlier != message)
    for middle in messages:
        into = [a for a, b in before if b == middle]
        out = [b for a, b in before if a == middle]
        before.update((a, b) for a in into for b in out)
    return before


def delivered(log: Log) -> dict[str, list[str]]:
    """Every process's first deliveries of messages that exist, in order."""
    exist = {message for rows in log.rows.values() for kind, message in rows if kind == "broadcast"}
    return {
        process: list(dict.fromkeys(m for kind, m in rows if kind == "delivered" and m in exist))
        for process, rows in log.rows.items()
    }


def late_causal(log: Log) -> set[tuple[str, str]]:
    """Deliveries that come after a message which they precede."""
    before = closure(log)
    return {
        (process, late)
        for process, order in delivered(log).items()
        for early, late in combinations(order, 2)
        if (late, early) in before
    }


def late_fifo(log: Log) -> set[tuple[str, str]]:
    """The same for messages of one source."""
    place = {}
    for process, rows in log.rows.items():
        for at, (kind, message) in enumerate(rows):
            if kind == "broadcast":
                place[message] = (process, at)
    return {
        (process, late)
        for process, order in delivered(log).items()
        for early, late in combinations(order, 2)
        if place[late][0] == place[early][0] and place[late][1] < place[early][1]
    }


def total_disagreements(log: Log) -> set[tuple[str, str]]:
    """Pairs of messages that two processes deliver in different order."""
    pairs = set()
    for order in delivered(log).values():
        pairs.update(combinations(order, 2))
    return {(a, b) for a, b in pairs if (b, a) in pairs}


def duplicates(log: Log) -> int:
    exist = {message for rows in log.rows.values() for kind, message in rows if kind == "broadcast"}
    count = 0
    for rows in log.rows.values():
        seen: list[str] = []
        for kind, message in rows:
            if kind == "delivered" and message in exist:
                count += message in seen
                seen.append(message)
    return count


def ghosts(log: Log) -> int:
    exist = {message for rows in log.rows.values() for kind, message in rows if kind == "broadcast"}
    return sum(
        kind == "delivered" and message not in exist for rows in log.rows.values() for kind, message in rows
    )
