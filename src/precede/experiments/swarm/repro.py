"""The smallest seeded world in which a rule misorders: a search from small worlds to larger ones.

A world is a few nodes that meet and talk, with clocks that disagree by up to the skew. It misorders if the
witness finds an answer above its question or, where no world has that, an answer before its question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import Any, Final, Literal, TypeAlias

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from precede.core.errors import BadInput
from precede.core.instants import SECOND, Duration, format_duration
from precede.eventlog.sinks import TableSink
from precede.experiments.run import Run, carry_out
from precede.experiments.swarm.plan import Plan
from precede.experiments.swarm.shrink import shrink_while
from precede.experiments.swarm.swarm import WorldResult
from precede.protocols import registry
from precede.sim.randomness import Generators
from precede.witness.verdict import Verdict, Violation
from precede.witness.verify import verify

Misorder: TypeAlias = Literal["answer_above", "answer_first"]

MISORDERS: Final[tuple[Misorder, ...]] = ("answer_above", "answer_first")
KEEPS_ORDER: Final = "delta_causal"
_SIZES: Final = ((2, 2), (2, 3), (3, 2), (3, 3), (3, 4), (4, 4), (4, 5), (5, 8))
"""Nodes and messages of the worlds, from small to large."""
_TICK: Final = 10 * SECOND
_TICKS: Final = 60
_END: Final = "20min"
_LARGEST_SKEW: Final = 24 * 3600 * SECOND


class Played(Struct, frozen=True):
    """One run of the world: the run, its event log, and the verdict on display order."""

    run: Run
    events: pa.Table
    verdict: Verdict


class Repro(Struct, frozen=True):
    """A smallest world: what is wrong in it, the rule's run, and the run of a protocol that keeps the order."""

    misorder: Misorder
    tried: int
    rule: Played
    ordered: Played

    def first(self) -> Violation:
        """The first misorder of this kind between two authors."""
        return next(one for one in self.rule.verdict.listed if _is(self.misorder, one))


def find_repro(
    rule: str,
    skew: Duration,
    seed: int = 0,
    worlds: int = 400,
    misorders: tuple[Misorder, ...] = MISORDERS,
    progress: Callable[[int], None] | None = None,
) -> Repro | None:
    """Search so many worlds of each size for the first misorder of the list, then for the next.

    Returns None if no world misorders. Raise `BadInput` for a rule that is no ordering or a skew out of range.
    """
    entry = registry.find(rule)
    if entry.ordering is None or "contacts" not in entry.worlds:
        raise BadInput(f"rule: {rule!r} is no ordering that runs over contacts (try timestamp)")
    if not 0 <= skew <= _LARGEST_SKEW:
        raise BadInput(f"skew: expected 0s to 24h, got {format_duration(skew)}")
    tried = 0
    for misorder in misorders:
        judge = partial(_judge, misorder)
        for plan in _draw(rule, skew, seed, worlds):
            tried += 1
            if progress is not None:
                progress(tried)
            if judge(plan).failed:
                smallest = _without_idle_nodes(shrink_while(plan, judge)[0]).run
                assert judge(Plan(smallest, 0, 0)).failed
                return Repro(misorder, tried, play(smallest), play(under_order(smallest, skew)))
    return None


def _without_idle_nodes(plan: Plan) -> Plan:
    """Drop the nodes after the last one that writes or meets another."""
    run = plan.run
    used = [
        *(item["src"] for item in run.workload["script"]),
        *(n for m in run.world["meetings"] for n in m[:2]),
    ]
    world = {**run.world, "nodes": max(map(int, used)) + 1}
    return replace(plan, run=replace(run, world=world))


def play(run: Run) -> Played:
    """Carry a run out and judge what its users saw."""
    sink = TableSink()
    carry_out(run, sink)
    return Played(run, sink.events(), verify(sink.events(), "display"))


def under_order(run: Run, skew: Duration) -> Run:
    """Return the same world under a protocol that keeps the order and knows how far clocks disagree."""
    return replace(run, protocol=KEEPS_ORDER, options={**run.options, "skew": format_duration(skew)})


def _judge(misorder: Misorder, plan: Plan) -> WorldResult:
    """Count the misorders between messages of two authors: these are a question and an answer."""
    misordered = sum(_is(misorder, one) for one in play(plan.run).verdict.listed)
    return WorldResult(plan.run.protocol, plan.run.seed, violations=misordered)


def _is(misorder: Misorder, violation: Violation) -> bool:
    source, _, _ = violation.message.partition(":")
    other, _, _ = (violation.other or "").partition(":")
    return violation.kind == misorder and source != other


def _draw(rule: str, skew: Duration, seed: int, worlds: int) -> Iterator[Plan]:
    """Draw worlds of every size, the small ones first."""
    for nodes, messages in _SIZES:
        for number in range(worlds):
            random = Generators(seed + number).python("repro", nodes, messages)
            yield Plan(_draw_run(rule, skew, seed + number, random, nodes, messages), 0, 0)


def _draw_run(rule: str, skew: Duration, seed: int, random: Random, nodes: int, messages: int) -> Run:
    meetings = []
    for _ in range(random.randint(nodes - 1, 2 * messages)):
        pair = sorted(random.sample(range(nodes), 2))
        begin, length = random.randrange(_TICKS), random.randint(1, 3)
        meetings.append([*map(str, pair), *(format_duration(at * _TICK) for at in (begin, begin + length))])
    script: list[dict[str, Any]] = [
        {"src": str(random.randrange(nodes)), "at": format_duration(at * _TICK + _TICK // 2)}
        for at in sorted(random.sample(range(_TICKS), messages))
    ]
    return Run(
        world={"kind": "contacts", "nodes": nodes, "meetings": meetings, "overhead": "4s"},
        workload={"script": script, "size": 20},
        faults={"skew": f"constant({skew / 2 / SECOND})"} if skew else {},
        protocol=rule,
        options={"order": random.choice(("received", "newest", "random"))},
        seed=seed,
        end=_END,
        gauges="none",
    )
