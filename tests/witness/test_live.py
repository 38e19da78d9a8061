"""The live witness says of rows in any order, in pieces and twice, what the witness says of the whole log."""

from __future__ import annotations

from random import Random

import pytest

import precede
from precede.witness.live.intake import STARTED
from precede.witness.live.live import LiveRun
from precede.witness.live.state import LiveRow, LiveState
from precede.witness.reading.column_names import BROADCAST, DELIVERED, OTHER
from tests.witness import second_witness
from tests.witness.histories import Log, correct, parse, scrambled

KINDS = {"broadcast": BROADCAST, "delivered": DELIVERED, "received": OTHER}


def rows_of(log, deadline=None, clock=None):
    """As the live witness takes them; steps from 0."""
    rows = []
    for node, events in log.rows.items():
        for step, (kind, message) in enumerate(events):
            source, number = message.split(":")
            to = log.destinations.get(message) if kind == "broadcast" else None
            rows.append((node, 0, LiveRow(step, KINDS[kind], source, 0, int(number), to, deadline, clock)))
    return rows


def batch_rows(log):
    """The same steps as the live witness sees, for the batch witness."""
    return [row | {"step": row["step"] - 1} for row in log.table()]


def in_pieces(rows, random):
    """Late, in pieces, and some of them twice."""
    rows = rows + random.sample(rows, len(rows) // 4)
    random.shuffle(rows)
    while rows:
        count = random.randint(1, 9)
        yield rows[:count]
        rows = rows[count:]


def follow(rows, order, random, **options):
    """Every piece goes to a run that was restored from the stored changes of all pieces before."""
    run, result, stored = LiveRun(order, **options), [], {}
    for piece in in_pieces(rows, random):
        result += run.add(piece)
        for name, content in run.state.changes().items():
            stored[name] = content
            if content is None:
                del stored[name]
        assert stored == run.state.pieces()
        run = LiveRun(order, state=LiveState.restore(stored), **options)
    return run, result


def names(violations):
    return sorted((one.kind, one.node, one.step, one.message) for one in violations)


@pytest.mark.parametrize("seeds", [range(150), pytest.param(range(150, 4000), marks=pytest.mark.long)])
def test_it_marks_the_same_rows_as_the_batch_verifier(seeds):
    for seed in seeds:
        random = Random(seed)
        log = scrambled(random)
        for order in ("causal", "fifo"):
            whole = precede.verify(batch_rows(log), order)
            run, result = follow(rows_of(log), order, random)
            assert names(result) == names(whole.listed), f"seed {seed}, {order}"
            assert run.state.facts.counts == whole.counts, f"seed {seed}, {order}"
            state = run.state
            assert (state.held, state.parked, state.facts.conflicts) == (0, 0, []), f"seed {seed}, {order}"
            assert (state.facts.rows, state.facts.deliveries) == (whole.rows, whole.deliveries_checked), (
                f"seed {seed}"
            )
        _, result = follow(rows_of(log), "total", random)
        disagree = any(one.kind == "total" for one in result)
        assert disagree == ("total" in second_witness.judge(batch_rows(log), "total").counts), f"seed {seed}"


@pytest.mark.parametrize("seeds", [range(60), pytest.param(range(60, 2000), marks=pytest.mark.long)])
def test_late_rows_cause_no_false_alarm(seeds):
    for seed in seeds:
        random = Random(seed)
        for order in ("causal", "fifo", "total"):
            log = correct(random, "total" if order == "total" else "causal")
            rows = rows_of(log)
            run, result = follow(rows, order, random)
            assert not result, f"seed {seed}: {result[0]}"
            some = random.sample(rows, len(rows) * 2 // 3)
            run, result = follow(some, order, random)
            assert not result, f"seed {seed}, rows missing: {result[0]}"
            if run.state.held or run.state.parked:
                assert run.state.waits_for()
            missing = [row for row in rows if row not in some]
            assert not run.add(missing)
            assert (run.state.held, run.state.parked) == (0, 0)


def test_a_causal_violation_is_explained_with_its_chain():
    log = parse("a: +1 a1\nb: a1 +1 b1\nc: b1 +1 c1\nd: c1 a1")
    run = LiveRun("causal")
    (violation,) = run.add(rows_of(log))
    assert violation.chain == ("a:1", "b:1", "c:1")
    assert (violation.kind, violation.node, violation.step, violation.message, violation.other) == (
        "causal",
        "d",
        1,
        "a:1",
        "c:1",
    )
    assert violation.story.splitlines()[0] == "Node d delivered c:1 before a:1, but a:1 -> b:1 -> c:1."
    assert "(so a:1 -> b:1)" in violation.story
    assert violation.story.endswith("d  step 1  delivers a:1   (too late)")


def test_total_order_names_both_nodes_and_both_messages():
    run = LiveRun("total")
    (violation,) = run.add(rows_of(parse("a: +1 a1 b1\nb: +1 b1 a1")))
    assert violation.kind == "total"
    assert {violation.message, violation.other} == {"a:1", "b:1"}
    assert "before" in violation.story


def test_a_delivery_is_a_ghost_only_after_its_source_has_passed_the_number():
    run = LiveRun("causal")
    rows = rows_of(parse("a: +1 +3\nb: a2"))
    assert not run.add([rows[0], rows[2]])
    assert run.state.waits_for() == ["node b waits for the broadcast of a:2"]
    (violation,) = run.add([rows[1]])
    assert (violation.kind, violation.message) == ("ghost", "a:2")


def test_a_message_below_the_first_of_a_source_that_is_known_from_its_first_step_is_a_ghost():
    rows = rows_of(parse("a: +2 +3\nb: a1"))
    (violation,) = LiveRun("causal").add(rows)
    assert (violation.kind, violation.message) == ("ghost", "a:1")


def test_deliveries_before_their_broadcasts_in_a_ring_are_a_violation():
    log = parse("a: b1 +1\nb: a1 +1")
    whole = precede.verify(batch_rows(log), "causal")
    run, result = follow(rows_of(log), "causal", Random(1))
    assert names(result) == names(whole.listed)
    assert run.state.facts.counts == whole.counts == {"before_broadcast": 1}


def test_wrong_destinations_late_deliveries_and_duplicates_are_violations():
    log = Log({"a": [("broadcast", "a:1")], "b": [("delivered", "a:1")] * 2, "c": [("delivered", "a:1")]})
    log.destinations = {"a:1": ["b"]}
    result = LiveRun("multicast").add(rows_of(log))
    assert names(result) == [("duplicate", "b", 1, "a:1"), ("not_addressed", "c", 0, "a:1")]
    result = LiveRun("multicast", allow_duplicates=True).add(rows_of(log))
    assert names(result) == [("not_addressed", "c", 0, "a:1")]
    result = LiveRun("delta", allow_duplicates=True).add(rows_of(log, deadline=5_000_000, clock=6_500_000))
    assert [one.kind for one in result] == ["expired", "not_addressed", "expired"]
    assert "1500ms after its deadline" in result[0].story
    assert not [one for one in LiveRun("delta").add(rows_of(log, deadline=5, clock=5)) if one.kind == "expired"]


def test_an_incarnation_continues_the_steps_of_the_previous_one_or_begins_at_0():
    for first in (3, 0):
        rows = [
            *(("a", 0, LiveRow(step, OTHER)) for step in range(3)),
            ("a", 1, LiveRow(first, BROADCAST, "a", 1, 1)),
            ("b", 0, LiveRow(0, DELIVERED, "a", 1, 1)),
        ]
        for seed in range(20):
            run, result = follow(rows, "causal", Random(seed))
            assert (result, run.state.held, run.state.parked, run.state.facts.deliveries) == ([], 0, 0, 1)
    run = LiveRun("causal")
    run.add(rows_of(parse("a: +1 a1"))[1:])
    assert run.state.waits_for() == ["node a waits for step 0 (1 rows behind it)"]


def incarnations(first, restart=None):
    """A life of five steps, then one of seven whose steps begin at `first`, one of which may be a restart."""
    rows = [("a", 0, LiveRow(0, STARTED)), *(("a", 0, LiveRow(step, OTHER)) for step in range(1, 5))]
    numbers = [number for number in range(1, 7) if number != restart]
    rows += [("a", 1, LiveRow(first + number, BROADCAST, "a", 1, number)) for number in numbers]
    rows += [("a", 1, LiveRow(first + number, STARTED)) for number in (0, restart) if number is not None]
    return rows + [("b", 0, LiveRow(step, DELIVERED, "a", 1, number)) for step, number in enumerate(numbers)]


@pytest.mark.parametrize(("first", "restart"), [(0, None), (0, 6), (5, None), (5, 3)])
def test_a_started_row_shows_where_an_incarnation_begins_in_any_order_of_arrival(first, restart):
    rows = incarnations(first, restart)
    for seed in range(300):
        run, result = follow(rows, "causal", Random(seed))
        assert (result, run.state.held, run.state.parked, run.state.facts.conflicts) == ([], 0, 0, []), (
            f"seed {seed}"
        )
        assert run.state.facts.rows == len(rows)


@pytest.mark.parametrize("with_started_row", [False, True])
def test_an_incarnation_wrongly_taken_to_continue_makes_the_verdict_unknown(with_started_row):
    rows = incarnations(0, 3 if with_started_row else None)
    rows = [
        (node, incarnation, row if with_started_row or row.kind != STARTED else LiveRow(row.step, OTHER))
        for node, incarnation, row in rows
    ]
    seen = []
    for seed in range(300):
        run, result = follow(rows, "causal", Random(seed))
        assert not result, f"seed {seed}: {result[0].story}"
        assert run.state.facts.conflicts or not (run.state.held or run.state.parked)
        seen += run.state.facts.conflicts
    assert seen
    assert all("has rows before step" in conflict for conflict in seen)


@pytest.mark.parametrize("first", [0, 5])
def test_a_message_that_a_continuing_incarnation_never_broadcast_is_a_ghost(first):
    rows = [row for row in incarnations(first) if row[0] == "a" and row[2].number != 2]
    rows.append(("a", 1, LiveRow(first + 2, OTHER)))
    ghost = ("c", 0, LiveRow(0, DELIVERED, "a", 1, 2))
    for seed in range(50):
        _, result = follow([*rows, ghost], "causal", Random(seed))
        assert [one.kind for one in result] == ["ghost"]


def test_one_step_with_two_contents_is_reported_and_counted_once():
    run = LiveRun("causal")
    rows = rows_of(parse("a: +1 a1 +2\nb: a1"))
    assert not run.add(rows)
    assert not run.add([("a", 0, LiveRow(1, DELIVERED, "b", 0, 1)), ("a", 0, LiveRow(2, BROADCAST, "a", 0, 9))])
    assert run.state.facts.conflicts == [
        "node a: step 1 occurs twice, with different rows",
        "node a: step 2 occurs twice, with different rows",
    ]
    assert run.state.facts.rows == 4
