"""Estimates of a claim's value from samples: the mean at each point, and its interval over independent runs.

A *sample* is one measured run (or a pair, or a series of runs) of one point of an experiment; the samples of a
point differ in seed or layout only. Samples of one *cluster* (the days of one town) are not independent: they
are averaged first, and an interval is over clusters.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any, Final

from msgspec import Struct

from precede.core.errors import BadInput
from precede.core.instants import parse_duration
from precede.measures.statistics import confidence_interval, student_quantile
from precede.reproduction.claims import Claim

GROUP: Final = 5
"""How many runs the statistic `fives_apart` compares with each other."""


class Sample(Struct, frozen=True):
    """The measures of one replicate of a point; `varied` has the point's value on each axis.

    Replicates with the same `cluster` are not independent; without one, each replicate is. `series` has what
    the run went through, for figures: columns of equal length, by name.
    """

    experiment: str
    varied: Mapping[str, Any]
    replicate: str
    measures: Mapping[str, float]
    cluster: str = ""
    series: Mapping[str, Mapping[str, Sequence[float]]] = {}

    @property
    def independent(self) -> str:
        """The name of the independent group of runs that this sample belongs to."""
        return self.cluster or self.replicate


class Estimate(Struct, frozen=True):
    """A claim's value at one point: the mean of each cluster, the mean of these, its interval, and the runs."""

    varied: Mapping[str, Any]
    clusters: Mapping[str, float]
    mean: float
    interval: tuple[float, float] | None
    runs: int


def estimates_of(claim: Claim, samples: Sequence[Sample]) -> list[Estimate]:
    """Return a claim's values at each point that it selects and that has one, in the order of the samples."""
    estimates = []
    for point in _points(claim.experiment, claim.where, samples):
        partner = None if claim.against is None else _partner(claim, point[0].varied, samples)
        if claim.against is not None and not partner:
            continue
        if claim.compare == "apart" and partner:
            sides = [[one for one in side if claim.measure in one.measures] for side in (point, partner)]
            if all(sides):
                estimates.append(_apart(claim, *sides))
            continue
        values = list(_values(claim, point, partner))
        if values:
            clusters = cluster_means(values)
            interval = confidence_interval(list(clusters.values()))
            if interval is None and claim.automatic:
                interval = (values[0][1],) * 2
            mean = fmean(clusters.values())
            estimates.append(Estimate(point[0].varied, clusters, mean, interval, len(values)))
    return estimates


def jackknife(
    statistic: Callable[[Sequence[float]], float], points: Sequence[Mapping[str, float]]
) -> tuple[float, float] | None:
    """Return the interval of a statistic of the points' means, by leaving out one cluster at a time.

    None if a point has fewer than two clusters.
    """
    names = list(dict.fromkeys(name for point in points for name in point))
    if any(len(point) < 2 for point in points):
        return None
    whole = statistic([fmean(point.values()) for point in points])
    without = [
        statistic([fmean(value for other, value in point.items() if other != name) for point in points])
        for name in names
    ]
    count = len(names)
    middle = math.fsum(without) / count
    variance = (count - 1) / count * math.fsum((value - middle) ** 2 for value in without)
    half = student_quantile(0.975, count - 1) * math.sqrt(variance)
    return whole - half, whole + half


def place_on(value: Any) -> float:
    """Return the position of a setting on its axis: a number, the mean of a list, or microseconds.

    >>> place_on("20min") > place_on("5min"), place_on([6, 14]), place_on("none")
    (True, 10.0, inf)
    """
    if isinstance(value, (int, float)):
        return float(value)
    if isinstance(value, (list, tuple)):
        return fmean(value)
    return math.inf if value == "none" else float(parse_duration(str(value)))


def _points(experiment: str, where: Mapping[str, Any], samples: Sequence[Sample]) -> list[list[Sample]]:
    points: dict[tuple[str, str], list[Sample]] = {}
    for sample in samples:
        if experiment in ("*", sample.experiment) and all(
            sample.varied.get(key) == value for key, value in where.items()
        ):
            axes = repr(sorted((key, repr(value)) for key, value in sample.varied.items()))
            points.setdefault((sample.experiment, axes), []).append(sample)
    return list(points.values())


def _partner(claim: Claim, varied: Mapping[str, Any], samples: Sequence[Sample]) -> list[Sample] | None:
    """Return the samples of the only point that a point is compared with; None if it was not measured."""
    where = dict(claim.against or {}) | {axis: varied[axis] for axis in claim.pair_by}
    experiment = str(where.pop("experiment", claim.experiment))
    where.pop("measure", None)
    points = _points(experiment, where, samples)
    if len(points) > 1:
        raise BadInput(f"claim {claim.id!r}: `against` fits {len(points)} points, expected one")
    return points[0] if points else None


def cluster_means(values: Sequence[tuple[str, float]]) -> dict[str, float]:
    clusters: dict[str, list[float]] = {}
    for name, value in values:
        clusters.setdefault(name, []).append(value)
    return {name: fmean(members) for name, members in clusters.items()}


def _values(
    claim: Claim, point: Sequence[Sample], partner: Sequence[Sample] | None
) -> Iterator[tuple[str, float]]:
    """Yield the claim's value for each replicate, with its cluster. Two points are compared by replicate.

    The statistic `fives_apart` has a value for every five runs: their range over their mean.
    """
    if claim.statistic == "fives_apart":
        runs = [sample.measures[claim.measure] for sample in point if claim.measure in sample.measures]
        for first in range(0, len(runs) - GROUP + 1, GROUP):
            five = runs[first : first + GROUP]
            yield str(first), (max(five) - min(five)) / fmean(five) if fmean(five) else 0.0
    elif partner is None:
        for sample in point:
            if claim.measure in sample.measures:
                yield sample.independent, sample.measures[claim.measure]
    else:
        by_replicate = {sample.replicate: sample.measures for sample in partner}
        for sample in point:
            if sample.replicate in by_replicate:
                value = _compare(claim, sample.measures, by_replicate[sample.replicate])
                if value is not None:
                    yield sample.independent, value


def _apart(claim: Claim, point: Sequence[Sample], partner: Sequence[Sample]) -> Estimate:
    """Return how far apart the means of two points are, as a share of the second."""
    sides = [
        cluster_means([(one.independent, one.measures[claim.measure]) for one in s]) for s in (point, partner)
    ]

    def apart(means: Sequence[float]) -> float:
        return abs(means[0] / means[1] - 1)

    mean = apart([fmean(side.values()) for side in sides])
    interval = jackknife(apart, sides)
    if interval is not None:
        interval = max(interval[0], 0.0), interval[1]
    return Estimate(point[0].varied, {"": mean}, mean, interval, len(point))


def _compare(
    claim: Claim, first_measures: Mapping[str, float], second_measures: Mapping[str, float]
) -> float | None:
    other = str((claim.against or {}).get("measure", claim.measure))
    if claim.measure not in first_measures or other not in second_measures:
        return None
    if claim.compare == "largest_difference":
        return max(abs(first_measures[name] - second_measures[name]) for name in (claim.measure, *claim.also))
    first, second = first_measures[claim.measure], second_measures[other]
    if claim.compare == "difference":
        return first - second
    if not second:
        return None
    return first / second if claim.compare == "ratio" else 100 * (first / second - 1)
