"""Named random generators: each is derived from a seed and a name, so one seed is one world."""

from hashlib import blake2b
from random import Random

from precede.core.instants import Duration


def derive_seed(seed: int, *name: str | int) -> int:
    """Return a 128-bit seed for a name: a hash, the same on every machine and in every process."""
    text = repr((seed, *name)).encode()
    return int.from_bytes(blake2b(text, digest_size=16).digest(), "big")


def named_generator(seed: int, *name: str | int) -> Random:
    return Random(derive_seed(seed, *name))


def jittered(duration: Duration, generator: Random) -> Duration:
    """Return the duration plus or minus up to a quarter of it: nodes must not send at the same instants."""
    return round(duration * (0.75 + 0.5 * generator.random()))
