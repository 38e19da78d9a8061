"""The live verifier forgets messages: no verdict changes by it, and its state stays bounded."""

from __future__ import annotations

from random import Random

import pytest

from precede.witness.live import intake, ranges
from precede.witness.live.intake import LEFT
from precede.witness.live.live import LiveRun
from precede.witness.live.state import LiveRow
from precede.witness.reading.column_names import BROADCAST, DELIVERED, OTHER
from tests.witness.histories import correct, parse, scrambled
from tests.witness.test_live import follow, names, rows_of

ORDERS = ("causal", "fifo", "multicast", "delta", "total")


def history(random, order, destinations=0.5):
    """Rows of a random execution, wrong in some places, with what the order needs: destinations, deadlines."""
    log = (
        scrambled(random)
        if random.random() < 0.7
        else correct(random, "total" if order == "total" else "causal")
    )
    nodes = list(log.rows)
    if order == "multicast":
        messages = [message for rows in log.rows.values() for kind, message in rows if kind == "broadcast"]
        for message in messages:
            if random.random() < destinations:
                log.destinations[message] = sorted(random.sample(nodes, random.randint(1, len(nodes))))
    rows = rows_of(log)
    if order == "delta":
        rows = [
            (node, 0, row._replace(clock=10 * row.step, deadline=10 * row.step + 40)) for node, _, row in rows
        ]
    return nodes, rows


def outcome(run, violations):
    """Everything that a follower says; of rows that break two rules at once, only which rows they are."""
    facts = run.state.facts
    if facts.order in ("multicast", "delta"):
        marked = sorted({(one.node, one.step) for one in violations})
        return marked, facts.conflicts, facts.rows, facts.deliveries, run.state.waits_for()
    return names(violations), facts.counts, facts.conflicts, facts.rows, facts.deliveries, run.state.waits_for()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("seeds", [range(60), pytest.param(range(60, 1500), marks=pytest.mark.long)])
def test_verdicts_are_the_same_with_and_without_forgetting(order, seeds):
    forgotten = 0
    for seed in seeds:
        random = Random(seed)
        nodes, rows = history(random, order)
        pieces = random.randrange(1 << 30)
        whole = outcome(*follow(rows, order, Random(pieces)))
        run, violations = follow(rows, order, Random(pieces), members=nodes, block=random.randint(1, 3))
        assert outcome(run, violations) == whole, f"seed {seed}"
        forgotten += run.state.facts.forgotten
    assert forgotten > len(seeds)


def verdict(run, violations):
    return "violated" if violations else "unknown" if run.state.facts.conflicts else "holds"


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("seeds", [range(60), pytest.param(range(60, 1500), marks=pytest.mark.long)])
def test_what_was_forgotten_too_soon_makes_the_verdict_unknown_and_never_wrong(order, seeds):
    unknown = 0
    for seed in seeds:
        random = Random(seed)
        _, rows = history(random, order)
        rows = [(node, 0, row._replace(clock=row.clock or 10 * row.step)) for node, _, row in rows]
        pieces = random.randrange(1 << 30)
        whole = follow(rows, order, Random(pieces))
        retain_us = random.choice([0, 20, 60])
        run, violations = follow(rows, order, Random(pieces), retain_us=retain_us, block=random.randint(1, 2))
        marked = {(one.node, one.step) for one in whole[1]}
        assert {(one.node, one.step) for one in violations} <= marked, f"seed {seed}"
        assert verdict(run, violations) in (verdict(*whole), "unknown"), f"seed {seed}"
        unknown += bool(run.state.facts.conflicts)
    assert unknown or order == "fifo"


def test_a_process_that_appears_later_is_judged_on_all_that_is_remembered():
    run = LiveRun("causal", members=("a", "b"), block=2)
    assert not run.add(rows_of(parse("a: +1 a1 +2 a2 +3 a3 +4 a4\nb: a1 a2 a3")))
    assert run.state.facts.forgotten == 2
    found = run.add(rows_of(parse("c: a1 a4 a3")))
    assert names(found) == [("causal", "c", 2, "a:3")]
    assert run.state.facts.conflicts == ["node c: delivered a:1, which was forgotten: it cannot be judged"]


@pytest.mark.parametrize(
    ("more", "kind"),
    [("b: a1 a3 a4 a1", "duplicate"), ("b: a1 a3 a4 a2", "causal"), ("b: a1 a3 a4 a9", None)],
)
def test_a_violation_by_a_forgotten_message_is_reported_with_its_kind(more, kind):
    run = LiveRun("causal", members=("a", "b"), block=2)
    rows = rows_of(parse(f"a: +1 a1 +2 a2 +3 a3 +4 a4\n{more}"))
    assert not run.add(rows[:-1])
    assert run.state.facts.forgotten == 4
    found = run.add(rows[-1:])
    assert [one.kind for one in found] == ([kind] if kind else [])
    assert not run.add(rows)  # repeated rows of forgotten messages change nothing
    assert not run.state.facts.conflicts


def test_a_process_that_left_is_not_waited_for():
    run = LiveRun("causal", members=("a", "b", "c"), block=1)
    run.add(rows_of(parse("a: +1 a1\nb: a1\nc: ")))
    run.add([("c", 0, LiveRow(0, OTHER))])
    assert run.state.facts.forgotten == 0
    run.add([("c", 0, LiveRow(1, LEFT))])
    assert run.state.facts.forgotten == 1


@pytest.mark.parametrize("lost", ["step", "broadcast"])
def test_rows_that_never_come_are_given_up_and_cause_no_false_alarm(monkeypatch, lost):
    """The rows that wait stay bounded; the violations after the gap are found, and nothing else is reported."""
    monkeypatch.setattr(intake, "ROWS_WAITING", 20)
    rows = [("a", 0, LiveRow(step, BROADCAST, "a", 0, step)) for step in range(200)]
    order = [*range(150), 151, 150, *range(152, 200)]
    rows += [("b", 0, LiveRow(step, DELIVERED, "a", 0, number)) for step, number in enumerate(order)]
    node = "b" if lost == "step" else "a"
    rows = [row for row in rows if (row[0], row[2].step) != (node, 50)]
    run, found = LiveRun("causal"), []
    for at in range(0, len(rows), 7):
        found += run.add(rows[at : at + 7])
        assert run.state.held <= 20
    assert names(found) == [("causal", "b", 151, "a:150")]
    assert (run.state.held, run.state.parked) == (0, 0)
    assert "never came" in " ".join(run.state.facts.conflicts)


def endless(rows, nodes=20, seed=1, lost=0.05):
    """Rows of an endless run in pieces of about 1,000: messages for all nodes, some never delivered."""
    random = Random(seed)
    steps, numbers, made, piece = [0] * nodes, [0] * nodes, 0, []
    while made < rows:
        source = random.randrange(nodes)
        numbers[source] += 1
        for kind, node in [(BROADCAST, source), *((DELIVERED, node) for node in range(nodes))]:
            if kind == BROADCAST or node == source or random.random() >= lost:
                key = (f"n{source}", 0, numbers[source])
                piece.append((f"n{node}", 0, LiveRow(steps[node], kind, *key, clock=made)))
                steps[node] += 1
                made += 1
        if len(piece) >= 1_000:
            yield piece
            piece = []


def state_bytes(rows, **options):
    """The size of the state at powers of ten and at half of them, and the bytes of all changes by then."""
    run, sizes, written, added, marks = LiveRun("causal", **options), {}, 0, 0, [10_000]
    for piece in endless(rows + 1_000):
        assert not run.add(piece)
        written += sum(len(content or b"") for content in run.state.changes().values())
        added += len(piece)
        if added >= marks[-1]:
            sizes[marks[-1]] = sum(map(len, run.state.pieces().values())), written
            marks.append(marks[-1] * (5 if len(marks) % 2 else 2))
    return sizes


MEMBERS = [f"n{node}" for node in range(20)]


def test_the_state_of_an_endless_run_stays_bounded():
    sizes = state_bytes(10_000, members=MEMBERS, block=32)
    kept = state_bytes(10_000)
    assert sizes[10_000][0] < kept[10_000][0] / 2


@pytest.mark.long
@pytest.mark.parametrize("options", [{"members": MEMBERS}, {"retain_us": 20_000}])
def test_the_state_of_an_endless_run_does_not_grow(options):
    sizes = state_bytes(1_000_000, **options)
    print(sizes)
    block = 256 * (8 * len(MEMBERS) + 64)  # a block that is not full yet is kept
    assert sizes[1_000_000][0] < sizes[500_000][0] + block
    assert sizes[1_000_000][1] < 2.2 * sizes[500_000][1]


def test_ranges_of_forgotten_numbers_are_exact_until_they_are_dropped(monkeypatch):
    monkeypatch.setattr(ranges, "RANGES_KEPT", 3)
    forgotten = ranges.Numbers()
    for number in (1, 2, 3, 7, 9, 10):
        forgotten.add(number)
    assert [forgotten.rank_of(number) for number in (1, 3, 4, 7, 10, 11)] == [1, 3, None, 4, 6, None]
    forgotten.add(20)
    assert [forgotten.rank_of(number) for number in (2, 3, 4, 7, 20)] == [0, 0, None, 4, 7]
    skipped = ranges.Ranks([(1, 9)])
    for rank in (5, 1, 9):
        skipped.remove(rank)
    assert [rank in skipped for rank in range(1, 10)] == [
        False,
        True,
        True,
        True,
        False,
        True,
        True,
        True,
        False,
    ]
