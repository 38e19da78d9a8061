"""Adds measured units to a paper's stored results, and keeps the stored seeds that were not measured again."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from precede.core.errors import BadInput
from precede.reproduction.claims import read_claims, read_reasons
from precede.reproduction.exhibits import read_figures
from precede.reproduction.results import (
    PointResult,
    Results,
    changed_claims,
    digest_of,
    judge_stored,
    name_of,
    read_results,
    stored,
)
from precede.reproduction.units import Unit, find_paper

Marked: TypeAlias = tuple[Unit, Mapping[str, Any]]
"""A unit, and the mark that its run left."""
_Place: TypeAlias = tuple[str, bytes]
"""An experiment, and a point of it."""
_Needed: TypeAlias = Mapping[str, set[str]]
"""The measures that are stored of each experiment."""


def add_results(folder: Path, key: str, scale: str, marks: Sequence[Marked]) -> Results:
    """Return the stored results with the measured units of the marks, and all claims judged.

    A unit that is stored already is replaced. Other stored seeds of the same experiments stay if the paper
    still declares them and a repeated seed shows that they are of the same point (`_same_points`).
    """
    old = read_results(folder) or Results(paper=key)
    needed = {
        name: _needed_measures(folder, name) for name in dict.fromkeys(unit.experiment for unit, _ in marks)
    }
    experiments = {(scale, unit.experiment) for unit, _ in marks}
    untouched = [one for one in old.points if (one.scale, one.experiment) not in experiments]
    touched = [one for one in old.points if (one.scale, one.experiment) in experiments]
    declared = {_seed_of(unit) for unit in find_paper(key).units(folder, scale, more=True)}
    measured = {_seed_of(unit): mark for unit, mark in marks}
    same = _same_points(touched, measured, needed)
    kept = [
        _without(one, measured, declared, needed[one.experiment]) for one in touched if _place_of(one) in same
    ]
    points = [*untouched, *_points(scale, marks, needed), *(one for one in kept if one.replicates)]
    new = msgspec.structs.replace(
        old, points=tuple(sorted(points, key=lambda one: (one.scale, one.experiment)))
    )
    return msgspec.structs.replace(new, judged={**old.judged, **_judged(folder, old, new)})


def _judged(folder: Path, old: Results, new: Results) -> dict[str, str]:
    """Return the digests of the claims that the new results answer; BadInput if a judged claim changed."""
    claims = read_claims(folder / "claims.toml")
    changed = changed_claims(old, claims)
    if changed:
        raise BadInput(
            f"{folder / 'claims.toml'}: {changed[0]} was judged before with other fields; "
            "a corrected claim needs a new id"
        )
    return {
        name_of(one.claim): digest_of(one.claim, claims)
        for one in judge_stored(claims, new)
        if one.status != "paper scale only"
    }


def _same_points(
    old: Sequence[PointResult], measured: Mapping[tuple[_Place, str], Mapping[str, Any]], needed: _Needed
) -> set[_Place]:
    """Return the points whose repeated seeds, at least one, gave the stored measures again, digit by digit.

    Only then are the point's description and the measured quantities still those of its other stored seeds.
    """
    repeated = [
        (_place_of(one), _is_repeated(one, at, mark["measures"], needed[one.experiment]))
        for one in old
        for at, replicate in enumerate(one.replicates)
        if (mark := measured.get((_place_of(one), replicate))) is not None
    ]
    differing = {place for place, is_same in repeated if not is_same}
    return {place for place, _ in repeated} - differing


def _is_repeated(one: PointResult, at: int, measures: Mapping[str, float], needed: set[str]) -> bool:
    names = [name for name in one.measures if name in needed and name != "cpu_s"]
    return all(stored(measures.get(name)) == one.measures[name][at] for name in names)


def _without(
    one: PointResult,
    measured: Mapping[tuple[_Place, str], Mapping[str, Any]],
    declared: set[tuple[_Place, str]],
    needed: set[str],
) -> PointResult:
    """Return a stored point without the seeds that were measured again or are declared no longer.

    Runs are determined, so the violations of a repeated seed are those that it had before.
    """
    seeds = [(_place_of(one), replicate) for replicate in one.replicates]
    again = [measured[seed]["violations"] for seed in seeds if seed in measured]
    places = [at for at, seed in enumerate(seeds) if seed in declared and seed not in measured]
    return msgspec.structs.replace(
        one,
        replicates=tuple(one.replicates[at] for at in places),
        clusters=tuple(one.clusters[at] for at in places) if one.clusters else (),
        cpu_s=tuple(one.cpu_s[at] for at in places),
        violations=max(0, one.violations - sum(count or 0 for count in again)),
        unverified=max(0, one.unverified - sum(count is None for count in again)),
        measures={
            name: tuple(values[at] for at in places) for name, values in one.measures.items() if name in needed
        },
        series=tuple(one.series[at] for at in places) if one.series else (),
    )


def _points(scale: str, marks: Sequence[Marked], needed: _Needed) -> list[PointResult]:
    """Return the marks by point and code version."""
    grouped: dict[tuple[_Place, str], list[Marked]] = {}
    for unit, mark in marks:
        grouped.setdefault((_seed_of(unit)[0], str(mark["version"])), []).append((unit, mark))
    points = []
    for (_, version), members in grouped.items():
        units = [unit for unit, _ in members]
        own = [mark for _, mark in members]
        names = sorted(
            {name for mark in own for name in mark["measures"] if name in needed[units[0].experiment]}
        )
        points.append(
            PointResult(
                scale=scale,
                experiment=units[0].experiment,
                varied=units[0].varied,
                code=version,
                replicates=tuple(unit.replicate for unit in units),
                clusters=tuple(unit.cluster for unit in units) if units[0].cluster else (),
                cpu_s=tuple(round(mark["cpu_s"], 2) for mark in own),
                violations=sum(mark["violations"] or 0 for mark in own),
                unverified=sum(mark["violations"] is None for mark in own),
                measures={name: tuple(stored(mark["measures"].get(name)) for mark in own) for name in names},
                series=tuple(mark.get("series", {}) for mark in own)
                if any("series" in mark for mark in own)
                else (),
            )
        )
    return points


def _seed_of(unit: Unit) -> tuple[_Place, str]:
    return (unit.experiment, msgspec.json.encode(unit.varied, order="sorted")), unit.replicate


def _place_of(one: PointResult) -> _Place:
    return one.experiment, msgspec.json.encode(one.varied, order="sorted")


def _needed_measures(folder: Path, experiment: str) -> set[str]:
    """Return the measures that a paper's claims and evidence name, and its figures about the experiment."""
    claims = [*read_claims(folder / "claims.toml").claim, *read_reasons(folder / "reasons.toml").evidence]
    needed = {name for claim in claims for name in (claim.measure, *claim.also)}
    needed |= {str((claim.against or {}).get("measure", claim.measure)) for claim in claims}
    figures = [spec for spec in read_figures(folder / "figures.toml") if experiment in spec.experiments]
    return needed | {name for spec in figures for name in spec.measures}
