"""Makes a failing world small: drops faults and messages while it still fails in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from precede.experiments.swarm.plan import Drawer, Plan
from precede.experiments.swarm.swarm import WorldResult, run_plan
from precede.protocols.registry import Entry

_CALM: Final[dict[str, dict[str, Any]]] = {
    "world": {"loss": 0.0, "duplication": 0.0, "partitions": [], "fifo": False, "collisions": False},
    "workload": {"replies": 0.0},
    "faults": {"skew": "constant(0)", "drift_ppm": 0, "crashes": [], "stalls": []},
}


def shrink(
    plan: Plan, drawer: Drawer, entry: Entry[Any] | None = None, tries: int = 200
) -> tuple[Plan, WorldResult]:
    """Make a failing plan smaller while it fails in the same way, within `tries` runs."""
    return shrink_while(plan, lambda smaller: run_plan(smaller, drawer, entry), tries)


def shrink_while(
    plan: Plan, judge: Callable[[Plan], WorldResult], tries: int = 200
) -> tuple[Plan, WorldResult]:
    """Make a plan smaller while `judge` finds the same kind of failure in it."""
    left = tries
    best = judge(plan)
    kind = _kind(best)
    progress = True
    while progress and left > 0:
        progress = False
        for smaller in _smaller(plan):
            left -= 1
            result = judge(smaller)
            if result.failed and _kind(result) == kind:
                plan, best, progress = smaller, result, True
                break
            if left <= 0:
                break
    return plan, best


def _kind(result: WorldResult) -> str:
    """Name the kind of a failure, because a smaller world must fail in the same way."""
    if result.violations:
        raised = any(remark.startswith("Traceback") for remark in result.remarks)
        return "raised" if raised else "violation"
    return "duplicate" if result.duplicates else "undelivered" if result.undelivered else "leak"


def _smaller(plan: Plan) -> Iterator[Plan]:
    """Yield plans with one fault, message or other part less; of each list, large parts are dropped first."""
    yield from _shorter(plan, "workload", "script")
    yield from _shorter(plan, "world", "meetings")
    yield from _shorter(plan, "world", "stays")
    yield from _shorter(plan, "faults", "crashes")
    yield from _shorter(plan, "faults", "stalls")
    for table, calm in _CALM.items():
        for key, value in calm.items():
            now = getattr(plan.run, table).get(key)
            if now and now != value:
                yield _with(plan, table, key, value)
    yield from _shorter(plan, "world", "partitions")


def _shorter(plan: Plan, table: str, key: str) -> Iterator[Plan]:
    """Yield plans without a whole list, without each half of it, each quarter, and so on to single items."""
    items = getattr(plan.run, table).get(key) or []
    size = len(items)
    while size:
        for start in range(0, len(items), size):
            rest = items[:start] + items[start + size :]
            yield _with(plan, table, key, rest)
        size //= 2


def _with(plan: Plan, table: str, key: str, value: Any) -> Plan:
    run = msgspec.structs.replace(plan.run, **{table: {**getattr(plan.run, table), key: value}})
    return msgspec.structs.replace(plan, run=run)
