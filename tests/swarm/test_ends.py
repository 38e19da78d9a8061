"""The checks at the end of a world notice nodes that hoard, that never go quiet, and that refuse messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from precede.core.effects import Effects, Persist, SetTimer
from precede.core.errors import Refused
from precede.core.node import Context, Node
from precede.experiments.swarm.plan import draw_plan, find_drawer
from precede.experiments.swarm.swarm import run_plan
from precede.protocols import registry
from precede.protocols.around import Around
from precede.protocols.registry import Entry


class KeepsOwn(Around[Node]):
    """Never removes an own message, or a step under a checkpoint, from its store."""

    def passed(self, effects: Effects) -> Effects:
        return [
            e for e in effects if not (type(e) is Persist and e.value is None and e.key[0] in ("own", "step"))
        ]

    def drains(self) -> tuple[str, ...]:
        return ()


class NeverQuiet(Around[Node]):
    """Sets a timer for nothing, again and again."""

    def passed(self, effects: Effects) -> Effects:
        return effects

    def start(self, now: int, saved: Mapping[Any, Any]) -> Effects:
        return [*self.inner.start(now, saved), SetTimer("idle", now + 10_000_000)]

    def timer(self, key: Any, now: int) -> Effects:
        return [SetTimer("idle", now + 10_000_000)] if key == "idle" else self.inner.timer(key, now)


class Refuses(Around[Node]):
    """Accepts no message after a while."""

    accepted = 0

    def passed(self, effects: Effects) -> Effects:
        return effects

    def broadcast(self, *given: Any) -> Effects:
        if self.accepted >= 2:
            raise Refused("no")
        self.accepted += 1
        return self.inner.broadcast(*given)


class Grows(Around[Node]):
    """Has a registry that grows with every message."""

    def passed(self, effects: Effects) -> Effects:
        return effects

    def sizes(self) -> Mapping[str, int]:
        return {**self.inner.sizes(), "delivered_entries": 10_000}


def around(protocol: str, make: Callable[[Node], Node]) -> Entry[Any]:
    base = registry.find(protocol)

    def build(role: str, context: Context) -> Node:
        return make(registry.make(protocol, role, context))

    return replace(base, build=build)


@pytest.mark.parametrize(
    ("protocol", "saboteur", "remark"),
    [
        ("prs", KeepsOwn, "are in the store"),
        ("prs", NeverQuiet, "does not go quiet"),
        ("prs", Refuses, "accepts no message"),
        ("prs", Grows, "more than"),
    ],
)
def test_a_world_with_a_saboteur_does_not_end_well(
    protocol: str, saboteur: Callable[[Node], Node], remark: str
) -> None:
    drawer, entry = find_drawer(protocol), around(protocol, saboteur)
    remarks: list[str] = []
    for seed in range(1_000_000, 1_000_030):
        plan = draw_plan(protocol, seed, drawer)
        assert not run_plan(plan, drawer).failed
        remarks += run_plan(plan, drawer, entry).remarks
        if any(remark in line for line in remarks):
            return
    pytest.fail(f"nothing found: {remarks[:3]}")
