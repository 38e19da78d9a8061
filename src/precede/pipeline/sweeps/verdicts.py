"""The verdict about the log of one run, as plain data for its done mark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from precede.pipeline.judging.answers import answer_of
from precede.witness.verdict import ORDERS, Verdict
from precede.witness.verify import verify


def judge(events: Path, promised: str) -> dict[str, Any]:
    """Verify a run's log on the order that its protocol promises, else on causal order."""
    verdict = verify(events, promised if promised in ORDERS else "causal")
    answer = answer_of(verdict, verdict.rows)
    kept = {name: value for name, value in answer.items() if name not in ("counts", "first")}
    return {"promised": promised, **kept, "listed": listed_violations(verdict)}


def listed_violations(verdict: Verdict) -> list[dict[str, Any]]:
    """The violations that a verdict lists.

    The first violation has its explanation and is always in the list.
    """
    listed = [violation.json() for violation in verdict.listed]
    if verdict.first is not None:
        first = verdict.first.json()
        index = next((index for index, violation in enumerate(listed) if _is_same(violation, first)), None)
        if index is not None:
            listed[index] = first
        else:
            listed.insert(0, first)
    return listed


def _is_same(violation: dict[str, Any], other: dict[str, Any]) -> bool:
    """Do two violations concern the same delivery and the same rule?"""
    keys = ("kind", "node", "incarnation", "step", "message")
    return all(violation.get(key) == other.get(key) for key in keys)
