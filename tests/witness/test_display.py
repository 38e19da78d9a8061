"""Display order: the witness against the slow oracle, planted faults by hand, and what it says to a user."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import precede
from precede.core.errors import BadInput
from tests.witness.display_oracle import displayed, judge, table
from tests.witness.histories import Log


@pytest.mark.parametrize(
    "seeds", [range(300), pytest.param(range(300, 5000), marks=pytest.mark.long)], ids=["some", "many"]
)
def test_counts_equal_those_of_every_pair_on_every_screen(seeds: range) -> None:
    seen: dict[str, int] = {}
    for seed in seeds:
        log = displayed(Random(seed))
        verdict = precede.verify(table(log), "display")
        expected = judge(log)
        counted = {
            "answer_first": verdict.counts.get("answer_first", 0),
            "answer_above": verdict.counts.get("answer_above", 0),
            "revisions": verdict.revisions,
            "moved": verdict.moved,
        }
        assert counted == expected, f"seed {seed}"
        seen = {name: seen.get(name, 0) + count for name, count in expected.items()}
    assert all(seen.values()), seen  # every count is exercised


def log_of(text: str) -> list[dict[str, object]]:
    """`c: a1 ^a1 b1`: c delivers a:1, then inserts b:1 above it; `+1` broadcasts."""
    kinds = {"+": "broadcast", "^": "above"}
    log = Log()
    for line in text.strip().splitlines():
        node, _, words = line.strip().partition(": ")
        log.rows[node] = [
            (kinds[word[0]], f"{node}:{word[1:]}" if word[0] == "+" else f"{word[1]}:{word[2:]}")
            if word[0] in kinds
            else ("delivered", f"{word[0]}:{word[1:]}")
            for word in words.split()
        ]
    return table(log)


TALK = "a: +1 a1\nb: a1 +1 b1\n"
"""b1 answers a1."""


@pytest.mark.parametrize(
    ("reader", "counts", "revisions"),
    [
        pytest.param("c: a1 b1", {}, 0, id="in order"),
        pytest.param("c: b1 a1", {"answer_first": 1, "answer_above": 1}, 0, id="as they came"),
        pytest.param("c: b1 ^b1 a1", {"answer_first": 1}, 1, id="answer first, then the question above it"),
        pytest.param("c: a1 ^a1 b1", {"answer_above": 1}, 1, id="answer inserted above its question"),
        pytest.param("c: b1", {}, 0, id="the question never came"),
    ],
)
def test_planted_faults(reader: str, counts: dict[str, int], revisions: int) -> None:
    verdict = precede.verify(log_of(TALK + reader), "display")
    assert verdict.counts == counts
    assert verdict.revisions == revisions
    assert verdict.verdict == ("violated" if counts else "holds")


def test_a_violation_is_told_with_the_chain_and_its_rows() -> None:
    text = "a: +1 a1\nb: a1 +1 b1\nd: b1 +1 d1\nc: a1 ^a1 d1"
    first = precede.verify(log_of(text), "display").first
    assert first is not None
    assert (first.kind, first.message, first.other) == ("answer_above", "d:1", "a:1")
    assert first.chain == ("a:1", "b:1", "d:1")
    assert first.story.splitlines()[0] == "Node c shows d:1 above a:1, but a:1 -> b:1 -> d:1."
    assert first.story.splitlines()[-1].endswith("delivers d:1   (inserted)")


def test_a_question_below_its_answer_is_told_too() -> None:
    first = precede.verify(log_of(TALK + "c: b1 a1"), "display").first
    assert first is not None
    assert first.kind == "answer_first"
    listed = precede.verify(log_of(TALK + "c: b1 a1"), "display").listed
    assert [(one.kind, one.other) for one in listed] == [("answer_first", "b:1"), ("answer_above", "b:1")]


def test_a_place_that_a_crash_left_without_its_delivery_counts_for_nothing() -> None:
    rows: list[dict[str, Any]] = log_of(TALK)
    reader = [
        ("delivered", "a", 1, None),
        ("observed", "a", 1, "above"),
        ("started", None, None, None),
        ("delivered", "b", 1, None),
    ]
    for step, (kind, source, number, reason) in enumerate(reader, 1):
        row = {"node": "c", "step": step, "kind": kind, "message_source": source, "message_number": number}
        rows.append(row | {"reason": reason})
    assert precede.verify(rows, "display").verdict == "holds"
    del rows[-2]
    assert precede.verify(rows, "display", steps="ordered").counts == {"answer_above": 1}


def test_a_place_above_a_message_that_is_not_shown_makes_the_verdict_unknown() -> None:
    verdict = precede.verify(log_of(TALK + "c: a1 ^b1 a2\nd: b1"), "display", steps="ordered")
    assert verdict.verdict == "violated"  # a:2 was never broadcast
    verdict = precede.verify(log_of(TALK + "c: ^b1 a1"), "display")
    assert verdict.verdict == "unknown"
    assert verdict.reasons == ("node c, step 2: a:1 is placed above a message that is not shown",)


def test_other_observations_are_no_places() -> None:
    rows = log_of(TALK + "c: a1 ^a1 b1")
    for row in rows:
        row["reason"] = "shadow" if row["reason"] else None
    assert precede.verify(rows, "display").verdict == "holds"


def test_a_log_without_broadcast_rows_is_unknown() -> None:
    rows = [row for row in log_of(TALK + "c: b1 a1") if row["kind"] == "delivered"]
    assert precede.verify(rows, "display", steps="ordered").verdict == "unknown"


def test_spark_and_a_growing_log_are_refused_in_one_line() -> None:
    from precede.pipeline.judging.query import settle_query

    names = ["node", "step", "kind", "message"]
    with pytest.raises(BadInput, match="display order is judged in one process"):
        settle_query(names, "display")
