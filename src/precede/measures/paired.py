"""Paired differences: the same measure of two settings, run by run with the same seeds.

Runs with one seed share their world, so the difference within a pair varies less than the two measures do. The
test is Student's t of the differences. Its p values are corrected by Holm's method for the number of tests that
answer one question, so the probability of any false "better" among them stays below the level.
"""

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from precede.measures.statistics import student_cdf, student_quantile

FEWEST_SEEDS: Final = 5
"""With fewer shared seeds nothing is concluded."""
LEVEL: Final = 0.95
COMPARED: Final = {
    "delivery_ratio": 1,
    "age_us_mean": -1,
    "wait_us_mean": -1,
    "overhead_ratio": -1,
    "packets": -1,
    "control_bytes_mean": -1,
    "energy_j": -1,
}
"""The measures that are compared: 1 if higher is better, -1 if lower is."""


class Difference(NamedTuple):
    """The differences a - b over shared seeds: mean, interval, effect size, probability under no difference.

    `effect` is the mean difference in units of the standard deviation of the differences (Cohen's d for pairs);
    None if they do not vary. With one seed there is no interval and p is 1.
    """

    seeds: int
    mean_a: float
    mean_b: float
    difference: float
    low: float | None
    high: float | None
    effect: float | None
    p: float


def paired_difference(a: Mapping[int, float], b: Mapping[int, float]) -> Difference | None:
    """Compare two settings, each a value by seed, over the seeds that both have; None if they share none.

    >>> one = paired_difference({1: 3.0, 2: 4.0, 3: 5.5}, {1: 1.0, 2: 2.0, 3: 3.0, 4: 9.0})
    >>> one.seeds, round(one.difference, 3), round(one.low, 3), round(one.high, 3), round(one.p, 4)
    (3, 2.167, 1.45, 2.884, 0.0059)
    """
    seeds = sorted(a.keys() & b.keys())
    if not seeds:
        return None
    count = len(seeds)
    differences = [a[seed] - b[seed] for seed in seeds]
    mean = math.fsum(differences) / count
    means = (math.fsum(a[seed] for seed in seeds) / count, math.fsum(b[seed] for seed in seeds) / count)
    if count == 1:
        return Difference(count, *means, mean, None, None, None, 1.0)
    deviation = math.sqrt(math.fsum((one - mean) ** 2 for one in differences) / (count - 1))
    if deviation <= 1e-12 * max(map(abs, differences)):  # all equal, but for rounding
        return Difference(count, *means, mean, mean, mean, None, 1.0 if mean == 0 else 0.0)
    error = deviation / math.sqrt(count)
    half = _quantile(count - 1) * error
    p = 2 * (1 - student_cdf(abs(mean) / error, count - 1))
    return Difference(count, *means, mean, mean - half, mean + half, mean / deviation, p)


def holm(probabilities: Sequence[float]) -> list[float]:
    """Correct p values for their number (Holm 1979): the smallest counts most often, and none becomes smaller.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected = [0.0] * len(probabilities)
    largest = 0.0
    for rank, place in enumerate(sorted(range(len(probabilities)), key=lambda place: probabilities[place])):
        largest = max(largest, min(1.0, (len(probabilities) - rank) * probabilities[place]))
        corrected[place] = largest
    return corrected


@lru_cache
def _quantile(freedom: int) -> float:
    return student_quantile((1 + LEVEL) / 2, freedom)
