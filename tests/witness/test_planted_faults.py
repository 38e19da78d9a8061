"""Faults planted by hand, each caught by the right verdict, with the row to blame, through every way in."""

from __future__ import annotations

import pytest

from tests.witness.every_way import verify_every_way
from tests.witness.histories import parse

DIRECT = """
a: +1 a1
b: a1 +1 b1
c: b1 a1
"""

TRANSITIVE = """
a: +1
b: a1 +1
c: b1 +1
d: c1 +1
v: d1 a1
"""
"""a1 -> b1 -> c1 -> d1; the victim v never delivers b1 and c1."""

FIFO_ONLY = """
a: +1 +2 +3
b: a1 a3 a2
"""

OWN_MESSAGES = """
a: +1 +2 a2 a1
"""

DUPLICATE = """
a: +1 a1
b: a1 +1 b1 a1
"""

GHOST = """
a: +1 a1
b: a1 a9
"""

BEFORE_OWN_BROADCAST = """
a: a1 +1
b: a1
"""

RING = """
a: b1 +1
b: a1 +1
c: a1 b1
"""
"""Each had delivered the other's message before it broadcast its own: no clock in the world allows that."""

TAIL_BEHIND_A_GHOST = """
a: +1 +2
b: z7 a2 a1
"""

TOTAL_ONE_POSITION = """
a: +1 a1 b1 c1
b: +1 a1 b1 c1
c: +1 a1 b1 c1
d: a1 c1 b1
"""

NO_OWN_DELIVERY = """
a: +1 b1
b: a1 +1
c: b1 a1
"""

THROUGH_OWN_BROADCASTS = """
a: +1 +2
b: a2 +1
c: b1 a1
"""
"""a1 -> a2 because one source sent both; b had only a2; c sees b1 before a1."""

BETWEEN_TWO_BROADCASTS = """
a: +1 b1 +2
b: +1
v: a1 a2 b1
"""
"""What a learnt between its two messages; v knew the first of them already."""

BACK_AT_THE_SOURCE = """
a: +1 b1 a1
b: a1 +1
"""
"""a shows the answer to its own message before the message."""


@pytest.mark.parametrize(
    ("text", "order", "kind", "node", "step"),
    [
        pytest.param(DIRECT, "causal", "causal", "c", 2, id="direct"),
        pytest.param(TRANSITIVE, "causal", "causal", "v", 2, id="transitive"),
        pytest.param(FIFO_ONLY, "fifo", "fifo", "b", 3, id="fifo"),
        pytest.param(FIFO_ONLY, "causal", "causal", "b", 3, id="fifo_as_causal"),
        pytest.param(OWN_MESSAGES, "fifo", "fifo", "a", 4, id="own_messages"),
        pytest.param(OWN_MESSAGES, "causal", "causal", "a", 4, id="own_messages_causal"),
        pytest.param(DUPLICATE, "causal", "duplicate", "b", 4, id="duplicate"),
        pytest.param(DUPLICATE, "total", "duplicate", "b", 4, id="duplicate_total"),
        pytest.param(GHOST, "causal", "ghost", "b", 2, id="ghost"),
        pytest.param(GHOST, "fifo", "ghost", "b", 2, id="ghost_fifo"),
        pytest.param(BEFORE_OWN_BROADCAST, "fifo", "before_broadcast", "a", 1, id="before_own_broadcast"),
        pytest.param(RING, "causal", "before_broadcast", "a", 1, id="ring"),
        pytest.param(TOTAL_ONE_POSITION, "total", "total", "d", 3, id="total_one_position"),
        pytest.param(NO_OWN_DELIVERY, "causal", "causal", "c", 2, id="no_own_delivery"),
        pytest.param(THROUGH_OWN_BROADCASTS, "causal", "causal", "c", 2, id="through_own_broadcasts"),
        pytest.param(BETWEEN_TWO_BROADCASTS, "causal", "causal", "v", 3, id="between_two_broadcasts"),
        pytest.param(BACK_AT_THE_SOURCE, "causal", "causal", "a", 3, id="back_at_the_source"),
    ],
)
def test_a_planted_fault_is_caught(text, order, kind, node, step):
    verdict = verify_every_way(parse(text).table(), order)
    assert verdict.verdict == "violated"
    assert verdict.counts == {kind: 1}
    assert verdict.violations == 1
    assert verdict.first is not None
    assert (verdict.first.kind, verdict.first.node, verdict.first.step) == (kind, node, step)
    assert [(one.kind, one.node, one.step) for one in verdict.listed] == [(kind, node, step)]


@pytest.mark.parametrize(
    ("text", "order"),
    [
        pytest.param(DIRECT, "fifo", id="direct is fifo"),
        pytest.param(TRANSITIVE, "total", id="transitive is total"),
        pytest.param(TOTAL_ONE_POSITION, "causal", id="one position is causal"),
        pytest.param("a: +1 +2 a1 a2\nb: a2", "causal", id="what is never delivered breaks nothing"),
        pytest.param("a: +1\nb: +1 +2\nc: b2 a1\nd: a1 b2", "causal", id="concurrent in any order"),
    ],
)
def test_correct_histories_hold(text, order):
    assert verify_every_way(parse(text).table(), order).verdict == "holds"


def test_the_chain_names_messages_that_the_victim_never_delivered():
    first = verify_every_way(parse(TRANSITIVE).table(), "causal").first
    assert first is not None
    assert first.chain == ("a:1", "b:1", "c:1", "d:1")
    assert (first.message, first.other) == ("a:1", "d:1")
    assert [(row.node, row.step, row.event, row.message) for row in first.rows] == [
        ("a", 1, "broadcast", "a:1"),
        ("b", 1, "delivered", "a:1"),
        ("b", 2, "broadcast", "b:1"),
        ("c", 1, "delivered", "b:1"),
        ("c", 2, "broadcast", "c:1"),
        ("d", 1, "delivered", "c:1"),
        ("d", 2, "broadcast", "d:1"),
        ("v", 1, "delivered", "d:1"),
        ("v", 2, "delivered", "a:1"),
    ]
    assert "Node v delivered d:1 before a:1, but a:1 -> b:1 -> c:1 -> d:1." in first.story


def test_violations_after_a_ghost_are_found():
    rows = parse(TAIL_BEHIND_A_GHOST).table()
    verdict = verify_every_way(rows, "causal", members=sorted({row["node"] for row in rows}))
    assert verdict.counts == {"ghost": 1, "causal": 1}


def test_violations_after_a_ring_are_found():
    verdict = verify_every_way(parse(RING + "d: +1 +2\ne: d2 d1").table(), "causal")
    assert verdict.counts == {"before_broadcast": 1, "causal": 1}


def test_a_cycle_longer_than_a_pair_is_a_finding_not_a_violation():
    verdict = verify_every_way(parse("x: +1\ny: +1\nz: +1\na: x1 y1\nb: y1 z1\nc: z1 x1").table(), "total")
    assert verdict.verdict == "holds"
    assert len(verdict.findings) == 1
    assert "a cycle of 3 messages" in verdict.findings[0]
    assert "x:1 before y:1 at a" in verdict.findings[0]


def test_a_cycle_does_not_hide_a_disagreement_elsewhere():
    text = "x: +1\ny: +1\nz: +1\nu: +1 +2\na: x1 y1 u1 u2\nb: y1 z1 u2 u1\nc: z1 x1"
    verdict = verify_every_way(parse(text).table(), "total")
    assert verdict.counts == {"total": 1}
    assert len(verdict.findings) == 1


def test_the_minority_is_blamed_for_a_different_order():
    first = verify_every_way(parse(TOTAL_ONE_POSITION).table(), "total").first
    assert first is not None
    assert first.story.startswith("Node d delivered c:1 before b:1; nodes a, b, c delivered b:1 before c:1.")


def test_a_delivery_at_a_node_that_is_no_destination_is_a_violation():
    log = parse("a: +1 a1\nb: a1\nc: a1")
    log.destinations = {"a:1": ["b"]}
    for order in ("multicast", "causal", "fifo", "total"):
        verdict = verify_every_way(log.table(), order)
        assert verdict.counts == {"not_addressed": 1}
        assert verdict.first is not None
        assert (verdict.first.node, verdict.first.step) == ("c", 1)
        assert "which was addressed to b only" in verdict.first.story


def test_a_causal_chain_through_a_third_node_counts_in_multicast():
    """a tells v, then b; b tells v: v must see a's message first, though b was not among its destinations."""
    log = parse("a: +1 +2\nb: a2 +1\nv: b1 a1")
    log.destinations = {"a:1": ["v"], "a:2": ["b"], "b:1": ["v"]}
    verdict = verify_every_way(log.table(), "multicast")
    assert verdict.counts == {"multicast": 1}
    assert verdict.first is not None
    assert verdict.first.chain == ("a:1", "a:2", "b:1")


def timed(text, deadlines, clocks):
    rows = parse(text).table()
    for row in rows:
        name = f"{row['message_source']}:{row['message_number']}"
        row["deadline_us"] = deadlines.get(name) if row["kind"] == "broadcast" else None
        row["clock_us"] = clocks.get((row["node"], row["step"]), 0)
    return rows


def test_the_deadline_is_read_on_the_delivering_nodes_clock():
    rows = timed("a: +1 a1\nb: a1\nc: a1", {"a:1": 100}, {("a", 2): 5, ("b", 1): 100, ("c", 1): 101})
    verdict = verify_every_way(rows, "delta")
    assert verdict.counts == {"expired": 1}
    assert verdict.first is not None
    assert (verdict.first.node, verdict.first.step) == ("c", 1)
    assert "1us after its deadline" in verdict.first.story
    assert verify_every_way(rows, "causal").verdict == "holds"


def test_delta_order_compares_only_messages_that_were_both_delivered():
    text = "a: +1 a1\nb: a1 +1 b1\nc: b1"
    assert verify_every_way(timed(text, {"a:1": 10, "b:1": 10}, {}), "delta").verdict == "holds"
    late = timed("a: +1 a1\nb: a1 +1 b1\nc: b1 a1", {"a:1": 10, "b:1": 10}, {})
    assert verify_every_way(late, "delta").counts == {"causal": 1}


def test_late_and_expired_are_two_violations():
    rows = timed("a: +1 a1\nb: a1 +1 b1\nc: b1 a1", {"a:1": 10}, {("c", 2): 11})
    assert verify_every_way(rows, "delta").counts == {"causal": 1, "expired": 1}


def with_lives(text):
    """`a'1` in a row's node is the second life of a."""
    rows = []
    for row in parse(text).table():
        node, _, incarnation_number = str(row["node"]).partition("'")
        source, _, source_life = str(row["message_source"]).partition("'")
        rows.append(
            row
            | {
                "node": node,
                "incarnation": int(incarnation_number or 0),
                "message_source": source,
                "message_incarnation": int(source_life or 0),
            }
        )
    return rows


def test_a_new_incarnation_is_a_new_process():
    rows = with_lives("a: +1 +2\nb: a1 a2")
    rows += [row | {"incarnation": 1, "message_incarnation": 1} for row in rows if row["node"] == "a"]
    rows += [
        {**rows[0], "node": "b", "kind": "delivered", "message_source": "a", "incarnation": 0, "step": step}
        | {"message_incarnation": 1, "message_number": number}
        for step, number in ((3, 2), (4, 1))
    ]
    verdict = verify_every_way(rows, "fifo")
    assert verdict.counts == {"fifo": 1}
    assert verdict.first is not None
    assert verdict.first.message == "a'1:1"


def test_a_new_incarnation_may_deliver_messages_of_the_old_one_again():
    rows = with_lives("a: +1 +2\nb: a2")
    rows.append({**rows[0], "node": "b", "incarnation": 1, "step": 1, "kind": "delivered"})
    rows[-1] |= {"message_source": "a", "message_incarnation": 0, "message_number": 2}
    rows.append({**rows[-1], "step": 2, "message_number": 1})
    verdict = verify_every_way(rows, "causal")
    assert verdict.counts == {"causal": 1}
    assert verdict.first is not None
    assert (verdict.first.node, verdict.first.incarnation, verdict.first.step) == ("b", 1, 2)


def test_duplicates_allowed_on_request_count_once():
    rows = parse("a: +1 +2\nb: a1 a2 a1 a2").table()
    assert verify_every_way(rows, "causal").counts == {"duplicate": 2}
    allowed = verify_every_way(rows, "causal", duplicates="allow")
    assert (allowed.verdict, allowed.deliveries_checked) == ("holds", 4)
    late = parse("a: +1 +2\nb: a2 a1 a2").table()
    assert verify_every_way(late, "causal", duplicates="allow").counts == {"causal": 1}
