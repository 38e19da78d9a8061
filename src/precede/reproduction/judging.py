"""Compares claims with measures: our value with its interval, the deviation, and the status.

A *sample* is one measured run (or a pair, or a series of runs) of one point of an experiment; the samples of a
point differ in seed or layout only. A claim is compared with the mean of every point that it selects.
"""

import math
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise
from statistics import fmean
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct, structs

from precede.core.errors import BadInput
from precede.core.instants import parse_duration
from precede.measures.statistics import confidence_interval
from precede.reproduction.claims import Claim, Claims, Reason

Status: TypeAlias = Literal[
    "reproduced", "close", "better than published", "not reproduced", "withheld", "paper scale only"
]
STATUSES: Final[tuple[Status, ...]] = (
    "reproduced",
    "close",
    "better than published",
    "not reproduced",
    "withheld",
    "paper scale only",
)
FIRST_RUNS: Final = 5
SHAPES: Final = {
    **{"rises": 2, "falls": 2, "range_rises": 2, "steeper_last": 3},
    **{"flat": 2, "linear": 3, "sublinear": 2},
}
"""The kinds of claims about curves, and the fewest points that a curve needs to be judged by each."""
Curve: TypeAlias = list[tuple[float, float]]
"""Positions on an axis, ascending, each with the mean of the measure there."""


class Sample(Struct, frozen=True):
    """The measures of one replicate of a point; `varied` has the point's value on each axis."""

    experiment: str
    varied: Mapping[str, Any]
    replicate: str
    measures: Mapping[str, float]


class Comparison(Struct, frozen=True, kw_only=True):
    """A judged claim.

    `ours` is the least and the greatest mean over its points, `off` the deviation in percent. `reason` explains
    a claim that is not reproduced, `shown_by` names what supports the reason.
    """

    claim: Claim
    status: Status
    reading: str = ""
    ours: tuple[float, float] | None = None
    interval: tuple[float, float] | None = None
    off: float | None = None
    points: int = 0
    runs: int = 0
    reason: str | None = None
    shown_by: str | None = None


class Estimate(Struct, frozen=True):
    """The values of a claim at one point, one for each replicate, with their mean and interval."""

    varied: Mapping[str, Any]
    values: tuple[float, ...]
    mean: float
    interval: tuple[float, float] | None


def judge(
    claims: Claims, samples: Sequence[Sample], scale: str, reasons: Sequence[Reason] = ()
) -> list[Comparison]:
    """Judge every claim, once for each reading (each value of the axis that `claims.readings` names)."""
    readings = [""]
    if claims.readings:
        readings = list(dict.fromkeys(str(sample.varied[claims.readings]) for sample in samples)) or [""]
    comparisons = []
    for claim in claims.claim:
        for reading in readings:
            own_samples = [s for s in samples if not reading or str(s.varied[claims.readings]) == reading]
            comparisons.append(explain(_judge(claim, own_samples, scale, claims.close, reading), reasons))
    return comparisons


def explain(comparison: Comparison, reasons: Sequence[Reason]) -> Comparison:
    """Add to a claim that is not reproduced the first reason that fits its id and reading."""
    if comparison.status != "not reproduced":
        return comparison
    for reason in reasons:
        named = any(fnmatchcase(comparison.claim.id, pattern) for pattern in reason.claims)
        if named and reason.reading in (None, comparison.reading):
            return structs.replace(comparison, reason=reason.why, shown_by=", ".join(reason.supported_by))
    return comparison


def _judge(claim: Claim, samples: Sequence[Sample], scale: str, close: float, reading: str) -> Comparison:
    estimates = _estimates(claim, samples)
    if claim.kind in ("greatest", "greatest_at_least") and estimates:
        estimates = [max(estimates, key=lambda one: one.mean)]
    means = [one.mean for one in estimates]
    only_at_paper_scale = scale == "quick" and claim.scale == "paper"
    if not means or only_at_paper_scale or (claim.kind in SHAPES and not _has_shape(claim, estimates)):
        status: Status = "withheld" if claim.kind == "withheld" and means else "paper scale only"
        off = None
    elif claim.kind in SHAPES:
        status, off = _by_shape(claim, estimates)
    else:
        status, off = _by_bounds(claim, means, close)
    intervals = [one.interval for one in estimates if one.interval is not None]
    return Comparison(
        claim=claim,
        status=status,
        reading=claim.reading or reading,
        ours=(min(means), max(means)) if means else None,
        interval=(min(i[0] for i in intervals), max(i[1] for i in intervals)) if intervals else None,
        off=off,
        points=len(means),
        runs=sum(len(one.values) for one in estimates),
    )


def _estimates(claim: Claim, samples: Sequence[Sample]) -> list[Estimate]:
    """Return a claim's values at each point that it selects and that has one, in the order of the samples."""
    points = _points(claim.experiment, claim.where, samples)
    estimates = []
    for point in points:
        partner = None if claim.against is None else _partner(claim, point[0].varied, samples)
        if claim.against is not None and not partner:
            continue
        if claim.compare == "apart" and partner:
            first, second = (
                fmean(sample.measures[claim.measure] for sample in side) for side in (point, partner)
            )
            values = [abs(first / second - 1)]
        else:
            values = _values(claim, point, partner)
        if values:
            estimates.append(Estimate(point[0].varied, tuple(values), fmean(values), _interval(values)))
    return estimates


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


def _values(claim: Claim, point: Sequence[Sample], partner: Sequence[Sample] | None) -> list[float]:
    """Return the claim's value for each replicate. Two points are compared replicate by replicate.

    The statistic `first_five_apart` is one value: the range of the first five runs over their mean.
    """
    if claim.statistic == "first_five_apart":
        first = [sample.measures[claim.measure] for sample in point[:FIRST_RUNS]]
        return [(max(first) - min(first)) / fmean(first)] if fmean(first) else [0.0]
    if partner is None:
        return [sample.measures[claim.measure] for sample in point if claim.measure in sample.measures]
    by_replicate = {sample.replicate: sample.measures for sample in partner}
    pairs = [(s.measures, by_replicate[s.replicate]) for s in point if s.replicate in by_replicate]
    return [value for ours, other in pairs if (value := _compare(claim, ours, other)) is not None]


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


def _interval(values: Sequence[float]) -> tuple[float, float] | None:
    return confidence_interval(values) if len(values) > 1 else None


def _by_bounds(claim: Claim, means: Sequence[float], close: float) -> tuple[Status, float | None]:
    """Return the status of a claim about bounds, and its deviation in percent."""
    if claim.kind == "withheld":
        return "withheld", None
    low, high = claim.bounds
    over = [(mean - high, high) if mean > high else (low - mean, low) for mean in means]
    status: Status = "not reproduced"
    if all(off < 0 or (off == 0 and not claim.strict) or off <= claim.reach(bound) > 0 for off, bound in over):
        status = "reproduced"
    elif all(off < 0 or off <= _near(claim, bound, close) > 0 for off, bound in over):
        status = "close"
    elif (claim.smaller_is_better and max(means) <= high) or (claim.larger_is_better and min(means) >= low):
        status = "better than published"
    return status, _deviation(claim, means)


def _near(claim: Claim, bound: float, close: float) -> float:
    """Return how far beyond a bound is `close`: tolerance plus slack, or `close` times the tolerance."""
    return max(claim.reach(bound) + claim.slack, close * claim.reach(bound))


def _deviation(claim: Claim, means: Sequence[float]) -> float | None:
    """Return by how many percent the farthest point is off the bound: 0 within, None if the bound is 0."""
    low, high = claim.bounds
    off = max(
        (mean - high if mean > high else mean - low if mean < low else 0.0 for mean in means),
        key=abs,
        default=0.0,
    )
    bound = high if off > 0 else low
    if not off:
        return 0.0
    return 100 * off / abs(bound) if bound and math.isfinite(bound) else None


def _has_shape(claim: Claim, estimates: Sequence[Estimate]) -> bool:
    """Are there enough points on the axis (for `range_rises`, enough curves) to judge a shape?"""
    if claim.kind in ("flat", "linear", "sublinear"):
        return len({place for place, _ in _along(claim, estimates)}) >= SHAPES[claim.kind]
    return len(_curves(claim, estimates)) >= (2 if claim.kind == "range_rises" else 1)


def _by_shape(claim: Claim, estimates: Sequence[Estimate]) -> tuple[Status, float | None]:
    """Return the status of a claim about the shape of curves: `close` if all have it only within slack."""
    if claim.kind in ("flat", "linear", "sublinear"):
        return _status([_by_size(claim, estimates)]), None
    curves = _curves(claim, estimates)
    if claim.kind == "steeper_last":
        return _status([_steeper_last(claim, curve) for curve in curves]), None
    means = [[mean for _, mean in curve] for curve in curves]
    if claim.kind == "range_rises":
        return _status([_climbs([max(curve) / min(curve) for curve in means], claim)]), None
    sign = 1 if claim.kind == "rises" else -1
    return _status([_climbs([sign * mean for mean in curve], claim) for curve in means]), None


def _curves(claim: Claim, estimates: Sequence[Estimate]) -> list[Curve]:
    """Return the means along one axis, one curve for each combination of the other axes.

    The axis is `over`, if the claim has it, and then the curves are in the order of `along`. A curve that is
    too short, or that lacks the places the claim is about, is left out.
    """
    axis = claim.over or claim.along
    curves: dict[str, list[tuple[float, float, float]]] = {}
    for one in (one for one in estimates if axis in one.varied):
        others = sorted((key, repr(value)) for key, value in one.varied.items() if key != axis)
        place = place_on(one.varied.get(claim.along)) if claim.over else 0.0
        curves.setdefault(repr(others), []).append((place, place_on(one.varied[axis]), one.mean))
    ordered = sorted(curves.values(), key=lambda curve: curve[0][0])
    sorted_curves = [[(place, mean) for _, place, mean in sorted(curve)] for curve in ordered]
    return [
        curve
        for curve in sorted_curves
        if len({place for place, _ in curve} & set(claim.at or dict(curve))) >= SHAPES[claim.kind]
    ]


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


def _climbs(values: Sequence[float], claim: Claim) -> tuple[bool, bool]:
    """Return whether the values rise at every step, and whether they do within the claim's slack."""
    steps = list(pairwise(values))
    slack = claim.slack
    return (
        all(a < b for a, b in steps),
        all(b > a - slack - claim.slack_relative * abs(a) for a, b in steps),
    )


def _steeper_last(claim: Claim, curve: Curve) -> tuple[bool, bool]:
    """Return twice whether a curve of three points falls more at its end: this shape has no slack."""
    first, second, third = (dict(curve)[place] for place in claim.at)
    steeper = second - third > first - second
    return steeper, steeper


def _by_size(claim: Claim, estimates: Sequence[Estimate]) -> tuple[bool, bool]:
    """Return whether a curve is flat or linear within the tolerance, and within twice the tolerance.

    For `sublinear`, both answers are whether it grows by a smaller factor than the axis.
    """
    points = _along(claim, estimates)
    (first, low), (last, high) = points[0], points[-1]
    if claim.kind == "sublinear":
        grows_less = high / low < last / first
        return grows_less, grows_less
    if claim.kind == "flat":
        means = [mean for _, mean in points]
        size = (max(means) - min(means)) / fmean(means)
    else:
        line = [low + (high - low) * (x - first) / (last - first) for x, _ in points]
        farthest = max(abs(y - on) for (_, y), on in zip(points, line, strict=True))
        size = farthest / abs(high - low) if high != low else math.inf
    return size <= claim.tolerance, size <= 2 * claim.tolerance


def _along(claim: Claim, estimates: Sequence[Estimate]) -> Curve:
    return sorted((place_on(o.varied[claim.along]), o.mean) for o in estimates if claim.along in o.varied)


def _status(shapes: Sequence[tuple[bool, bool]]) -> Status:
    if all(strictly for strictly, _ in shapes):
        return "reproduced"
    return "close" if all(nearly for _, nearly in shapes) else "not reproduced"
