"""The experiments of section 5 of vcube2018: `experiments.toml` as points, a point and a seed as runs.

A run is simulated, verified, and measured from its rows alone (`measures.py`).
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from precede.eventlog.sinks import TableSink
from precede.experiments.run import Run, carry_out
from precede.experiments.tables import read_toml
from precede.reproduction.units import ENGINE, Finding, Unit, expand, seeds_of, unit_of
from precede.reproduction.vcube2018.measures import Rows, measure_pairs, measure_rows
from precede.witness.verify import verify

PAIRED: Final = ("paired", "paired_wide", "paired_wide_small", "paired_small")
"""Experiments whose unit is two runs that differ in aggregation only."""


class Point(Struct, frozen=True):
    """One point of one experiment: a network, a start process and the protocol's options."""

    experiment: str
    start: str
    first: str
    nodes: int
    aggregation: bool = True
    size: int = 50
    tree: str = "multiple"
    unpack: str = "insertion"
    drawn: str = "packet"
    propagation: str = "normal(0.1, 0.025)"

    def run(self, seed: int, aggregation: bool | None = None) -> Run:
        """Describe one simulation of this point. One unit of time is one millisecond."""
        return Run(
            world={
                "kind": "switched",
                "nodes": self.nodes,
                "propagation": self.propagation,
                "transmission": "1ms",
                "processing": "1ms",
                "drawn": self.drawn,
            },
            workload={"first": self.first, "every": self.first, "count": 1, "size": self.size},
            protocol="vcube",
            options={
                "aggregation": self.aggregation if aggregation is None else aggregation,
                "tree": self.tree,
                "unpack": self.unpack,
            },
            seed=seed,
            gauges="none",
            log="full" if self.experiment in PAIRED else "messages",
        )


class Scale(Struct, frozen=True):
    """The number of runs of each point; `own` has the numbers of experiments that state one themselves."""

    runs: int
    runs_when_large: int | None = None
    large: int = 1 << 30
    largest: int = 1 << 30
    own: Mapping[str, int] = {}

    def is_large(self, point: Point) -> bool:
        return point.nodes > self.large

    def runs_of(self, point: Point) -> int:
        if point.experiment in self.own:
            return self.own[point.experiment]
        if point.nodes > self.largest:
            return 0
        if self.runs_when_large is not None and self.is_large(point):
            return self.runs_when_large
        return self.runs


def read_experiments(tables: Mapping[str, Any], scale: str = "paper") -> tuple[list[Point], Scale]:
    """Return every point, once for each start process (or for an experiment's own `starts`), and its runs."""
    points = [
        point
        for name, table in tables["experiment"].items()
        for start in tables["starts"].items()
        if start[0] in table.get("starts", tables["starts"])
        for point in expand(name, table, False, partial(_point, start))
    ]
    is_quick = scale == "quick"
    own = {
        name: table.get("quick_runs", table["runs"]) if is_quick else table["runs"]
        for name, table in tables["experiment"].items()
        if "runs" in table
    }
    return points, Scale(**tables["quick" if is_quick else "measured"], large=tables["large"], own=own)


def _point(start: tuple[str, Mapping[str, str]], given: dict[str, Any]) -> Point:
    """Make a point with a reading of `[starts]`; what an experiment sets itself comes first."""
    return Point(start=start[0], **{**start[1], **given})


def units(folder: Path, scale: str, more: bool = False) -> list[Unit]:
    tables, _ = read_toml(folder / "experiments.toml")
    points, repetitions = read_experiments(tables, scale)
    return [
        unit_of("vcube2018", point, seed)
        for point in points
        for seed in seeds_of(tables, repetitions.runs_of(point), more and not repetitions.is_large(point))
    ]


def runs(unit: Unit) -> list[Run]:
    point = msgspec.convert(unit.given, Point)
    if point.experiment in PAIRED:
        return [point.run(unit.seed), point.run(unit.seed, aggregation=False)]
    return [point.run(unit.seed)]


def measure(unit: Unit) -> Finding:
    return measure_run(msgspec.convert(unit.given, Point), unit.seed)


def measure_run(point: Point, seed: int) -> Finding:
    """Carry out, verify and measure one run; for Figure 8 (`PAIRED`) two that differ in aggregation only."""
    rows, counters, violations = _carry_out(point.run(seed))
    if point.experiment not in PAIRED:
        measures = measure_rows(rows, counters, point.nodes)
    else:
        without, _, more = _carry_out(point.run(seed, aggregation=False))
        measures, violations = measure_pairs(rows, without, point.nodes), violations + more
    return Finding(measures=measures, violations=violations, order="causal")


def _carry_out(run: Run) -> tuple[Rows, Mapping[str, int], int]:
    sink = TableSink()
    outcome = carry_out(run, sink)
    log = sink.events()
    verdict = verify(log, "causal", engine=ENGINE)
    return Rows(log), outcome.counters, verdict.violations + (verdict.verdict != "holds")
