"""Random variation of timer durations, so that the hosts of one cell do not transmit at the same instants."""

from random import Random

from precede.core.instants import Duration


def jittered(duration: Duration, generator: Random) -> Duration:
    """Return the duration plus or minus a random part of up to a quarter of it."""
    return round(duration * (0.75 + 0.5 * generator.random()))
