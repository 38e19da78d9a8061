"""Random generators of a run, each with its own name, and written distributions.

Generators never share state: drawing more from one changes no other. Python generators are for single draws and
for nodes; numpy generators draw blocks, which is ten times cheaper per draw (`sim.draws`).
"""

import re
from collections.abc import Callable
from functools import cache
from math import inf
from random import Random
from typing import Any, Final, TypeAlias

import numpy as np

from precede.core.errors import BadInput
from precede.core.instants import SECOND
from precede.core.randomness import derive_seed, named_generator
from precede.sim.draws import Draws

_ARGUMENTS: Final = {
    "constant": (1,),
    "exponential": (1,),
    "uniform": (2,),
    "normal": (2,),
    "triangular": (2, 3),
    "pareto": (2,),
}
Floats: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"
_MOST: Final = 1e11
"""The largest value in seconds; sums of such values still fit into 64 bits of microseconds."""
_WRITTEN = re.compile(r"\s*([a-z]+)\s*\(\s*([^)]*)\)\s*")


class Generators:
    """Makes the named generators of one run."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def python(self, *name: str | int) -> Random:
        return named_generator(self.seed, *name)

    def numpy(self, *name: str | int) -> "np.random.Generator":
        return np.random.Generator(np.random.PCG64(derive_seed(self.seed, *name)))


class Distribution:
    """A written distribution: `exponential(1)`, `uniform(1, 19)`, `normal(100, 25)`, `triangular(0, 600)`.

    `constant(1)` or a bare number does not vary. `pareto(1, 1.5)` has least value 1 and tail index 1.5; with an
    index of 1 or less it has no mean. Arguments are in the unit of the scenario's key (seconds for delays).
    Negative draws count as zero.
    """

    def __init__(self, written: str | int | float) -> None:
        self.written = str(written)
        self.arguments: tuple[float, ...]
        if isinstance(written, (int, float)) and not isinstance(written, bool):
            self.name, self.arguments = "constant", (float(written),)
        else:
            self.name, self.arguments = self._parse(self.written)
        self._check()

    def _parse(self, written: str) -> tuple[str, tuple[float, ...]]:
        match = _WRITTEN.fullmatch(written)
        if match is None or match[1] not in _ARGUMENTS:
            raise BadInput(f"not a distribution: {written!r} (known: {', '.join(_ARGUMENTS)})")
        try:
            return match[1], tuple(float(part) for part in match[2].split(","))
        except ValueError as error:
            raise BadInput(f"not a distribution: {written!r}: {error}") from error

    def _check(self) -> None:
        name, arguments = self.name, self.arguments
        if len(arguments) not in _ARGUMENTS[name] or not all(np.isfinite(arguments)):
            raise BadInput(f"{self.written!r}: {name} takes {_ARGUMENTS[name][-1]} finite number(s)")
        if name in ("uniform", "triangular") and arguments[0] > arguments[-1]:
            raise BadInput(f"{self.written!r}: the bounds are in the wrong order")
        if max(map(abs, arguments)) > _MOST:
            raise BadInput(f"{self.written!r}: more than {_MOST:g} cannot be simulated")
        if name == "triangular" and not arguments[0] <= arguments[-2] <= arguments[-1]:
            raise BadInput(f"{self.written!r}: the peak is not between the bounds")
        if name in ("exponential", "constant") and arguments[0] < 0:
            raise BadInput(f"{self.written!r}: must not be negative")
        if name == "normal" and arguments[1] < 0:
            raise BadInput(f"{self.written!r}: the deviation must not be negative")
        if name == "pareto" and min(arguments) <= 0:
            raise BadInput(f"{self.written!r}: both must be greater than 0")

    def block(self, generator: "np.random.Generator", count: int) -> Floats:
        """Draws `count` values at once; negative values become 0, too large ones the largest possible."""
        name, arguments = self.name, self.arguments
        if name == "constant":
            drawn = np.full(count, arguments[0])
        elif name == "exponential":
            drawn = generator.exponential(arguments[0], count)
        elif name == "uniform":
            drawn = generator.uniform(arguments[0], arguments[1], count)
        elif name == "normal":
            drawn = generator.normal(arguments[0], arguments[1], count)
        elif name == "pareto":
            drawn = arguments[0] * (1 + generator.pareto(arguments[1], count))
        else:
            low, high = arguments[0], arguments[-1]
            middle = arguments[1] if len(arguments) == 3 else (low + high) / 2
            drawn = generator.triangular(low, middle, high, count) if high > low else np.full(count, low)
        np.maximum(drawn, 0.0, out=drawn)  # in place: `np.clip` takes three times as long for a short block
        possible: Floats = np.minimum(drawn, _MOST, out=drawn)
        return possible

    def mean(self) -> float:
        """Return the mean of the distribution as written, before negative draws are set to zero."""
        name, arguments = self.name, self.arguments
        if name == "normal":
            return arguments[0]
        if name == "pareto":
            least, index = arguments
            return least * index / (index - 1) if index > 1 else inf
        return sum(arguments) / len(arguments)

    def is_zero(self) -> bool:
        """True if every draw is 0. Waiting for it again and again would not let time pass."""
        return self.arguments[-1] <= 0 and (self.name != "normal" or self.arguments[0] <= 0)

    def drawing(self, generators: Generators, *name: str | int, unit: int = SECOND) -> Callable[[], int]:
        """Returns a function that draws whole microseconds; the distribution's unit is `unit` of them."""
        if self.name == "constant":
            constant = round(self.arguments[0] * unit)
            return lambda: constant
        return self.draws(generators, *name, unit=unit).next

    def draws(self, generators: Generators, *name: str | int, unit: int = SECOND) -> Draws:
        """Like `drawing`, but returns an object, which is faster for very many draws."""
        generator = _unused() if self.name == "constant" else generators.numpy(*name)

        def block(count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
            drawn = self.block(generator, count)
            drawn *= unit
            return np.rint(drawn, out=drawn).astype(np.int64)

        return Draws(block)

    def __str__(self) -> str:
        return self.written

    def __repr__(self) -> str:
        return f"Distribution({self.written!r})"


@cache
def _unused() -> "np.random.Generator":
    """Return what stands in for the generator of a constant, which draws nothing; making a generator is slow.

    It is made at need, because the import of `numpy.random` takes a tenth of that of numpy.
    """
    return np.random.Generator(np.random.PCG64(0))
