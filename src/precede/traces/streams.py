"""Named random streams for generators, derived from a seed and a name: one seed, one world."""

from __future__ import annotations

from hashlib import blake2b
from random import Random


def stream(seed: int, *name: str | int) -> Random:
    """A stream that depends on the seed and its own name alone."""
    text = repr((seed, *name)).encode()
    return Random(int.from_bytes(blake2b(text, digest_size=16).digest(), "big"))
