"""Named randomness: every stream is derived from the seed and its own name, so one seed is one world.

Streams never share state: drawing more from one changes no other. Python streams are for single draws and for
nodes; numpy streams are drawn in blocks, which is ten times cheaper per draw (`sim.draws`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import blake2b
from math import inf
from random import Random
from typing import Any, Final, TypeAlias

import numpy as np

from precede.core.errors import BadInput
from precede.core.instants import SECOND
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
"""In seconds, 64 bits of microseconds hold it with room for sums."""
_WRITTEN = re.compile(r"\s*([a-z]+)\s*\(\s*([^)]*)\)\s*")
_UNREAD: Final = np.random.Generator(np.random.PCG64(0))  # for what does not vary: opening a stream is dear


class Streams:
    """All randomness of one run."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def derive(self, *name: str | int) -> int:
        """A 128-bit seed for a name: a hash, so it is the same on every machine and under every hash seed."""
        text = repr((self.seed, *name)).encode()
        return int.from_bytes(blake2b(text, digest_size=16).digest(), "big")

    def python(self, *name: str | int) -> Random:
        """A stream for single draws."""
        return Random(self.derive(*name))

    def numpy(self, *name: str | int) -> np.random.Generator:
        """A stream for blocks of draws."""
        return np.random.Generator(np.random.PCG64(self.derive(*name)))


class Distribution:
    """A written distribution: `exponential(1)`, `uniform(1, 19)`, `normal(100, 25)`, `triangular(0, 600)`.

    `pareto(1, 1.5)` has least value 1 and tail index 1.5 (no mean at 1 or below).

    `constant(1)` or a bare number does not vary. Arguments are in the unit the scenario's key
    has (seconds for delays). Negative draws count as zero.
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

    def block(self, stream: np.random.Generator, count: int) -> Floats:
        """`count` draws at once."""
        name, arguments = self.name, self.arguments
        if name == "constant":
            drawn = np.full(count, arguments[0])
        elif name == "exponential":
            drawn = stream.exponential(arguments[0], count)
        elif name == "uniform":
            drawn = stream.uniform(arguments[0], arguments[1], count)
        elif name == "normal":
            drawn = stream.normal(arguments[0], arguments[1], count)
        elif name == "pareto":
            drawn = arguments[0] * (1 + stream.pareto(arguments[1], count))
        else:
            low, high = arguments[0], arguments[-1]
            middle = arguments[1] if len(arguments) == 3 else (low + high) / 2
            drawn = stream.triangular(low, middle, high, count) if high > low else np.full(count, low)
        possible: Floats = np.clip(drawn, 0.0, _MOST)
        return possible

    def mean(self) -> float:
        """The expectation (of the distribution as written, before negative draws are cut)."""
        name, arguments = self.name, self.arguments
        if name == "normal":
            return arguments[0]
        if name == "pareto":
            least, index = arguments
            return least * index / (index - 1) if index > 1 else inf
        return sum(arguments) / len(arguments)

    def is_zero(self) -> bool:
        """Is every draw nothing? Whoever waits for it again and again would not see time pass."""
        return self.arguments[-1] <= 0 and (self.name != "normal" or self.arguments[0] <= 0)

    def drawing(self, streams: Streams, *name: str | int, unit: int = SECOND) -> Callable[[], int]:
        """A function that draws whole microseconds, one at a time, from a stream of that name."""
        if self.name == "constant":
            constant = round(self.arguments[0] * unit)
            return lambda: constant
        return self.draws(streams, *name, unit=unit).next

    def draws(self, streams: Streams, *name: str | int, unit: int = SECOND) -> Draws:
        """The same as an object, for who draws very often."""
        stream = _UNREAD if self.name == "constant" else streams.numpy(*name)
        return Draws(lambda count: np.rint(self.block(stream, count) * unit).astype(np.int64))

    def __str__(self) -> str:
        return self.written

    def __repr__(self) -> str:
        return f"Distribution({self.written!r})"
