"""Both witnesses judge alike: plain, compiled and live. What the first one explains, its rows prove."""

from __future__ import annotations

from collections import Counter
from random import Random

import pyarrow as pa
import pytest

from precede.witness.live.live import STORIES_WITH_CHAIN, LiveRun
from precede.witness.live.state import LiveRow
from precede.witness.reading.column_names import BROADCAST, DELIVERED, OTHER
from precede.witness.verdict import ORDERS, Offence
from precede.witness.verify import verify
from tests.witness import second_witness
from tests.witness.any_history import Drawn, draw
from tests.witness.every_way import verify_every_way
from tests.witness.proof import proves

OF_DELIVERY = tuple(order for order in ORDERS if order != "display")
"""The order on a screen has an oracle of its own, `tests/witness/display_oracle.py`."""
OFFENCES = set(Offence.__args__) - {"answer_first", "answer_above"}
KINDS = {"broadcast": BROADCAST, "delivered": DELIVERED, "other": OTHER}
HISTORIES = [range(250), pytest.param(range(250, 10_250), marks=pytest.mark.long)]
PROVEN_LIVE = {"fifo", "causal", "multicast", "total", "expired", "not_addressed"}
SITUATIONS = {"restart", "ghost", "moved", "destinations", "gap", "node without rows"}


def shown(drawn: Drawn) -> str:
    """The log as text, for the message of a failing test."""
    rows = sorted(drawn.rows, key=lambda row: (row["node"], row["incarnation"], row["step"]))
    return "\n".join(str(row) for row in rows) + f"\nmembers {drawn.members}"


@pytest.mark.parametrize("seeds", HISTORIES)
def test_both_witnesses_judge_alike(seeds):
    """Every order, repetitions forbidden and allowed, with and without a membership, with rows missing."""
    verdicts: Counter[tuple[str, str]] = Counter()
    situations: set[str] = set()
    for seed in seeds:
        drawn = draw(Random(seed))
        situations |= drawn.situations
        for order in OF_DELIVERY:
            duplicates = "forbid" if seed % 3 else "allow"
            expected = second_witness.judge(drawn.rows, order, duplicates, drawn.members)
            options = {"duplicates": duplicates, "members": drawn.members or None}
            judge = verify_every_way if seed < 20 else verify
            found = judge(drawn.rows, order, **options)
            assert found.verdict == expected.verdict, f"seed {seed}, {order}\n{shown(drawn)}"
            assert expected.rings or found.counts == expected.counts, f"seed {seed}, {order}\n{shown(drawn)}"
            verdicts[order, found.verdict] += 1
    assert all(verdicts[order, word] for order in OF_DELIVERY for word in ("holds", "violated", "unknown"))
    assert situations == SITUATIONS


def as_one_log(drawn: dict[str, Drawn]) -> pa.Table:
    """Histories by name, as one table with an order for each `run_id`."""
    names = ["run_id", *dict.fromkeys(name for one in drawn.values() for row in one.rows for name in row)]
    rows = [row | {"run_id": run} for run, one in drawn.items() for row in one.rows]
    return pa.table({name: [row.get(name) for row in rows] for name in names})


def expected_as_part(drawn: Drawn, order: str) -> second_witness.Judgement:
    """What the second witness says of one order of such a log: others have broadcasts and deadlines."""
    return second_witness.judge(
        [{"destinations": None, "deadline_us": None, **row} for row in drawn.rows], order, part=True
    )


@pytest.mark.parametrize("seeds", HISTORIES)
def test_the_compiled_witness_judges_each_of_many_orders_like_the_second_one(seeds):
    drawn = {f"r{seed}": draw(Random(seed)) for seed in seeds}
    table = as_one_log(drawn)
    for order in OF_DELIVERY:
        parts = {
            dict(part.group)["run_id"]: part for part in verify(table, order, by="run_id", engine="numba").parts
        }
        for run, one in drawn.items():
            expected = expected_as_part(one, order)
            note = f"{run}, {order}\n{shown(one)}"
            assert parts[run].verdict == expected.verdict, note
            assert expected.rings or parts[run].violations == sum(expected.counts.values()), note


@pytest.mark.parametrize("seeds", HISTORIES)
def test_the_rows_of_every_explanation_prove_it(seeds):
    explained: Counter[Offence] = Counter()
    for seed in seeds:
        drawn = draw(Random(seed))
        for order in OF_DELIVERY:
            first = verify(drawn.rows, order, members=drawn.members or None, engine="plain").first
            if first is not None:
                assert proves(first, drawn.rows), f"seed {seed}, {order}\n{first.story}\n{shown(drawn)}"
                explained[first.kind] += 1
    assert set(explained) == OFFENCES


def live_rows(drawn: Drawn) -> list[tuple[str, int, LiveRow]]:
    """The log as the live witness takes it; rows of other kinds name their own node."""
    rows = []
    for row in drawn.rows:
        kind = KINDS[row["kind"]]
        source, incarnation, number = (row["node"], 0, 0) if kind == OTHER else second_witness.message_of(row)
        to, deadline = row.get("destinations"), row.get("deadline_us")
        values = (row["step"], kind, source, incarnation, number, to, deadline, row["clock_us"])
        rows.append((row["node"], row["incarnation"], LiveRow(*values)))
    return rows


@pytest.mark.parametrize("seeds", HISTORIES)
def test_the_live_witness_judges_like_the_second_one(seeds):
    """Of a whole log it says the same; of a log with rows missing it never claims what is not proven."""
    whole = 0
    for seed in seeds:
        drawn = draw(Random(seed))
        for order in OF_DELIVERY:
            run = LiveRun(order)
            violations = run.add(live_rows(drawn))
            expected = second_witness.judge(drawn.rows, order)
            counts = {
                kind: 1 if kind == "total" else count for kind, count in run.state.facts.counts.items() if count
            }
            note = f"seed {seed}, {order}\n{shown(drawn)}"
            # The live witness does not keep the rows that prove the other kinds.
            explained = [one for one in violations[:STORIES_WITH_CHAIN] if one.kind in PROVEN_LIVE]
            assert all(proves(one, drawn.rows) for one in explained), note
            if run.state.held or run.state.parked or run.state.facts.conflicts:
                assert not counts or expected.verdict == "violated", note
                continue
            whole += 1
            assert bool(counts) == (expected.verdict == "violated"), note
            same = {kind: 1 if kind == "total" else count for kind, count in expected.counts.items()}
            assert expected.rings or counts == same, note
    assert whole > len(seeds)
