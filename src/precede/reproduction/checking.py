"""Reruns a part of the stored results and compares every measure: `precede reproduce --check`.

A run is determined by its description and seed, so a rerun must give the stored measures digit by digit.
"""

import time
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from precede.reproduction.results import PointResult, Results, stored
from precede.reproduction.units import Unit, find_paper


class Chosen(Struct, frozen=True):
    """A unit to rerun: the point that has its stored measures, and its place in the lists of the point."""

    unit: Unit
    point: PointResult
    at: int

    @property
    def cpu_s(self) -> float:
        return self.point.cpu_s[self.at]


class Rerun(Struct, frozen=True, kw_only=True):
    """A unit that was run again: how many measures were compared, and the names of those that differ."""

    unit: str
    experiment: str
    scale: str
    compared: int
    differing: tuple[str, ...]
    violations: int
    cpu_s: float


def choose(folder: Path, results: Results, budget_s: float) -> list[Chosen]:
    """Choose units within a budget of CPU seconds, as stored: first the cheapest of each experiment, and so on.

    The cheapest unit of all is chosen even if it is above the budget.
    """
    paper = find_paper(results.paper)
    units = {
        (scale, unit.experiment, _key(unit.varied), unit.replicate): unit
        for scale in ("quick", "paper")
        for unit in paper.units(folder, scale, more=True)
    }
    by_experiment: dict[tuple[str, str], list[Chosen]] = {}
    for point in results.points:
        for at, replicate in enumerate(point.replicates):
            unit = units.get((point.scale, point.experiment, _key(point.varied), replicate))
            if unit is not None:
                place = (point.scale, point.experiment)
                by_experiment.setdefault(place, []).append(Chosen(unit, point, at))
    ranked = [
        (rank, one.cpu_s, one)
        for members in by_experiment.values()
        for rank, one in enumerate(sorted(members, key=lambda one: one.cpu_s))
    ]
    chosen = [one for _, _, one in sorted(ranked, key=lambda entry: entry[:2])]
    spent = accumulate(one.cpu_s for one in chosen)
    return [
        one
        for number, (one, total) in enumerate(zip(chosen, spent, strict=True))
        if total <= budget_s or not number
    ]


def rerun(chosen: Chosen) -> Rerun:
    """Carry a unit out again and compare every stored measure."""
    began = time.process_time()
    finding = find_paper(chosen.unit.paper).measure(chosen.unit)
    expected = {name: values[chosen.at] for name, values in chosen.point.measures.items() if name != "cpu_s"}
    differing = [name for name, value in expected.items() if stored(finding.measures.get(name)) != value]
    for name, columns in (chosen.point.series[chosen.at] if chosen.point.series else {}).items():
        again = finding.series.get(name, {})
        differing += [f"{name}.{column}" for column in columns if list(columns[column]) != again.get(column)]
    return Rerun(
        unit=chosen.unit.id,
        experiment=chosen.unit.experiment,
        scale=chosen.point.scale,
        compared=len(expected),
        differing=tuple(differing),
        violations=finding.violations or 0,
        cpu_s=time.process_time() - began,
    )


def summary(key: str, reruns: Sequence[Rerun]) -> list[str]:
    """Return what agreed and what did not, as lines."""
    agreed = [one for one in reruns if not one.differing and not one.violations]
    experiments = ", ".join(dict.fromkeys(one.experiment for one in agreed))
    lines = [
        f"{key}: {len(agreed)} of {len(reruns)} reruns gave all stored measures "
        f"({sum(one.compared for one in reruns):,} compared, {sum(one.cpu_s for one in reruns):.0f} s of CPU)"
    ]
    lines += [f"  agreed: {experiments}"] if agreed else []
    for one in reruns:
        if one.differing:
            lines.append(f"  differs: {one.unit}: {', '.join(one.differing[:5])}")
        if one.violations:
            lines.append(f"  violated: {one.unit}: {one.violations} violations")
    return lines


def _key(varied: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode(varied, order="sorted")
