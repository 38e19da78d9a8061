"""Statistics: summaries with exact percentiles, Student's t distribution, confidence intervals.

Written with numpy and `math` alone, because a run must be measurable without scipy. Percentiles interpolate
linearly between the two nearest ranks, as numpy does by default.
"""

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np

from precede.measures.columns import Integers, spans

Number: TypeAlias = int | float | None
Measures: TypeAlias = dict[str, Number]
"""Measures by name, `subject_quantity_unit_statistic`; None is a statistic of no values."""

PERCENTILES: Final = (25, 50, 75, 90, 95, 99)
_INTERVAL_BITS: Final = 12
_FEW: Final = 1 << 13
"""Fewer values are sorted. Of more, the values are counted in at most 2 ** `_INTERVAL_BITS` intervals."""
_HALF_BITS: Final = 23
"""Products of numbers of so many bits can be added for a whole span in 64 bits."""
_LOW_BITS: Final = (1 << _HALF_BITS) - 1
STATISTICS: Final = ("mean", "sd", "min", "max", *(f"p{percentile}" for percentile in PERCENTILES))


def summarise(name: str, values: Integers) -> Measures:
    """Summarise integers: `name_mean`, `_sd` (of the sample), `_min`, `_max`, and the percentiles `_p25` to
    `_p99`.

    >>> summarise("wait_us", np.array([1, 2, 3, 6]))["wait_us_mean"]
    3.0
    """
    if values.size == 0:
        return {f"{name}_{statistic}": None for statistic in STATISTICS}
    measures: Measures = {
        f"{name}_mean": int(values.sum()) / values.size,
        f"{name}_sd": deviation(values),
        f"{name}_min": int(values.min()),
        f"{name}_max": int(values.max()),
    }
    for percentile, value in zip(PERCENTILES, percentiles(values, PERCENTILES), strict=True):
        measures[f"{name}_p{percentile}"] = value
    return measures


def deviation(values: Integers) -> float | None:
    """Return the standard deviation of a sample of integers; None for fewer than two.

    Sums are exact, so it depends neither on the order of the values nor on the machine, which adds products of
    floating-point numbers in an order of its own.

    >>> deviation(np.array([1, 2, 3, 6]))
    2.160246899469287
    """
    if values.size < 2:
        return None
    least, total, squares = int(values.min()), 0, 0
    range_bits = (int(values.max()) - least).bit_length()
    if not range_bits:
        return 0.0
    for span in spans(values.size):
        if range_bits > 2 * _HALF_BITS:
            far = [value - least for value in values[span].tolist()]
            total += sum(far)
            squares += sum(value * value for value in far)
            continue
        above = values[span].astype(np.int64) - least
        total += int(above.sum())
        if range_bits > _HALF_BITS:
            high, above = above >> _HALF_BITS, above & _LOW_BITS
            squares += (int(high @ high) << 2 * _HALF_BITS) + (int(high @ above) << _HALF_BITS + 1)
        squares += int(above @ above)
    return math.sqrt((values.size * squares - total * total) / (values.size * (values.size - 1)))


def percentiles(values: Integers, wanted: Sequence[float]) -> list[float]:
    """Return some percentiles of integers, as `numpy.percentile` does, in a third of its time.

    >>> percentiles(np.array([1, 2, 3, 6]), (50, 90))
    [2.5, 5.1]
    """
    places = (values.size - 1) * (np.array(wanted) / 100)
    before = np.floor(places).astype(np.intp)
    share = places - before
    least, most = values_at(values, np.concatenate((before, np.minimum(before + 1, values.size - 1)))).reshape(
        2, -1
    )
    distance = most - least
    interpolated = np.where(share < 0.5, least + distance * share, most - distance * (1 - share))
    return [float(value) for value in interpolated]


def values_at(values: Integers, ranks: Integers) -> Integers:
    """Return the values that would be at these places if all were sorted.

    Many values are counted in intervals, and only those in the intervals with these places are sorted.
    """
    least, most = int(values.min()), int(values.max())
    if least == most:
        return np.full(ranks.size, least)
    if values.dtype not in (np.int64, np.int32, np.uint32) or most - least >= 1 << 31:
        values = values.astype(np.int64)
    shift = max(0, (most - least).bit_length() - _INTERVAL_BITS)
    if values.size < _FEW or most - least >= 1 << 62:
        return np.sort(values)[ranks]
    counts = np.zeros(((most - least) >> shift) + 1, np.int64)
    for span in spans(values.size):
        counts += np.bincount((values[span] - least) >> shift, minlength=counts.size)
    ends = np.cumsum(counts)
    interval = np.searchsorted(ends, ranks, "right")
    if not shift:
        return interval + least
    is_sorted = np.zeros(counts.size, np.bool_)
    is_sorted[interval] = True
    parts = [values[span] for span in spans(values.size)]
    kept = np.sort(np.concatenate([part[is_sorted.take((part - least) >> shift)] for part in parts]))
    left_out = np.cumsum(np.where(is_sorted, 0, counts))
    return np.asarray(kept[ranks - left_out[interval]])


def ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def distribution(values: Integers) -> Iterator[tuple[int, int]]:
    """Yield each different value in ascending order, with the number of values up to it.

    >>> list(distribution(np.array([5, 2, 5])))
    [(2, 1), (5, 3)]
    """
    different, counts = np.unique(values, return_counts=True)
    yield from zip(different.tolist(), np.cumsum(counts).tolist(), strict=True)


def confidence_interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float] | None:
    """Return Student's confidence interval of the mean of independent runs; None for fewer than two.

    >>> low, high = confidence_interval([9.0, 10.0, 11.0])
    >>> round(low, 3), round(high, 3)
    (7.516, 12.484)
    """
    count = len(values)
    if count < 2:
        return None
    mean = math.fsum(values) / count
    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    half = student_quantile((1 + level) / 2, count - 1) * math.sqrt(variance / count)
    return mean - half, mean + half


@lru_cache(256)
def student_quantile(probability: float, freedom: int) -> float:
    """Return the quantile of Student's t distribution with `freedom` degrees of freedom.

    >>> round(student_quantile(0.975, 2), 4), round(student_quantile(0.975, 29), 4)
    (4.3027, 2.0452)
    """
    if not 0 < probability < 1 or freedom < 1:
        raise ValueError(f"no Student quantile at {probability} with {freedom} degrees of freedom")
    if probability < 0.5:
        return -student_quantile(1 - probability, freedom)
    if probability == 0.5:
        return 0.0
    low, high = 0.0, 1.0
    while student_cdf(high, freedom) < probability:
        low, high = high, 2 * high
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if student_cdf(middle, freedom) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def student_cdf(t: float, freedom: int) -> float:
    """Return the probability that a Student t variable is at most `t`."""
    tail = 0.5 * _incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))
    return 1 - tail if t > 0 else tail


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function, by its continued fraction."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    if x < (a + 1) / (a + b + 2):
        return front * _beta_fraction(a, b, x) / a
    return 1 - front * _beta_fraction(b, a, 1 - x) / b


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function, evaluated forwards (Lentz)."""
    tiny = 1e-300
    c, d = 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (d if abs(d) > tiny else tiny)
    value = d
    for m in range(1, 1000):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d, c = 1 + term * d, 1 + term / c
            d, c = 1 / (d if abs(d) > tiny else tiny), (c if abs(c) > tiny else tiny)
            value *= d * c
        if abs(d * c - 1) < 1e-16:
            break
    return value
