"""The witness over run files: one file, one task, one pass (DESIGN sections 5 and 6)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from precede.witness.verdict import ORDERS, Verdict
from precede.witness.verify import verify


def judge(events: Path, promised: str) -> dict[str, Any]:
    """The verdict about one run's log, as plain data: on the order that it promises, else on causal."""
    verdict = verify(events, promised if promised in ORDERS else "causal")
    return {"promised": promised, **plain_verdict(verdict)}


def plain_verdict(verdict: Verdict) -> dict[str, Any]:
    """A verdict with its violations, as they go into the tables."""
    first = verdict.first
    listed = [violation.json() for violation in verdict.listed]
    if first is not None:
        told = first.json()
        place = next((i for i, one in enumerate(listed) if _same(one, told)), None)
        if place is not None:
            listed[place] = told
        else:
            listed.insert(0, told)
    return {
        "order": verdict.order,
        "verdict": verdict.verdict,
        "rows": verdict.rows,
        "deliveries_checked": verdict.deliveries_checked,
        "violations": verdict.violations,
        "reasons": list(verdict.reasons),
        "findings": list(verdict.findings),
        "listed": listed,
    }


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(one.get(key) == other.get(key) for key in ("kind", "node", "incarnation", "step", "message"))
