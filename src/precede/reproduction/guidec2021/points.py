"""The experiments of guidec2021 (section VI): `experiments.toml` as points, a point and a seed as a run.

A run is simulated, verified, and measured from its rows (`measures.py`). A layout is one generated town; they
are repetitions, as seeds are. Days of one town are not independent, so open claims get more towns, not seeds.
"""

import gc
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from precede.core.errors import BadInput
from precede.eventlog.sinks import TableSink
from precede.experiments.run import Run, prepare
from precede.experiments.scenario import read_scenario
from precede.experiments.tables import read_toml
from precede.reproduction.guidec2021.measures import measure_log, measure_world
from precede.reproduction.guidec2021.series import read_series
from precede.reproduction.units import ENGINE, Finding, Unit, finding_about, unit_of
from precede.witness.verdict import read_order
from precede.witness.verify import verify


class Point(Struct, frozen=True, omit_defaults=True):
    """One point of one experiment in one town: what its grid varied, and the run without its seed.

    `drawn`: figures show what this run goes through (`series.py`).
    """

    experiment: str
    varied: Mapping[str, str]
    layout: str
    described: Run
    drawn: bool = False

    def run(self, seed: int) -> Run:
        return msgspec.structs.replace(self.described, seed=seed)


def read_experiments(path: Path, scale: str = "paper", more: bool = False) -> list[tuple[Point, list[int]]]:
    """Read every point of the file, once for each layout, with the seeds it gets at this scale.

    An experiment with `layouts` of its own has a scenario that reads files: a recorded trace, not our towns.
    With `more`, and for an experiment with `all_towns`, the layouts of `[more]` follow, with its seeds. One
    that is `drawn` has the first day of the first town alone, at every scale.
    """
    tables, _ = read_toml(path)
    if scale not in tables:
        raise BadInput(f"{path}: no scale [{scale}]")
    points = []
    for name, table in tables["experiment"].items():
        grid = table.get("quick_grid" if scale == "quick" else "grid", table.get("grid", {}))
        for values, (layout, seeds) in product(product(*grid.values()), _days(table, tables, scale, more)):
            varied = dict(zip(grid, values, strict=True))
            map_of_town = {} if "layouts" in table else {"layout": layout}
            settings = {"log": "messages", **map_of_town, **table.get("set", {}), **varied}
            run = read_scenario(table["scenario"], table["protocol"], settings=settings)
            if map_of_town:  # a worker has no files next to the scenario, and the scenario reads none
                run = msgspec.structs.replace(run, base="")
            points.append((Point(name, varied, layout, run, table.get("drawn", False)), seeds))
    return points


def _days(
    table: Mapping[str, Any], tables: Mapping[str, Any], scale: str, more: bool
) -> list[tuple[str, list[int]]]:
    """Return the layouts of an experiment, each with its seeds."""
    seeds = list(tables[scale]["seeds"])
    if "layouts" in table:
        return [(layout, seeds) for layout in table["layouts"]]
    if table.get("drawn"):
        return [(tables[scale]["layouts"][0], seeds[:1])]
    if scale == "quick":
        return [(layout, seeds) for layout in tables[scale]["layouts"]]
    days = [(layout, list(table.get("seeds", seeds))) for layout in tables[scale]["layouts"]]
    if more or table.get("all_towns"):
        beyond = tables["more"]
        days += [(layout, list(beyond["seeds"])) for layout in beyond[table["scenario"]]]
    return days


def units(folder: Path, scale: str, more: bool = False) -> list[Unit]:
    return [
        msgspec.structs.replace(
            unit_of("guidec2021", point, seed, point.varied),
            replicate=f"{point.layout}{seed}",
            cluster="" if point.described.base else point.layout,
        )
        for point, seeds in read_experiments(folder / "experiments.toml", scale, more)
        for seed in seeds
    ]


def runs(unit: Unit) -> list[Run]:
    return [msgspec.convert(unit.given, Point).run(unit.seed)]


def measure(unit: Unit) -> Finding:
    return measure_run(msgspec.convert(unit.given, Point), unit.seed)


def measure_run(point: Point, seed: int) -> Finding:
    """Carry out one run of a point, verify and measure it. Delays are in seconds, ratios in percent.

    Garbage is collected only afterwards: walking the world before its end finds nothing.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _measure_run(point, seed)
    finally:
        if collecting:
            gc.enable()


def _measure_run(point: Point, seed: int) -> Finding:
    sink = TableSink()
    ready = prepare(point.run(seed), sink)
    ready.world.run(ready.end)
    ready.recorder.flush()
    log = sink.events()
    gauges = sink.gauges()
    verdict = verify(log, read_order(ready.entry.order), engine=ENGINE)
    measures = measure_world(ready.built) | measure_log(log, gauges, ready.built)
    series = read_series(log, gauges, ready.built) if point.drawn else {}
    return finding_about(measures, verdict, series)
