"""The clock of a node: world time plus an offset, and a drift in parts per million."""

from msgspec import Struct

from precede.core.instants import Duration, Instant

_MILLION = 1_000_000


class Clock(Struct, frozen=True, gc=False):
    """A clock that never goes backwards."""

    offset: Duration = 0
    drift_ppm: int = 0

    def read(self, at: Instant) -> Instant:
        return at + self.offset + at * self.drift_ppm // _MILLION

    def world_time(self, reading: Instant) -> Instant:
        """Return the first instant of the world at which the clock reads this value or more."""
        at = (reading - self.offset) * _MILLION // (_MILLION + self.drift_ppm)
        while self.read(at) < reading:
            at += 1
        return at
