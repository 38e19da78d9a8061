"""Claims about the shape of curves (`rises`, `linear`, ...) as margins, each with its interval.

A margin is a number that is positive if the curve has the shape at one place: one step of `rises`, the whole of
`flat`. Intervals leave out one cluster of runs at a time (`estimates.jackknife`).
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from statistics import fmean
from typing import Final, TypeAlias

from msgspec import Struct

from precede.reproduction.claims import Claim
from precede.reproduction.estimates import Estimate, jackknife, place_on

SHAPES: Final = {
    **{"rises": 2, "falls": 2, "range_rises": 2, "steeper_last": 3},
    **{"flat": 2, "linear": 3, "sublinear": 2},
}
"""The kinds of claims about curves, and the fewest points that a curve needs to be judged by each."""
WHOLE: Final = ("flat", "linear", "sublinear")
"""The kinds that take all points of the axis as one curve."""
Curve: TypeAlias = list[tuple[float, Estimate]]
"""Positions on an axis, ascending, each with the estimate there."""


class Margin(Struct, frozen=True):
    """A number that must be positive; down to minus `slack` is close."""

    value: float
    interval: tuple[float, float] | None
    slack: float = 0.0


def has_shape(claim: Claim, estimates: Sequence[Estimate]) -> bool:
    """Are there enough points on the axis (for `range_rises`, enough curves) to judge a shape?"""
    if claim.kind in WHOLE:
        return len({place for place, _ in _along(claim, estimates)}) >= SHAPES[claim.kind]
    return len(_curves(claim, estimates)) >= (2 if claim.kind == "range_rises" else 1)


def margins_of(claim: Claim, estimates: Sequence[Estimate]) -> list[Margin]:
    """Return the margins of a claim about a shape; the claim holds if all are positive."""
    if claim.kind in WHOLE:
        return _of_size(claim, _along(claim, estimates))
    curves = _curves(claim, estimates)
    if claim.kind == "steeper_last":
        return [_margin(_steeper, [dict(curve)[place] for place in claim.at]) for curve in curves]
    if claim.kind == "range_rises":
        return [
            _step(claim, [one for _, one in first], [one for _, one in second], _range, 1)
            for first, second in pairwise(curves)
        ]
    sign = 1 if claim.kind == "rises" else -1
    return [
        _step(claim, [first], [second], fmean, sign)
        for curve in curves
        for (_, first), (_, second) in pairwise(curve)
    ]


def _curves(claim: Claim, estimates: Sequence[Estimate]) -> list[Curve]:
    """Return the estimates along one axis, one curve for each combination of the other axes.

    The axis is `over`, if the claim has it, and then the curves are in the order of `along`. A curve that is
    too short, or that lacks the places the claim is about, is left out.
    """
    axis = claim.over or claim.along
    curves: dict[str, list[tuple[float, float, Estimate]]] = {}
    for one in (one for one in estimates if axis in one.varied):
        others = sorted((key, repr(value)) for key, value in one.varied.items() if key != axis)
        place = place_on(one.varied.get(claim.along)) if claim.over else 0.0
        curves.setdefault(repr(others), []).append((place, place_on(one.varied[axis]), one))
    ordered = sorted(curves.values(), key=lambda curve: curve[0][0])
    sorted_curves = [
        [(place, one) for _, place, one in sorted(curve, key=lambda entry: entry[:2])] for curve in ordered
    ]
    return [
        curve
        for curve in sorted_curves
        if len({place for place, _ in curve} & set(claim.at or dict(curve))) >= SHAPES[claim.kind]
    ]


def _along(claim: Claim, estimates: Sequence[Estimate]) -> Curve:
    points = [(place_on(one.varied[claim.along]), one) for one in estimates if claim.along in one.varied]
    return sorted(points, key=lambda point: point[0])


def _margin(
    statistic: Callable[[Sequence[float]], float], points: Sequence[Estimate], slack: float = 0.0
) -> Margin:
    value = statistic([one.mean for one in points])
    return Margin(value, jackknife(statistic, [one.clusters for one in points]), slack)


def _step(
    claim: Claim,
    first: Sequence[Estimate],
    second: Sequence[Estimate],
    size: Callable[[Sequence[float]], float],
    sign: int,
) -> Margin:
    """Return the margin of a step from one size to the next."""

    def grows(means: Sequence[float]) -> float:
        return sign * (size(means[len(first) :]) - size(means[: len(first)]))

    before = size([one.mean for one in first])
    return _margin(grows, [*first, *second], claim.slack + claim.slack_relative * abs(before))


def _range(means: Sequence[float]) -> float:
    return max(means) / min(means)


def _steeper(means: Sequence[float]) -> float:
    """Return by how much more a curve of three points falls at its end than at its beginning."""
    first, second, third = means
    return (second - third) - (first - second)


def _of_size(claim: Claim, curve: Curve) -> list[Margin]:
    """Return the margin of `flat` or `linear` (twice the tolerance is close), or each step's of `sublinear`."""
    places, points = [place for place, _ in curve], [one for _, one in curve]
    if claim.kind == "sublinear":
        steps = [step for step in pairwise(curve) if step[0][0] > 0]
        return [
            _margin(partial(_less_than_linear, second / first), [low, high])
            for (first, low), (second, high) in steps
        ]
    size = _relative_range if claim.kind == "flat" else partial(_off_the_line, places)
    return [_margin(lambda means: claim.tolerance - size(means), points, claim.tolerance)]


def _less_than_linear(factor: float, means: Sequence[float]) -> float:
    """Return how much smaller the factor between two means is than the factor between their places."""
    return factor - means[1] / means[0]


def _relative_range(means: Sequence[float]) -> float:
    return (max(means) - min(means)) / fmean(means)


def _off_the_line(places: Sequence[float], means: Sequence[float]) -> float:
    """Return how far the farthest point is off the line between the ends, as a share of the rise."""
    (first, low), (last, high) = (places[0], means[0]), (places[-1], means[-1])
    line = [low + (high - low) * (place - first) / (last - first) for place in places]
    farthest = max(abs(mean - on) for mean, on in zip(means, line, strict=True))
    return farthest / abs(high - low) if high != low else math.inf
