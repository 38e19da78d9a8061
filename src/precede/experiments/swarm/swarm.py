"""Runs one world of the swarm and judges it.

Safety: the witness's verdict on the event log. Liveness, some time after everything has healed: every message
that is due is delivered, and every buffer that must drain is empty. An exception counts as a violation.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from precede.core.memory import without_collections
from precede.eventlog.sinks import TableSink
from precede.experiments.run import Prepared, prepare
from precede.experiments.swarm.ends import unsettled
from precede.experiments.swarm.events import Message, Process, events_of, message_of
from precede.experiments.swarm.large_numbers import builder
from precede.experiments.swarm.plan import Drawer, Plan, draw_plan, find_drawer
from precede.experiments.swarm.promises import (
    crashes_station,
    is_live,
    keeps_clocks,
    keeps_stations,
    loses_majority,
    may_still_wait,
)
from precede.protocols.registry import Entry
from precede.sim.hosted_node import HostedNode
from precede.sim.world import World
from precede.witness.many_logs import verify_one_of_many
from precede.witness.verdict import read_order

_INTEGRITY: Final = ("ghost", "before_broadcast", "not_addressed")
_SHOWN: Final = 5


class WorldResult(Struct, frozen=True):
    """The findings in one world, as counts. `remarks` describe them in words, the first violation first."""

    protocol: str
    seed: int
    violations: int = 0
    duplicates: int = 0
    undelivered: int = 0
    leaks: int = 0
    deliveries: int = 0
    remarks: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        return bool(self.violations or self.duplicates or self.undelivered or self.leaks)


class Tally(Struct):
    """The findings of many worlds, added up."""

    worlds: int = 0
    violations: int = 0
    duplicates: int = 0
    undelivered: int = 0
    leaks: int = 0

    def add(self, other: WorldResult | Tally) -> None:
        """Add the findings of one more world, or of others."""
        self.worlds += other.worlds if isinstance(other, Tally) else 1
        self.violations += other.violations
        self.duplicates += other.duplicates
        self.undelivered += other.undelivered
        self.leaks += other.leaks

    @property
    def clean(self) -> bool:
        return not (self.violations or self.duplicates or self.undelivered or self.leaks)

    def line(self) -> str:
        """Return the counts as one line, the last one that `precede swarm` prints."""
        return (
            f"worlds={self.worlds} violations={self.violations} duplicates={self.duplicates}"
            f" undelivered={self.undelivered} leaks={self.leaks}"
        )


def run_seed(protocol: str, seed: int) -> WorldResult:
    """Draw, run and judge the world of a seed.

    Garbage is collected after the world, not meanwhile: that would take a tenth of the time.
    """
    drawer = find_drawer(protocol)
    with without_collections():
        return replace(run_plan(draw_plan(protocol, seed, drawer), drawer), protocol=protocol)


def run_seeds(jobs: Iterable[tuple[str, int]]) -> Iterator[WorldResult]:
    for protocol, seed in jobs:
        yield run_seed(protocol, seed)


def run_plan(
    plan: Plan, drawer: Drawer, entry: Entry[Any] | None = None, log: TableSink | None = None
) -> WorldResult:
    """Run a plan and judge it; `entry` replaces the registered protocol. An exception counts as a violation."""
    name, seed = plan.run.protocol, plan.run.seed
    sink = log if log is not None else TableSink()
    try:
        prepared = prepare(plan.run, sink, entry, make_world=World, build_node=builder(plan))
        prepared.world.schedule(plan.heal_at, prepared.world.heal, plan.dead)
        prepared.world.run(plan.end)
        prepared.recorder.flush()
    except Exception:
        return WorldResult(name, seed, violations=1, remarks=(traceback.format_exc(limit=-6),))
    return judge(plan, drawer, prepared, sink.events())


def judge(plan: Plan, drawer: Drawer, prepared: Prepared, log: pa.Table) -> WorldResult:
    """Judge safety from the event log, liveness and leaks from the log and the sizes of the nodes' buffers."""
    findings: dict[str, list[str]] = {"violations": [], "duplicates": [], "undelivered": [], "leaks": []}
    counts = dict.fromkeys(findings, 0)
    order = prepared.entry.order if keeps_clocks(plan) and keeps_stations(plan) else "none"
    counts["violations"], duplicates, story, deliveries = _safety(log, order)
    if not crashes_station(plan):
        counts["duplicates"] = duplicates
    elif not counts["violations"]:
        story = ""
    live = is_live(plan) and not loses_majority(prepared)
    if live:
        findings["undelivered"] += (drawer.missing or everything_missing)(plan, prepared, log)
    if live and not may_still_wait(plan):
        findings["leaks"] += leaking(prepared)
    if drawer.checks is not None:
        for name, found in drawer.checks(plan, prepared, log).items():
            if live or name in ("violations", "duplicates"):
                findings[name] += found
    if live:
        for name, lines in unsettled(plan, prepared, log).items():
            findings[name] += lines
    for name, lines in findings.items():
        counts[name] += len(lines)
    remarks = [*([story] if story else []), *_lines(findings)]
    return WorldResult(
        plan.run.protocol, plan.run.seed, **counts, deliveries=deliveries, remarks=tuple(remarks)
    )


def _safety(log: pa.Table, order: str) -> tuple[int, int, str, int]:
    """Count violations, duplicates, and checked deliveries (last); explain the first violation or duplicate."""
    verdict = verify_one_of_many(log, "fifo" if order == "none" else read_order(order))
    counts = dict(verdict.counts)
    duplicates = counts.pop("duplicate", 0)
    if order == "none":
        counts = {kind: count for kind, count in counts.items() if kind in _INTEGRITY}
    bad = sum(counts.values())
    if verdict.verdict == "unknown" and verdict.deliveries_checked:
        return 1, 0, f"unknown: {'; '.join(verdict.reasons)}", verdict.deliveries_checked
    story = verdict.first.story if verdict.first is not None and (bad or duplicates) else ""
    return bad, duplicates, story, verdict.deliveries_checked


def everything_missing(plan: Plan, prepared: Prepared, log: pa.Table) -> list[str]:
    """List messages that a running node did not deliver, though they were sent to it after it started."""
    began: dict[Process, int] = {}
    sent: dict[Message, tuple[int, list[str] | None]] = {}
    delivered: dict[Process, dict[Message, None]] = {}
    for row in events_of(log, "started", "broadcast", "delivered"):
        process = (row["node"], row["incarnation"])
        if row["kind"] == "started":
            began.setdefault(process, row["at_us"])
            continue
        message = message_of(row)
        if row["kind"] == "broadcast":
            sent[message] = (row["at_us"], row["destinations"])
        else:
            delivered.setdefault(process, {})[message] = None
    return [
        f"{node} never delivered {source}:{number}"
        for node, incarnation in up_at_end(prepared)
        for (source, source_incarnation, number), (at, to) in sent.items()
        if at >= began[node, incarnation]
        and (to is None or node in to)
        and (source, source_incarnation, number) not in delivered.get((node, incarnation), {})
    ]


def up_at_end(prepared: Prepared) -> dict[Process, HostedNode]:
    names = prepared.built.names
    return {
        (names[hosted.id], hosted.incarnation): hosted
        for hosted in prepared.world.nodes
        if hosted.up and not hosted.gone
    }


def leaking(prepared: Prepared) -> list[str]:
    """List buffers that must be empty at the end and are not."""
    return [
        f"{prepared.built.names[hosted.id]}: {name} = {hosted.node.sizes()[name]}"
        for hosted in prepared.world.nodes
        if hosted.up
        for name in hosted.node.drains()
        if hosted.node.sizes().get(name, 0)
    ]


def _lines(findings: dict[str, list[str]]) -> list[str]:
    lines = []
    for name, items in findings.items():
        lines += [f"{name}: {item}" for item in items[:_SHOWN]]
        if len(items) > _SHOWN:
            lines.append(f"{name}: ... and {len(items) - _SHOWN} more")
    return lines


def replay_line(result: WorldResult) -> str:
    """Return the command that runs one world of the swarm again."""
    return f"precede swarm --protocol {result.protocol} --worlds 1 --seed {result.seed}"


def spread(protocols: Sequence[str], worlds: int, seed: int) -> list[tuple[str, int]]:
    """Return pairs of protocol and seed for so many worlds. Protocols take turns, seeds count up."""
    return [(protocols[place % len(protocols)], seed + place) for place in range(worlds)]
