"""Logs of some thousand rows with everything in them: both engines say the same, word for word."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from precede.witness.verdict import ORDERS
from precede.witness.verify import verify


def anything(seed: int) -> list[dict[str, object]]:
    """Runs, incarnations, opaque ids, destinations, deadlines, ghosts, gaps, other rows, rows out of order."""
    random = Random(seed)
    nodes, runs, count = random.choice([2, 5, 20, 60]), random.choice([1, 1, 3]), random.choice([300, 1500])
    opaque, with_incarnations, ghosts = (random.random() < share for share in (0.3, 0.4, 0.3))
    addressed, timed = (random.random() < 0.4 for _ in range(2))
    rows: list[dict[str, object]] = []
    for run in range(runs):
        messages: list[tuple[str, int, int]] = []
        steps: dict[tuple[str, int], int] = {}
        counts: dict[tuple[str, int], int] = {}
        incarnation_number: dict[str, int] = {}
        for now in range(count // runs):
            node = f"n{random.randrange(nodes)}"
            if with_incarnations and random.random() < 0.002:
                incarnation_number[node] = incarnation_number.get(node, 0) + 1
            process = (node, incarnation_number.get(node, 0))
            steps[process] = steps.get(process, 0) + 1
            row: dict[str, object] = {
                "run_id": f"r{run}",
                "node": node,
                "incarnation": process[1],
                "step": steps[process],
                "clock_us": now,
            }
            message, chance = None, random.random()
            if chance < 0.05 or not messages:
                counts[process] = counts.get(process, 0) + random.choice([1, 1, 1, 5])
                message = (*process, counts[process])
                messages.append(message)
                row["kind"] = "broadcast"
                if addressed and random.random() < 0.5:
                    row["destinations"] = [f"n{i}" for i in range(nodes) if random.random() < 0.9]
                if timed:
                    row["deadline_us"] = now + random.randrange(count)
            elif chance < 0.15:
                row["kind"] = "sent"
            else:
                row["kind"] = "delivered"
                message = messages[max(0, len(messages) - 1 - int(random.expovariate(0.05)))]
                if ghosts and chance < 0.152:
                    message = (*process, 10**6 + now)
            if opaque:
                row["message"] = None if message is None else ".".join(map(str, message))
            elif message is not None:
                row |= dict(
                    zip(("message_source", "message_incarnation", "message_number"), message, strict=True)
                )
            rows.append(row)
    if random.random() < 0.3:
        del rows[random.randrange(len(rows))]
    if random.random() < 0.3:
        random.shuffle(rows)
    return rows


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(5), id="some"),
        pytest.param(range(5, 200), id="many", marks=pytest.mark.long),
    ],
)
def test_both_engines_give_the_same_verdict(seeds):
    seen = set()
    for seed in seeds:
        rows = anything(seed)
        names = list(dict.fromkeys(name for row in rows for name in row))
        table = pa.table({name: [row.get(name) for row in rows] for name in names})
        for order in ORDERS:
            for duplicates in ("forbid", "allow"):
                plain = verify(rows, order, duplicates=duplicates, engine="plain")
                assert verify(table, order, duplicates=duplicates, engine="numba") == plain, f"seed {seed}"
                seen.update(plain.counts)
                seen.add(plain.verdict)
    assert {"violated", "causal", "fifo", "total", "duplicate"} <= seen
