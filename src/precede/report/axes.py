"""Axes of a figure: from values to coordinates, and the values at which ticks stand."""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Axis:
    """Maps values from `low` to `high` to coordinates from `start` to `end`, linearly or logarithmically."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def place(self, value: float) -> float:
        if self.logarithmic:
            share = (math.log(value) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Return round values on the axis, about six."""
        return log_ticks(self.low, self.high) if self.logarithmic else linear_ticks(self.low, self.high)


def fitting(values: Sequence[float], start: float, end: float, logarithmic: bool, zero: bool) -> Axis:
    """Make an axis for these values with a margin; with `zero`, one of positive values begins at 0."""
    if logarithmic and any(value <= 0 for value in values):
        raise ValueError("a logarithmic axis needs positive values")
    low, high = min(values), max(values)
    if logarithmic:
        spread = (high / low) ** 0.06 if high > low else 2.0
        return Axis(low / spread, high * spread, start, end, True)
    if zero and low >= 0:
        return Axis(0.0, (high or 1.0) * 1.08, start, end)
    margin = 0.06 * (high - low) or abs(high) * 0.5 or 1.0
    return Axis(low - margin, high + margin, start, end)


def linear_ticks(low: float, high: float) -> list[float]:
    """Return values at multiples of 1, 2 or 5 times a power of ten.

    >>> linear_ticks(0, 1.08)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.8)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    digits = max(0, 2 - math.floor(math.log10(step)))
    return [round(k * step, digits) for k in range(first, last + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Return powers of ten, with 2 and 5 times them if that is not too many.

    >>> log_ticks(3, 300)
    [5.0, 10.0, 20.0, 50.0, 100.0, 200.0]
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1, 2, 5), (1, 3), (1,)):
        ticks = [f * 10.0**power for power in powers for f in factors if low <= f * 10.0**power <= high]
        if len(ticks) <= 8:
            return ticks
    every = -(-len(ticks) // 8)
    return ticks[::every]
