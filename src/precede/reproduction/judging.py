"""Compares claims with measures: our value with its interval, the deviation, and the status.

A verdict uses the interval, not the mean. A claim is *reproduced* if the interval of every point lies inside
its tolerance, *not reproduced* if the interval of one point lies outside, and else *open*: more seeds could
decide it. A point with one run has no interval, so it is open.
"""

import math
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Final, Literal, TypeAlias

from msgspec import Struct, structs

from precede.reproduction.claims import Claim, Claims, Reason
from precede.reproduction.estimates import Estimate, Sample, estimates_of, place_on
from precede.reproduction.shapes import SHAPES, Margin, has_shape, margins_of

__all__ = ["STATUSES", "Comparison", "Sample", "Status", "explain", "judge", "place_on"]

Status: TypeAlias = Literal["reproduced", "close", "open", "not reproduced", "withheld", "paper scale only"]
STATUSES: Final[tuple[Status, ...]] = (
    "reproduced",
    "close",
    "open",
    "not reproduced",
    "withheld",
    "paper scale only",
)
_WORST_FIRST: Final[tuple[Status, ...]] = ("not reproduced", "open", "close", "reproduced")


class Comparison(Struct, frozen=True, kw_only=True):
    """A judged claim.

    `ours` is the least and the greatest mean over its points, `off` the deviation in percent. `reason` explains
    a claim that is not reproduced, `shown_by` names what supports the reason. `scale` is that of the runs.
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
    scale: str = ""


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
            undecided = f"; undecided: {', '.join(reason.undecided)}" if reason.undecided else ""
            shown_by = ", ".join(reason.supported_by) + undecided
            return structs.replace(comparison, reason=reason.why, shown_by=shown_by)
    return comparison


def _judge(claim: Claim, samples: Sequence[Sample], scale: str, close: float, reading: str) -> Comparison:
    estimates = estimates_of(claim, samples)
    if claim.kind in ("greatest", "greatest_at_least") and estimates:
        estimates = [_greatest(estimates)]
    means = [one.mean for one in estimates]
    only_at_paper_scale = scale == "quick" and claim.scale == "paper"
    if not means or only_at_paper_scale or (claim.kind in SHAPES and not has_shape(claim, estimates)):
        status: Status = "withheld" if claim.kind == "withheld" and means else "paper scale only"
    elif claim.kind == "withheld":
        status = "withheld"
    elif claim.kind in SHAPES:
        status = _worst([_by_margin(margin) for margin in margins_of(claim, estimates)])
    else:
        status = _worst([_by_bounds(claim, one, close) for one in estimates])
    intervals = [one.interval for one in estimates if one.interval is not None]
    judged_by_bounds = status != "paper scale only" and claim.kind not in (*SHAPES, "withheld")
    return Comparison(
        claim=claim,
        status=status,
        reading=claim.reading or reading,
        ours=(min(means), max(means)) if means else None,
        interval=(min(i[0] for i in intervals), max(i[1] for i in intervals)) if intervals else None,
        off=_deviation(claim, means) if judged_by_bounds else None,
        points=len(means),
        runs=sum(one.runs for one in estimates),
        scale=scale,
    )


def _greatest(estimates: Sequence[Estimate]) -> Estimate:
    """Return the estimate of the greatest value of all points; which point it is, is not known for sure.

    Its interval is from the greatest lower end to the greatest upper end; None if some point has none.
    """
    greatest = max(estimates, key=lambda one: one.mean)
    intervals = [one.interval for one in estimates]
    ends = [interval for interval in intervals if interval is not None]
    whole = len(ends) == len(intervals)
    interval = (max(low for low, _ in ends), max(high for _, high in ends)) if whole else None
    return structs.replace(greatest, interval=interval)


def _worst(statuses: Sequence[Status]) -> Status:
    return next(status for status in _WORST_FIRST if status in statuses)


def _by_bounds(claim: Claim, estimate: Estimate, close: float) -> Status:
    """Return the status of one point of a claim about bounds, by its interval."""
    if estimate.interval is None:
        return "open"
    inside = [_is_inside(claim, end, 0.0, 1.0) for end in estimate.interval]
    if all(inside):
        return "reproduced"
    low, high = claim.bounds
    spans = estimate.interval[0] <= low - claim.reach(low) and estimate.interval[1] >= high + claim.reach(high)
    if any(inside) or spans:
        return "open"
    near = [_is_inside(claim, end, claim.slack, close) for end in estimate.interval]
    return "close" if all(near) and _has_slack(claim, close) else "not reproduced"


def _is_inside(claim: Claim, value: float, slack: float, times: float) -> bool:
    """Is a value within the bounds, or beyond them by the tolerance and slack, or by the tolerance `times`?"""
    low, high = claim.bounds
    over, bound = (value - high, high) if value > high else (low - value, low)
    reach = max(claim.reach(bound) + slack, times * claim.reach(bound))
    return over < 0 or (over == 0 and not claim.strict) or over <= reach > 0


def _has_slack(claim: Claim, close: float) -> bool:
    return bool(claim.slack) or close > 1


def _by_margin(margin: Margin) -> Status:
    if margin.interval is None:
        return "open"
    low, high = margin.interval
    if low > 0:
        return "reproduced"
    if high > 0:
        return "open"
    return "close" if low > -margin.slack else "not reproduced"


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
