"""Worlds in which a node crashes between two writes, at every place where that can happen.

A world of the swarm runs once to find the lists of effects that persist several things, or that persist one and
send or deliver another. Then it runs again with a crash at that place, and with a second one during recovery.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from random import Random
from typing import Any

import msgspec

from precede.core.effects import Deliver, Effect, Effects, Persist
from precede.core.instants import Instant
from precede.core.node import Context, Node, Saved
from precede.eventlog.sinks import TableSink
from precede.experiments.run import prepare
from precede.experiments.swarm.plan import Plan, seconds_text
from precede.protocols import registry
from precede.protocols.around import Around
from precede.protocols.registry import Entry
from tests.entries import wrapped

Shape = tuple[str, ...]
"""The kinds of effects in a list, and the place in it where the node crashes."""


class Point(msgspec.Struct, frozen=True):
    """A place for a crash: so many steps after an instant, next to a step that persists something."""

    at: Instant
    after: int
    shape: Shape


class Watched(Around[Node]):
    """A node whose lists of effects are passed to a function, except the list of its start."""

    def __init__(self, inner: Node, look: Callable[[Effects], Effects]) -> None:
        super().__init__(inner)
        self._look = look

    def start(self, now: Instant, saved: Saved) -> Effects:
        return self.inner.start(now, saved)

    def passed(self, effects: Effects) -> Effects:
        return self._look(effects)


def torn_worlds(plan: Plan, often: Counter[Shape], most: int) -> Iterator[Plan]:
    """The world with a crash at each of its places, at most `most` per shape, counted in `often`.

    Only those nodes crash that the drawer lets crash and restart with their saved state.
    """
    random = Random(plan.run.seed)
    crashes = plan.run.faults.get("crashes", ())
    durable = plan.run.options.get("durable", False)
    victims = {c["node"]: None for c in crashes if c.get("keep", durable) and "restart" in c}
    for name in victims:
        rest = [crash for crash in crashes if crash["node"] != name]
        for point in _points(_with_crashes(plan, rest), name):
            if often[point.shape] < most:
                often[point.shape] += 1
                back = point.at + random.randrange(1, max(plan.heal_at - point.at, 2))
                crash = {"node": name, "at": seconds_text(point.at), "after": point.after, "keep": True}
                crash["restart"] = seconds_text(back)
                if random.random() < 0.5:
                    crash["again"] = random.randrange(30)
                yield _with_crashes(plan, [*rest, crash])


def _with_crashes(plan: Plan, crashes: list[dict[str, Any]]) -> Plan:
    run = msgspec.structs.replace(plan.run, faults={**plan.run.faults, "crashes": crashes})
    return msgspec.structs.replace(plan, run=run)


def _points(plan: Plan, victim: str) -> list[Point]:
    """All places for a crash of a node before the world heals, in a run without its own crashes."""
    points: list[Point] = []
    last = (-1, 0)

    def wrap(inner: Node, context: Context) -> Node:
        return Watched(inner, look) if prepared.built.names[context.node] == victim else inner

    def look(effects: Effects) -> Effects:
        nonlocal last
        now, steps = prepared.world.now, atomic_steps(effects)
        before = last[1] if last[0] == now else 0
        last = (now, before + len(steps))
        if now < plan.heal_at:
            points.extend(_places(now, before, steps))
        return effects

    wrapped, entry = with_nodes(plan, wrap)
    prepared = prepare(wrapped.run, TableSink(), entry)
    prepared.world.run(plan.heal_at)
    return points


def with_nodes(plan: Plan, wrap: Callable[[Node, Context], Node]) -> tuple[Plan, Entry]:
    """The plan with its dissemination written out, and its protocol with `wrap` around every node."""
    entry, run = registry.find(plan.run.protocol), plan.run
    options = dict(run.options)
    if entry.ordering is not None:
        options.setdefault("dissemination", registry.usual_dissemination(run.world["kind"]))
    around = wrapped(entry, wrap, options.get("dissemination"))
    return msgspec.structs.replace(plan, run=msgspec.structs.replace(run, options=options)), around


def _places(now: Instant, before: int, steps: Sequence[Effects]) -> Iterator[Point]:
    shape = tuple(name for name, _ in groupby(_name(step[0]) for step in steps))
    persists = [type(step[0]) is Persist for step in steps]
    for place in range(1, len(steps)):
        if persists[place - 1] or persists[place]:
            where = f"{_name(steps[place - 1][0])} | {_name(steps[place][0])}"
            yield Point(max(now - 1, 0), before + place, (*shape, where))


def _name(effect: Effect) -> str:
    if isinstance(effect, Persist):
        key = effect.key[0] if isinstance(effect.key, tuple) else effect.key
        return f"-{key}" if effect.value is None else f"+{key}"
    return type(effect).__name__


def atomic_steps(effects: Effects) -> list[list[Effect]]:
    """The steps between which a node may crash: a Persist and the Deliver after it are one step."""
    steps: list[list[Effect]] = []
    for effect in effects:
        if steps and type(effect) is Deliver and type(steps[-1][-1]) is Persist:
            steps[-1].append(effect)
        else:
            steps.append([effect])
    return steps
